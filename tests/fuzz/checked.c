/* The report as a program with sanitizers: see readers.c. */
int report_main(int words, char **word);

int main(int words, char **word)
{
	return report_main(words, word);
}
