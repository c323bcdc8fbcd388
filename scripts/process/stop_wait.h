/* Waits until a traced thread stops. */
#ifndef PROCESS_STOP_WAIT_H
#define PROCESS_STOP_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum stop_result {
	STOP_DONE,
	STOP_GONE, /* the thread has ended */
	STOP_STUCK, /* it did not stop: it sleeps in the kernel, or gets no processor */
	STOP_REFUSED /* errno has the reason */
};

/* So many threads that run, for a processor, wait long until they get one and stop. */
#define STOP_MANY 16

/* Whether @threads are more than @most for each processor. */
bool stop_are_more(uint32_t threads, uint32_t most);

/* Waits for a few seconds until @tid stops, and stores its wait status. */
enum stop_result stop_wait(pid_t tid, int *status);

#endif
