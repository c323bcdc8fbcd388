/*
 * shortened DIRECTORY HOW [NAME] - shortens all files below DIRECTORY, or those that
 * have NAME in their names, while it calls, allocates, locks and maps: in the first
 * thread, in others, in one that blocks all signals, in a handler and in a child.
 *
 * HOW: none; half; a number of bytes; zeros (and extends them again); beside (a thread
 * does it over and over).  The output is always the same.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <ctype.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define THREADS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char *directory, *how, *only = "";
static int files;
static int is_over;
static unsigned long sum;

/* --- shortening --- */

static QUIET int cut(const char *path, const struct stat *status, int kind,
		     struct FTW *unused)
{
	off_t size = status->st_size;

	(void)unused;
	if (kind != FTW_F || !strstr(strrchr(path, '/'), only))
		return 0;
	if (!strcmp(how, "half"))
		size /= 2;
	else
		size = isdigit(*how) ? atol(how) : 0;
	files += truncate(path, size) == 0;
	if (!strcmp(how, "zeros") || (!strcmp(how, "beside") && rand() % 2))
		files += truncate(path, status->st_size) == 0;
	return 0;
}

static QUIET void cut_all(void)
{
	if (strcmp(how, "none"))
		nftw(directory, cut, 8, FTW_PHYS);
}

static QUIET void *cut_beside(void *unused)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		cut_all();
		usleep(200);
	}
	return unused;
}

/* --- work --- */

static APART void right(int depth);

static APART void left(int depth)
{
	if (depth > 0) {
		left(depth - 1);
		right(depth - 1);
	}
	__atomic_add_fetch(&sum, 1, __ATOMIC_RELAXED);
}

static APART void right(int depth)
{
	if (depth > 0) {
		right(depth - 1);
		left(depth - 1);
	}
}

static APART void allocate(void)
{
	void *memory[64];

	for (int i = 0; i < 64; i++)
		memory[i] = malloc(16 + (size_t)i * 100);
	for (int i = 0; i < 64; i += 2)
		memory[i] = realloc(memory[i], 5000);
	for (int i = 0; i < 64; i++)
		free(memory[i]);
	memory[0] = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	munmap(memory[0], 65536);
}

static APART void contend(void)
{
	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&mutex);
		left(3);
		pthread_mutex_unlock(&mutex);
	}
}

static APART void work(void)
{
	left(9);
	allocate();
	contend();
}

static APART void jump(jmp_buf *to, int depth)
{
	if (depth > 0)
		jump(to, depth - 1);
	longjmp(*to, 1);
}

static APART void work_and_jump(void)
{
	jmp_buf before;

	work();
	if (setjmp(before) == 0)
		jump(&before, 5);
}

static APART void on_signal(int signal)
{
	(void)signal;
	work();
}

static APART void *in_thread(void *number)
{
	sigset_t all;

	if (number) {
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, NULL);
	}
	for (int i = 0; i < 20; i++)
		work_and_jump();
	return NULL;
}

static APART void run_threads(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, in_thread, (void *)i);
	work();
	cut_all();
	work();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* This happens inside calls. */
static APART void cut_inside(int depth)
{
	work();
	if (depth > 0)
		cut_inside(depth - 1);
	else
		cut_all();
	work();
}

static APART int run_child(void)
{
	pid_t child = fork();
	int status = 0;

	if (child == 0) {
		work();
		cut_all();
		work();
		_exit(7);
	}
	waitpid(child, &status, 0);
	return status;
}

int main(int words, char **word)
{
	pthread_t beside;
	char line[80];

	if (words < 3)
		return 2;
	directory = word[1];
	how = word[2];
	if (words > 3)
		only = word[3];
	setvbuf(stdout, NULL, _IONBF, 0);
	signal(SIGUSR1, on_signal);
	if (!strcmp(how, "beside"))
		pthread_create(&beside, NULL, cut_beside, NULL);
	work();
	cut_inside(20);
	raise(SIGUSR1);
	run_threads();
	snprintf(line, sizeof(line), "child %x\n", run_child());
	print_text(line);
	if (!strcmp(how, "beside")) {
		__atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
		pthread_join(beside, NULL);
	}
	snprintf(line, sizeof(line), "calls %lu\n", sum);
	print_text(line);
	return files > 0 ? 5 : 4;
}
