/*
 * interrupted HOW - hooks do not return: siglongjmp leaves them from a handler at any
 * instruction, or the thread is cancelled.  Prints how often.
 */
#define _GNU_SOURCE
#include "truth.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static sigjmp_buf buffer;
static volatile unsigned long times;
static volatile int may_jump;

static APART void leaf(void)
{
	COUNTED;
}

static APART void inner(void)
{
	COUNTED;
	leaf();
	leaf();
}

/* Makes new paths, so that the slow path is left, too. */
static APART void down(int n)
{
	COUNTED;
	if (n > 0)
		down(n - 1);
}

static APART void outer(unsigned n)
{
	COUNTED;
	inner();
	inner();
	if (n % 16 == 0)
		down((int)(n / 16 % 3000));
}

QUIET static void on_tick(int signal)
{
	(void)signal;
	if (!may_jump)
		return;
	may_jump = 0;
	times++;
	siglongjmp(buffer, 1);
}

static APART void jumping(void)
{
	struct sigaction action = { .sa_handler = on_tick };
	struct itimerval often = { { 0, 100 }, { 0, 100 } };
	struct itimerval never = { { 0, 0 }, { 0, 0 } };

	COUNTED;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (volatile unsigned n = 0; times < 3000; n++) {
		if (sigsetjmp(buffer, 1) == 0) {
			may_jump = 1;
			for (;;)
				outer(n++);
		}
	}
	setitimer(ITIMER_REAL, &never, NULL);
}

static void *loop(void *argument)
{
	int before;

	COUNTED;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
	for (unsigned n = 0;; n++)
		outer(n);
	return argument;
}

static APART void cancelling(void)
{
	COUNTED;
	for (int i = 0; i < 300; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, loop, NULL);
		usleep((useconds_t)(i * 7 % 300));
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		times++;
	}
}

int main(int count, char **arguments)
{
	char line[100];

	COUNTED;
	if (count > 1 && arguments[1][0] == 'j')
		jumping();
	else
		cancelling();
	snprintf(line, sizeof(line), "times %lu\n", times);
	print_text(line);
	print_counts();
	return 0;
}
