/*
 * The kinds of marks that shim knows: a further source has its line here.
 */
#include "sources/sources.h"

#include "os/text.h"

#include <shim/banned.h>

extern const struct source source_fentry;
extern const struct source source_mcount;
extern const struct source source_patchable;
extern const struct source source_unmarked;
extern const struct source source_xray;

static const struct source *const kinds[] = { &source_xray, &source_patchable,
					      &source_fentry, &source_mcount,
					      &source_unmarked };

#define KINDS (sizeof(kinds) / sizeof(*kinds))

const struct source *source_of(enum shim_source kind)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (kinds[i]->kind == kind)
			return kinds[i];
	return NULL;
}

const struct source *source_of_section(const char *name)
{
	for (unsigned i = 0; i < KINDS; i++)
		if (kinds[i]->section && text_equal(kinds[i]->section, name))
			return kinds[i];
	return NULL;
}
