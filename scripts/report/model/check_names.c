/*
 * Warns of function names in options whose functions have no recorded call.  A
 * misspelt name is no error when the option is given, because an object that is
 * loaded later could have the function.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "model/advice.h"
#include "model/check_names.h"
#include "model/model.h"
#include "model/shown.h"
#include "read/process.h"
#include "read/recording.h"

/* The prefix of the name, and whether a '/' ends it. */
static const struct {
	const char *key;
	bool has_more;
} keys[] = {
	{ "args=", false }, { "results=", false }, { "trigger=", false },
	{ "every=", true }, { "by=", true },
};

/* Whether @wanted is part of the linker name or the demangled name, as a whole
 * word: scopes and parameters may be missing. */
static bool is_in(const char *name, const char *wanted)
{
	size_t length = strlen(wanted);
	const char *at;

	for (at = strstr(name, wanted); at; at = strstr(at + 1, wanted))
		if ((at == name || at[-1] == ':' || at[-1] == ' ') &&
		    (!at[length] || strchr("(<[. ", at[length])))
			return true;
	return false;
}

static bool was_called(const struct model *model, const char *wanted)
{
	const struct function *function = model->functions;
	uint32_t i;

	for (i = 0; i < model->function_count; i++, function++)
		if ((function->sums.calls || function->sums.open ||
		     shown_hides(model, i)) &&
		    (is_in(function->mangled, wanted) ||
		     is_in(function->name, wanted)))
			return true;
	return false;
}

/* Checks one item between commas. */
static void check_item(const struct model *model, const char *item, size_t size)
{
	const char *text = keep_text(item, size), *end, *wanted;
	uint32_t i;

	for (i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		size_t length = strlen(keys[i].key);

		if (strncmp(text, keys[i].key, length))
			continue;
		wanted = text + length;
		end = keys[i].has_more ? strrchr(wanted, '/') : NULL;
		wanted = keep_text(wanted, end ? (size_t)(end - wanted) :
						 strlen(wanted));
		if (strcmp(wanted, "all") && !was_called(model, wanted))
			warn("%s: %s: no call of such a function was "
			     "recorded%s",
			     model->recording->path, text,
			     advice_no_names(model));
	}
}

static void check_profile(const struct model *model, const char *profile)
{
	const char *at, *colon;
	size_t size, length;

	for (; *profile; profile += size + (profile[size] == ';')) {
		size = strcspn(profile, ";");
		colon = memchr(profile, ':', size);
		if (!colon || (strncmp(profile, "trace:", 6) &&
			       strncmp(profile, "calltree:", 9)))
			continue;
		for (at = colon + 1; at < profile + size; at += length + 1) {
			length = strcspn(at, ",;");
			check_item(model, at, length);
		}
	}
}

void check_names(const struct model *model)
{
	const struct recording *recording = model->recording;
	const char *profile, *before = "";
	uint32_t i;

	for (i = 0; i < recording->process_count && !model->is_sampled; i++) {
		profile = process_string(&recording->processes[i], "profile");
		if (profile && strcmp(profile, before))
			check_profile(model, before = profile);
	}
}
