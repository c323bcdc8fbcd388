/*
 * Questions a profiler may ask: about functions, images, threads, the process.
 *
 * The conventions are those of <shim/shim.h>.  A string's or array's buffer may
 * be NULL if its length is 0.  A string that does not fit is cut, between two
 * characters of UTF-8, and still ends in a NUL (row C-20).
 *
 * Ids are checked: one that never was gives SHIM_E_INVALIDARG; one whose object
 * has gone, SHIM_E_DATAINCOMPLETE (rows C-29, E-38, P-8).  Objects are known from
 * when dlopen returns, while there are hooks of modules, mappers or filters; before,
 * and without, the first question about a function of one looks at what is mapped
 * now, with signals blocked and the lock of the runtime.  SHIM_E_FAIL is also
 * the answer of those that list or read when the program has forbidden itself the
 * system calls that this takes; SHIM_E_OUTOFMEMORY that of all that are not async,
 * without memory for what is to be read: the same question may have an answer later
 * (row P-48).
 */
#ifndef SHIM_INFO_H
#define SHIM_INFO_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- enumerations (rows C-30 to C-35) --- */

/*
 * A snapshot of ids, taken when it was made: elements may have gone since.
 *
 * shim_enum_next copies up to @count ids and stores how many in *@fetched (which
 * may be NULL if @count is 1): SHIM_OK if all @count came, SHIM_S_FALSE if fewer.
 * shim_enum_skip passes over @count: SHIM_S_FALSE if the end came first.
 * shim_enum_count is how many there are in all, shim_enum_remaining from here.
 * shim_enum_clone copies the position as well.  shim_enum_destroy(NULL) is
 * allowed.  All: SHIM_E_INVALIDARG for NULL; clone: SHIM_E_OUTOFMEMORY.
 *
 * Contract: async, clone may block; one thread at a time for one enumeration.
 */
struct shim_enum;
SHIM_API enum shim_result
shim_enum_next(SHIM_IN struct shim_enum *enumeration, SHIM_IN uint32_t count,
	       SHIM_OUT uint64_t *ids, SHIM_OUT_OPT uint32_t *fetched)
	SHIM_ASYNC;
SHIM_API enum shim_result shim_enum_skip(SHIM_IN struct shim_enum *enumeration,
					 SHIM_IN uint32_t count) SHIM_ASYNC;
SHIM_API enum shim_result
shim_enum_reset(SHIM_IN struct shim_enum *enumeration) SHIM_ASYNC;
SHIM_API enum shim_result
shim_enum_clone(SHIM_IN struct shim_enum *enumeration,
		SHIM_OUT struct shim_enum **copy) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_enum_count(SHIM_IN struct shim_enum *enumeration,
		SHIM_OUT uint32_t *count) SHIM_ASYNC;
SHIM_API enum shim_result
shim_enum_remaining(SHIM_IN struct shim_enum *enumeration,
		    SHIM_OUT uint32_t *count) SHIM_ASYNC;
SHIM_API void shim_enum_destroy(SHIM_IN struct shim_enum *enumeration)
	SHIM_ASYNC;

/*
 * shim_image_enumerate - all loaded images (EnumModules)
 * shim_function_enumerate - all functions of @image, 0: of all (EnumJITedFunctions)
 * shim_thread_enumerate - all threads of the program (EnumThreads)
 *
 * Images are listed before their image_loaded and not after their
 * image_unloaded; functions those that have a symbol, once whatever names they
 * have; threads not from their thread_exited on, and never a profiler's own.  Rows
 * P-30, P-36, P-66.
 *
 * Return SHIM_OK, SHIM_E_INVALIDARG, SHIM_E_DATAINCOMPLETE, SHIM_E_OUTOFMEMORY.
 * Contract: images and functions may block (functions read symbol tables),
 * threads sync.
 */
SHIM_API enum shim_result
shim_image_enumerate(SHIM_OUT struct shim_enum **enumeration) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_function_enumerate(SHIM_IN shim_image image,
			SHIM_OUT struct shim_enum **enumeration) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_thread_enumerate(SHIM_OUT struct shim_enum **enumeration) SHIM_SYNC;

/* --- images --- */

/* Row 2.3 GetModuleInfo2: the values are the CLR's. */
enum shim_image_flags {
	SHIM_IMAGE_DISK = 1,
	SHIM_IMAGE_DYNAMIC = 4,		/* generated code: the vdso */
	SHIM_IMAGE_COLLECTIBLE = 8,	/* came by dlopen and may go */
	SHIM_IMAGE_FLAT_LAYOUT = 0x20,
	SHIM_IMAGE_PROGRAM = 0x1000,	/* ours: the program itself */
};

/*
 * shim_image_info - where an image lies and comes from (GetModuleInfo2)
 *
 * *@base is where its first byte is mapped, *@bias what is to be added to an
 * address in the file, *@flags enum shim_image_flags, @path its file.
 *
 * Contract: async.
 */
SHIM_API enum shim_result
shim_image_info(SHIM_IN shim_image image, SHIM_OUT_OPT const void **base,
		SHIM_OUT_OPT size_t *size, SHIM_OUT_OPT intptr_t *bias,
		SHIM_OUT_OPT uint32_t *flags, SHIM_IN uint32_t count,
		SHIM_OUT_OPT uint32_t *total,
		SHIM_OUT_SIZE_IS(count, total) char *path) SHIM_ASYNC;

/* shim_image_build_id - its bytes; a total of 0 if it has none.  Async. */
SHIM_API enum shim_result
shim_image_build_id(SHIM_IN shim_image image, SHIM_IN uint32_t count,
		    SHIM_OUT_OPT uint32_t *total,
		    SHIM_OUT_SIZE_IS(count, total) unsigned char *id)
	SHIM_ASYNC;

/* shim_image_from_address - the image that covers @address.  SHIM_E_FAIL if none
 * does, SHIM_E_DATAINCOMPLETE if one did that has gone.  Async. */
SHIM_API enum shim_result
shim_image_from_address(SHIM_IN const void *address,
			SHIM_OUT shim_image *image) SHIM_ASYNC;

/* --- functions --- */

/*
 * shim_symbols_enable - read symbol tables when images are loaded
 *
 * Then the async functions below know every function.  Without it they know an
 * image only after a MAY_BLOCK function has read it, and answer
 * SHIM_E_NOT_YET_AVAILABLE before that.
 *
 * Returns SHIM_OK or SHIM_E_CALL_ONLY_FROM_INIT.  Contract: init.
 */
SHIM_API enum shim_result shim_symbols_enable(void) SHIM_INIT;

/*
 * shim_function_from_address - the function that @address lies in
 *
 * GetFunctionFromIP; a function's cold part is the function.  SHIM_E_FAIL if it
 * lies in none, SHIM_E_DATAINCOMPLETE if in an image that has gone;
 * SHIM_E_NOT_YET_AVAILABLE.  Contract: async.
 *
 * shim_function_from_address2 - the same, reading symbols if need be
 * (GetFunctionFromIP2).  Contract: may block.
 */
SHIM_API enum shim_result
shim_function_from_address(SHIM_IN const void *address,
			   SHIM_OUT shim_function *function) SHIM_ASYNC;
SHIM_API enum shim_result
shim_function_from_address2(SHIM_IN const void *address,
			    SHIM_OUT shim_function *function) SHIM_MAY_BLOCK;

/*
 * shim_function_find - the same for any code, whatever has been read
 *
 * Reads the object's symbols if need be, and where there is no symbol, in a stripped
 * program, goes by the table for exceptions: then *@function is where the code that
 * holds @address begins, be it a function or the part of one.  SHIM_E_FAIL if
 * nothing is known; SHIM_E_DATAINCOMPLETE if it is in an image that has gone.
 *
 * Contract: async; the first time in an object blocks signals, takes the lock of
 * the runtime and reads the object's file.  Cost: later a few binary searches.
 */
SHIM_API enum shim_result
shim_function_find(SHIM_IN const void *address,
		   SHIM_OUT shim_function *function) SHIM_ASYNC;

/*
 * A function is asked about by its first address: one inside of it is an
 * SHIM_E_INVALIDARG, as far as symbols are known.
 *
 * shim_function_info - where a function belongs (GetFunctionInfo)
 *
 * *@image, and *@offset: its address in the file.  Contract: async.
 */
SHIM_API enum shim_result
shim_function_info(SHIM_IN shim_function function,
		   SHIM_OUT_OPT shim_image *image,
		   SHIM_OUT_OPT uint64_t *offset) SHIM_ASYNC;

/*
 * shim_function_name - its linker name
 *
 * Of several, a global one, then one that is no compiler's clone, then the first
 * in the symbol table.  A function that is chosen when its image is loaded
 * (target_clones, ifunc) has its name where callers go for it.
 * SHIM_E_NOT_YET_AVAILABLE; SHIM_E_FAIL if it has none.
 * Contract: async.
 *
 * shim_function_demangled_name - as the source has it: `ns::f(int)`
 *
 * The linker name if there is no other, or nothing that could tell (a C++
 * runtime, libshim-debuginfo.so).  Contract: may block.
 */
SHIM_API enum shim_result
shim_function_name(SHIM_IN shim_function function, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_ASYNC;
SHIM_API enum shim_result
shim_function_demangled_name(SHIM_IN shim_function function,
			     SHIM_IN uint32_t count,
			     SHIM_OUT_OPT uint32_t *total,
			     SHIM_OUT_SIZE_IS(count, total) char *name)
	SHIM_MAY_BLOCK;

/*
 * shim_function_aliases - all names of the function's address (row E-78)
 *
 * One string each, NUL-terminated, one after the other, the first that of
 * shim_function_name; @count and *@total are bytes.  Contract: may block.
 */
SHIM_API enum shim_result
shim_function_aliases(SHIM_IN shim_function function, SHIM_IN uint32_t count,
		      SHIM_OUT_OPT uint32_t *total,
		      SHIM_OUT_SIZE_IS(count, total) char *names)
	SHIM_MAY_BLOCK;

/* shim_function_code - its hot part (GetCodeInfo); fails as its name does.
 * Async. */
SHIM_API enum shim_result shim_function_code(SHIM_IN shim_function function,
					     SHIM_OUT_OPT const void **start,
					     SHIM_OUT_OPT uint32_t *size)
	SHIM_ASYNC;

struct shim_code_range {
	uintptr_t start;
	size_t size;
};

/* shim_function_ranges - all its parts, the hot one first (GetCodeInfo2).
 * Async. */
SHIM_API enum shim_result
shim_function_ranges(SHIM_IN shim_function function, SHIM_IN uint32_t count,
		     SHIM_OUT_OPT uint32_t *total,
		     SHIM_OUT_SIZE_IS(count, total)
			     struct shim_code_range *ranges) SHIM_ASYNC;

/* A line's piece of code: bytes [@start, @end) of the function, its parts
 * counted through in the order of shim_function_ranges.  @line 0: no line. */
struct shim_line {
	uint32_t line;
	uint32_t column;
	uint32_t start;
	uint32_t end;
};

/*
 * shim_function_lines - which code belongs to which line (GetILToNativeMapping)
 * shim_function_file - the source file of its first line
 *
 * A line of a function that was inlined into this one counts as well; @path is
 * absolute as far as the compiler told.  SHIM_E_FUNCTION_NOT_IL if there is no
 * debug information for it, or no libshim-debuginfo.so beside libshim.so (the
 * log says so); SHIM_E_OUTOFMEMORY; SHIM_E_NOT_YET_AVAILABLE if another thread takes long to read
 * some.  Contract: may block; reads debug information, and takes the loader's
 * lock the first time.
 */
SHIM_API enum shim_result
shim_function_lines(SHIM_IN shim_function function, SHIM_IN uint32_t count,
		    SHIM_OUT_OPT uint32_t *total,
		    SHIM_OUT_SIZE_IS(count, total) struct shim_line *lines)
	SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_function_file(SHIM_IN shim_function function, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) char *path) SHIM_MAY_BLOCK;

/*
 * shim_function_template_arguments - of which instance (GetFunctionInfo2)
 *
 * One string each ("int", "42"), NUL-terminated, one after the other: those of
 * the classes it is a member of, outermost first, then its own; what stands for
 * an address is "?".  Types are spelt as the compiler spells them ("long int",
 * "long").  @count and *@total are bytes; a total of 0 if it is no template.
 * Fails as shim_function_lines.  Contract: may block.
 */
SHIM_API enum shim_result
shim_function_template_arguments(SHIM_IN shim_function function,
				 SHIM_IN uint32_t count,
				 SHIM_OUT_OPT uint32_t *total,
				 SHIM_OUT_SIZE_IS(count, total) char *names)
	SHIM_MAY_BLOCK;

/* --- threads --- */

/*
 * shim_thread_current - the calling thread
 *
 * SHIM_E_NOT_MANAGED_THREAD if it is none of the program's: one of a profiler, or
 * one whose thread_exited has been raised.  Async.
 */
SHIM_API enum shim_result
shim_thread_current(SHIM_OUT shim_thread *thread) SHIM_ASYNC;

/*
 * shim_thread_info - the system's id of a thread, its pthread_t (0: none) and
 * the name it has now.  SHIM_E_DATAINCOMPLETE from its thread_exited on.
 * Contract: sync.
 */
SHIM_API enum shim_result
shim_thread_info(SHIM_IN shim_thread thread, SHIM_OUT_OPT uint32_t *tid,
		 SHIM_OUT_OPT uintptr_t *pthread, SHIM_IN uint32_t count,
		 SHIM_OUT_OPT uint32_t *total,
		 SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_SYNC;

/* --- the process --- */

/*
 * shim_runtime_info - what runs here (GetRuntimeInformation)
 *
 * The version of shim, and @version: one line with those of shim, libc, the
 * kernel, and the compiler of the program as far as known.  Contract: sync.
 */
SHIM_API enum shim_result
shim_runtime_info(SHIM_OUT_OPT uint16_t *major, SHIM_OUT_OPT uint16_t *minor,
		  SHIM_OUT_OPT uint16_t *patch, SHIM_IN uint32_t count,
		  SHIM_OUT_OPT uint32_t *total,
		  SHIM_OUT_SIZE_IS(count, total) char *version) SHIM_SYNC;

/* shim_process_info - its id, and the program's path (GetAppDomainInfo).
 * Contract: may block. */
SHIM_API enum shim_result
shim_process_info(SHIM_OUT_OPT uint32_t *pid, SHIM_IN uint32_t count,
		  SHIM_OUT_OPT uint32_t *total,
		  SHIM_OUT_SIZE_IS(count, total) char *path) SHIM_MAY_BLOCK;

#ifdef __cplusplus
}
#endif
#endif
