/*
 * The program of the README and of the examples in the manual pages: two threads read
 * and compute sums like "1 + 2 * 3" again and again, and add the results to a total
 * that one lock protects. app N: N rounds for each thread (2000).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { NUMBER, OPERATOR, END };

struct token {
	enum kind kind;
	long value;
};

static pthread_mutex_t total_lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static long rounds = 2000;

__attribute__((noinline)) struct token next(const char **from)
{
	struct token token = { END, 0 };

	while (**from == ' ')
		(*from)++;
	if (**from >= '0' && **from <= '9') {
		token.kind = NUMBER;
		token.value = strtol(*from, (char **)from, 10);
	} else if (**from) {
		token.kind = OPERATOR;
		token.value = *(*from)++;
	}
	return token;
}

__attribute__((noinline)) struct token *parse(const char *text, size_t *count)
{
	struct token *tokens = NULL;
	size_t n = 0;

	do {
		tokens = realloc(tokens, (n + 1) * sizeof(*tokens));
		if (!tokens)
			abort();
		tokens[n] = next(&text);
	} while (tokens[n++].kind != END);
	*count = n;
	return tokens;
}

__attribute__((noinline)) long evaluate(const struct token *tokens,
					enum kind last)
{
	long sum = 0, product = 1;

	for (; tokens->kind != last; tokens++) {
		if (tokens->kind == NUMBER) {
			product *= tokens->value;
		} else if (tokens->value == '+') {
			sum += product;
			product = 1;
		}
	}
	return sum + product;
}

__attribute__((noinline)) void add(long value)
{
	pthread_mutex_lock(&total_lock);
	for (int i = 0; i < 50; i++)
		total = (total * 31 + value) % 1000003;
	pthread_mutex_unlock(&total_lock);
}

__attribute__((noinline)) void *work(void *text)
{
	for (long i = 0; i < rounds; i++) {
		size_t count;
		struct token *tokens = parse(text, &count);

		add(evaluate(tokens, tokens[count - 1].kind));
		free(tokens);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static char *texts[] = { "1 + 2", "3 * 4 + 5 * 6 + 7" };
	pthread_t threads[2];
	char *kept = strdup("kept until the end");

	if (argc > 1)
		rounds = atol(argv[1]);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, texts[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%s: %d\n", kept, total >= 0);
	free(kept);
	return 0;
}
