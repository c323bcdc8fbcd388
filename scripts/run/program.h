/* The file of the program to run: its path and its properties. */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

#include "common/marks.h"

#include <limits.h>
#include <stdbool.h>

struct program {
	const char *name;    /* as it was typed */
	char path[PATH_MAX]; /* the file that is executed */

	bool is_elf;
	bool is_foreign;    /* another processor, word size or byte order */
	bool is_static;	    /* no dynamic linker loads it */
	bool is_privileged; /* runs setuid, setgid or with capabilities */
	bool is_marked;	    /* by -finstrument-functions or otherwise */
	bool calls_hooks;   /* refers to __cyg_profile_func_enter ... */
	bool has_hooks;	    /* ... and defines it itself */

	struct marks marks;
	bool has_mpi;	 /* needs the library of OpenMPI or MPICH */
	bool has_openmp; /* needs the runtime of clang's OpenMP */

	/* The interpreter of a script, or the dynamic linker; may be empty. */
	char interpreter[PATH_MAX];
	/* The sanitizer runtime that must be loaded first, or empty. */
	char sanitizer[64];
};

/*
 * program_find - find the program @name the way execvp() does
 *
 * Fills @program's name and path.  Returns 0, STATUS_NOT_FOUND or
 * STATUS_NOT_EXECUTABLE; then a message has been written.
 */
int program_find(struct program *program, const char *name);

/*
 * program_inspect - read the properties that matter for profiling
 *
 * All bounds are checked, and little of the file is read: about 20 us for an ordinary
 * program.  Properties that cannot be read are left unset.
 */
void program_inspect(struct program *program);

/* Exports of a library, as program_exports() finds them. */
enum program_export {
	EXPORT_MISSING,
	EXPORT_VERSIONED, /* programs that need another version do not find it */
	EXPORT_PLAIN,
};

/* program_exports - whether and how the library @path exports @symbol */
enum program_export program_exports(const char *path, const char *symbol);

/* The name that `uname -m` has for the machine of the file, or a guess. */
const char *program_machine(const char *path);

#endif
