/*
 * Wrappers of libc functions that use the sampler's signal themselves
 * (sampling/sample_signal.c): functions that change the ids of all threads, and
 * functions that create a thread of libc.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "os/lookup.h"
#include "sampling/sample.h"

#include <errno.h>
#include <grp.h>
#include <unistd.h>

#include <shim/banned.h>

#define FIND(pointer, name) \
	((pointer) ? (void)0 : (void)(*(void **)&(pointer) = lookup_real(name)))

static int missing(void)
{
	errno = ENOSYS;
	return -1;
}

#define CHANGES_IDS(name, parameters, arguments) \
	EDGE int name parameters \
	{ \
		static int(*real) parameters; \
		bool begun; \
		int result; \
\
		FIND(real, #name); \
		if (!real) \
			return missing(); \
		begun = sample_ids_change_begins(); \
		result = real arguments; \
		if (begun) \
			sample_ids_change_ends(); \
		return result; \
	}

CHANGES_IDS(setuid, (uid_t a), (a))
CHANGES_IDS(setgid, (gid_t a), (a))
CHANGES_IDS(seteuid, (uid_t a), (a))
CHANGES_IDS(setegid, (gid_t a), (a))
CHANGES_IDS(setreuid, (uid_t a, uid_t b), (a, b))
CHANGES_IDS(setregid, (gid_t a, gid_t b), (a, b))
CHANGES_IDS(setresuid, (uid_t a, uid_t b, uid_t c), (a, b, c))
CHANGES_IDS(setresgid, (gid_t a, gid_t b, gid_t c), (a, b, c))
CHANGES_IDS(setgroups, (size_t count, const gid_t *groups), (count, groups))
CHANGES_IDS(initgroups, (const char *user, gid_t group), (user, group))

/* Pointers to structs are void pointers here, because the wrappers only pass them on. */
#define MAY_CREATE_THREAD(name, parameters, arguments) \
	EDGE int name parameters; \
\
	int name parameters \
	{ \
		static int(*real) parameters; \
		int result; \
\
		FIND(real, #name); \
		if (!real) \
			return missing(); \
		result = real arguments; \
		sample_signal_keep(); \
		return result; \
	}

MAY_CREATE_THREAD(aio_read, (void *a), (a))
MAY_CREATE_THREAD(aio_read64, (void *a), (a))
MAY_CREATE_THREAD(aio_write, (void *a), (a))
MAY_CREATE_THREAD(aio_write64, (void *a), (a))
MAY_CREATE_THREAD(aio_fsync, (int how, void *a), (how, a))
MAY_CREATE_THREAD(aio_fsync64, (int how, void *a), (how, a))
MAY_CREATE_THREAD(lio_listio, (int how, void *list, int count, void *event),
		  (how, list, count, event))
MAY_CREATE_THREAD(lio_listio64, (int how, void *list, int count, void *event),
		  (how, list, count, event))
MAY_CREATE_THREAD(getaddrinfo_a, (int how, void *list, int count, void *event),
		  (how, list, count, event))
MAY_CREATE_THREAD(mq_notify, (int queue, const void *event), (queue, event))
