/* Compares linker names with names of functions as users write them. */
#include "path/path.h"
#include "path/text.h"
#include "path/names.h"

#include <shim/banned.h>

#define NAME_SIZE 256 /* of a linker name */

/* Reads the names in a C++ linker name, as "ns::Class::name"; false if it is no C++
 * name, or has templates. */
static bool read_mangled(const char *name, char text[NAME_SIZE])
{
	struct text out = { text, text + NAME_SIZE - 1 };
	bool is_nested, any = false;

	if (name[0] != '_' || name[1] != 'Z')
		return false;
	name += 2;
	is_nested = *name == 'N';
	if (is_nested)
		name++;
	while (*name == 'r' || *name == 'V' || *name == 'K' || *name == 'R' ||
	       *name == 'O' || *name == 'L')
		name++;
	while (*name >= '1' && *name <= '9') {
		size_t size = 0;

		while (*name >= '0' && *name <= '9' && size < NAME_SIZE)
			size = size * 10 + (size_t)(*name++ - '0');
		if (size > length_of(name))
			return false;
		if (any)
			add_text(&out, "::");
		for (size_t i = 0; i < size && out.at < out.end; i++)
			*out.at++ = name[i];
		name += size;
		any = true;
		if (!is_nested)
			break;
	}
	*out.at = '\0';
	return any;
}

/* Whether @name is @wanted, or ends in "::" and @wanted. */
static bool is_tail(const char *name, const char *wanted)
{
	size_t size = length_of(name), wanted_size = length_of(wanted);

	if (wanted_size > size ||
	    !is_equal(name + size - wanted_size, wanted, wanted_size))
		return false;
	return wanted_size == size ||
	       (size - wanted_size >= 2 && name[size - wanted_size - 1] == ':');
}

/* Users may write a linker name, without the suffix of compiler clones, or a C++ name
 * without its parameters. */
bool path_is_named(const char *name, const char *wanted)
{
	size_t size = length_of(wanted);
	char text[NAME_SIZE];

	if (is_equal(name, wanted,
		     size < length_of(name) ? size : length_of(name)) &&
	    (name[size] == '\0' || name[size] == '.') &&
	    length_of(name) >= size)
		return true;
	return read_mangled(name, text) && is_tail(text, wanted);
}
