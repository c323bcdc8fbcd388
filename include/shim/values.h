/*
 * Values of the program: arguments, results and locals, as debug information
 * describes them; their types, and how they are printed.
 *
 * A string's buffer is as in <shim/info.h>: cut between two characters, it still
 * ends in a NUL, and a short one is a success.
 */
#ifndef SHIM_VALUES_H
#define SHIM_VALUES_H

#include <shim/profiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Why a value cannot be had.  A value that can is never a guess. */
enum shim_unavailable {
	SHIM_AVAILABLE = 0,
	/* The function has none: it returns void, or the position is too high. */
	SHIM_UNAVAILABLE_NONE,
	/* Compiled without -g, stripped, or the file is not the one that was
	 * loaded. */
	SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION,
	/* Its type or the way it is passed is not understood. */
	SHIM_UNAVAILABLE_NOT_UNDERSTOOD,
	/* The function does not use it, and it is nowhere any more. */
	SHIM_UNAVAILABLE_OPTIMIZED_OUT,
	/* It was there, and has been overwritten by now. */
	SHIM_UNAVAILABLE_CLOBBERED,
	/* The call was inlined: there is no place for it. */
	SHIM_UNAVAILABLE_INLINED,
	/* The function does not return here: it jumps to another one, or is
	 * unwound. */
	SHIM_UNAVAILABLE_NOT_RETURNED,
	/* shim cannot read this processor's code, or the code is not followed
	 * that far. */
	SHIM_UNAVAILABLE_CODE,
	/* The function has just been entered, and has not made it yet. */
	SHIM_UNAVAILABLE_NOT_YET,
};

/* shim_unavailable_text - what it means, in a few words ("optimized out"), or
 * NULL.  The string lives as long as the process.  Contract: async. */
SHIM_API const char *shim_unavailable_text(SHIM_IN int reason) SHIM_ASYNC;

/*
 * shim_values_enable - open debug information when images are loaded
 *
 * The first question about an object's functions has its debug information
 * opened, which takes milliseconds, and more if it is large.  With this that is
 * done at the start and, as far as dlopen can be watched (<shim/info.h>), at
 * the end of it, and not in the hook that asks.  Objects that call no hooks are
 * left out.  Symbols are read as shim_symbols_enable has them read.
 *
 * Returns SHIM_OK or SHIM_E_CALL_ONLY_FROM_INIT.  Contract: init.
 */
SHIM_API enum shim_result shim_values_enable(void) SHIM_INIT;

/* --- types --- */

/*
 * A type of the program, as its debug information describes it.  0 is none.  It
 * stays valid as long as the process lives, also when the object it was found in
 * is closed; what looks the same is the same type.
 */
typedef uintptr_t shim_type;

/* Names of types (typedef) and const are looked through. */
enum shim_type_kind {
	SHIM_TYPE_VOID,
	SHIM_TYPE_BOOL,
	SHIM_TYPE_CHARACTER,	  /* char, wchar_t, char32_t ... */
	SHIM_TYPE_SIGNED,	  /* also signed char */
	SHIM_TYPE_UNSIGNED,	  /* also unsigned char */
	SHIM_TYPE_FLOAT,
	SHIM_TYPE_COMPLEX,
	SHIM_TYPE_ENUM,
	SHIM_TYPE_POINTER,
	SHIM_TYPE_MEMBER_POINTER, /* `int A::*` */
	SHIM_TYPE_REFERENCE,	  /* its value is an address */
	SHIM_TYPE_ARRAY,
	SHIM_TYPE_VECTOR,	  /* of a processor */
	SHIM_TYPE_STRUCT,	  /* struct, class */
	SHIM_TYPE_UNION,
	SHIM_TYPE_FUNCTION,
	SHIM_TYPE_UNKNOWN,	  /* not understood; it has a size */
};

/*
 * shim_get_parameter_count - how many parameters @function was declared with
 * shim_get_parameter_info - the type and the name of one
 * shim_get_result_type - what it returns: SHIM_TYPE_VOID if nothing
 *
 * @position counts from 0 as the ranges of shim_get_function_enter3_info do:
 * `this` first, what the compiler adds left out.  A parameter without a name has
 * an empty one.
 *
 * Return SHIM_OK; SHIM_E_INVALIDARG if @position is too high, and for a function
 * that never was; SHIM_E_DATAINCOMPLETE if its image has gone;
 * SHIM_E_FUNCTION_NOT_IL if there is no debug information for it, or not for all
 * its parameters; SHIM_E_NOT_YET_AVAILABLE if another thread takes long to read
 * some; SHIM_E_OUTOFMEMORY.
 *
 * Contract: may block.  Cost: reads debug information once per function, which
 * takes milliseconds, blocks signals and takes the lock of the runtime; later it
 * looks up a table, takes no lock and copies.
 */
SHIM_API enum shim_result
shim_get_parameter_count(SHIM_IN shim_function function,
			 SHIM_OUT uint32_t *parameter_count) SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_get_parameter_info(SHIM_IN shim_function function,
			SHIM_IN uint32_t position, SHIM_OUT_OPT shim_type *type,
			SHIM_IN uint32_t count, SHIM_OUT_OPT uint32_t *total,
			SHIM_OUT_SIZE_IS(count, total) char *name)
	SHIM_MAY_BLOCK;
SHIM_API enum shim_result
shim_get_result_type(SHIM_IN shim_function function,
		     SHIM_OUT shim_type *type) SHIM_MAY_BLOCK;

/*
 * shim_get_type_info - what kind of type @type is
 *
 * *@kind; *@size, the bytes of a value (0: unknown, or none); @name, as the source
 * has it: "const char *", "struct point", "std::vector<int>"; basic types as
 * their compiler spells them ("long int", "long").
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @type is none.  Contract: async.
 */
SHIM_API enum shim_result
shim_get_type_info(SHIM_IN shim_type type,
		   SHIM_OUT_OPT enum shim_type_kind *kind,
		   SHIM_OUT_OPT uint64_t *size, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) char *name) SHIM_ASYNC;

/*
 * shim_get_type_tree - all that is known of @type: a struct shim_typetree
 * (<shim/typetree.h>), its struct and what is behind it
 *
 * *@total gets its bytes.  What does not fit is left out: then *@total is more than
 * @count, and @tree is not to be used.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG if @type is none.  Contract: async.
 */
SHIM_API enum shim_result
shim_get_type_tree(SHIM_IN shim_type type, SHIM_IN uint32_t count,
		   SHIM_OUT_OPT uint32_t *total,
		   SHIM_OUT_SIZE_IS(count, total) void *tree) SHIM_ASYNC;

/* --- printing --- */

enum shim_print_flags {
	/* A JSON value, and not text for people. */
	SHIM_PRINT_JSON = 1,
	/* At most 1024 bytes of a string and 256 elements of an array, and not 64
	 * and 16. */
	SHIM_PRINT_LONG = 2,
	/* What pointers lead to is not read, and addresses get no names: the same
	 * value has the same text in every process. */
	SHIM_PRINT_PLAIN = 4,
};

/*
 * shim_print_value - a value as text
 *
 * @value is where it lies, for instance the start of a range of
 * shim_get_function_enter3_info; as many bytes as its type has are read there,
 * of a reference those of an address.  But an object that C++ passes by its
 * address is given itself, and so is its type.
 *
 *     -7  'a'  true  1.5  inf  1 + 2i    numbers
 *     GREEN  A|B  (enum colour) 7        enumerators, also as flags
 *     "text"  "tex"...                   char *, char[], std::string, ...: cut
 *     0x401136 <main+4>  NULL            pointers
 *     0x10 (unreadable)                  one to what is not memory
 *     {a = 1, b = {...}}                 classes, one level deep; unions
 *     [1, 2, ...]                        arrays, cut
 *     {size 3: 1, 2, 3}                  std::vector
 *     (unknown)                          what is not understood
 *
 * References show their object, smart pointers the pointer, std::optional its
 * value or `nullopt`.  Control characters, quotes, and what is not UTF-8 come as
 * \n, \" or \xNN.
 *
 * With SHIM_PRINT_JSON: numbers, true, false, null, strings, arrays, objects of
 * the fields.  A pointer, a character, an enumerator and what is not a finite
 * number are strings; a string that was cut is {"cut": "tex"}, an unreadable
 * place {"unreadable": "0x10"}, an array that was cut ends in "...", a
 * std::vector is {"size": 3, "elements": [1, 2, 3]}, a complex number {"real": 1,
 * "imaginary": 2}, nested classes are "{...}".  What is not UTF-8 comes as the
 * characters \xNN.
 *
 * What pointers lead to is asked of the system, so that a wrong one does no harm;
 * where the program has forbidden itself that, it is unreadable.  Other threads
 * may change it meanwhile.
 *
 * Returns SHIM_OK; SHIM_E_INVALIDARG for a wrong @type, unknown @flags or a NULL
 * @value; SHIM_E_OUTOFMEMORY, the first times only.
 *
 * Contract: sync.  Cost: a microsecond or less for a number; a system call for
 * each piece of memory that is read.
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
