/*
 * Where a profiler keeps what it finds: files of the recording, mapped into
 * memory and shared with the disk, so that whatever was stored there survives
 * any death of the program.  See <shim/format.h> for their layout.
 */
#ifndef SHIM_RECORD_H
#define SHIM_RECORD_H

#include <shim/format.h>
#include <shim/profiler.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shim_record;

/*
 * shim_record_open - a new file for one thread's data
 *
 * @kind names the profiler, at most 15 characters.  The file has one chunk;
 * *@memory and *@size get its address and bytes, zeroed and backed by disk
 * blocks that are already allocated.  *@cause is set on failure.
 *
 * Returns the file, which lives as long as the process, or NULL, also if an argument
 * is NULL.
 *
 * Contract: async; blocks signals and takes the lock of the runtime for as
 * long as the system calls take.
 */
SHIM_API struct shim_record *
shim_record_open(SHIM_IN const char *kind, SHIM_OUT void **memory,
		 SHIM_OUT size_t *size, SHIM_OUT enum shim_lost *cause)
	SHIM_ASYNC;

/*
 * shim_record_grow - one more chunk
 *
 * At least @least bytes, larger as the file gets larger; *@size gets how many.
 * Returns its address, or NULL and *@cause.  Contract as shim_record_open.
 */
SHIM_API void *shim_record_grow(SHIM_IN struct shim_record *record,
				SHIM_IN size_t least, SHIM_OUT size_t *size,
				SHIM_OUT enum shim_lost *cause) SHIM_ASYNC;

/*
 * shim_record_write - puts @size bytes of @memory at @offset of the file
 *
 * For what is too much to stay mapped: the file system copies it, at a quarter of what
 * the first stores to a mapped page cost.  It goes behind the chunks; @offset is a
 * multiple of 4096.
 * Returns whether all of it is there now; if not, *@cause.
 * Contract as shim_record_open.
 */
SHIM_API bool
shim_record_write(SHIM_IN struct shim_record *record, SHIM_IN uint64_t offset,
		  SHIM_IN const void *memory, SHIM_IN size_t size,
		  SHIM_OUT enum shim_lost *cause) SHIM_ASYNC;

/* shim_record_lost - count a call of a thread that has no file.  Async. */
SHIM_API void shim_record_lost(SHIM_IN enum shim_lost cause) SHIM_ASYNC;

/* shim_record_lost_other - count @count of what is not calls.  Async. */
SHIM_API void shim_record_lost_other(SHIM_IN enum shim_lost_kind kind,
				     SHIM_IN enum shim_lost cause,
				     SHIM_IN uint64_t count) SHIM_ASYNC;

/*
 * shim_record_log - a line for the recording's log, which profrun prints
 *
 * @line ends in a NUL and not in a newline; what exceeds 250 bytes is cut.
 * Contract: async.
 */
SHIM_API void shim_record_log(SHIM_IN const char *line) SHIM_ASYNC;

/*
 * shim_memory_map - @size bytes of zeroed private memory, or NULL.
 *
 * It is never given back whole; shim_memory_discard gives its pages back, after
 * which it reads as zero again, so that an interrupted reader stays safe.
 * Contract: async; one system call each.
 */
SHIM_API void *shim_memory_map(SHIM_IN size_t size) SHIM_ASYNC;
SHIM_API void shim_memory_discard(SHIM_IN void *memory,
				SHIM_IN size_t size) SHIM_ASYNC;

/*
 * shim_memory_read - copies @size bytes from where there may be none
 *
 * Returns false if they cannot be read.  Contract: async; a system call.
 */
SHIM_API bool shim_memory_read(SHIM_OUT void *to, SHIM_IN const void *from,
			       SHIM_IN size_t size) SHIM_ASYNC;

/* What the system says of the calling task; all are system calls, async. */
SHIM_API uint32_t shim_thread_id(void) SHIM_ASYNC;
SHIM_API bool shim_thread_is_alive(SHIM_IN uint32_t tid) SHIM_ASYNC;
SHIM_API void shim_thread_name(SHIM_OUT char name[16]) SHIM_ASYNC;

/* Asks for thread_ended for the calling thread.  Async. */
SHIM_API void shim_thread_watch(void) SHIM_ASYNC;

/*
 * shim_stack_find - the bounds of the stack that contains @sp
 *
 * Returns what kind it is: SHIM_STACK_SIGNAL if the task runs a signal handler
 * on its alternate stack there, else SHIM_STACK_THREAD.  When the bounds cannot
 * be known they are guessed around @sp.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.
 */
enum shim_stack { SHIM_STACK_THREAD, SHIM_STACK_SIGNAL };
SHIM_API enum shim_stack shim_stack_find(SHIM_IN uintptr_t sp,
					 SHIM_OUT uintptr_t *low,
					 SHIM_OUT uintptr_t *high) SHIM_ASYNC;

/*
 * shim_image_note - make sure the object that holds @function is on record
 *
 * Cheap if it is; otherwise looks at what is loaded now.  Call it once per
 * function, when it is seen for the first time.
 * Contract: async; blocks signals and takes the lock of the runtime.
 */
SHIM_API void shim_image_note(SHIM_IN shim_function function) SHIM_ASYNC;

/* While blocked no signal reaches the calling thread.  The token goes back to
 * shim_signals_restore.  Async. */
SHIM_API uint64_t shim_signals_block(void) SHIM_ASYNC;
SHIM_API void shim_signals_restore(SHIM_IN uint64_t token) SHIM_ASYNC;

/*
 * shim_clock_coarse - the coarse clock: a word the kernel sets to shim_clock_read() at every
 * timer tick; *@length gets how many clock units a tick is long.  NULL if there
 * is none on this machine.  Async.
 */
SHIM_API const volatile uint64_t *
shim_clock_coarse(SHIM_OUT uint64_t *length) SHIM_ASYNC;

/*
 * shim_clock_is_closed - whether shim_clock_read() would fault on the calling thread
 *
 * The program forbade it, here or where this thread or process came from.
 * Contract: async; a system call once somebody in the process forbade it.
 */
SHIM_API bool shim_clock_is_closed(void) SHIM_ASYNC;

/* The recording's counters of the whole process, or NULL.  A profiler adds its
 * costs, orphans and unwound frames here.  Async. */
SHIM_API struct shim_meta *shim_record_meta(void) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
