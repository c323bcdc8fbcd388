/* Calls the former main function of a program that was turned into a library. */
int library_main(void);

int main(void)
{
	return library_main();
}
