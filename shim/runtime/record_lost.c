/*
 * Counts lost records by cause and thread, in the recording's meta, so that the report can
 * show them.  The log names each cause once.
 */
#include "runtime/record.h"

#include "os/sys.h"
#include "os/trust.h"
#include "runtime/log.h"

#include <errno.h>
#include <shim/record.h>

#include <shim/banned.h>

/* The meta that has the counters: a child without a recording uses its parent's. */
static struct shim_meta *lost_meta;
static uint32_t logged_causes; /* the causes that the log has, a bit each */

void record_lost_to(struct shim_meta *meta)
{
	lost_meta = meta;
}

struct shim_meta *record_lost_meta(void)
{
	return lost_meta;
}

void record_lost_forked(void)
{
	logged_causes = 0;
}

static enum shim_lost cause_of(int error)
{
	switch (-error) {
	case ENOSPC:
	case EDQUOT: return SHIM_LOST_SPACE;
	case EFBIG: return SHIM_LOST_FILE_SIZE;
	case ENOMEM: return SHIM_LOST_MEMORY;
	case EPERM:
		if (sys_is_closing())
			return SHIM_LOST_FORBIDDEN;
		return SHIM_LOST_ACCESS;
	case EACCES:
	case EROFS:
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case TRUST_OWNER:
	case TRUST_ACCESS:
	case TRUST_REPLACED:
	case TRUST_KIND:
	case TRUST_LINKS:
	case TRUST_SHORTENED: return SHIM_LOST_ACCESS;
	case EOVERFLOW: return SHIM_LOST_LIMIT;
	default: return SHIM_LOST_OTHER;
	}
}

static const char *advice(enum shim_lost cause)
{
	switch (cause) {
	case SHIM_LOST_SPACE:
		return " (free space and run again, or use -o DIR)";
	case SHIM_LOST_FILE_SIZE: return " (raise ulimit -f)";
	case SHIM_LOST_MEMORY: return " (raise ulimit -v)";
	default: return "";
	}
}

/* Not inlined, because its frame would cost the callers stack on success, too. */
__attribute__((noinline)) enum shim_lost record_note_failure(int error)
{
	enum shim_lost cause = cause_of(error);
	uint32_t bit = 1u << cause;

	if (cause != SHIM_LOST_FORBIDDEN &&
	    !(__atomic_fetch_or(&logged_causes, bit, __ATOMIC_RELAXED) & bit))
		log_line("%s: records may be lost from here on, and are "
			 "counted%s: %s",
			 log_reason(error), advice(cause), record_directory());
	return cause;
}

/* --- threads without a file --- */

static struct shim_lost_thread *find_slot(uint32_t tid)
{
	struct shim_meta *at = lost_meta;
	struct shim_lost_thread *last = &at->lost[SHIM_META_THREADS - 1];
	struct shim_lost_thread *slot;

	for (slot = at->lost; slot < last; slot++) {
		uint32_t owner = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);

		if (owner == 0 && __atomic_compare_exchange_n(
					  &slot->tid, &owner, tid, false,
					  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&at->lost_threads, 1,
					   __ATOMIC_RELAXED);
			return slot;
		}
		if (owner == tid)
			return slot;
	}
	__atomic_store_n(&last->tid, tid, __ATOMIC_RELAXED);
	return last;
}

/* The calling thread's slot in own_slot_meta, which makes counting fast: without a
 * recording, every call is a loss.  (A task that shares the thread's data counts as the
 * thread.) */
static __thread struct shim_lost_thread *own_slot;
static __thread const struct shim_meta *own_slot_meta;

static void find_own_slot(void)
{
	int tid = sys_gettid();

	/* A thread with an unknown id counts as thread 1. */
	own_slot = find_slot(tid > 0 ? (uint32_t)tid : 1);
	if (tid > 0)
		own_slot_meta = lost_meta;
}

void record_lose(enum shim_lost cause, uint64_t calls)
{
	if (!lost_meta || calls == 0)
		return;
	if (own_slot_meta != lost_meta)
		find_own_slot();
	__atomic_fetch_add(&own_slot->lost[cause], calls, __ATOMIC_RELAXED);
}

void shim_record_lost(enum shim_lost cause)
{
	if (cause < SHIM_LOST_CAUSES)
		record_lose(cause, 1);
}

void shim_record_lost_other(enum shim_lost_kind kind, enum shim_lost cause,
			    uint64_t count)
{
	uint64_t *counts;

	if (!lost_meta || kind >= SHIM_LOST_KINDS || cause >= SHIM_LOST_CAUSES)
		return;
	counts = kind < SHIM_LOST_SAMPLES ?
			 lost_meta->lost_others[kind] :
			 lost_meta->lost_more[kind - SHIM_LOST_SAMPLES];
	__atomic_fetch_add(&counts[cause], count, __ATOMIC_RELAXED);
}
