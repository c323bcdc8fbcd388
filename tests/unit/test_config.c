#define _GNU_SOURCE
#include "runtime/config.h"
#include "runtime/contract.h"
#include "runtime/log.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/format.h>
#include <stdlib.h>
#include <string.h>

/* Removes the settings of the user who runs the tests. */
static void clear(void)
{
	clearenv();
}

static struct shim_meta meta;

static const char *log_text(void)
{
	log_to(&meta);
	return meta.log;
}

Test(config, has_defaults, .init = clear)
{
	config_read();
	cr_assert(eq(str, config.profile, "calltree"));
	cr_assert(eq(str, config.output, "profrun.%n.%p"));
	cr_assert(eq(str, config.dir, ""));
	cr_assert(eq(str, config.verbose, ""));
	cr_assert(eq(str, (char *)log_text(), ""));
}

/* As profrun gives them to a process that runs already. */
Test(config, settings_of_an_attach_replace_the_environment, .init = clear)
{
	char settings[] = "SHIM_DIR=/x\0SHIM_OUTPUT=\0SHIM_PROFILE=trace\0"
			  "SHIM_FILTER=a=b\0";

	setenv("SHIM_VERBOSE", "1", 1);
	cr_assert(eq(int, config_take(settings), 0));
	memset(settings, 'x', sizeof(settings));
	cr_expect(eq(str, (char *)config_variable("SHIM_DIR"), "/x"));
	cr_expect(eq(str, (char *)config_variable("SHIM_OUTPUT"), ""));
	cr_expect(eq(str, (char *)config_variable("SHIM_PROFILE"), "trace"));
	cr_expect(eq(str, (char *)config_variable("SHIM_FILTER"), "a=b"));
	cr_expect(eq(ptr, (void *)config_variable("SHIM_VERBOSE"), NULL));
	cr_expect(eq(ptr, (void *)config_variable("SHIM_PROF"), NULL));
	config_read();
	cr_expect(eq(str, config.profile, "trace"));
	cr_expect(eq(str, config.dir, "/x"));
	cr_expect(eq(str, config.verbose, ""));
}

Test(config, comes_from_the_environment, .init = clear)
{
	setenv("SHIM_PROFILE", "calltree:exact", 1);
	setenv("SHIM_DIR", "/x/y", 1);
	config_read();
	cr_assert(eq(str, config.profile, "calltree:exact"));
	cr_assert(eq(str, config.dir, "/x/y"));
}

Test(config, profilers_are_added_by_name, .init = clear)
{
	static char long_item[sizeof(config.profile) + 1];

	setenv("SHIM_PROFILE", "lock;a\\;locks:x", 1);
	config_read();
	cr_expect(config_add_profiler("locks"));
	cr_expect(not(config_add_profiler("locks:unwind")));
	cr_expect(not(config_add_profiler("lock")));
	cr_expect(config_add_profiler("module:a;b\\c"));
	cr_expect(not(config_add_profiler("module")));
	memset(long_item, 'x', sizeof(long_item) - 1);
	cr_expect(not(config_add_profiler(long_item)));
	cr_expect(eq(str, config.profile,
		     "lock;a\\;locks:x;locks;module:a\\;b\\\\c"));
	config.profile[0] = '\0';
	cr_expect(config_add_profiler("memory"));
	cr_expect(eq(str, config.profile, "memory"));
}

Test(config, an_empty_value_is_none, .init = clear)
{
	setenv("SHIM_PROFILE", "", 1);
	config_read();
	cr_assert(eq(str, config.profile, "calltree"));
}

Test(config, what_is_too_long_is_not_used_and_logged, .init = clear)
{
	char value[2000];

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	setenv("SHIM_OUTPUT", value, 1);
	config_read();
	cr_assert(eq(str, config.output, "profrun.%n.%p"));
	cr_assert(strstr(log_text(), "SHIM_OUTPUT") != NULL);
}

Test(config, what_is_no_setting_is_logged, .init = clear)
{
	setenv("SHIM_PROFILES", "x", 1);
	setenv("SHIM_", "x", 1);
	setenv("SHIMMER", "x", 1);
	config_read();
	cr_assert(strstr(log_text(), "SHIM_PROFILES is not a setting") != NULL);
	cr_assert(strstr(log_text(), "SHIMMER") == NULL);
}

Test(config, a_relative_directory_is_logged, .init = clear)
{
	setenv("SHIM_DIR", "./x", 1);
	config_read();
	cr_assert(strstr(log_text(), "SHIM_DIR is no absolute path") != NULL);
}

Test(config, a_setting_is_no_unknown_one, .init = clear)
{
	setenv("SHIM_PROFILE", "calltree", 1);
	setenv("SHIM_OUTPUT", "x", 1);
	setenv("SHIM_DIR", "", 1);
	setenv("SHIM_VERBOSE", "0", 1);
	config_read();
	cr_assert(eq(str, (char *)log_text(), ""));
}

Test(config, a_variable_needs_its_whole_name, .init = clear)
{
	setenv("SHIM_PROFILEX", "x", 1);
	cr_assert(config_variable("SHIM_PROFILE") == NULL);
	setenv("SHIM_PROFILE", "y", 1);
	cr_assert(eq(str, (char *)config_variable("SHIM_PROFILE"), "y"));
}

/* --- the checked mode --- */

static unsigned count_in(const char *text, const char *part)
{
	unsigned count = 0;

	while ((text = strstr(text, part))) {
		count++;
		text += strlen(part);
	}
	return count;
}

/* Refuses two calls of each of these callers; returns how many are logged. */
static unsigned refuse_of(unsigned first, unsigned end)
{
	static const char line[] =
		"SHIM_CHECK: shim_f called by code of no image: ";
	unsigned logged = 0;

	for (unsigned i = first * 2; i < end * 2; i++) {
		/* The log has no room for all of them. */
		memset(&meta, 0, sizeof(meta));
		log_to(&meta);
		cr_assert(eq(int,
			     contract_refused(
				     SHIM_E_INVALIDARG, "shim_f",
				     (void *)(uintptr_t)(4096 + i / 2 * 16)),
			     SHIM_E_INVALIDARG));
		logged += count_in(meta.log, line);
	}
	return logged;
}

Test(config, refused_calls_are_not_logged_without_check, .init = clear)
{
	config_read();
	cr_expect(zero(uint, refuse_of(0, 3)));
}

Test(config, each_of_48_callers_is_logged_once, .init = clear)
{
	setenv("SHIM_CHECK", "1", 1);
	config_read();
	cr_expect(eq(uint, refuse_of(0, 47), 47));
	cr_expect(zero(uint, refuse_of(0, 47)));
	cr_expect(eq(uint, refuse_of(47, 60), 1));
	cr_expect(zero(uint, refuse_of(46, 48)));
}
