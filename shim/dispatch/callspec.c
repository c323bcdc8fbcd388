/*
 * The option --filter: parses the list of items, and decides for a function by its
 * name, object and source file.  The last item that matches decides.  The code parses
 * names in place, so it allocates nothing while a hook runs.
 */
#include "dispatch/callspec.h"

#include "dispatch/filter_cache.h"
#include "dispatch/name_parts.h"
#include "image/symbols.h"
#include "inspect/info.h"
#include "os/opener.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/info.h>

#include <shim/banned.h>

#define NAME_SIZE 1024
/* Names of one function that items are compared with. */
#define NAMES_SIZE 8192
#define NAMES_MAX  16

enum kind { ALL, NONE, PROGRAM, OBJECT, NAMESPACE, CLASS, METHOD, SOURCE };

struct rule {
	enum kind kind;
	bool excludes;
	struct name_part part;
};

/* What a list says: one mapping with the text that the rules point into.  It is complete
 * before it is published.  Then it never changes and stays mapped, because hooks read it
 * without a lock while `profrun ctl` puts another one in its place. */
struct rules {
	size_t count;
	size_t memory_size;
	const char *text;
	struct rule rules[];
};

struct list {
	const char *option;
	const char *otherwise;	   /* what happens if the list is invalid */
	enum kind bare;		   /* of an item without a letter */
	const struct rules *rules; /* no_rules without a valid list */
};

static const struct rules no_rules = { .text = "" };

static struct list filter = { .option = "--filter",
			      .otherwise = "all functions are recorded",
			      .bare = OBJECT,
			      .rules = &no_rules };
static struct list patch = { .option = "--patch",
			     .otherwise = "no function is patched",
			     .bare = METHOD,
			     .rules = &no_rules };
static struct list libcalls = { .option = "--libcalls",
				.otherwise = "no library call is recorded",
				.bare = METHOD,
				.rules = &no_rules };

static const struct rules *rules_of(const struct list *list)
{
	return __atomic_load_n(&list->rules, __ATOMIC_ACQUIRE);
}

static void publish(struct list *list, const struct rules *rules)
{
	__atomic_store_n(&list->rules, rules, __ATOMIC_RELEASE);
}

/* --- the list --- */

static bool is_word(struct name_part part, const char *word)
{
	size_t i = 0;

	while (i < part.length && word[i] && part.text[i] == word[i])
		i++;
	return i == part.length && word[i] == '\0';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct name_part trim(struct name_part part)
{
	while (part.length > 0 && is_blank(part.text[0]))
		part.text++, part.length--;
	while (part.length > 0 && is_blank(part.text[part.length - 1]))
		part.length--;
	return part;
}

/* Whether the name of an object, rather than of a function, is meant. */
static bool is_object(struct name_part item)
{
	for (size_t i = 0; i + 3 <= item.length; i++)
		if (item.text[i] == '.' && item.text[i + 1] == 's' &&
		    item.text[i + 2] == 'o')
			return true;
	return false;
}

static bool read_item(const struct list *list, struct name_part item,
		      struct rule *rule)
{
	static const struct {
		char letter;
		enum kind kind;
	} kinds[] = { { 'N', NAMESPACE },
		      { 'T', CLASS },
		      { 'M', METHOD },
		      { 'F', SOURCE } };

	rule->excludes = item.length > 0 && item.text[0] == '-';
	if (rule->excludes)
		item.text++, item.length--;
	if (item.length == 0)
		return false;
	rule->part = item;
	if (is_word(item, "all"))
		rule->kind = ALL;
	else if (is_word(item, "none") || is_word(item, "disabled"))
		rule->kind = NONE;
	else if (is_word(item, "program"))
		rule->kind = PROGRAM;
	else
		rule->kind = is_object(item) ? OBJECT : list->bare;
	if (item.length < 2 || item.text[1] != ':')
		return true;
	rule->part = (struct name_part){ item.text + 2, item.length - 2 };
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (kinds[i].letter == item.text[0]) {
			rule->kind = kinds[i].kind;
			return rule->part.length > 0;
		}
	}
	return false;
}

/* Only for rules that were not published. */
static void release_rules(struct rules *rules)
{
	sys_unmap(rules, rules->memory_size);
}

/* Maps room for @items rules, and copies the text; returns NULL without memory. */
static struct rules *map_rules(size_t items, const char *given)
{
	size_t text_size = text_length(given) + 1;
	struct rules *rules;
	size_t size = sizeof(*rules) + items * sizeof(*rules->rules) +
		      text_size;
	void *memory;
	char *text;

	if (sys_map(size, &memory) < 0)
		return NULL;
	rules = memory;
	text = (char *)(rules->rules + items);
	for (size_t i = 0; i < text_size; i++)
		text[i] = given[i];
	rules->memory_size = size;
	rules->text = text;
	return rules;
}

static size_t count_items(const char *list)
{
	size_t items = 1;

	for (; *list; list++)
		items += *list == ',';
	return items;
}

static void refuse_item(const struct list *list, struct name_part item)
{
	char line[400];
	struct text text;

	text_init(&text, line, sizeof(line));
	text_add(&text, list->option);
	text_add(&text, ": ");
	text_add(&text, list->otherwise);
	text_add(&text, ": '");
	text_add_part(&text, item.text, item.length);
	text_add(&text, "' is not an item (items are all, none, program, ");
	text_add(&text, list != &filter ? "FUNCTION, libOBJECT.so" : "OBJECT");
	text_add(&text, ", N:namespace, T:class, M:function");
	text_add(&text, list != &filter ? "" : ", F:file");
	text_add(&text, ", each with or without '-')");
	log_line("%s", line);
}

/* The rules of the list @given, which are not published yet; NULL, with a line in the log, if
 * the list is invalid. */
static struct rules *read_list(const struct list *list, const char *given)
{
	struct rules *rules = map_rules(count_items(given), given);
	const char *at;

	if (!rules) {
		log_line("%s: no memory for the list", list->option);
		return NULL;
	}
	at = rules->text;
	while (*at) {
		struct rule *rule = &rules->rules[rules->count];
		struct name_part item = { at, 0 };

		while (at[item.length] && at[item.length] != ',')
			item.length++;
		at += item.length;
		if (*at == ',')
			at++;
		item = trim(item);
		if (item.length == 0)
			continue;
		/* Source files are not read before the program runs. */
		if (!read_item(list, item, rule) ||
		    (list != &filter && rule->kind == SOURCE)) {
			refuse_item(list, item);
			release_rules(rules);
			return NULL;
		}
		rules->count++;
	}
	return rules;
}

bool callspec_read(const char *list)
{
	const struct rules *rules = read_list(&filter, list);

	publish(&filter, rules ? rules : &no_rules);
	return rules != NULL;
}

bool callspec_has_filter(void)
{
	return rules_of(&filter) != &no_rules;
}

static bool has_kind(const struct rules *rules, enum kind kind)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->rules[i].kind == kind)
			return true;
	return false;
}

static bool needs_symbols(const struct rules *rules)
{
	return has_kind(rules, NAMESPACE) || has_kind(rules, CLASS) ||
	       has_kind(rules, METHOD);
}

bool callspec_needs_symbols(void)
{
	return needs_symbols(rules_of(&filter));
}

bool callspec_needs_files(void)
{
	return has_kind(rules_of(&filter), SOURCE);
}

/* --- matching --- */

/* Whether @text matches @pattern.  The depth of the recursion is the number of stars. */
static bool matches(struct name_part pattern, struct name_part text)
{
	while (pattern.length > 0 && pattern.text[0] != '*') {
		if (text.length == 0 ||
		    (pattern.text[0] != '?' && pattern.text[0] != text.text[0]))
			return false;
		pattern.text++, pattern.length--;
		text.text++, text.length--;
	}
	if (pattern.length == 0)
		return text.length == 0;
	pattern.text++, pattern.length--;
	if (pattern.length == 0)
		return true;
	for (;; text.text++, text.length--) {
		if (matches(pattern, text))
			return true;
		if (text.length == 0)
			return false;
	}
}

static struct name_part part_of(const char *text)
{
	return (struct name_part){ text, text_length(text) };
}

/* Whether the names in @pattern, separated by "::", match the parts from @from on. */
static bool matches_parts(struct name_part pattern,
			  const struct name_part *parts, unsigned from,
			  unsigned count)
{
	while (pattern.length > 0) {
		struct name_part first = { pattern.text, 0 };

		while (first.length < pattern.length &&
		       !(pattern.text[first.length] == ':'))
			first.length++;
		pattern.text += first.length;
		pattern.length -= first.length;
		while (pattern.length > 0 && pattern.text[0] == ':')
			pattern.text++, pattern.length--;
		if (from >= count || !matches(first, parts[from]))
			return false;
		from++;
	}
	return true;
}

static bool matches_class(struct name_part pattern,
			  const struct name_part *parts, unsigned count)
{
	unsigned names = 1;

	for (size_t i = 0; i + 1 < pattern.length; i++)
		names += pattern.text[i] == ':' && pattern.text[i + 1] == ':';
	return count > names &&
	       matches_parts(pattern, parts, count - 1 - names, count - 1);
}

static struct name_part base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return part_of(base);
}

/* Whether @pattern matches an object.  libfoo and libfoo.so match libfoo.so.1. */
static bool matches_object(struct name_part pattern, const char *path)
{
	struct name_part whole = base_name(path), part = whole;

	if (matches(pattern, whole))
		return true;
	for (part.length = 1; part.length < whole.length; part.length++)
		if (whole.text[part.length] == '.' && matches(pattern, part))
			return true;
	return false;
}

/* The names of a function, for rules. */
struct subject {
	const char *object, *file;
	bool is_program;
	struct name_part name;
	struct name_part parts[NAME_PARTS_MAX];
	unsigned count;
};

static bool applies(const struct rule *rule, const struct subject *subject)
{
	struct name_part part = rule->part;
	const struct name_part *parts = subject->parts;
	unsigned count = subject->count;

	switch (rule->kind) {
	case ALL:
	case NONE: return true;
	case PROGRAM: return subject->is_program;
	case OBJECT: return matches_object(part, subject->object);
	case NAMESPACE:
		return count > 1 && matches_parts(part, parts, 0, count - 1);
	case CLASS: return matches_class(part, parts, count);
	case METHOD:
		return matches(part, subject->name) ||
		       (count > 0 && matches(part, parts[count - 1]));
	case SOURCE:
		return *subject->file &&
		       (matches(part, base_name(subject->file)) ||
			matches(part, part_of(subject->file)));
	}
	return false;
}

/* --- items that match, in the recording --- */

/* Whether the recording has a match of the item, or needs none.  Without a recording it is
 * true. */
static bool has_matched(const struct shim_meta *meta, size_t item)
{
	return !meta || item >= SHIM_META_FILTER ||
	       (meta->filter_matches[item / 64] >> item % 64 & 1);
}

static void note_match(struct shim_meta *meta, size_t item)
{
	if (!has_matched(meta, item))
		__atomic_fetch_or(&meta->filter_matches[item / 64],
				  1ull << item % 64, __ATOMIC_RELAXED);
}

/* The subjects are the names of one function. */
static bool applies_to_any(const struct rule *rule,
			   const struct subject *subjects, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (applies(rule, &subjects[i]))
			return true;
	return false;
}

/* The item that decides, or NULL.  It also tries items before that one until they have
 * matched once, so that the report can name items without any match. */
static const struct rule *find_rule(const struct rules *rules,
				    const struct subject *subjects,
				    unsigned count)
{
	struct shim_meta *meta = record_meta();
	const struct rule *found = NULL;

	for (size_t i = rules->count; i-- > 0;) {
		if ((found && has_matched(meta, i)) ||
		    !applies_to_any(&rules->rules[i], subjects, count))
			continue;
		note_match(meta, i);
		if (!found)
			found = &rules->rules[i];
	}
	if (meta)
		meta->filter_items = (uint32_t)rules->count;
	return found;
}

static struct subject subject_of(const char *object, bool is_program,
				 const char *name, const char *file)
{
	struct subject subject = {
		.object = object,
		.file = file,
		.is_program = is_program,
		.name = part_of(name),
	};

	subject.count = name_parts(name, subject.parts);
	return subject;
}

static bool admits(const struct rules *rules, const struct subject *subjects,
		   unsigned count)
{
	const struct rule *rule = find_rule(rules, subjects, count);

	if (rule)
		return rule->excludes == (rule->kind == NONE);
	return rules->count == 0 || rules->rules[0].excludes;
}

bool callspec_admits(const char *object, bool is_program, const char *name,
		     const char *file)
{
	struct subject subject = subject_of(object, is_program, name, file);

	return admits(rules_of(&filter), &subject, 1);
}

/* Whether the function is chosen by the last item that applies; for a system library, only an
 * item that names it applies.  There is a subject for each name of the function.  @otherwise:
 * no item applies. */
static bool chooses(const struct list *list, const struct subject *subjects,
		    unsigned count, bool is_system, bool otherwise)
{
	const struct rules *rules = rules_of(list);

	for (size_t i = rules->count; i-- > 0;) {
		const struct rule *rule = &rules->rules[i];

		if (!applies_to_any(rule, subjects, count))
			continue;
		if (rule->excludes != (rule->kind == NONE))
			return false;
		if (!is_system || rule->kind == OBJECT)
			return true;
	}
	return otherwise && rules->count > 0 && rules->rules[0].excludes;
}

bool callspec_patches(const char *object, bool is_program, bool is_system,
		      const char *names, size_t size)
{
	static struct subject subjects[NAMES_MAX];
	unsigned count = 0;
	size_t at = 0;

	do {
		subjects[count++] = subject_of(object, is_program, names + at,
					       "");
		at += text_length(names + at) + 1;
	} while (at < size && count < NAMES_MAX);
	return chooses(&patch, subjects, count, is_system, !is_system);
}

bool callspec_takes_call(const char *object, bool is_program, bool is_system,
			 const char *name)
{
	struct subject subject = subject_of(object, is_program, name, "");

	return chooses(&libcalls, &subject, 1, is_system, is_program);
}

/* --- the filter --- */

/* All steps of a decision use the same rules, though the list may change meanwhile. */
struct decision {
	const struct rules *rules;
	shim_function function;
	const char *file;
	bool is_admitted;
};

/* Runs on shim's stack, because the program's stack may have one page. */
static int decide_by_names(void *argument)
{
	static char path[NAME_SIZE], names[NAMES_SIZE];
	static struct subject subjects[NAMES_MAX];
	struct decision *decision = argument;
	uint32_t flags = 0;
	unsigned count = 0;
	size_t used = 0, at = 0;
	shim_image image;

	path[0] = names[0] = '\0';
	if (shim_function_info(decision->function, &image, NULL) == SHIM_OK)
		shim_image_info(image, NULL, NULL, NULL, &flags, sizeof(path),
				NULL, path);
	if (needs_symbols(decision->rules))
		used = info_copy_names(decision->function, names,
				       sizeof(names));
	if (used == 0)
		names[0] = '\0';
	do {
		subjects[count++] = subject_of(path, flags & SHIM_IMAGE_PROGRAM,
					       names + at, decision->file);
		at += text_length(names + at) + 1;
	} while (at < used && count < NAMES_MAX);
	decision->is_admitted = admits(decision->rules, subjects, count);
	return 0;
}

/* In a forked child, the owner may be a thread of the parent.  Then this thread takes
 * the lock. */
static void lock_file(int *lock)
{
	int self = sys_gettid(), owner = 0;

	while (!__atomic_compare_exchange_n(lock, &owner, self, false,
					    __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		if (!sys_is_alive(sys_getpid(), owner))
			continue;
		owner = 0;
		sys_yield();
	}
}

/* Blocks all signals, because a handler may need the same lock. */
static void decide_with_file(struct decision *decision)
{
	static char file[NAME_SIZE];
	static int lock;
	uint64_t signals;

	if (sys_is_forbidden() || sys_block_signals(&signals) < 0)
		return;
	lock_file(&lock);
	file[0] = '\0';
	shim_function_file(decision->function, sizeof(file), NULL, file);
	decision->file = file;
	state_call_locked(decide_by_names, decision);
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	sys_restore_signals(signals);
}

enum shim_call_instrumentation_flags
callspec_filter(struct shim_profiler *profiler, shim_function function)
{
	struct decision decision = { rules_of(&filter), function, "", true };

	(void)profiler;
	if (has_kind(decision.rules, SOURCE))
		decide_with_file(&decision);
	else
		state_call_locked(decide_by_names, &decision);
	return decision.is_admitted ?
		       SHIM_CALL_INSTRUMENTATION_ENTER |
			       SHIM_CALL_INSTRUMENTATION_LEAVE |
			       SHIM_CALL_INSTRUMENTATION_TAIL_CALL |
			       SHIM_CALL_INSTRUMENTATION_EXCEPTION_LEAVE :
		       SHIM_CALL_INSTRUMENTATION_NONE;
}

/* --- the option --- */

/* Copies a line without its comment; @line and @list may be the same. */
static size_t join_line(const char *line, size_t length, char *list)
{
	size_t end = 0;

	while (end < length &&
	       !(line[end] == '#' && (end == 0 || is_blank(line[end - 1]))))
		end++;
	for (size_t i = 0; i < end; i++)
		list[i] = line[i];
	list[end] = ',';
	return end + 1;
}

void callspec_join(char *text)
{
	char *at = text, *list = text;

	for (bool is_last = false; !is_last;) {
		size_t length = 0;

		while (at[length] && at[length] != '\n')
			length++;
		is_last = !at[length];
		/* The comma overwrites at most the newline. */
		list += join_line(at, length, list);
		at += length + 1;
	}
	list[-1] = '\0';
}

/* Reads a file into @text, which has @size bytes, and adds a NUL. */
static bool read_all(int fd, char *text, size_t size)
{
	size_t n = 0;
	long r;

	while (n < size - 1) {
		r = sys_read(fd, text + n, size - 1 - n);
		if (r < 0)
			return false;
		if (r == 0)
			break;
		n += (size_t)r;
	}
	text[n] = '\0';
	return true;
}

static int open_list(const char *path)
{
	int fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			  0);
	const char *name = text_after(path, config.dir);

	/* profrun writes long lists into the recording. */
	return fd < 0 && name && *name == '/' ?
		       opener_help(fd, OPENER_LIST, "", name + 1) :
		       fd;
}

static int read_file(const char *path, void **text, size_t *size)
{
	int fd = open_list(path);
	uint64_t device, inode, length;
	int r;

	if (fd < 0)
		return fd;
	r = sys_file(fd, &device, &inode, &length);
	*size = length + 1;
	if (r == 0)
		r = sys_map(*size, text);
	if (r == 0 && !read_all(fd, *text, *size)) {
		sys_unmap(*text, *size);
		r = -EIO;
	}
	sys_close(fd);
	return r;
}

static struct rules *read_list_of_file(const struct list *list,
				       const char *path)
{
	char line[100];
	struct text text;
	void *content;
	size_t size;
	struct rules *rules;
	int r;

	text_init(&text, line, sizeof(line));
	text_add(&text, list->option);
	text_add(&text, ": ");
	text_add(&text, list->otherwise);
	r = read_file(path, &content, &size);
	if (r < 0) {
		text_add(&text, ": %s");
		log_error(line, path, r);
		return NULL;
	}
	callspec_join(content);
	rules = read_list(list, content);
	sys_unmap(content, size);
	if (rules && rules->count == 0) {
		text_add(&text, ": %s has no items");
		log_line(line, path);
		release_rules(rules);
		return NULL;
	}
	return rules;
}

/* The rules of the option's value @given; NULL if it is invalid. */
static const struct rules *read_option(const struct list *list,
				       const char *given)
{
	uint32_t before = log_end();
	const struct rules *rules;

	if (!given[0])
		return &no_rules;
	if (given[0] == '@')
		rules = read_list_of_file(list, given + 1);
	else
		rules = read_list(list, given);
	if (!rules)
		log_about_setting(before);
	return rules;
}

/* The option's value becomes the list, because it is recorded. */
static void replace(struct list *list, const char **setting,
		    const struct rules *rules)
{
	publish(list, rules);
	__atomic_store_n(setting, rules->text, __ATOMIC_RELEASE);
}

static void configure(struct list *list, const char **setting)
{
	const struct rules *rules = read_option(list, *setting);

	replace(list, setting, rules ? rules : &no_rules);
}

void callspec_configure(void)
{
	configure(&filter, &config.filter);
	configure(&patch, &config.patch);
	configure(&libcalls, &config.libcalls);
}

void callspec_start(void)
{
	ASSERT_LOCKED();
	if (config.filter[0] == '\0')
		return;
	if (callspec_needs_symbols() || callspec_needs_files())
		symbols_enable();
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h)) {
		if (!h->builtin || h->filter)
			continue;
		h->filter = callspec_filter;
		h->filter_slot = filter_cache_claim_slot(h, true);
	}
}

void callspec_renew(void)
{
	ASSERT_LOCKED();
	/* Profilers that have the filter keep it: without rules it admits all functions. */
	configure(&filter, &config.filter);
	callspec_start();
	filter_cache_invalidate_filters();
}

/* Reads @text into @list, and puts it in the place of @setting; false if it is invalid: both
 * stay. */
static bool change(struct list *list, const char **setting, const char *text)
{
	const struct rules *rules;

	ASSERT_LOCKED();
	rules = read_option(list, text);
	if (!rules || rules == &no_rules)
		return false;
	replace(list, setting, rules);
	return true;
}

bool callspec_change(const char *list)
{
	if (!change(&filter, &config.filter, list))
		return false;
	callspec_start();
	filter_cache_invalidate_filters();
	return true;
}

bool callspec_change_libcalls(const char *list)
{
	if (!change(&libcalls, &config.libcalls, list))
		return false;
	NOTIFY(libcalls_changed);
	return true;
}

void callspec_prepare(void)
{
	if (callspec_needs_files())
		shim_function_file((shim_function)callspec_prepare, 0, NULL,
				   NULL);
}
