/*
 * Two threads call 300 functions in turn until the end of the input.  With each new filter,
 * each of their functions needs a new answer, so some ask while the next filter is set.
 */
#include <pthread.h>
#include <unistd.h>

#define TEN(X, n) \
	X(n##0) \
	X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n) \
	TEN(X, n##0) \
	TEN(X, n##1) \
	TEN(X, n##2) TEN(X, n##3) TEN(X, n##4) TEN(X, n##5) TEN(X, n##6) \
		TEN(X, n##7) TEN(X, n##8) TEN(X, n##9)

#define THREADS 3

static volatile int sink, ends;

#define FUNCTION(n) \
	__attribute__((noinline)) void once_##n(void) \
	{ \
		sink = 1##n; \
	}
#define CALL(n) once_##n();

HUNDRED(FUNCTION, 1)
HUNDRED(FUNCTION, 2)
HUNDRED(FUNCTION, 3)

static void *turn(void *argument)
{
	while (!ends) {
		HUNDRED(CALL, 1)
		HUNDRED(CALL, 2)
		HUNDRED(CALL, 3)
	}
	return argument;
}

int main(void)
{
	pthread_t threads[THREADS];
	char c;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, turn, NULL);
	if (write(1, "x", 1) == 1 && read(0, &c, 1) >= 0)
		ends = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
