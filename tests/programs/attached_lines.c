/*
 * attached_lines: a program to attach to, for the coverage of its lines.
 *
 * Each line of standard input names a function to call, by its first letter; the end, or
 * "e", ends the program.  A second thread runs lines all the time.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ends, sink;

__attribute__((noinline)) static void early(void)
{
	sink++; //@ early
}

__attribute__((noinline)) static void first(void)
{
	sink++; //@ first
}

__attribute__((noinline)) static void second(void)
{
	sink++; //@ second
}

__attribute__((noinline)) static void third(void)
{
	sink++; //@ third
}

__attribute__((noinline)) static void in_child(void)
{
	sink++; //@ child
}

static void start_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		in_child();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static void *run(void *unused)
{
	for (unsigned i = 0; !ends; i++) {
		if (i % 3 == 0)
			sink += 1;
		else if (i % 3 == 1)
			sink += 2;
		else
			sink += 3;
	}
	return unused;
}

int main(void)
{
	char line[16];
	pthread_t thread;

	pthread_create(&thread, NULL, run, NULL);
	early();
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin) && line[0] != 'e') {
		switch (line[0]) {
		case '1': first(); break;
		case '2': second(); break;
		case '3': third(); break;
		default: start_child();
		}
		puts("done");
		fflush(stdout);
	}
	ends = 1;
	pthread_join(thread, NULL);
	puts("wrong 0 interrupted 0");
	return 0;
}
