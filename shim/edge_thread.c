/*
 * The end of a thread, as far as libc tells: its last destructors.
 */
#include "edge.h"

#include "events.h"
#include "state.h"

#include <pthread.h>
#include <shim/record.h>

#include <shim/banned.h>

static pthread_key_t key;
static bool have_key;

static void ended(void *value)
{
	(void)value;
	RAISE(thread_ended);
}

/* The value is stored in the thread itself for the first keys of a process,
 * and ours is one of them: nothing is allocated. */
void shim_thread_watch(void)
{
	if (have_key)
		pthread_setspecific(key, &key);
}

void edge_thread_resolve(void)
{
	have_key = pthread_key_create(&key, ended) == 0 && key < 32;
}
