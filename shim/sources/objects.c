/* By the name of their file, and by where the loader and shim are. */
#include "sources/objects.h"

#include "image/image.h"
#include "os/lookup.h"
#include "os/text.h"

#include <shim/info.h>
#include <sys/auxv.h>

#include <shim/banned.h>

/* Whether @name is @word, or begins with it and a character that ends a library's name. */
static bool is_library(const char *name, const char *word)
{
	const char *rest = text_after(name, word);

	return rest && (*rest == '.' || *rest == '-' || *rest == '\0');
}

bool objects_is_system(const char *path)
{
	static const char *const names[] = {
		"libc",	     "libm",	 "libdl",     "librt",	  "libpthread",
		"libresolv", "libgcc_s", "libstdc++", "libc++",	  "libc++abi",
		"libunwind", "libasan",	 "libtsan",   "libubsan", "liblsan"
	};
	const char *name = text_base(path);

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (is_library(name, names[i]))
			return true;
	return false;
}

bool objects_is_java(const char *path)
{
	return is_library(text_base(path), "libjvm");
}

/* As for images (image.c), libc is asked once.  0 if the loader was started as a command. */
static uintptr_t loader_address(void)
{
	static uintptr_t cached;
	static bool is_known;

	if (!is_known)
		cached = getauxval(AT_BASE);
	is_known = true;
	return cached;
}

bool objects_is_untouchable(const struct image_entry *entry)
{
	uintptr_t loader = loader_address();

	return (entry->flags & SHIM_IMAGE_DYNAMIC) ||
	       (loader >= entry->start && loader < entry->end) ||
	       text_after(text_base(entry->path), "libshim") ||
	       lookup_is_beside_us(entry->start, entry->end);
}
