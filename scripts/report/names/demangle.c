/*
 * A limited use of demanglers: libstdc++'s for C++, libiberty's for Rust and D, and for
 * modules of C++20.  Those of Fortran need none.  A hostile name of a few hundred bytes can
 * mean gigabytes of text or deep recursion.  The length limits the recursion (C++ names of
 * more than 1 KB stay mangled).  The text is limited by longjmp out of the functions that the
 * demanglers call: for C++ and Rust the variants that deliver the text piece by piece, for D
 * libiberty's allocator, which is defined here.  The demanglers still run in sandboxes only.
 */
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/memory.h"
#include "names/demangle.h"

#define TEXT_MAX 16384

/* Defined in libsupc++.a; <cxxabi.h> does not declare it. */
int __gcclibcxx_demangle_callback(const char *mangled,
				  void (*take)(const char *, size_t, void *),
				  void *opaque);

static jmp_buf enough;
static char text[TEXT_MAX];
static size_t length;

static void append_piece(const char *piece, size_t size, void *opaque)
{
	(void)opaque;
	if (size >= sizeof(text) - length)
		longjmp(enough, 1);
	/* a piece may be empty, and NULL then */
	if (size)
		memcpy(text + length, piece, size);
	length += size;
}

static bool run_cpp_demangler(const char *name)
{
	length = 0;
	return !setjmp(enough) &&
	       !__gcclibcxx_demangle_callback(name, append_piece, NULL);
}

/* gfortran's names of procedures in modules: "__module_MOD_procedure".  Returns the end of
 * the module's, or NULL. */
static const char *find_module(const char *name)
{
	const char *end = strncmp(name, "__", 2) ? NULL : strstr(name, "_MOD_");

	return end && end > name + 2 && end[5] ? end : NULL;
}

/* As gdb shows it. */
static bool run_fortran_demangler(const char *name)
{
	const char *end = find_module(name);

	length = 0;
	if (!end || setjmp(enough))
		return false;
	append_piece(name + 2, (size_t)(end - name - 2), NULL);
	append_piece("::", 2, NULL);
	append_piece(end + 5, strlen(end + 5), NULL);
	return true;
}

bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' ||
				  name[1] == 'D' || find_module(name));
}

#ifdef SHIM_REPORT_HAS_LIBIBERTY

#include <libiberty/demangle.h>
#include <stdlib.h>

/* D's demangler recurses for each byte of a type. */
#define D_NAME_MAX 8192
/* It holds a few texts at a time. */
#define D_TEXT_MAX (4 * TEXT_MAX)

/* libiberty's d-demangle.c calls these two instead of malloc() and realloc(), and frees
 * what they return by free().  What a longjmp leaves behind is lost, as much as the limit
 * allows. */
void *xmalloc(size_t size);
void *xrealloc(void *memory, size_t size);

void *xmalloc(size_t size)
{
	return xrealloc(NULL, size);
}

void *xrealloc(void *memory, size_t size)
{
	void *new = size <= D_TEXT_MAX ? realloc(memory, size ? size : 1) :
					 NULL;

	if (!new)
		longjmp(enough, 1);
	return new;
}

/* Both of Rust's forms: "_R...", and "_ZN...17h<hash>E", which is a C++ name, too. */
static bool run_rust_demangler(const char *name)
{
	length = 0;
	return !setjmp(enough) &&
	       rust_demangle_callback(name, 0, append_piece, NULL);
}

/* libstdc++'s of gcc 12 does not know names of C++20 modules. */
static bool run_newer_demangler(const char *name)
{
	length = 0;
	return !setjmp(enough) &&
	       cplus_demangle_v3_callback(name, DMGL_PARAMS | DMGL_ANSI,
					  append_piece, NULL);
}

/* The demangler of D takes no names with the suffix of a clone. */
static bool run_d_demangler(const char *name)
{
	static char plain[D_NAME_MAX];
	size_t size = strcspn(name, ".");
	char *demangled;

	length = 0;
	if (size >= sizeof(plain) || setjmp(enough))
		return false;
	memcpy(plain, name, size);
	plain[size] = '\0';
	demangled = dlang_demangle(plain, 0);
	if (!demangled)
		return false;
	append_piece(demangled, strlen(demangled), NULL);
	free(demangled);
	if (name[size]) {
		append_piece(" [clone ", 8, NULL);
		append_piece(name + size, strlen(name + size), NULL);
		append_piece("]", 1, NULL);
	}
	return true;
}

static bool run_demangler(const char *name)
{
	return name[1] == 'D' ?
		       run_d_demangler(name) :
		       run_rust_demangler(name) ||
			       (name[1] == 'Z' && (run_cpp_demangler(name) ||
						   run_newer_demangler(name)));
}

#else

static bool run_demangler(const char *name)
{
	return name[1] == 'Z' && run_cpp_demangler(name);
}

#endif

const char *demangle_here(const char *name)
{
	return is_mangled(name) &&
			       (run_fortran_demangler(name) ||
				run_demangler(name)) &&
			       length > 0 ?
		       keep_text(text, length) :
		       name;
}
