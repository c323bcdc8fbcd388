/*
 * Files of a profiler in the recording.
 *
 * The files are mapped into memory and shared with the disk, so stored data
 * remains whatever ends the program.  <shim/format.h> describes their layout.
 * The other functions of this header provide memory, clocks, stacks and signal
 * masks without libc.
 *
 * Example: a counter that survives the program.
 *
 *     #include <shim/record.h>
 *
 *     static uint64_t none, *counter = &none;
 *
 *     void open_counter(void);
 *     void open_counter(void)
 *     {
 *             void *memory;
 *             size_t size;
 *             enum shim_lost cause;
 *
 *             if (shim_record_open("counter", &memory, &size, &cause))
 *                     counter = (uint64_t *)memory;
 *             else
 *                     shim_record_log("counter: no file");
 *     }
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
 * shim_record_open - create a file for the data of one thread
 *
 * @kind names the profiler, in at most 15 characters.  The file has one chunk.
 * *@memory and *@size get its address and its size in bytes; it is zeroed, and
 * its disk blocks are allocated.  *@cause is set on failure.
 *
 * Returns the file, which stays open as long as the process lives; NULL on
 * failure, also if an argument is NULL.
 *
 * Contract: async; blocks signals and takes the lock of the runtime for the
 * time of the system calls.  No counterpart.
 */
SHIM_API struct shim_record *
shim_record_open(SHIM_IN const char *kind, SHIM_OUT void **memory,
		 SHIM_OUT size_t *size,
		 SHIM_OUT enum shim_lost *cause) SHIM_ASYNC;

/*
 * shim_record_grow - add a chunk to the file
 *
 * The chunk has at least @least bytes, and more in larger files; *@size gets
 * its size.  Returns its address, or NULL and sets *@cause.
 *
 * Contract as shim_record_open.  No counterpart.
 */
SHIM_API void *shim_record_grow(SHIM_IN struct shim_record *record,
				SHIM_IN size_t least, SHIM_OUT size_t *size,
				SHIM_OUT enum shim_lost *cause) SHIM_ASYNC;

/*
 * shim_record_write - write @size bytes of @memory to @offset of the file
 *
 * For data that is too large to stay mapped: a write costs a quarter of the
 * first stores to mapped pages.  @offset is a multiple of 4096, after the
 * chunks.  Returns true if all bytes were written; otherwise false, with
 * *@cause.
 *
 * Contract as shim_record_open.  No counterpart.
 */
SHIM_API bool shim_record_write(SHIM_IN struct shim_record *record,
				SHIM_IN uint64_t offset,
				SHIM_IN const void *memory, SHIM_IN size_t size,
				SHIM_OUT enum shim_lost *cause) SHIM_ASYNC;

/*
 * shim_record_lost - count a call of a thread that has no file
 *
 * Contract: async.  No counterpart.
 */
SHIM_API void shim_record_lost(SHIM_IN enum shim_lost cause) SHIM_ASYNC;

/*
 * shim_record_lost_other - count @count lost items of a kind other than calls
 *
 * Contract: async.  No counterpart.
 */
SHIM_API void shim_record_lost_other(SHIM_IN enum shim_lost_kind kind,
				     SHIM_IN enum shim_lost cause,
				     SHIM_IN uint64_t count) SHIM_ASYNC;

/*
 * shim_record_log - add a line to the recording's log, which profrun prints
 *
 * @line ends in a NUL and has no newline; bytes beyond 250 are cut.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API void shim_record_log(SHIM_IN const char *line) SHIM_ASYNC;

/*
 * shim_memory_map - map @size bytes of zeroed private memory
 * shim_memory_discard - free the pages of a part of it
 *
 * shim_memory_map returns NULL without memory.  The memory stays mapped for
 * ever: discarded pages read as zero, so that an interrupted reader stays safe.
 *
 * Contract: async; one system call each.  No counterpart.
 */
SHIM_API void *shim_memory_map(SHIM_IN size_t size) SHIM_ASYNC;
SHIM_API void shim_memory_discard(SHIM_IN void *memory,
				  SHIM_IN size_t size) SHIM_ASYNC;

/*
 * shim_memory_read - copy @size bytes from an address that may not be mapped
 *
 * Returns false if the bytes cannot be read.
 *
 * Contract: async; a system call.  No counterpart.
 */
SHIM_API bool shim_memory_read(SHIM_OUT void *to, SHIM_IN const void *from,
			       SHIM_IN size_t size) SHIM_ASYNC;

/*
 * shim_thread_id - the kernel's id of the calling thread
 * shim_thread_is_alive - whether the process has a task with this id
 * shim_thread_name - the kernel's name of the calling thread
 *
 * Contract: async; a system call each.  CLR: GetThreadInfo.  Mono: none.
 */
SHIM_API uint32_t shim_thread_id(void) SHIM_ASYNC;
SHIM_API bool shim_thread_is_alive(SHIM_IN uint32_t tid) SHIM_ASYNC;
SHIM_API void shim_thread_name(SHIM_OUT char name[16]) SHIM_ASYNC;

/*
 * shim_thread_watch - enable the event thread_ended for the calling thread
 *
 * Contract: async.  No counterpart.
 */
SHIM_API void shim_thread_watch(void) SHIM_ASYNC;

/*
 * shim_stack_find - the bounds of the stack that contains @sp
 *
 * Returns SHIM_STACK_SIGNAL if @sp is on the alternate stack of a signal
 * handler that runs, else SHIM_STACK_THREAD.  Bounds that are unknown are
 * estimated around @sp.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  No
 * counterpart.
 */
enum shim_stack { SHIM_STACK_THREAD, SHIM_STACK_SIGNAL };
SHIM_API enum shim_stack shim_stack_find(SHIM_IN uintptr_t sp,
					 SHIM_OUT uintptr_t *low,
					 SHIM_OUT uintptr_t *high) SHIM_ASYNC;

/*
 * shim_image_note - record the image that holds @function
 *
 * Cheap if the image is in the recording; otherwise shim scans the loaded
 * objects.  Call it once for each function, when the function is seen for the
 * first time.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  No
 * counterpart.
 */
SHIM_API void shim_image_note(SHIM_IN shim_function function) SHIM_ASYNC;

/*
 * shim_signals_block - block all signals in the calling thread
 * shim_signals_restore - restore the signal mask
 *
 * shim_signals_block returns the token for shim_signals_restore.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API uint64_t shim_signals_block(void) SHIM_ASYNC;
SHIM_API void shim_signals_restore(SHIM_IN uint64_t token) SHIM_ASYNC;

/*
 * shim_clock_coarse - the coarse clock
 *
 * The kernel changes this word at every timer tick.  It grows at a steady rate: often it is
 * shim_clock_read() at the tick, but on virtual machines (kvm-clock, Hyper-V) it has a unit
 * of its own.  *@length gets the length of a tick in that unit.  Returns NULL if this
 * machine has no such clock.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API const volatile uint64_t *
shim_clock_coarse(SHIM_OUT uint64_t *length) SHIM_ASYNC;

/*
 * shim_clock_of_coarse - the time at which shim_clock_coarse()'s word had a value
 *
 * Returns shim_clock_read() at the tick at which the word became @value; 0 for 0.  Values
 * of at most a few seconds ago are exact to a few microseconds.
 *
 * Contract: async; makes five system calls in a second in which it is used, if the word has
 * a unit of its own.  No counterpart.
 */
SHIM_API uint64_t shim_clock_of_coarse(SHIM_IN uint64_t value) SHIM_ASYNC;

/*
 * shim_clock_is_closed - whether shim_clock_read() would fault on the calling thread
 *
 * True if the program has forbidden reads of the clock, in this thread, in the
 * process, or in its parent.
 *
 * Contract: async; a system call once the process has forbidden it anywhere.
 * No counterpart.
 */
SHIM_API bool shim_clock_is_closed(void) SHIM_ASYNC;

/*
 * shim_record_meta - the recording's counters of the whole process
 *
 * A profiler adds its costs, orphans and unwound frames here.  Returns NULL
 * without a recording.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API struct shim_meta *shim_record_meta(void) SHIM_ASYNC;

#ifdef __cplusplus
}
#endif
#endif
