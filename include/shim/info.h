/*
 * Queries about functions, images, threads and the process.
 *
 * The conventions are those of <shim/shim.h>.  A buffer may be NULL if its
 * length is 0. A string that does not fit is cut between two characters of
 * UTF-8 and still ends in a NUL.
 *
 * All functions check ids: an id that never existed returns SHIM_E_INVALIDARG;
 * the id of an object that was unloaded, or of a thread that has ended, returns
 * SHIM_E_DATAINCOMPLETE.  shim knows an object
 * from the return of dlopen on, if modules have hooks, mappers or filters;
 * otherwise the first query about one of its functions scans the mapped
 * objects, with signals blocked and the lock of the runtime.  Functions that
 * list or read return SHIM_E_FAIL if the program has forbidden itself the
 * system calls that they need.  All functions that are not async return
 * SHIM_E_OUTOFMEMORY without memory for the answer; the same query may succeed
 * later.
 *
 * Example: print the name of a function.
 *
 *     #include <shim/info.h>
 *     #include <stdio.h>
 *
 *     void print_name(shim_function function);
 *     void print_name(shim_function function)
 *     {
 *             char name[256];
 *
 *             if (shim_function_demangled_name(function, sizeof(name), NULL, name) ==
 *                 SHIM_OK)
 *                     puts(name);
 *     }
 */
#ifndef SHIM_INFO_H
#define SHIM_INFO_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- enumerations --- */

/*
 * A snapshot of ids.  An object may be unloaded, or a thread may end, before the
 * caller reads its id.
 *
 * shim_enum_next - copy up to @count ids; *@fetched (optional if @count is 1) gets their
 * number.  SHIM_OK if all @count were copied, SHIM_S_FALSE if fewer.
 * shim_enum_skip - skip @count ids; SHIM_S_FALSE if fewer were left
 * shim_enum_reset - go back to the first id
 * shim_enum_clone - copy the enumeration with its position; SHIM_E_OUTOFMEMORY
 * shim_enum_count - the number of all ids
 * shim_enum_remaining - the number of ids from the position on
 * shim_enum_destroy - free the enumeration; NULL has no effect
 *
 * All return SHIM_E_INVALIDARG for NULL.
 *
 * Contract: async, clone may block; one thread at a time for one enumeration.
 * CLR: ICorProfilerFunctionEnum, ICorProfilerModuleEnum,
 * ICorProfilerThreadEnum.  Mono: none.
 */
struct shim_enum;
SHIM_API enum shim_result
shim_enum_next(SHIM_IN struct shim_enum *enumeration, SHIM_IN uint32_t count,
	       SHIM_OUT uint64_t *ids,
	       SHIM_OUT_OPT uint32_t *fetched) SHIM_ASYNC;
SHIM_API enum shim_result shim_enum_skip(SHIM_IN struct shim_enum *enumeration,
					 SHIM_IN uint32_t count) SHIM_ASYNC;
SHIM_API enum shim_result
shim_enum_reset(SHIM_IN struct shim_enum *enumeration) SHIM_ASYNC;
SHIM_API enum shim_result
shim_enum_clone(SHIM_IN struct shim_enum *enumeration,
		SHIM_OUT struct shim_enum **copy) SHIM_MAY_BLOCK;
SHIM_API enum shim_result shim_enum_count(SHIM_IN struct shim_enum *enumeration,
					  SHIM_OUT uint32_t *count) SHIM_ASYNC;
SHIM_API enum shim_result
shim_enum_remaining(SHIM_IN struct shim_enum *enumeration,
		    SHIM_OUT uint32_t *count) SHIM_ASYNC;
SHIM_API void
shim_enum_destroy(SHIM_IN struct shim_enum *enumeration) SHIM_ASYNC;

/*
 * shim_image_enumerate - all loaded images
 * shim_function_enumerate - all functions of @image; of all images if it is 0
 * shim_thread_enumerate - all threads of the program
 *
 * An image is listed before its image_loaded and no longer after its
 * image_unloaded.  A function is listed once if it has a symbol, however many
 * names it has.  A thread is not listed from its thread_exited on; threads of
 * profilers are never listed.
 *
 * Return SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_DATAINCOMPLETE if @image was
 * unloaded; SHIM_E_OUTOFMEMORY.
 *
 * Contract: images and functions may block (functions read symbol tables),
 * threads sync.  CLR: EnumModules, EnumJITedFunctions, EnumThreads.  Mono:
 * mono_assembly_foreach.
 */
SHIM_API enum shim_result
shim_image_enumerate(SHIM_OUT struct shim_enum **enumeration) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_function_enumerate(SHIM_IN shim_image image,
			SHIM_OUT struct shim_enum **enumeration) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_thread_enumerate(SHIM_OUT struct shim_enum **enumeration) SHIM_SYNC;

/* --- images --- */

/* The values are those of CLR: COR_PRF_MODULE_FLAGS. */
enum shim_image_flags {
	SHIM_IMAGE_DISK = 1,
	SHIM_IMAGE_DYNAMIC = 4,	    /* generated code: the vdso */
	SHIM_IMAGE_COLLECTIBLE = 8, /* loaded by dlopen, may be unloaded */
	SHIM_IMAGE_FLAT_LAYOUT = 0x20,
	SHIM_IMAGE_PROGRAM = 0x1000, /* of shim only: the program itself */
};

/*
 * shim_image_info - address, size, flags and file of an image
 *
 * *@base is the address of its first byte, *@size its size in memory, *@bias
 * the difference between addresses in memory and in the file, *@flags enum
 * shim_image_flags, @path its file.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_DATAINCOMPLETE if it was unloaded.
 *
 * Contract: async.  CLR: GetModuleInfo2.  Mono: mono_image_get_filename.
 */
SHIM_API enum shim_result
shim_image_info(SHIM_IN shim_image image, SHIM_OUT_OPT const void **base,
		SHIM_OUT_OPT size_t *size, SHIM_OUT_OPT intptr_t *bias,
		SHIM_OUT_OPT uint32_t *flags, SHIM_IN uint32_t count,
		SHIM_OUT_OPT uint32_t *total,
		SHIM_OUT_SIZE_IS(count, total) char *path) SHIM_ASYNC;

/*
 * shim_image_build_id - the build id of an image; *@total is 0 if it has none
 *
 * Returns as shim_image_info.  Contract: async.  CLR: GetAssemblyInfo.  Mono:
 * mono_image_get_guid.
 */
SHIM_API enum shim_result shim_image_build_id(
	SHIM_IN shim_image image, SHIM_IN uint32_t count,
	SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) unsigned char *id) SHIM_ASYNC;

/*
 * shim_image_from_address - the image that contains @address
 *
 * Returns SHIM_OK; SHIM_E_FAIL if no image contains @address;
 * SHIM_E_DATAINCOMPLETE if an image that was unloaded has contained it;
 * SHIM_E_INVALIDARG.
 *
 * Contract: async.  CLR: GetFunctionFromIP, GetFunctionInfo.  Mono: none.
 */
SHIM_API enum shim_result
shim_image_from_address(SHIM_IN const void *address,
			SHIM_OUT shim_image *image) SHIM_ASYNC;

/* --- functions --- */

/*
 * shim_profiler_enable_symbols - read symbol tables when images are loaded
 *
 * The async functions below then know every function.  Without this call they
 * know the functions of an image only after a MAY_BLOCK function has read its
 * symbols, and return SHIM_E_NOT_YET_AVAILABLE before.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_CALL_ONLY_FROM_INIT.
 *
 * Contract: init.  CLR: COR_PRF_ENABLE_JIT_MAPS.  Mono: none.
 */
SHIM_API enum shim_result shim_profiler_enable_symbols(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/*
 * shim_function_from_address - the function that contains @address
 * shim_function_from_address2 - the same; reads symbols if necessary
 *
 * The cold part of a function belongs to the function.
 *
 * Return SHIM_OK; SHIM_E_FAIL if no function contains @address;
 * SHIM_E_DATAINCOMPLETE if an image that was unloaded has contained it;
 * SHIM_E_NOT_YET_AVAILABLE (the first one only); SHIM_E_INVALIDARG.
 *
 * Contract: async; shim_function_from_address2 may block.  CLR:
 * GetFunctionFromIP, GetFunctionFromIP2.  Mono: mono_jit_info_table_find.
 */
SHIM_API enum shim_result
shim_function_from_address(SHIM_IN const void *address,
			   SHIM_OUT shim_function *function) SHIM_ASYNC;
SHIM_API enum shim_result
shim_function_from_address2(SHIM_IN const void *address,
			    SHIM_OUT shim_function *function) SHIM_MAY_BLOCK;

/*
 * shim_function_find - the function or part of a function that contains @address
 *
 * Reads the object's symbols if necessary.  Code without a symbol, in a
 * stripped program, is looked up in the table for exceptions: *@function is
 * then the start of the function, or of the part of a function, that contains
 * @address.
 *
 * Returns SHIM_OK; SHIM_E_FAIL if no function is known there; SHIM_E_DATAINCOMPLETE if
 * its image was unloaded; SHIM_E_INVALIDARG.
 *
 * Contract: async; the first query in an object blocks signals, takes the lock
 * of the runtime and reads the object's file.  Cost: later a few binary
 * searches.  CLR: GetFunctionFromIP2.  Mono: mono_jit_info_table_find.
 */
SHIM_API enum shim_result
shim_function_find(SHIM_IN const void *address,
		   SHIM_OUT shim_function *function) SHIM_ASYNC;

/*
 * shim_function_info - the image of a function, and its address in the file
 *
 * This function and those below take the first address of a function; interior
 * addresses return SHIM_E_INVALIDARG if symbols are known.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_DATAINCOMPLETE if its image was
 * unloaded.
 *
 * Contract: async.  CLR: GetFunctionInfo.  Mono: mono_method_get_class.
 */
SHIM_API enum shim_result
shim_function_info(SHIM_IN shim_function function,
		   SHIM_OUT_OPT shim_image *image,
		   SHIM_OUT_OPT uint64_t *offset) SHIM_ASYNC;

/*
 * shim_function_name - the linker name of a function
 *
 * If a function has several names, a global name comes first, then a name that
 * is no clone of the compiler, then the first name in the symbol table.  A
 * function that a resolver chooses when the image is loaded (target_clones,
 * ifunc) has its name at the address that callers use.
 *
 * Returns SHIM_OK; SHIM_E_FAIL if it has no name; SHIM_E_NOT_YET_AVAILABLE;
 * SHIM_E_INVALIDARG; SHIM_E_DATAINCOMPLETE.
 *
 * Contract: async.  CLR: GetTokenAndMetaDataFromFunction.  Mono:
 * mono_method_get_name.
 */
SHIM_API enum shim_result
shim_function_name(SHIM_IN shim_function function, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_ASYNC;

/*
 * shim_function_demangled_name - the name as the source has it: `ns::f(int)`
 *
 * The result is the linker name if that is the only name, or if the process has
 * neither a C++ runtime nor libshim-debuginfo.so to demangle it.  Returns as
 * shim_function_name.
 *
 * Contract: may block.  CLR: none.  Mono: mono_method_full_name.
 */
SHIM_API enum shim_result shim_function_demangled_name(
	SHIM_IN shim_function function, SHIM_IN uint32_t count,
	SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_MAY_BLOCK;

/*
 * shim_function_aliases - all names of a function's address
 *
 * The names are in sequence, each with its NUL; the first is that of
 * shim_function_name.  @count and *@total are in bytes.  Returns as
 * shim_function_name.
 *
 * Contract: may block.  No counterpart.
 */
SHIM_API enum shim_result shim_function_aliases(
	SHIM_IN shim_function function, SHIM_IN uint32_t count,
	SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) char *names) SHIM_MAY_BLOCK;

/*
 * shim_function_code - address and size of a function's hot part
 *
 * Returns as shim_function_name.  Contract: async.  CLR: GetCodeInfo.  Mono:
 * mono_jit_info_get_code_start, mono_jit_info_get_code_size.
 */
SHIM_API enum shim_result
shim_function_code(SHIM_IN shim_function function,
		   SHIM_OUT_OPT const void **start,
		   SHIM_OUT_OPT uint32_t *size) SHIM_ASYNC;

struct shim_code_range {
	uintptr_t start;
	size_t size;
};

/*
 * shim_function_ranges - all parts of a function, the hot one first
 *
 * Returns as shim_function_name.  Contract: async.  CLR: GetCodeInfo2.  Mono:
 * none.
 */
SHIM_API enum shim_result shim_function_ranges(
	SHIM_IN shim_function function, SHIM_IN uint32_t count,
	SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count,
			 total) struct shim_code_range *ranges) SHIM_ASYNC;

/* The ways in which calls reach shim: marks of the compiler, or none. */
enum shim_source {
	SHIM_SOURCE_NONE,      /* no mark is known */
	SHIM_SOURCE_HOOKS,     /* it calls the hooks: -finstrument-functions */
	SHIM_SOURCE_XRAY,      /* XRay's sleds: clang -fxray-instrument */
	SHIM_SOURCE_PATCHABLE, /* no-ops: -fpatchable-function-entry=N, N >= 5 */
	SHIM_SOURCE_FENTRY,    /* no-ops: gcc -pg -mfentry -mnop-mcount */
	SHIM_SOURCE_UNMARKED,  /* none: SHIM_PATCH has chosen the function */
	SHIM_SOURCE_LIBCALL, /* none: calls of another object's, SHIM_LIBCALLS */
	SHIM_SOURCE_MCOUNT,  /* it calls mcount or __fentry__: -pg */
};

/*
 * shim_function_source - how the calls of @function reach shim
 *
 * *@source is the kind of mark that shim uses for this function, also while its
 * calls are switched off; SHIM_SOURCE_NONE for a function without marks, for an
 * address at which no function begins, and where shim may not use the marks
 * that are there (the log says why).  Hooks get the same from each source,
 * except that of functions without calls of the hooks, hardly any argument,
 * result or local is available (SHIM_UNAVAILABLE_CODE and others).
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @function is 0 or @source is NULL;
 * SHIM_E_FAIL before shim runs.
 *
 * Contract: async; blocks signals and takes the lock of the runtime.  Cost: the
 * first call for an object reads its code; later a binary search.  CLR and
 * Mono: none, their compiler makes the calls.
 */
SHIM_API enum shim_result
shim_function_source(SHIM_IN shim_function function,
		     SHIM_OUT enum shim_source *source) SHIM_ASYNC;

/* The code of a line: bytes [@start, @end) of the function, whose parts are
 * counted in the order of shim_function_ranges.  @line 0: code without a
 * line.  CLR: COR_DEBUG_IL_TO_NATIVE_MAP. */
struct shim_line {
	uint32_t line;
	uint32_t column;
	uint32_t start;
	uint32_t end;
};

/*
 * shim_function_lines - the lines of a function's code
 * shim_function_file - the source file of its first line
 *
 * Lines of functions that were inlined into it are included.  @path is absolute
 * as far as the compiler recorded it.
 *
 * Return SHIM_OK; SHIM_E_FUNCTION_NOT_IL without debug information for the
 * function, or without libshim-debuginfo.so beside libshim.so (the log says
 * so); SHIM_E_OUTOFMEMORY; SHIM_E_NOT_YET_AVAILABLE if another thread takes
 * long to read debug information; SHIM_E_INVALIDARG; SHIM_E_DATAINCOMPLETE.
 *
 * Contract: may block; reads debug information, and takes the loader's lock the
 * first time.  CLR: GetILToNativeMapping.  Mono:
 * mono_debug_lookup_source_location.
 */
SHIM_API enum shim_result shim_function_lines(
	SHIM_IN shim_function function, SHIM_IN uint32_t count,
	SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) struct shim_line *lines) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_function_file(SHIM_IN shim_function function, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) char *path) SHIM_MAY_BLOCK;

/*
 * shim_function_template_arguments - the template arguments of an instance
 *
 * The arguments ("int", "42") are in sequence, each with its NUL: those of the
 * classes that the function is a member of, outermost first, then its own.  An
 * argument that is an address is "?".  Types are spelt as the compiler spells
 * them ("long int" or "long").  @count and *@total are in bytes; *@total is 0
 * if it is no template.
 *
 * Returns as shim_function_lines.
 *
 * Contract: may block.  CLR: GetFunctionInfo2.  Mono: none.
 */
SHIM_API enum shim_result shim_function_template_arguments(
	SHIM_IN shim_function function, SHIM_IN uint32_t count,
	SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) char *names) SHIM_MAY_BLOCK;

/* --- threads --- */

/*
 * shim_thread_current - the calling thread
 *
 * Returns SHIM_OK; SHIM_E_NOT_MANAGED_THREAD for a thread of a profiler, and
 * for a thread whose thread_exited has been raised; SHIM_E_INVALIDARG.
 *
 * Contract: async.  CLR: GetCurrentThreadID.  Mono: mono_thread_current.
 */
SHIM_API enum shim_result
shim_thread_current(SHIM_OUT shim_thread *thread) SHIM_ASYNC;

/*
 * shim_thread_info - the kernel's id of a thread, its pthread_t (0: none) and its name
 *
 * Returns SHIM_OK; SHIM_E_DATAINCOMPLETE from its thread_exited on;
 * SHIM_E_INVALIDARG.
 *
 * Contract: sync.  CLR: GetThreadInfo.  Mono: mono_thread_get_name.
 */
SHIM_API enum shim_result
shim_thread_info(SHIM_IN shim_thread thread, SHIM_OUT_OPT uint32_t *tid,
		 SHIM_OUT_OPT uintptr_t *pthread, SHIM_IN uint32_t count,
		 SHIM_OUT_OPT uint32_t *total,
		 SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_SYNC;

/* --- the process --- */

/*
 * shim_runtime_info - the versions of shim and of the system
 *
 * *@major, *@minor and *@patch are the version of shim.  @version is one line
 * with the versions of shim, libc, the kernel, and, if known, the program's
 * compiler.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG.
 *
 * Contract: sync.  CLR: GetRuntimeInformation.  Mono:
 * mono_get_runtime_build_info.
 */
SHIM_API enum shim_result
shim_runtime_info(SHIM_OUT_OPT uint16_t *major, SHIM_OUT_OPT uint16_t *minor,
		  SHIM_OUT_OPT uint16_t *patch, SHIM_IN uint32_t count,
		  SHIM_OUT_OPT uint32_t *total,
		  SHIM_OUT_SIZE_IS(count, total) char *version) SHIM_SYNC;

/*
 * shim_process_info - the process id, and the path of the program
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG; SHIM_E_FAIL.
 *
 * Contract: may block.  CLR: GetAppDomainInfo.  Mono:
 * mono_domain_get_friendly_name.
 */
SHIM_API enum shim_result
shim_process_info(SHIM_OUT_OPT uint32_t *pid, SHIM_IN uint32_t count,
		  SHIM_OUT_OPT uint32_t *total,
		  SHIM_OUT_SIZE_IS(count, total) char *path) SHIM_MAY_BLOCK;

#ifdef __cplusplus
}
#endif
#endif
