/*
 * Values of the program, by debug information: the types of arguments, results
 * and locals, and values as text.
 *
 * A string that does not fit its buffer is cut between two characters of UTF-8
 * and still ends in a NUL; a short buffer is a success.
 *
 * Example: print an int of the program.
 *
 *     #include <shim/values.h>
 *     #include <stdio.h>
 *
 *     void show(shim_function function, const void *argument);
 *     void show(shim_function function, const void *argument)
 *     {
 *             shim_type type;
 *             char text[64];
 *
 *             if (shim_get_parameter_info(function, 0, &type, 0, NULL, NULL) == SHIM_OK &&
 *                 shim_print_value(type, argument, 0, sizeof(text), NULL, text) ==
 *                         SHIM_OK)
 *                     puts(text);
 *     }
 */
#ifndef SHIM_VALUES_H
#define SHIM_VALUES_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The reason why a value is not available.  A value that is available is exact. */
enum shim_unavailable {
	SHIM_AVAILABLE = 0,
	/* There is no such value: the function returns void, or the position is too
	 * high. */
	SHIM_UNAVAILABLE_NONE,
	/* The object was compiled without -g or stripped, or its file is not
	 * the one that was loaded.  Or clang compiled a C++ function without
	 * optimization, whose name does not list its parameters (extern "C"): its
	 * debug information may then lack some of them. */
	SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION,
	/* shim does not understand its type or how it is passed. */
	SHIM_UNAVAILABLE_NOT_UNDERSTOOD,
	/* The function does not use it, and no copy is left.  At marks other than hooks: its
	 * compiler knew all callers, so these may not have passed it, or do not use the
	 * result. */
	SHIM_UNAVAILABLE_OPTIMIZED_OUT,
	/* The program has overwritten its storage. */
	SHIM_UNAVAILABLE_CLOBBERED,
	/* The call was inlined: the value has no storage. */
	SHIM_UNAVAILABLE_INLINED,
	/* The function ends by a tail call or is unwound. */
	SHIM_UNAVAILABLE_NOT_RETURNED,
	/* shim cannot decode this processor's code, or not far enough. */
	SHIM_UNAVAILABLE_CODE,
	/* The function has just been entered and has not computed it. */
	SHIM_UNAVAILABLE_NOT_YET,
};

/*
 * shim_unavailable_text - the meaning of @reason in a few words ("optimized out")
 *
 * The string lives as long as the process.  Returns NULL if @reason is unknown.
 *
 * Contract: async.  No counterpart.
 */
SHIM_API const char *shim_unavailable_text(SHIM_IN int reason) SHIM_ASYNC;

/*
 * shim_profiler_enable_values - open debug information when images are loaded
 *
 * Without this call, the first query about a function of an object opens the
 * object's debug information, which takes milliseconds, and more if it is
 * large.  With it, that happens at the start and, as far as shim sees dlopen
 * (<shim/info.h>), at the end of dlopen, and not in the hook.  Objects that
 * call no hooks are left out.  Symbols are read as by
 * shim_profiler_enable_symbols.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @handle;
 * SHIM_E_CALL_ONLY_FROM_INIT.
 *
 * Contract: init.  No counterpart.
 */
SHIM_API enum shim_result shim_profiler_enable_values(
	SHIM_IN struct shim_profiler_handle *handle) SHIM_INIT;

/* --- types --- */

/*
 * A type of the program; 0 is no type.  It is valid as long as the process
 * lives, also after its object was unloaded.  Types that look the same are the
 * same type.  CLR: ClassID.  Mono: MonoClass.
 */
typedef uintptr_t shim_type;

/* The kind of a type behind typedef and const. */
enum shim_type_kind {
	SHIM_TYPE_VOID,
	SHIM_TYPE_BOOL,
	SHIM_TYPE_CHARACTER, /* char, wchar_t, char32_t ... */
	SHIM_TYPE_SIGNED,    /* also signed char */
	SHIM_TYPE_UNSIGNED,  /* also unsigned char */
	SHIM_TYPE_FLOAT,
	SHIM_TYPE_COMPLEX,
	SHIM_TYPE_ENUM,
	SHIM_TYPE_POINTER,
	SHIM_TYPE_MEMBER_POINTER, /* `int A::*` */
	SHIM_TYPE_REFERENCE,	  /* the value is an address */
	SHIM_TYPE_ARRAY,
	SHIM_TYPE_VECTOR, /* a vector of the processor */
	SHIM_TYPE_STRUCT, /* struct, class */
	SHIM_TYPE_UNION,
	SHIM_TYPE_FUNCTION,
	SHIM_TYPE_UNKNOWN, /* not understood; its size is known */
};

/*
 * shim_get_parameter_count - the number of parameters in @function's declaration
 * shim_get_parameter_info - type and name of a parameter
 * shim_get_result_type - type of the result; SHIM_TYPE_VOID if there is none
 *
 * @position counts from 0, as the ranges of shim_get_function_enter3_info do:
 * `this` first, without parameters that the compiler adds.  A parameter without
 * a name has an empty one.
 *
 * Return SHIM_OK; SHIM_E_INVALIDARG if @position is too high, and for an
 * address that never was a function; SHIM_E_DATAINCOMPLETE if its image was
 * unloaded; SHIM_E_FUNCTION_NOT_IL if there is no debug information for it or
 * for one of its parameters; SHIM_E_NOT_YET_AVAILABLE if another thread takes
 * long to read it; SHIM_E_OUTOFMEMORY.
 *
 * Contract: may block.  Cost: the first query about a function reads debug
 * information, which takes milliseconds, blocks signals and takes the lock of
 * the runtime; later queries look up a table, take no lock and copy.  CLR:
 * GetFunctionInfo.  Mono: mono_method_signature.
 */
SHIM_API enum shim_result
shim_get_parameter_count(SHIM_IN shim_function function,
			 SHIM_OUT uint32_t *parameter_count) SHIM_MAY_BLOCK;
SHIM_API enum shim_result shim_get_parameter_info(
	SHIM_IN shim_function function, SHIM_IN uint32_t position,
	SHIM_OUT_OPT shim_type *type, SHIM_IN uint32_t count,
	SHIM_OUT_OPT uint32_t *total,
	SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_get_result_type(SHIM_IN shim_function function,
		     SHIM_OUT shim_type *type) SHIM_MAY_BLOCK;

/*
 * shim_get_type_info - kind, size and name of a type
 *
 * *@size is the size of a value in bytes, 0 if unknown or none.  @name is the
 * name in the source: "const char *", "struct point", "std::vector<int>"; basic
 * types are spelt as their compiler spells them ("long int" or "long").
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @type is no type.
 *
 * Contract: async.  CLR: GetClassIDInfo2, GetClassLayout.  Mono:
 * mono_type_get_name.
 */
SHIM_API enum shim_result
shim_get_type_info(SHIM_IN shim_type type,
		   SHIM_OUT_OPT enum shim_type_kind *kind,
		   SHIM_OUT_OPT uint64_t *size, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_ASYNC;

/*
 * shim_get_type_tree - a type with its fields: a struct shim_typetree
 * (<shim/typetree.h>) and the data behind it
 *
 * *@total gets its size in bytes.  If *@total is more than @count, @tree is
 * incomplete and must not be used.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @type is no type.
 *
 * Contract: async.  CLR: GetClassLayout.  Mono: mono_class_get_fields.
 */
SHIM_API enum shim_result
shim_get_type_tree(SHIM_IN shim_type type, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) void *tree) SHIM_ASYNC;

/* --- printing --- */

enum shim_print_flags {
	/* A JSON value instead of plain text. */
	SHIM_PRINT_JSON = 1,
	/* Up to 1024 bytes of a string and 256 elements of an array, instead of 64 and
	 * 16. */
	SHIM_PRINT_LONG = 2,
	/* Do not read behind pointers, and do not name addresses: the same
	 * value has the same text in every process. */
	SHIM_PRINT_PLAIN = 4,
};

/*
 * shim_print_value - a value as text
 *
 * @value is the value's address, for instance the start of a range of
 * shim_get_function_enter3_info.  The function reads as many bytes as the type
 * has; for a reference, those of an address.  For an object that C++ passes by
 * its address, pass the object and its own type.
 *
 *     -7  'a'  true  1.5  inf  1 + 2i    numbers
 *     GREEN  A|B  (enum colour) 7        enumerators, also as flags
 *     "text"  "tex"...                   char *, char[], std::string, ...: cut
 *     0x401136 <main+4>  NULL            pointers
 *     0x10 (unreadable)                  a pointer to unmapped memory
 *     {a = 1, b = {...}}                 classes, one level deep; unions
 *     [1, 2, ...]                        arrays, cut
 *     {size 3: 1, 2, 3}                  std::vector
 *     (unknown)                          not understood
 *
 * References show their object, smart pointers the pointer, std::optional its
 * value or `nullopt`.  Control characters, quotes and bytes that are not UTF-8
 * appear as \n, \" or \xNN.
 *
 * With SHIM_PRINT_JSON: numbers, true, false, null, strings, arrays, and
 * objects of the fields.  Pointers, characters, enumerators and numbers that
 * are not finite are strings. A string that was cut is {"cut": "tex"},
 * unreadable memory {"unreadable": "0x10"}.  An array that was cut ends in
 * "...".  A std::vector is {"size": 3, "elements": [1, 2, 3]}, a complex number
 * {"real": 1, "imaginary": 2}; nested classes are "{...}".  Bytes that are not
 * UTF-8 appear as the characters \xNN.
 *
 * The kernel reads the memory behind pointers, so a wrong pointer does no harm;
 * if the program has forbidden itself that system call, the memory is
 * unreadable.  Other threads may change it meanwhile.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @type, unknown @flags or a
 * NULL @value; SHIM_E_OUTOFMEMORY, in the first calls only.
 *
 * Contract: sync.  Cost: at most a microsecond for a number; a system call for
 * each piece of memory that is read.  No counterpart.
 */
SHIM_API enum shim_result
shim_print_value(SHIM_IN shim_type type, SHIM_IN const void *value,
		 SHIM_IN uint32_t flags, SHIM_IN uint32_t count,
		 SHIM_OUT_OPT uint32_t *total,
		 SHIM_OUT_SIZE_IS(count, total) char *text) SHIM_SYNC;

#ifdef __cplusplus
}
#endif
#endif
