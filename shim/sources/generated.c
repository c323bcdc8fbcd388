/*
 * Programs that generate code walk its frames by the return addresses of the functions that it
 * calls, where these are in memory, and not by unwind tables: they would find arch_returned.
 */
#include "sources/generated.h"

#include "arch.h"
#include "os/lookup.h"
#include "os/text.h"
#include "runtime/state.h"

#include <stdint.h>

#include <shim/banned.h>

bool generated_is_ocaml(const char *name)
{
	static const char *const helpers[] = {
		"apply",
		"curry",
		"tuplify",
		"send",
		"program",
		"call_gc",
		"call_realloc_stack",
		"alloc1",
		"alloc2",
		"alloc3",
		"allocN",
		"c_call",
		"start_program",
		"callback",
		"raise_exn",
		"raise_exception",
		"ml_array_bound_error",
		"stash_backtrace",
	};
	const char *rest = text_after(name, "caml");

	/* camlModule__function_12 */
	if (!rest || (*rest >= 'A' && *rest <= 'Z'))
		return rest != NULL;
	for (unsigned i = 0; i < sizeof(helpers) / sizeof(*helpers); i++)
		if (*rest == '_' && text_after(rest + 1, helpers[i]))
			return true;
	return false;
}

#ifdef ARCH_HAS_RETURNS

typedef uintptr_t resolve_location(uintptr_t location);

/* Where the return address is that belongs to @location. */
static uintptr_t resolve(uintptr_t location)
{
	return *(const uintptr_t *)location == (uintptr_t)arch_returned ?
		       ARCH_RETURNS_MIRROR(location) :
		       location;
}

/* V8 asks profilers.  (v8::V8::SetReturnAddressLocationResolver stores what it is given.) */
void generated_answer_v8(void)
{
	static bool is_asked;
	void *set;

	ASSERT_LOCKED();
	if (is_asked)
		return;
	is_asked = true;
	set = lookup_first("_ZN2v82V832SetReturnAddressLocationResolver"
			   "EPFmmE");
	if (set)
		((void (*)(resolve_location *))(uintptr_t)set)(resolve);
}

#else

void generated_answer_v8(void)
{
}

#endif
