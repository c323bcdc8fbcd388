#include "callspec.h"

#include "config.h"
#include "events.h"
#include "log.h"
#include "state.h"
#include "symbols.h"
#include "sys.h"
#include "text.h"
#include "verdict.h"

#include <shim/info.h>

#include <shim/banned.h>

#define RULES_MAX 512
#define NAME_SIZE 1024

enum kind { ALL, NONE, PROGRAM, OBJECT, NAMESPACE, CLASS, METHOD, SOURCE };

struct part {
	const char *text;
	size_t length;
};

struct rule {
	enum kind kind;
	bool excludes;
	struct part part;
};

static struct rule rules[RULES_MAX];
static unsigned rule_count;
static char memory[sizeof(config.filter)];

/* --- the list --- */

static bool is_word(struct part part, const char *word)
{
	size_t i = 0;

	while (i < part.length && word[i] && part.text[i] == word[i])
		i++;
	return i == part.length && word[i] == '\0';
}

static bool read_item(struct part item, struct rule *rule)
{
	static const struct {
		char letter;
		enum kind kind;
	} kinds[] = { { 'N', NAMESPACE }, { 'T', CLASS }, { 'M', METHOD },
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
		rule->kind = OBJECT;
	if (item.length < 2 || item.text[1] != ':')
		return true;
	rule->part = (struct part){ item.text + 2, item.length - 2 };
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (kinds[i].letter == item.text[0]) {
			rule->kind = kinds[i].kind;
			return rule->part.length > 0;
		}
	}
	return false;
}

bool callspec_read(const char *list)
{
	struct text copy;
	const char *at = memory;

	rule_count = 0;
	text_init(&copy, memory, sizeof(memory));
	text_add(&copy, list);
	while (*at) {
		struct part item = { at, 0 };

		while (at[item.length] && at[item.length] != ',')
			item.length++;
		at += item.length;
		if (*at == ',')
			at++;
		if (item.length == 0)
			continue;
		if (copy.cut || rule_count == RULES_MAX ||
		    !read_item(item, &rules[rule_count])) {
			log_line("--filter: '%s' cannot be read: items are all, "
				 "none, program, OBJECT, N:namespace, T:class, "
				 "M:function, F:file, each with or without '-' "
				 "before it", item.text);
			rule_count = 0;
			return false;
		}
		rule_count++;
	}
	return true;
}

static bool has(enum kind kind)
{
	for (unsigned i = 0; i < rule_count; i++)
		if (rules[i].kind == kind)
			return true;
	return false;
}

bool callspec_needs_symbols(void)
{
	return has(NAMESPACE) || has(CLASS) || has(METHOD);
}

bool callspec_needs_files(void)
{
	return has(SOURCE);
}

/* --- matching --- */

/* Recursion is as deep as there are stars. */
static bool fits(struct part pattern, struct part text)
{
	while (pattern.length > 0 && pattern.text[0] != '*') {
		if (text.length == 0 || (pattern.text[0] != '?' &&
					 pattern.text[0] != text.text[0]))
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
		if (fits(pattern, text))
			return true;
		if (text.length == 0)
			return false;
	}
}

static struct part part_of(const char *text)
{
	return (struct part){ text, text_length(text) };
}

/*
 * The parts of a C++ linker name, "a", "Class", "run" of _ZN1a5Class3runEv.
 * Template arguments are passed over; what is only a reference to an earlier
 * part ("S0_") is left out.
 */
#define PARTS_MAX 16

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *read_source_name(const char *at, struct part *part)
{
	size_t length = 0;

	for (; is_digit(*at); at++)
		length = length * 10 + (size_t)(*at - '0');
	for (size_t i = 0; i < length; i++)
		if (at[i] == '\0')
			return NULL;
	*part = (struct part){ at, length };
	return at + length;
}

/* @at is behind the I of template arguments; returns behind their E. */
static const char *pass_arguments(const char *at)
{
	struct part unused;
	int depth = 1;

	while (depth > 0) {
		if (*at == '\0')
			return NULL;
		if (is_digit(*at)) {
			at = read_source_name(at, &unused);
			if (!at)
				return NULL;
			continue;
		}
		if (*at == 'I' || *at == 'N' || *at == 'X' || *at == 'F')
			depth++;
		if (*at == 'L') {	/* a literal: its value is no name */
			while (*at && *at != 'E')
				at++;
			continue;
		}
		if (*at == 'E')
			depth--;
		at++;
	}
	return at;
}

static const char *read_part(const char *at, struct part parts[PARTS_MAX],
			     unsigned *count)
{
	if (is_digit(*at))
		return read_source_name(at, &parts[(*count)++]);
	if (at[0] == 'S' && at[1] == 't') {
		parts[(*count)++] = (struct part){ "std", 3 };
		return at + 2;
	}
	if (at[0] == 'S') {
		at++;
		while (*at && *at != '_' && !(*at >= 'a' && *at <= 'z'))
			at++;
		return *at ? at + 1 : at;
	}
	if (*at == 'I')
		return pass_arguments(at + 1);
	if ((*at == 'C' || *at == 'D') && is_digit(at[1]) && *count > 0) {
		parts[*count] = parts[*count - 1];
		(*count)++;
		return at + 2;
	}
	parts[(*count)++] = (struct part){ "operator", 8 };
	return at + text_length(at);
}

static unsigned read_parts(const char *name, struct part parts[PARTS_MAX])
{
	const char *at = text_after(name, "_Z");
	bool nested = false;
	unsigned count = 0;

	while (at && *at == 'Z')	/* a local function: what it is in */
		at++;
	if (!at)
		return 0;
	if (*at == 'N') {
		at++;
		nested = true;
	}
	while (*at == 'K' || *at == 'V' || *at == 'r' || *at == 'L')
		at++;
	if (!nested && at[0] == 'S' && at[1] == 't') {
		parts[count++] = (struct part){ "std", 3 };
		at += 2;
	}
	if (!nested)
		return is_digit(*at) && read_source_name(at, &parts[count]) ?
			       count + 1 :
			       count;
	while (at && *at && *at != 'E' && count < PARTS_MAX)
		at = read_part(at, parts, &count);
	return at ? count : 0;
}

/* Whether the names in @pattern, separated by "::", fit parts [@from, ...). */
static bool fits_parts(struct part pattern, const struct part *parts,
		       unsigned from, unsigned count)
{
	while (pattern.length > 0) {
		struct part first = { pattern.text, 0 };

		while (first.length < pattern.length &&
		       !(pattern.text[first.length] == ':'))
			first.length++;
		pattern.text += first.length;
		pattern.length -= first.length;
		while (pattern.length > 0 && pattern.text[0] == ':')
			pattern.text++, pattern.length--;
		if (from >= count || !fits(first, parts[from]))
			return false;
		from++;
	}
	return true;
}

static bool fits_class(struct part pattern, const struct part *parts,
		       unsigned count)
{
	unsigned names = 1;

	for (size_t i = 0; i + 1 < pattern.length; i++)
		names += pattern.text[i] == ':' && pattern.text[i + 1] == ':';
	return count > names &&
	       fits_parts(pattern, parts, count - 1 - names, count - 1);
}

static struct part base_name(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return part_of(base);
}

/* libfoo and libfoo.so fit libfoo.so.1. */
static bool fits_object(struct part pattern, const char *path)
{
	struct part whole = base_name(path), part = whole;

	if (fits(pattern, whole))
		return true;
	for (part.length = 1; part.length < whole.length; part.length++)
		if (whole.text[part.length] == '.' && fits(pattern, part))
			return true;
	return false;
}

bool callspec_admits(const char *object, bool is_program, const char *name,
		     const char *file)
{
	struct part parts[PARTS_MAX];
	unsigned count = read_parts(name, parts);
	bool admits = rule_count == 0 || rules[0].excludes;

	for (unsigned i = 0; i < rule_count; i++) {
		const struct rule *rule = &rules[i];
		struct part part = rule->part;
		bool applies = false;

		switch (rule->kind) {
		case ALL:
		case NONE: applies = true; break;
		case PROGRAM: applies = is_program; break;
		case OBJECT: applies = fits_object(part, object); break;
		case NAMESPACE:
			applies = count > 1 &&
				  fits_parts(part, parts, 0, count - 1);
			break;
		case CLASS: applies = fits_class(part, parts, count); break;
		case METHOD:
			applies = fits(part, part_of(name)) ||
				  (count > 0 && fits(part, parts[count - 1]));
			break;
		case SOURCE:
			applies = *file && (fits(part, base_name(file)) ||
					    fits(part, part_of(file)));
			break;
		}
		if (applies)
			admits = rule->excludes == (rule->kind == NONE);
	}
	return admits;
}

/* --- the filter --- */

struct question {
	shim_function function;
	const char *file;
	bool is_admitted;
};

/* On our own stack: the program's may be a page. */
static int decide(void *argument)
{
	static char path[NAME_SIZE], name[NAME_SIZE];
	struct question *question = argument;
	uint32_t flags = 0;
	shim_image image;

	path[0] = name[0] = '\0';
	if (shim_function_info(question->function, &image, NULL) == SHIM_OK)
		shim_image_info(image, NULL, NULL, NULL, &flags, sizeof(path),
				NULL, path);
	if (callspec_needs_symbols())
		shim_function_name(question->function, sizeof(name), NULL,
				   name);
	question->is_admitted = callspec_admits(
		path, flags & SHIM_IMAGE_PROGRAM, name, question->file);
	return 0;
}

/* A forked child takes it from a thread that is not there. */
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

/* With all signals blocked: a handler may ask the same. */
static void decide_with_file(struct question *question)
{
	static char file[NAME_SIZE];
	static int lock;
	uint64_t signals;

	if (sys_is_forbidden() || sys_block_signals(&signals) < 0)
		return;
	lock_file(&lock);
	file[0] = '\0';
	shim_function_file(question->function, sizeof(file), NULL, file);
	question->file = file;
	state_slowly(decide, question);
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	sys_restore_signals(signals);
}

enum shim_call_instrumentation_flags
callspec_filter(struct shim_profiler *profiler, shim_function function)
{
	struct question question = { function, "", true };

	(void)profiler;
	if (callspec_needs_files())
		decide_with_file(&question);
	else
		state_slowly(decide, &question);
	return question.is_admitted ?
		       SHIM_CALL_INSTRUMENTATION_ENTER |
			       SHIM_CALL_INSTRUMENTATION_LEAVE |
			       SHIM_CALL_INSTRUMENTATION_TAIL_CALL |
			       SHIM_CALL_INSTRUMENTATION_EXCEPTION_LEAVE :
		       SHIM_CALL_INSTRUMENTATION_NONE;
}

/* --- the option --- */

void callspec_configure(void)
{
	/* What is not in force is not in the recording either. */
	if (config.filter[0] && !callspec_read(config.filter))
		config.filter[0] = '\0';
}

void callspec_start(void)
{
	if (config.filter[0] == '\0')
		return;
	if (callspec_needs_symbols() || callspec_needs_files())
		symbols_enable();
	for (struct shim_handle *h = events_first(); h; h = events_next(h)) {
		if (!h->builtin || h->filter)
			continue;
		h->filter = callspec_filter;
		h->filter_slot = verdict_take(h, true);
	}
}

void callspec_prepare(void)
{
	if (callspec_needs_files())
		shim_function_file((shim_function)callspec_prepare, 0, NULL,
				   NULL);
}
