/* How a program was compiled, as its file shows. */
#ifndef RUN_BUILT_H
#define RUN_BUILT_H

#include <stdbool.h>

#include "common/marks.h"

struct built {
	bool is_known;	   /* the sections could be read */
	bool has_symbols;  /* .symtab, or a separate file that is there */
	bool has_debug;	   /* -g, or such a file */
	char missing[256]; /* the separate file, if it is not there, or "" */
	bool has_zstd;	   /* compressed debug information */
	bool is_cxx;	   /* uses the C++ library */
	bool is_clang;	   /* else gcc */
	/* -finstrument-functions-exclude-file-list=; visible only in programs of gcc
	 * with -g */
	bool has_exclusions;
};

/* built_read - read the sections of the ELF file @path, which has these @marks */
void built_read(struct built *built, const char *path,
		const struct marks *marks);

#endif
