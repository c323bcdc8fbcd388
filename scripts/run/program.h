/* The file that is going to be run: where it is and what can be told of it. */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

struct program {
	const char *name;	/* as it was typed */
	char path[PATH_MAX];	/* what is executed */

	bool is_elf;
	bool is_foreign;	/* another processor, word size or byte order */
	bool is_static;		/* no dynamic linker gets to see it */
	bool is_privileged;	/* runs setuid, setgid or with capabilities */
	bool calls_hooks;	/* refers to __cyg_profile_func_enter ... */
	bool has_hooks;		/* ... and defines it itself */

	/* The interpreter of a script, or the dynamic linker; may be empty. */
	char interpreter[PATH_MAX];
	/* The sanitizer runtime that insists on being loaded first, or empty. */
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
 * program_inspect - read what matters for profiling out of the file
 *
 * The file is read with bounds checked throughout, and not much of it: some
 * 20 us for an ordinary program.  What cannot be read is left unset.
 */
void program_inspect(struct program *program);

/* Exports of a library, as program_exports() finds them. */
enum program_export {
	EXPORT_MISSING,
	EXPORT_VERSIONED,	/* programs that want another version miss it */
	EXPORT_PLAIN,
};

/* program_exports - whether and how the library @path exports @symbol */
enum program_export program_exports(const char *path, const char *symbol);

/* What `uname -m` would call the machine that the file is for, or a guess. */
const char *program_machine(const char *path);

#endif
