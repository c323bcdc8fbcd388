/*
 * libshim-debuginfo.so: answers queries about functions with libdw: lines, files,
 * template arguments, names, prototypes, call sites, types and variables.
 *
 * Only the thread that loads this copy of libc has all of its thread-local storage.
 * enter() sets up the rest in other threads.
 */
#define _GNU_SOURCE
#include "inspect/debuginfo/debuginfo.h"

#include "inspect/debuginfo/callsite.h"
#include "inspect/debuginfo/file.h"
#include "inspect/debuginfo/linetable.h"
#include "inspect/debuginfo/locals.h"
#include "inspect/debuginfo/memory.h"
#include "inspect/debuginfo/prototype.h"
#include "inspect/debuginfo/signature.h"
#include "inspect/debuginfo/types.h"
#include "inspect/debuginfo/typetree.h"
#include "inspect/debuginfo/unit.h"
#include "inspect/debuginfo/units.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <shim/info.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* --- around each call --- */

static locale_t locale;

/* <ctype.h> finds its tables through the thread's locale.  In a thread of another libc,
 * only uselocale sets that.  Also disables cancellation: libdw reads files, which is a
 * cancellation point. */
static int enter(void)
{
	int before = 0;

	if (locale)
		uselocale(locale);
	memory_begin();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static void leave(int before)
{
	pthread_setcancelstate(before, NULL);
}

/* If memory ran out, drops the data that was read, so that the next query reads it
 * again. */
static int leave_with(int before, const struct debuginfo_question *question,
		      struct debuginfo_answer *answer, int r)
{
	if (memory_lacked()) {
		file_forget(question->image);
		answer->trouble = NULL;
		r = -ENOMEM;
	}
	leave(before);
	return r;
}

/* --- units --- */

static int find_unit(const struct debuginfo_question *question,
		     struct debuginfo_answer *answer, Dwarf_Die *unit)
{
	Dwarf *dwarf = file_open(question, answer);

	return units_find(dwarf, question->ranges[0].start, unit) ? 0 : -ENOENT;
}

/* --- lines --- */

static struct {
	struct shim_line *lines;
	size_t count, room;
} found;

static bool add_line(const struct shim_line *line)
{
	struct shim_line *last;

	if (found.count > 0) {
		last = &found.lines[found.count - 1];
		if (last->end == line->start && last->line == line->line &&
		    last->column == line->column) {
			last->end = line->end;
			return true;
		}
	}
	if (found.count == found.room) {
		size_t room = found.room ? found.room * 2 : 64;
		void *larger = realloc(found.lines, room * sizeof(*line));

		if (!larger)
			return false;
		found.lines = larger;
		found.room = room;
	}
	found.lines[found.count++] = *line;
	return true;
}

/* Adds the rows of the table in @range, which begins @offset bytes into the
 * function. */
static bool add_lines(Dwarf_Lines *answer_lines, size_t count,
		      const struct debuginfo_range *range, uint64_t offset)
{
	for (size_t i = 0; i + 1 < count; i++) {
		Dwarf_Line *row = dwarf_onesrcline(answer_lines, i);
		Dwarf_Line *next = dwarf_onesrcline(answer_lines, i + 1);
		Dwarf_Addr start, end, limit = range->start + range->size;
		int line = 0, column = 0;
		bool ends = false;

		if (dwarf_lineaddr(row, &start) || dwarf_lineaddr(next, &end) ||
		    dwarf_lineendsequence(row, &ends) || ends ||
		    end <= range->start || start >= limit || start >= end)
			continue;
		dwarf_lineno(row, &line);
		dwarf_linecol(row, &column);
		start = start < range->start ? range->start : start;
		end = end > limit ? limit : end;
		if (!add_line(&(struct shim_line){
			    .line = (uint32_t)line,
			    .column = (uint32_t)column,
			    .start = (uint32_t)(offset + start - range->start),
			    .end = (uint32_t)(offset + end - range->start),
		    }))
			return false;
	}
	return true;
}

static int find_lines(const struct debuginfo_question *question,
		      struct debuginfo_answer *answer)
{
	uint64_t offset = 0;
	Dwarf_Lines *answer_lines;
	Dwarf_Die unit;
	size_t count;
	int r = find_unit(question, answer, &unit);

	if (r < 0)
		return r;
	if (dwarf_getsrclines(&unit, &answer_lines, &count) != 0)
		return -ENOENT;
	found.count = 0;
	for (uint32_t i = 0; i < question->range_count; i++) {
		if (!add_lines(answer_lines, count, &question->ranges[i],
			       offset))
			return -ENOMEM;
		offset += question->ranges[i].size;
	}
	answer->data = found.lines;
	answer->count = found.count;
	return 0;
}

/* --- files --- */

static char *text;

static int answer_text(struct debuginfo_answer *answer, size_t size)
{
	answer->data = text;
	answer->count = size;
	return text ? 0 : -ENOMEM;
}

static int find_file(const struct debuginfo_question *question,
		     struct debuginfo_answer *answer)
{
	const char *name = NULL, *directory;
	Dwarf_Attribute attribute;
	Dwarf_Line *line;
	Dwarf_Die unit;
	int r = find_unit(question, answer, &unit);

	if (r < 0)
		return r;
	line = dwarf_getsrc_die(&unit, question->ranges[0].start);
	if (line)
		name = dwarf_linesrc(line, NULL, NULL);
	if (!name)
		return -ENOENT;
	free(text);
	text = NULL;
	directory = dwarf_formstring(
		dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
	if (name[0] == '/' || !directory)
		r = asprintf(&text, "%s", name);
	else
		r = asprintf(&text, "%s/%s", directory, name);
	if (r < 0)
		text = NULL;
	return answer_text(answer, (size_t)r + 1);
}

/* --- template arguments --- */

/* Finds the function at @address in its unit. */
static bool find_definition(const struct debuginfo_question *question,
			    struct debuginfo_answer *answer, Dwarf_Die *unit,
			    uint64_t address, Dwarf_Die *function)
{
	return file_open_split(question, answer, unit) &&
	       unit_find_function(unit, address, function);
}

static bool is_named(Dwarf_Die *function, const char *names, size_t size)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(
		dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));

	if (!name)
		name = dwarf_diename(function);
	for (size_t at = 0; name && at < size; at += strlen(names + at) + 1)
		if (strcmp(names + at, name) == 0)
			return true;
	return false;
}

/* Moves @scope to its block or inlined function that contains @address; false if none
 * contains it. */
static bool find_within(Dwarf_Die *scope, Dwarf_Addr address)
{
	Dwarf_Die die;

	if (dwarf_child(scope, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);

		if ((tag == DW_TAG_lexical_block ||
		     tag == DW_TAG_inlined_subroutine) &&
		    dwarf_haspc(&die, address) > 0) {
			*scope = die;
			return true;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* Finds the description of an inlined function.  All copies of the inlined function
 * share it. */
static int find_inlined(const struct debuginfo_question *question,
			struct debuginfo_answer *answer, Dwarf_Die *unit,
			Dwarf_Die *function)
{
	Dwarf *dwarf = file_open(question, answer);
	Dwarf_Addr address = question->site - 1;
	Dwarf_Attribute attribute;
	Dwarf_Die scope;

	if (!units_find(dwarf, address, unit) ||
	    !file_open_split(question, answer, unit) ||
	    !unit_find_around(unit, address, &scope))
		return -ENOENT;
	while (find_within(&scope, address))
		if (dwarf_tag(&scope) == DW_TAG_inlined_subroutine &&
		    is_named(&scope, question->inlined, question->inlined_size))
			return dwarf_formref_die(
				       dwarf_attr(&scope, DW_AT_abstract_origin,
						  &attribute),
				       function) ?
				       0 :
				       -ENOENT;
	return -ENOENT;
}

static int find_function_or_inlined(const struct debuginfo_question *question,
				    struct debuginfo_answer *answer,
				    Dwarf_Die *unit, Dwarf_Die *function)
{
	int r;

	if (question->inlined)
		return find_inlined(question, answer, unit, function);
	r = find_unit(question, answer, unit);
	if (r < 0)
		return r;
	return find_definition(question, answer, unit,
			       question->ranges[0].start, function) ?
		       0 :
		       -ENOENT;
}

static int find_template_arguments(const struct debuginfo_question *question,
				   struct debuginfo_answer *answer)
{
	Dwarf_Die unit, function;
	size_t size = 0;
	FILE *out;
	int r = find_function_or_inlined(question, answer, &unit, &function);

	if (r < 0)
		return r;
	free(text);
	text = NULL;
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	types_print_arguments(&unit, &function, out);
	if (fclose(out) != 0)
		return -ENOMEM;
	return answer_text(answer, size);
}

/* --- names --- */

static char *(*cxa_demangle)(const char *name, char *buffer, size_t *size,
			     int *status);
static char *demangled;

/* Uses any loaded C++ runtime, because this library must not depend on one. */
static void find_demangler(void)
{
	static const char *const libraries[] = { "libstdc++.so.6",
						 "libc++abi.so.1" };

	for (size_t i = 0; i < 2 && !cxa_demangle; i++) {
		void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);

		if (library)
			*(void **)&cxa_demangle = dlsym(library,
							"__cxa_demangle");
	}
}

/* --- prototypes --- */

/* The name in the source, from malloc, or NULL. */
static char *demangle_function(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(
		dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
	int status;

	return name && cxa_demangle ? cxa_demangle(name, NULL, NULL, &status) :
				      NULL;
}

enum completeness {
	COMPLETE,
	BY_NAME, /* only the function's name has all parameters */
	LACKING,
};

/* main always has integer and pointer parameters, and its name does not list them. */
static bool is_main(Dwarf_Die *function)
{
	const char *name = dwarf_diename(function);

	return name && strcmp(name, "main") == 0 &&
	       dwarf_hasattr(function, DW_AT_external) &&
	       !dwarf_hasattr_integrate(function, DW_AT_linkage_name);
}

/* extern "C" in C++: with optimization, clang omits no parameter.  Without it, the name
 * does not show the number of parameters. */
static bool is_described(Dwarf_Die *function)
{
	return (dwarf_hasattr_integrate(function, DW_AT_call_all_calls) ||
		dwarf_hasattr_integrate(function, DW_AT_GNU_all_call_sites)) &&
	       dwarf_hasattr_integrate(function, DW_AT_external) &&
	       !dwarf_hasattr_integrate(function, DW_AT_linkage_name);
}

/* Adds parameters that clang omits, from the class or from the name.  (With
 * optimization, the caller may not pass an omitted parameter.) */
static enum completeness complete_parameters(Dwarf_Die *function,
					     struct prototype_value *values,
					     size_t *count)
{
	bool is_method = dwarf_hasattr_integrate(function, DW_AT_specification);
	bool is_optimized = prototype_is_optional(function);
	bool is_complete;
	size_t all = 0;
	char *plain;

	if (!prototype_may_lack(function) || is_main(function) ||
	    is_described(function))
		return COMPLETE;
	plain = demangle_function(function);
	is_complete = plain && prototype_is_complete(plain, values, *count);
	if (plain && !is_complete && !is_method && !is_optimized)
		all = signature_read(function, plain, values,
				     PROTOTYPE_VALUES_MAX);
	free(plain);
	if (all == 0)
		return is_complete ? COMPLETE : LACKING;
	*count = all;
	return BY_NAME;
}

static int read_prototype(const struct debuginfo_question *question,
			  struct debuginfo_answer *answer,
			  enum completeness *completeness)
{
	static struct prototype_value values[PROTOTYPE_VALUES_MAX];
	Dwarf_Die unit, function;
	int r = find_function_or_inlined(question, answer, &unit, &function);

	if (r < 0)
		return r;
	memset(values, 0, sizeof(values));
	answer->data = values;
	answer->count = prototype_read(&function, file_elf(question),
				       question->ranges[0].start, values,
				       PROTOTYPE_VALUES_MAX);
	if (answer->count == 0)
		return -ENOENT;
	*completeness = complete_parameters(&function, values, &answer->count);
	values[0].is_alone = *completeness == LACKING;
	return 0;
}

static int find_prototype(const struct debuginfo_question *question,
			  struct debuginfo_answer *answer)
{
	enum completeness completeness;

	return read_prototype(question, answer, &completeness);
}

/* --- callers --- */

static bool is_complete_call(const struct debuginfo_question *question,
			     struct debuginfo_answer *answer, Dwarf_Die *caller)
{
	Dwarf_Die unit, callee;

	if (question->callee == 0)
		return true;
	return units_find(file_open(question, answer), question->callee,
			  &unit) &&
	       find_definition(question, answer, &unit, question->callee,
			       &callee) &&
	       !callsite_sees(caller, &callee, file_elf(question),
			      question->callee);
}

static int find_callsite(const struct debuginfo_question *question,
			 struct debuginfo_answer *answer)
{
	static struct callsite callsite;
	Dwarf_Die unit, caller;
	struct callsite_place place = {
		.address = question->site,
		.bias = question->bias,
	};
	int r = find_function_or_inlined(question, answer, &unit, &caller);

	if (r < 0)
		return r;
	place.dwarf = file_open(question, answer);
	place.elf = file_elf(question);
	memset(&callsite, 0, sizeof(callsite));
	callsite_read(&caller, &place, &callsite);
	callsite.is_complete = is_complete_call(question, answer, &caller);
	callsite.caller = question->ranges[0].start + question->bias;
	answer->data = &callsite;
	answer->count = 1;
	return 0;
}

static int find_called(const struct debuginfo_question *question,
		       struct debuginfo_answer *answer)
{
	Dwarf_Die unit, caller;
	const char *name;
	int r = find_function_or_inlined(question, answer, &unit, &caller);

	if (r < 0)
		return r;
	name = callsite_called(&caller, question->site);
	if (!name)
		return -ENOENT;
	answer->data = name;
	answer->count = strlen(name) + 1;
	return 0;
}

/* --- types --- */

static bool add_parameters(struct typetree_list *list, Dwarf_Die *function)
{
	Dwarf_Die listed = prototype_listed(function), child;
	size_t position = 0;

	if (dwarf_child(&listed, &child) != 0)
		return true;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter &&
		    !prototype_is_hidden(&child, ++position) &&
		    !typetree_add(list, &child, dwarf_diename(&child)))
			return false;
	} while (dwarf_siblingof(&child, &child) == 0);
	return true;
}

static bool add_named_parameters(struct typetree_list *list,
				 Dwarf_Die *function)
{
	char *plain = demangle_function(function);
	bool is_added = plain && signature_add(list, function, plain);

	free(plain);
	return is_added;
}

static struct typetree_list list;

/* Describes the same parameters as the function's prototype does. */
static int find_signature(const struct debuginfo_question *question,
			  struct debuginfo_answer *answer)
{
	Dwarf_Die unit, function, written;
	enum completeness completeness;
	int r = read_prototype(question, answer, &completeness);

	if (r == 0)
		r = completeness == LACKING ?
			    -ENOENT :
			    find_function_or_inlined(question, answer, &unit,
						     &function);
	if (r < 0)
		return r;
	written = prototype_written(&function);
	list.size = 0;
	if (!typetree_add(&list, &written, NULL) ||
	    !(completeness == BY_NAME ? add_named_parameters(&list, &function) :
					add_parameters(&list, &function)))
		return -ENOMEM;
	answer->data = list.memory;
	answer->count = list.size;
	return 0;
}

/* --- variables --- */

static int find_locals(const struct debuginfo_question *question,
		       struct debuginfo_answer *answer)
{
	struct debuginfo_answer answer_prototype = { .count = 0 };
	enum completeness completeness;
	struct variables *variables;
	Dwarf_Die unit, function;
	int r = find_function_or_inlined(question, answer, &unit, &function);

	if (r < 0)
		return r;
	/* Asks about the call, which is before its return address. */
	variables = locals_read(&function, question->site - 1,
				file_frames(question));
	if (!variables)
		return -ENOENT;
	r = read_prototype(question, &answer_prototype, &completeness);
	variables->lacks_parameters = r < 0 || completeness == LACKING ||
				      answer_prototype.count - 1 >
					      variables->parameter_count;
	answer->data = variables;
	answer->count = 1;
	return 0;
}

/* --- prefetching --- */

#define LARGE	  0x40000   /* bytes; smaller units take a millisecond */
#define AHEAD_MAX 0x1000000 /* bytes to read */

static void read_large_units(Dwarf *dwarf)
{
	Dwarf_Off at = 0, next, left = AHEAD_MAX;
	Dwarf_Die unit;
	size_t head;

	for (; dwarf_nextcu(dwarf, at, &next, &head, NULL, NULL, NULL) == 0;
	     at = next) {
		if (next - at < LARGE || next - at > left ||
		    !dwarf_offdie(dwarf, at + head, &unit))
			continue;
		unit_read(&unit);
		left -= next - at;
	}
}

/* Looks up address 0.  No unit contains it, so libdw reads the ranges of all units. */
static int open_image(const struct debuginfo_question *question,
		      struct debuginfo_answer *answer)
{
	Dwarf *dwarf = file_open(question, answer);
	Dwarf_Die unit;

	units_find(dwarf, 0, &unit);
	if (dwarf)
		read_large_units(dwarf);
	return dwarf ? 0 : -ENOENT;
}

/* --- interface for libshim.so --- */

static char *no_environment[] = { NULL };

/* One variable of a library is enough. */
static void begin_thread(void)
{
	elf_errno();
	dwarf_errno();
}

static void start_helper(void)
{
	int before;

	/* Clears the environment of this libc only.  With DEBUGINFOD_URLS, libdw would
	 * download missing files. */
	environ = no_environment;
	locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	before = enter();
	elf_version(EV_CURRENT);
	begin_thread();
	find_demangler();
	leave(before);
}

static int answer_lines(const struct debuginfo_question *question,
			struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_lines(question, answer));
}

static int answer_file(const struct debuginfo_question *question,
		       struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_file(question, answer));
}

static int answer_template_arguments(const struct debuginfo_question *question,
				     struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_template_arguments(question, answer));
}

static int answer_prototype(const struct debuginfo_question *question,
			    struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_prototype(question, answer));
}

static int answer_callsite(const struct debuginfo_question *question,
			   struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_callsite(question, answer));
}

static int answer_called(const struct debuginfo_question *question,
			 struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_called(question, answer));
}

static int answer_signature(const struct debuginfo_question *question,
			    struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_signature(question, answer));
}

static int answer_locals(const struct debuginfo_question *question,
			 struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  find_locals(question, answer));
}

static int answer_linetable(const struct debuginfo_question *question,
			    struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  linetable_read(question, answer));
}

static int answer_open(const struct debuginfo_question *question,
		       struct debuginfo_answer *answer)
{
	int before = enter();

	return leave_with(before, question, answer,
			  open_image(question, answer));
}

/* Never touches the memory again that was in use when a call failed. */
static void abandon(uint64_t image)
{
	file_abandon(image);
	linetable_forget();
	memset(&found, 0, sizeof(found));
	memset(&list, 0, sizeof(list));
	text = NULL;
	demangled = NULL;
}

static const char *demangle(const char *name)
{
	int before = enter(), status;

	free(demangled);
	demangled = cxa_demangle ? cxa_demangle(name, NULL, NULL, &status) :
				   NULL;
	leave(before);
	return demangled;
}

EXPORT extern const struct debuginfo shim_debuginfo;
const struct debuginfo shim_debuginfo = {
	.version = DEBUGINFO_VERSION,
	.start = start_helper,
	.begin_thread = begin_thread,
	.lines = answer_lines,
	.file = answer_file,
	.template_arguments = answer_template_arguments,
	.prototype = answer_prototype,
	.callsite = answer_callsite,
	.called = answer_called,
	.signature = answer_signature,
	.linetable = answer_linetable,
	.locals = answer_locals,
	.open = answer_open,
	.demangle = demangle,
	.abandon = abandon,
};
