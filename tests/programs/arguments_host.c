/* Calls what was the main function of a program that is a library now. */
int library_main(void);

int main(void)
{
	return library_main();
}
