/*
 * Calls functions of libraries in all ways in which arguments and results are passed, from
 * threads, signal handlers and forked children, and prints what they return.  The argument is
 * the number of rounds of each part.
 */
#define _GNU_SOURCE
#include <complex.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int rounds = 3;

static int compare(const void *left, const void *right)
{
	const int *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

static void values(void)
{
	volatile double x = 0.5;
	volatile long double y = 0.25L;
	double complex z = cexp(x + x * I);
	long double complex w = csqrtl(y + y * I);
	lldiv_t parts = lldiv(1000003, 97);
	imaxdiv_t more = imaxdiv(77, 10);

	printf("%.6f %.6f %.6Lf %.6Lf %lld %lld %jd %jd\n", creal(z), cimag(z),
	       creall(w), cimagl(w), parts.quot, parts.rem, more.quot,
	       more.rem);
	printf("%.6f %.6Lf %d %.3f %s\n", pow(x, 3), strtold("2.5", NULL), 42,
	       strtod("1.5", NULL), "many arguments of several kinds");
	printf("%d %d %d %d %d %d %d %d %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f "
	       "%.1f\n",
	       1, 2, 3, 4, 5, 6, 7, 8, 1., 2., 3., 4., 5., 6., 7., 8., 9.);
}

static void memory(void)
{
	size_t sum = 0;

	for (int i = 0; i < rounds; i++) {
		volatile char *block = malloc(100);

		strcpy((char *)block, "text");
		sum += strlen((char *)block);
		free((void *)block);
	}
	printf("memory %zu\n", sum);
}

static void callbacks(void)
{
	int numbers[5] = { 3, 1, 5, 2, 4 };

	qsort(numbers, 5, sizeof(*numbers), compare);
	printf("sorted %d %d\n", numbers[0], numbers[4]);
}

static void errors(void)
{
	errno = 0;
	printf("close %d\n", close(-1));
	printf("errno %d\n", errno);
}

static jmp_buf buffer;

static int jump_back(const void *left, const void *right)
{
	(void)left, (void)right;
	longjmp(buffer, 7);
}

static void jumps(void)
{
	int numbers[3] = { 3, 1, 2 };
	int value = setjmp(buffer);

	if (value == 0)
		qsort(numbers, 3, sizeof(*numbers), jump_back);
	printf("jumped %d\n", value);
}

static volatile int caught;

static void handler(int signal)
{
	(void)signal;
	caught += getppid() > 0;
}

static void signals(void)
{
	signal(SIGUSR1, handler);
	for (int i = 0; i < rounds; i++)
		raise(SIGUSR1);
	printf("caught %d\n", caught == rounds);
}

static void *work(void *argument)
{
	unsigned seed = 1;
	long sum = 0;

	for (int i = 0; i < 1000 * rounds; i++)
		sum += rand_r(&seed) % 7;
	*(long *)argument = sum;
	return NULL;
}

static void threads(void)
{
	pthread_t thread[2];
	long sums[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, work, &sums[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	printf("threads %d\n", sums[0] == sums[1]);
}

static void children(void)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(atoi("5") + (int)strtol("1", NULL, 10));
	waitpid(child, &status, 0);
	printf("child %d\n", WEXITSTATUS(status));
	child = vfork();
	if (child == 0)
		_exit(4);
	waitpid(child, &status, 0);
	printf("vfork %d\n", WEXITSTATUS(status));
}

int main(int count, char **words)
{
	/* The address of a function is one, however it is found. */
	int (*volatile pointer)(const char *) = puts;

	if (count > 1)
		rounds = atoi(words[1]);
	values();
	memory();
	callbacks();
	errors();
	jumps();
	signals();
	threads();
	children();
	pointer(pointer == puts ? "equal" : "different");
	return 3;
}
