/*
 * The system calls for clocks, timers and sleeping.
 */
#define _GNU_SOURCE
#include "os/sys.h"

#include "os/sys_call.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <shim/banned.h>

/* The id of the thread's CPU clock, in the kernel's encoding. */
static int clock_of_thread(int tid)
{
	return (int)(~(unsigned)tid << 3 | 6);
}

int sys_timer_make(int clock, int tid, int signal, void *value, int *timer)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = signal,
				  .sigev_value.sival_ptr = value };

	event._sigev_un._tid = tid;
	if (clock == 0)
		clock = clock_of_thread(tid);
	return (int)sys_call(SYS_timer_create, clock, (long)&event, (long)timer,
			     0, 0, 0);
}

int sys_timer_set(int timer, uint64_t first_ns, uint64_t period_ns)
{
	struct itimerspec times = {
		.it_interval = { (time_t)(period_ns / 1000000000u),
				 (long)(period_ns % 1000000000u) },
		.it_value = { (time_t)(first_ns / 1000000000u),
			      (long)(first_ns % 1000000000u) },
	};

	return (int)sys_call(SYS_timer_settime, timer, 0, (long)&times, 0, 0,
			     0);
}

int sys_timer_delete(int timer)
{
	return (int)sys_call(SYS_timer_delete, timer, 0, 0, 0, 0, 0);
}

int sys_time_ns(int clock, uint64_t *time_ns)
{
	struct timespec now;
	int r = (int)sys_call(SYS_clock_gettime, clock, (long)&now, 0, 0, 0, 0);

	if (r == 0)
		*time_ns = (uint64_t)now.tv_sec * 1000000000u +
			   (uint64_t)now.tv_nsec;
	return r;
}

int sys_thread_time_ns(int tid, uint64_t *time_ns)
{
	return sys_time_ns(clock_of_thread(tid), time_ns);
}

int sys_clock_resolution(int clock, uint64_t *resolution_ns)
{
	struct timespec resolution;
	int r = (int)sys_call(SYS_clock_getres, clock, (long)&resolution, 0, 0,
			      0, 0);

	if (r == 0)
		*resolution_ns = (uint64_t)resolution.tv_nsec;
	return r;
}

int sys_clock_is_readable(void)
{
#ifdef PR_GET_TSC
	int mode = PR_TSC_ENABLE;

	if (sys_call(SYS_prctl, PR_GET_TSC, (long)&mode, 0, 0, 0, 0) == 0 &&
	    mode != PR_TSC_ENABLE)
		return -EPERM;
#endif
	return 0;
}

void sys_sleep_ms(unsigned time_ms)
{
	struct timespec time = { time_ms / 1000, time_ms % 1000 * 1000000l };

	/* After nanosleep, the kernel could not restart a call of the program that
	 * shim's signal has interrupted. */
	sys_call(SYS_ppoll, 0, 0, (long)&time, 0, 0, 0);
}

uint32_t sys_pause_ms(void)
{
	uint64_t begin_ns = 0, end_ns = 0;
	bool is_known = sys_time_ns(CLOCK_MONOTONIC, &begin_ns) == 0;

	sys_sleep_ms(1);
	is_known = is_known && sys_time_ns(CLOCK_MONOTONIC, &end_ns) == 0;
	return is_known && end_ns - begin_ns >= 2000000 ?
		       (uint32_t)((end_ns - begin_ns) / 1000000) :
		       1;
}

uint32_t sys_wait_step(uint32_t waited)
{
	if (waited >= SYS_WAIT_YIELDS)
		return waited + sys_pause_ms();
	sys_yield();
	return waited + 1;
}
