/*
 * Queries of debug information while a system call fails, and of two threads.
 */
#include "fake_sys.h"
#include "image/image.h"
#include "inspect/helper.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX 100000

enum {
	OK = 1,
	ANSWERED = 2,
	RIGHT = 4,
	FAILED = 8, /* a system call */
};

static void take(const struct debuginfo_answer *answer, void *found)
{
	*(int *)found |= ANSWERED;
	if (answer->count == 10 && strcmp(answer->data, "name(int)") == 0)
		*(int *)found |= RIGHT;
}

static int ask(void)
{
	int found = 0;

	if (helper_ask(HELPER_DEMANGLE, NULL, "_Z4namei", take, &found) ==
	    SHIM_OK)
		found |= OK;
	return found;
}

/* What @run returns in a child, where no query was made before. */
static int run_apart(int (*run)(void *argument), void *argument)
{
	pid_t child = fork();
	int status = -1;

	if (child == 0) {
		alarm(60);
		setenv("SHIM_DISABLE", "1", 1);
		state_start();
		image_look_again();
		_exit(run(argument));
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

struct failure {
	unsigned n;
	bool for_good;
};

static int ask_failing(void *argument)
{
	const struct failure *failure = argument;
	int found;

	fake_fail(failure->n, ENOMEM, failure->for_good);
	found = ask() | (fake_failed() ? FAILED : 0);
	fake_fail(0, 0, false);
	return found;
}

/* The @n-th system call fails, and with @for_good all later ones. */
static int ask_apart(unsigned n, bool for_good)
{
	return run_apart(ask_failing, &(struct failure){ n, for_good });
}

Test(helper, a_query_without_an_answer_is_not_ok, .timeout = 120)
{
	unsigned refused = 0, n;
	int found = FAILED, answer;

	cr_assert(eq(int, ask_apart(0, false), OK | ANSWERED | RIGHT));
	for (n = 1; n < CALLS_MAX && (found & FAILED); n += 1 + n / 4)
		for (int for_good = 0; for_good < 2; for_good++) {
			found = ask_apart(n, for_good);
			cr_expect(lt(int, found, 1000), "call %u: %d", n,
				  found);
			answer = found & ~FAILED;
			cr_expect(answer == 0 ||
					  answer == (OK | ANSWERED | RIGHT),
				  "call %u: %d", n, found);
			refused += !(found & OK);
		}
	cr_expect(lt(u32, n, CALLS_MAX));
	cr_expect(gt(u32, refused, 2));
}

/* --- a thread that ends at once --- */

static pthread_t other;
static sem_t has_begun, may_end;
static __thread bool is_other;
static const char *stop_at; /* the other thread stops in this call */

static void stop_other(void)
{
	sem_post(&has_begun);
	sem_wait(&may_end);
}

static void take_slowly(const struct debuginfo_answer *answer, void *found)
{
	take(answer, found);
	stop_other();
}

static void *run_other(void *unused)
{
	int found = 0;

	is_other = true;
	helper_ask(HELPER_DEMANGLE, NULL, "_Z4namei",
		   stop_at ? take : take_slowly, &found);
	return unused;
}

/* The first time that this thread looks whether the other is alive, the other ends first. */
static void let_end(const char *name)
{
	static bool has_stopped, has_ended;

	if (is_other && stop_at && !has_stopped && strcmp(name, stop_at) == 0) {
		has_stopped = true;
		stop_other();
	}
	if (!is_other && !has_ended && strcmp(name, "is_alive") == 0) {
		has_ended = true;
		sem_post(&may_end);
		pthread_join(other, NULL);
	}
}

static int ask_while_other_asks(void *unused)
{
	int found;

	(void)unused;
	fake_watch(let_end);
	pthread_create(&other, NULL, run_other, NULL);
	sem_wait(&has_begun);
	found = ask();
	/* What one query finds missing, later ones do, too. */
	return found == ask() ? found : 0;
}

/* The answer to a query while the other thread is in its own. */
static int ask_beside(const char *where)
{
	sem_init(&has_begun, 0, 0);
	sem_init(&may_end, 0, 0);
	stop_at = where;
	return run_apart(ask_while_other_asks, NULL);
}

Test(helper, a_thread_may_end_right_after_its_query, .timeout = 120)
{
	cr_assert(eq(int, ask_beside(NULL), OK | ANSWERED | RIGHT));
}

Test(helper, a_thread_may_end_right_after_it_opened_the_library, .timeout = 120)
{
	cr_assert(eq(int, ask_beside("protect"), OK | ANSWERED | RIGHT));
}
