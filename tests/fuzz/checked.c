/* The report with sanitizers, as a program: see readers.c. */
int report_main(int words, char **word);

int main(int words, char **word)
{
	return report_main(words, word);
}
