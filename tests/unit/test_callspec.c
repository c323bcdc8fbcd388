/*
 * The grammar of --filter (row M-82), --patch and --libcalls, and their files.  Files,
 * functions and profilers are the test's.
 */
#include "dispatch/callspec.h"

#include "dispatch/filter_cache.h"
#include "dispatch/name_parts.h"
#include "image/symbols.h"
#include "inspect/info.h"
#include "os/opener.h"
#include "os/sys.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <fcntl.h>
#include <shim/info.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- files and memory --- */

struct config config;

static char file_content[2000];
static size_t file_at;
static int open_files, mappings;
static int failing; /* the call that fails */
enum { OPEN = 1, SIZE, MAP, READ };

int sys_open(const char *path, int flags, unsigned mode)
{
	(void)mode;
	cr_expect(ne(int, flags &O_NONBLOCK, 0));
	if (failing == OPEN || strcmp(path, "/list") != 0)
		return -ENOENT;
	open_files++;
	file_at = 0;
	return 0;
}

int opener_help(int error, enum opener_what what, const char *directory,
		const char *name)
{
	(void)what, (void)directory, (void)name;
	return error;
}

int sys_file(int fd, uint64_t *device, uint64_t *inode, uint64_t *size)
{
	(void)device;
	(void)inode;
	cr_expect(zero(int, fd));
	*size = strlen(file_content);
	return failing == SIZE ? -EIO : 0;
}

long sys_read(int fd, void *buffer, size_t size)
{
	size_t rest = strlen(file_content) - file_at;

	cr_expect(zero(int, fd));
	if (failing == READ && file_at > 0)
		return -EIO;
	size = size < 7 ? size : 7;
	size = size < rest ? size : rest;
	memcpy(buffer, file_content + file_at, size);
	file_at += size;
	return (long)size;
}

int sys_close(int fd)
{
	cr_expect(zero(int, fd));
	open_files--;
	return 0;
}

/* What another thread does while a list is read. */
static void (*meanwhile)(void);

/* Behind the memory is something else. */
int sys_map(size_t size, void **memory)
{
	static _Alignas(8) unsigned char all[1 << 21];
	static size_t used;
	unsigned char *at = all + used;

	*memory = failing == MAP ? (void *)1 : at + 8;
	if (failing == MAP)
		return -ENOMEM;
	used += (size + 23) / 8 * 8;
	cr_assert(le(sz, used, sizeof(all)));
	memset(at + 8 + size, 0x5c, 8);
	memcpy(at, &size, sizeof(size));
	mappings++;
	if (meanwhile)
		meanwhile();
	return 0;
}

int sys_unmap(void *memory, size_t size)
{
	unsigned char *at = (unsigned char *)memory - 8;
	size_t mapped;

	memcpy(&mapped, at, sizeof(mapped));
	cr_assert(eq(sz, mapped, size));
	for (int i = 0; i < 8; i++)
		cr_assert(eq(u8, at[8 + size + (size_t)i], 0x5c));
	memset(memory, 0x5c, size);
	mappings--;
	return 0;
}

/* --- the rest of the core --- */

static char lines[4000];
static unsigned about_settings;

void log_line(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), format,
		  list);
	va_end(list);
	strcat(lines, "\n");
}

void log_error(const char *format, const char *name, int error)
{
	char line[200];

	cr_assert(ne(ptr, strstr(format, "%s"), NULL));
	strcpy(line, format);
	strcat(line, " (%s)");
	log_line(line, name, strerror(-error));
}

uint32_t log_end(void)
{
	return (uint32_t)strlen(lines);
}

void log_about_setting(uint32_t since)
{
	cr_expect(lt(sz, since, strlen(lines)));
	about_settings++;
}

static struct shim_meta *meta;

struct shim_meta *record_meta(void)
{
	return meta;
}

static bool is_forbidden, is_blocked, cannot_block;
static int lock_owner_looks;

bool sys_is_forbidden(void)
{
	return is_forbidden;
}

int sys_block_signals(uint64_t *before)
{
	if (cannot_block)
		return -EINVAL;
	*before = 77;
	is_blocked = true;
	return 0;
}

int sys_restore_signals(uint64_t before)
{
	cr_expect(eq(u64, before, 77));
	is_blocked = false;
	return 0;
}

int sys_gettid(void)
{
	return 5;
}

int sys_getpid(void)
{
	return 4;
}

bool sys_is_alive(int pid, int tid)
{
	(void)pid;
	(void)tid;
	lock_owner_looks++;
	return false;
}

void sys_yield(void)
{
}

int state_call_locked(int (*work)(void *argument), void *argument)
{
	return work(argument);
}

static const char *function_names; /* each with its NUL */
static size_t function_names_size;
static const char *function_file;
static uint32_t image_flags;
static bool has_no_image;
static unsigned file_requests, names_requests;

enum shim_result shim_function_info(shim_function function, shim_image *image,
				    uint64_t *offset)
{
	(void)offset;
	cr_expect(eq(u64, (uintptr_t)function, 0x401000));
	*image = (shim_image)7;
	return has_no_image ? SHIM_E_UNEXPECTED : SHIM_OK;
}

enum shim_result shim_image_info(shim_image image, const void **base,
				 size_t *size, intptr_t *bias, uint32_t *flags,
				 uint32_t count, uint32_t *total, char *path)
{
	(void)base;
	(void)size;
	(void)bias;
	(void)total;
	cr_expect(eq(u64, (uintptr_t)image, 7));
	*flags = image_flags;
	snprintf(path, count, "/lib/libx.so.2");
	return SHIM_OK;
}

enum shim_result shim_function_file(shim_function function, uint32_t count,
				    uint32_t *total, char *path)
{
	(void)total;
	file_requests++;
	if (!path)
		return SHIM_OK;
	cr_expect(is_blocked);
	cr_expect(eq(u64, (uintptr_t)function, 0x401000));
	if (function_file)
		snprintf(path, count, "%s", function_file);
	return SHIM_OK;
}

size_t info_copy_names(shim_function function, char *names, size_t size)
{
	cr_expect(eq(u64, (uintptr_t)function, 0x401000));
	cr_assert(le(sz, function_names_size, size));
	names_requests++;
	memcpy(names, function_names, function_names_size);
	return function_names_size;
}

static struct shim_profiler_handle handles[3];
struct shim_profiler_handle *events_newest = &handles[0];
static unsigned slots, invalidations, symbol_requests;

void symbols_enable(void)
{
	symbol_requests++;
}

int filter_cache_claim_slot(struct shim_profiler_handle *handle, bool is_filter)
{
	cr_expect(is_filter);
	cr_expect(eq(ptr, handle, &handles[1]));
	return (int)(10 + slots++);
}

void filter_cache_invalidate_filters(void)
{
	invalidations++;
}

/* --- items --- */

static const struct {
	const char *list, *object, *name, *file;
	bool is_program, want;
} cases[] = {
#define CASES
#include "callspec_cases.def"
#undef CASES
};

Test(callspec, functions_are_let_through_as_listed)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cr_assert(callspec_read(cases[i].list), "%s", cases[i].list);
		cr_expect(
			eq(int,
			   callspec_admits(cases[i].object, cases[i].is_program,
					   cases[i].name, cases[i].file),
			   cases[i].want),
			"%s: %s", cases[i].list, cases[i].name);
	}
}

Test(callspec, what_cannot_be_read_is_refused_and_lets_all_through)
{
	static const struct {
		const char *list, *item;
	} lists[] = {
		{ "-", "" },	     { "M:", "M:" },	 { "X:foo", "X:foo" },
		{ "all,-", "" },     { "N:,all", "N:" }, { "all,M:,-f", "M:" },
		{ "-M:f,Y:", "Y:" },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		char line[400];

		lines[0] = '\0';
		cr_expect(not(callspec_read(lists[i].list)), "%s",
			  lists[i].list);
		snprintf(line, sizeof(line),
			 "--filter: all functions are recorded: '%s' is not "
			 "an item (items are all, none, program, OBJECT, "
			 "N:namespace, T:class, M:function, F:file, each with "
			 "or without '-')\n",
			 lists[i].item[0] ? lists[i].item : "-");
		cr_expect(eq(str, lines, line));
		cr_expect(zero(int, mappings));
		cr_expect(callspec_admits("/p", true, "f", ""));
	}
}

Test(callspec, it_says_what_it_needs)
{
	callspec_read("program,-libz.so");
	cr_expect(not(callspec_needs_symbols()));
	cr_expect(not(callspec_needs_files()));
	callspec_read("N:a");
	cr_expect(callspec_needs_symbols());
	callspec_read("F:a.c");
	cr_expect(callspec_needs_files());
}

Test(callspec, a_list_has_as_many_items_as_one_likes)
{
	static char list[300000];
	size_t size = 0;

	for (int i = 0; i < 20000; i++)
		size += (size_t)sprintf(list + size, "-M:f%d,", i);
	strcpy(list + size, "-M:last");
	cr_assert(callspec_read(list));
	cr_expect(not(callspec_admits("/p", true, "f0", "")));
	cr_expect(not(callspec_admits("/p", true, "f19999", "")));
	cr_expect(not(callspec_admits("/p", true, "last", "")));
	cr_expect(callspec_admits("/p", true, "f20000", ""));
	/* The previous list has no effect. */
	cr_assert(callspec_read("-M:g"));
	cr_expect(callspec_admits("/p", true, "f0", ""));
}

/* --- linker names --- */

static const struct {
	const char *name, *parts;
} names[] = {
#define NAMES
#include "callspec_cases.def"
#undef NAMES
};

Test(callspec, a_linker_name_has_parts)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct name_part parts[NAME_PARTS_MAX + 1];
		char text[200] = "";
		unsigned count;

		memset(parts, 0x5c, sizeof(parts));
		count = name_parts(names[i].name, parts);
		for (unsigned j = 0; j < count; j++)
			sprintf(text + strlen(text), "%s%.*s", j ? " " : "",
				(int)parts[j].length, parts[j].text);
		cr_expect(eq(str, text, (char *)names[i].parts), "%s",
			  names[i].name);
		cr_expect(
			eq(u8, *(unsigned char *)&parts[NAME_PARTS_MAX], 0x5c));
	}
}

/* --- patches and library calls --- */

static const struct {
	const char *list;
	bool is_program, is_system;
	const char *name;
	bool patches, takes_call;
} choices[] = {
#define CHOICES
#include "callspec_cases.def"
#undef CHOICES
};

Test(callspec, patches_and_library_calls_are_chosen)
{
	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		config = (struct config){ .filter = "",
					  .patch = choices[i].list,
					  .libcalls = choices[i].list };
		callspec_configure();
		cr_expect(eq(int,
			     callspec_patches(
				     "/lib/libx.so.2", choices[i].is_program,
				     choices[i].is_system, choices[i].name,
				     strlen(choices[i].name) + 1),
			     choices[i].patches),
			  "%s, case %zu", choices[i].list, i);
		cr_expect(eq(int,
			     callspec_takes_call(
				     "/lib/libx.so.2", choices[i].is_program,
				     choices[i].is_system, choices[i].name),
			     choices[i].takes_call),
			  "%s, case %zu", choices[i].list, i);
	}
	cr_expect(zero(u32, about_settings));
	/* Each list stays mapped, because another thread may read it. */
	cr_expect(eq(int, mappings,
		     2 * (int)(sizeof(choices) / sizeof(*choices))));
}

/* --- options --- */

Test(callspec, an_option_is_a_list_or_a_file)
{
	static const struct {
		const char *given, *content;
		int failing;
		const char *list, *line;
	} given[] = {
#define GIVEN
#include "callspec_cases.def"
#undef GIVEN
	};

	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		unsigned before = about_settings;
		int mapped;

		lines[0] = '\0';
		strcpy(file_content, given[i].content ? given[i].content : "");
		cr_assert(callspec_read(""));
		mapped = mappings;
		failing = given[i].failing;
		config = (struct config){ .filter = given[i].given,
					  .patch = "",
					  .libcalls = "" };
		callspec_configure();
		cr_expect(
			eq(str, (char *)config.filter, (char *)given[i].list));
		cr_expect(eq(str, lines, (char *)given[i].line));
		cr_expect(eq(u32, about_settings - before,
			     given[i].line[0] != '\0'));
		cr_expect(zero(int, open_files));
		/* Only a list that is valid stays mapped. */
		cr_expect(eq(int, mappings - mapped, given[i].list[0] != '\0'));
		failing = 0;
	}
}

Test(callspec, a_refused_item_is_explained)
{
	config = (struct config){ .filter = "",
				  .patch = "f,F:a.c",
				  .libcalls = "X:f" };
	callspec_configure();
	cr_expect(eq(str, (char *)config.patch, ""));
	cr_expect(eq(str, (char *)config.libcalls, ""));
	cr_expect(eq(u32, about_settings, 2));
	cr_expect(
		eq(str, lines,
		   "--patch: no function is patched: 'F:a.c' is not an item "
		   "(items are all, none, program, FUNCTION, libOBJECT.so, "
		   "N:namespace, T:class, M:function, each with or without "
		   "'-')\n"
		   "--libcalls: no library call is recorded: 'X:f' is not an "
		   "item (items are all, none, program, FUNCTION, "
		   "libOBJECT.so, N:namespace, T:class, M:function, each with "
		   "or without '-')\n"));
	cr_expect(not(callspec_patches("/p", true, false, "f", 2)));
}

Test(callspec, an_item_may_be_any_name_of_a_function)
{
	static const char both[] = "f\0g";

	config = (struct config){ .filter = "",
				  .patch = "*,-g,libx.so",
				  .libcalls = "" };
	callspec_configure();
	cr_expect(not(callspec_patches("/p", true, false, both, 4)));
	cr_expect(callspec_patches("/p", true, false, both, 2));
	cr_expect(callspec_patches("/libx.so", false, false, both, 4));
}

/* --- the filter --- */

#define FUNCTION ((shim_function)0x401000)
#define ADMITTED \
	(SHIM_CALL_INSTRUMENTATION_ENTER | SHIM_CALL_INSTRUMENTATION_LEAVE | \
	 SHIM_CALL_INSTRUMENTATION_TAIL_CALL | \
	 SHIM_CALL_INSTRUMENTATION_EXCEPTION_LEAVE)

/* Whether the filter admits a function with these names, in libx.so.2. */
static bool admits(const char *list, const char *all, size_t size)
{
	enum shim_call_instrumentation_flags flags;

	cr_assert(callspec_read(list));
	function_names = all;
	function_names_size = size;
	names_requests = file_requests = 0;
	flags = callspec_filter(NULL, FUNCTION);
	cr_assert(flags == ADMITTED || flags == SHIM_CALL_INSTRUMENTATION_NONE);
	cr_expect(not(is_blocked));
	return flags == ADMITTED;
}

#define ADMITS(list, names) admits(list, names, sizeof(names))

Test(callspec, a_function_has_all_of_its_names)
{
	static char many[17 * 4 + 1];

	cr_expect(ADMITS("M:f", "f"));
	cr_expect(ADMITS("M:g", "f\0g"));
	cr_expect(ADMITS("M:h", "f\0g\0h"));
	cr_expect(not(ADMITS("M:i", "f\0g\0h")));
	cr_expect(not(ADMITS("-M:g", "f\0g")));
	cr_expect(eq(u32, names_requests, 1));
	cr_expect(zero(u32, file_requests));
	/* Without symbols. */
	cr_expect(not(admits("M:f", "f", 0)));
	cr_expect(admits("-M:f", "f", 0));
	/* Only sixteen names are looked at. */
	for (int i = 0; i < 17; i++)
		sprintf(many + i * 4, "f%02d", i);
	cr_expect(admits("M:f15", many, 17 * 4));
	cr_expect(not(admits("M:f16", many, 17 * 4)));
	cr_expect(admits("M:f00", many, 17 * 4));

	/* The object is asked for, and no name. */
	cr_expect(ADMITS("libx", "f"));
	cr_expect(zero(u32, names_requests));
	cr_expect(not(ADMITS("libf", "f")));
	cr_expect(not(ADMITS("program", "f")));
	image_flags = SHIM_IMAGE_PROGRAM;
	cr_expect(ADMITS("program", "f"));
	has_no_image = true;
	image_flags = 0;
	cr_expect(not(ADMITS("libx", "f")));
}

Test(callspec, a_file_is_asked_for_with_all_signals_blocked)
{
	function_file = "/src/a.c";
	cr_expect(ADMITS("F:a.c", "f"));
	cr_expect(eq(u32, file_requests, 1));
	cr_expect(ADMITS("F:/src/*", "f"));
	cr_expect(not(ADMITS("F:b.c", "f")));
	function_file = NULL;
	cr_expect(not(ADMITS("F:*", "f")));
	cr_expect(zero(int, lock_owner_looks));
	/* What cannot be decided is recorded. */
	function_file = "/src/a.c";
	cannot_block = true;
	cr_expect(ADMITS("F:b.c", "f"));
	cannot_block = false;
	is_forbidden = true;
	cr_expect(ADMITS("F:b.c", "f"));
	cr_expect(zero(u32, file_requests));
	is_forbidden = false;
	file_requests = 0;
	callspec_read("M:f");
	callspec_prepare();
	cr_expect(zero(u32, file_requests));
	callspec_read("F:b.c");
	callspec_prepare();
	cr_expect(eq(u32, file_requests, 1));
}

Test(callspec, the_recording_has_the_items_that_have_matched)
{
	static struct shim_meta recording;
	static char list[6 * SHIM_META_FILTER + 100];
	size_t size = 0;

	meta = &recording;
	callspec_read("M:f,M:*,-M:f,M:h");
	cr_expect(callspec_admits("/p", true, "g", ""));
	cr_expect(eq(u32, recording.filter_items, 4));
	cr_expect(eq(u64, recording.filter_matches[0], 2));
	cr_expect(not(callspec_admits("/p", true, "f", "")));
	cr_expect(eq(u64, recording.filter_matches[0], 7));
	callspec_admits("/p", true, "h", "");
	cr_expect(eq(u64, recording.filter_matches[0], 15));

	for (int i = 0; i < SHIM_META_FILTER + 2; i++)
		size += (size_t)sprintf(list + size, "M:f,");
	strcpy(list + size - 1, "");
	callspec_read(list);
	cr_expect(callspec_admits("/p", true, "f", ""));
	cr_expect(eq(u32, recording.filter_items, SHIM_META_FILTER + 2));
	for (int i = 0; i < SHIM_META_FILTER / 64; i++)
		cr_expect(eq(u64, recording.filter_matches[i], ~0ull));
}

/* --- profilers --- */

static enum shim_call_instrumentation_flags
other_filter(struct shim_profiler *profiler, shim_function function)
{
	(void)profiler;
	(void)function;
	return SHIM_CALL_INSTRUMENTATION_NONE;
}

/* The second of three is built in and has no filter. */
static void set_handles(void)
{
	memset(handles, 0, sizeof(handles));
	handles[0].next = &handles[1];
	handles[1].next = &handles[2];
	handles[1].builtin = true;
	handles[2].builtin = true;
	handles[2].filter = other_filter;
}

static void check_handles(bool has_filter)
{
	cr_expect(handles[0].filter == NULL);
	cr_expect(handles[1].filter == (has_filter ? callspec_filter : NULL));
	cr_expect(eq(int, handles[1].filter_slot, has_filter ? 10 : 0));
	cr_expect(handles[2].filter == other_filter);
}

Test(callspec, built_in_profilers_without_a_filter_get_it)
{
	set_handles();
	config = (struct config){ .filter = "", .patch = "", .libcalls = "" };
	callspec_configure();
	callspec_start();
	check_handles(false);
	config.filter = "program";
	callspec_configure();
	callspec_start();
	check_handles(true);
	cr_expect(zero(u32, symbol_requests));
	callspec_start();
	cr_expect(eq(u32, slots, 1));
	config.filter = "M:f";
	callspec_configure();
	callspec_start();
	cr_expect(eq(u32, symbol_requests, 1));
	config.filter = "F:f.c";
	callspec_configure();
	callspec_start();
	cr_expect(eq(u32, symbol_requests, 2));
	cr_expect(zero(u32, invalidations));
}

Test(callspec, a_filter_can_change)
{
	const char *first;

	set_handles();
	config = (struct config){ .filter = "", .patch = "", .libcalls = "" };
	callspec_configure();
	cr_expect(callspec_change("M:f"));
	check_handles(true);
	cr_expect(eq(u32, invalidations, 1));
	first = config.filter;
	cr_expect(eq(str, (char *)first, "M:f"));
	/* The one before stays, and so does its memory. */
	cr_expect(not(callspec_change("X:f")));
	cr_expect(config.filter == first);
	cr_expect(eq(u32, invalidations, 1));
	cr_expect(not(callspec_admits("/p", true, "g", "")));
	cr_expect(callspec_change("M:g"));
	cr_expect(eq(str, (char *)first, "M:f"));
	cr_expect(eq(str, (char *)config.filter, "M:g"));
	cr_expect(callspec_admits("/p", true, "g", ""));
	cr_expect(eq(u32, invalidations, 2));
	cr_expect(eq(int, mappings, 2));

	/* Another recording. */
	set_handles();
	slots = 0;
	first = config.filter;
	config.filter = "M:h";
	callspec_renew();
	check_handles(true);
	cr_expect(eq(str, (char *)first, "M:g"));
	cr_expect(callspec_admits("/p", true, "h", ""));
	cr_expect(not(callspec_admits("/p", true, "g", "")));
	cr_expect(eq(u32, invalidations, 3));
	config.filter = "";
	callspec_renew();
	cr_expect(callspec_admits("/p", true, "g", ""));
	cr_expect(eq(u32, invalidations, 4));
}

static unsigned asked;

static void ask(void)
{
	asked++;
	cr_expect(callspec_needs_symbols());
	cr_expect(not(callspec_needs_files()));
	cr_expect(not(callspec_admits("/p", true, "f", "a.c")));
	cr_expect(callspec_admits("/p", true, "g", "a.c"));
}

/* Seen to fail when the rules were read into the list in place. */
Test(callspec, the_list_before_answers_until_the_next_one_is_complete)
{
	set_handles();
	config = (struct config){ .filter = "", .patch = "", .libcalls = "" };
	callspec_configure();
	cr_expect(callspec_change("-M:f"));
	meanwhile = ask;
	cr_expect(not(callspec_change("X:f")));
	ask();
	cr_expect(callspec_change("F:b.c"));
	meanwhile = NULL;
	cr_expect(eq(u32, asked, 3));
	cr_expect(not(callspec_needs_symbols()));
	cr_expect(callspec_needs_files());
	cr_expect(not(callspec_admits("/p", true, "g", "a.c")));
}

/* --- files --- */

Test(callspec, lines_become_a_list)
{
	static const struct {
		const char *lines, *list;
	} joined[] = {
		{ "", "" },
		{ "M:a", "M:a" },
		{ "M:a\n", "M:a," },
		{ "M:a\nM:b,M:c\n\nM:d", "M:a,M:b,M:c,,M:d" },
		{ "# all of it", "" },
		{ "M:a # some\n\t#\nM:b", "M:a ,\t,M:b" },
		{ "F:a#b.c", "F:a#b.c" },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(joined) / sizeof(*joined); i++) {
		strcpy(text, joined[i].lines);
		callspec_join(text);
		cr_expect(eq(str, text, (char *)joined[i].list));
	}
}
