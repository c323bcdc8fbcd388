/* How a program was compiled, as far as its file tells. */
#ifndef RUN_BUILT_H
#define RUN_BUILT_H

#include <stdbool.h>

struct built {
	bool is_known;		/* the sections could be read */
	bool has_symbols;	/* .symtab, or a link to a file with it */
	bool has_debug;		/* -g, or such a link */
	bool is_cxx;		/* uses the C++ library */
	bool is_clang;		/* else gcc */
	bool has_exclusions;	/* -finstrument-functions-exclude-file-list=,
				 * known of gcc's programs with -g */
};

/* built_read - what the sections of the ELF file @path tell */
void built_read(struct built *built, const char *path);

#endif
