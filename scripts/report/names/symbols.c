/*
 * Finds names for the addresses of objects.  Sandboxes read their files
 * (names/object_process.h); this file makes the requests and checks the answers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "names/demangle.h"
#include "names/elf_names.h"
#include "names/object_process.h"
#include "names/sandbox.h"
#include "names/symbols.h"

/* So many lines are requested one by one.  Beyond that, or if the process has
 * ended to make room for others, all lines of the object are requested. */
#define LINES_ALONE    64
#define DEMANGLERS_MAX 10

void symbols_begin(void)
{
	sandbox_begin(elf_names_serve);
}

/* --- functions --- */

struct finding {
	struct symbol *symbols;
	size_t count;
};

static bool take_name(struct object_files *files,
		      const struct object_answer *answer, void *context)
{
	struct finding *finding = context;
	const struct names_answer *head = &answer->head;
	struct symbol *symbol = &finding->symbols[head->number];

	(void)files;
	if (head->kind != ANSWER_NAME || head->number >= finding->count ||
	    !*answer->text)
		return false;
	symbol->name = keep_text(answer->text, SIZE_MAX);
	symbol->source_name = *answer->more ?
				      keep_text(answer->more, SIZE_MAX) :
				      symbol->name;
	symbol->is_exact = head->a & NAMES_EXACT;
	symbol->is_global = head->a & NAMES_GLOBAL;
	symbol->has_others = head->a & NAMES_OTHERS;
	symbol->is_in_doubt = head->a & NAMES_DOUBT;
	return true;
}

static uint64_t *addresses_of(const void *records, size_t size, size_t count)
{
	uint64_t *addresses = allocate(count, sizeof(*addresses));
	size_t i;

	for (i = 0; i < count; i++)
		memcpy(&addresses[i], (const char *)records + i * size,
		       sizeof(*addresses));
	return addresses;
}

_Static_assert(offsetof(struct symbol, address) == 0 &&
		       offsetof(struct data_symbol, address) == 0,
	       "addresses_of");

void symbols_find(struct object *object, struct symbol *symbols, size_t count)
{
	struct finding finding = { symbols, count };

	object->addresses = addresses_of(symbols, sizeof(*symbols), count);
	object->address_count = (uint32_t)count;
	if (object_process_is_open(object))
		object_process_ask(object, NAMES_FIND, object->addresses,
				   (uint32_t)count, take_name, &finding);
}

struct listing {
	struct function_symbol *all;
	size_t count, room;
};

static bool take_function(struct object_files *files,
			  const struct object_answer *answer, void *context)
{
	struct listing *listing = context;
	const struct function_symbol *last =
		listing->count ? &listing->all[listing->count - 1] : NULL;

	(void)files;
	if (answer->head.kind != ANSWER_FUNCTION ||
	    (last && last->address >= answer->head.a))
		return false;
	GROW(listing->all, listing->count, listing->room);
	listing->all[listing->count++] = (struct function_symbol){
		.address = answer->head.a,
		.size = answer->head.b,
		.name = keep_text(answer->text, SIZE_MAX),
	};
	return true;
}

struct function_symbol *symbols_list(struct object *object, size_t *count)
{
	struct listing listing = { .all = NULL };

	if (object_process_is_open(object))
		object_process_ask(object, NAMES_LIST, NULL, 0, take_function,
				   &listing);
	*count = listing.count;
	return listing.all;
}

/* --- names by which functions are called --- */

struct taking {
	void (*take)(void *context, uint32_t number, const char *name,
		     const char *source_name);
	void *context;
	uint32_t count;
};

static bool take_any_name(struct object_files *files,
			  const struct object_answer *answer, void *context)
{
	struct taking *taking = context;
	const char *name;

	(void)files;
	if (answer->head.kind != ANSWER_NAME ||
	    answer->head.number >= taking->count)
		return false;
	name = keep_text(answer->text, SIZE_MAX);
	taking->take(taking->context, answer->head.number, name,
		     *answer->more ? keep_text(answer->more, SIZE_MAX) : name);
	return true;
}

void symbols_names_at(struct object *object, const uint64_t *addresses,
		      uint32_t count,
		      void (*take)(void *context, uint32_t number,
				   const char *name, const char *source_name),
		      void *context)
{
	struct taking taking = { take, context, count };

	if (object_process_is_open(object))
		object_process_ask(object, NAMES_ALL, addresses, count,
				   take_any_name, &taking);
}

static bool take_called(struct object_files *files,
			const struct object_answer *answer, void *context)
{
	struct names *called = context;

	(void)files;
	if (answer->head.kind != ANSWER_NAME)
		return false;
	if (names_find(called, answer->text) == NONE)
		names_add(called, keep_text(answer->text, SIZE_MAX));
	return true;
}

void symbols_called_by_table(struct object *object, struct names *called)
{
	if (object_process_is_open(object))
		object_process_ask_one(object, NAMES_CALLED_BY_TABLE, 0,
				       take_called, called, 0);
}

void symbols_called_by_sites(struct object *object, struct names *called,
			     uint64_t *steps)
{
	uint64_t left;

	if (!object_process_is_open(object))
		return;
	left = object_process_ask_one(object, NAMES_CALLED_BY_SITES, *steps,
				      take_called, called, 0);
	*steps = left < *steps ? left : *steps;
}

/* --- contents of the file --- */

bool symbols_are_stripped(struct object *object)
{
	return object->files && object_process_is_open(object) &&
	       object_process_ask_one(object, NAMES_IS_STRIPPED, 0, NULL, NULL,
				      0);
}

static uint64_t find_debug(struct object *object)
{
	if (!object->files || !object_process_is_open(object))
		return NAMES_LINES_THERE;
	return object_process_ask_one(object, NAMES_HAS_LINES, 0, NULL, NULL,
				      NAMES_LINES_THERE);
}

bool symbols_have_lines(struct object *object)
{
	return find_debug(object) == NAMES_LINES_THERE;
}

bool symbols_have_zstd(struct object *object)
{
	return find_debug(object) == NAMES_LINES_ZSTD;
}

/* --- variables --- */

struct finding_data {
	struct data_symbol *symbols;
	size_t count;
};

static bool take_variable(struct object_files *files,
			  const struct object_answer *answer, void *context)
{
	struct finding_data *finding = context;
	const struct names_answer *head = &answer->head;
	struct data_symbol *symbol = &finding->symbols[head->number];

	(void)files;
	if (head->kind != ANSWER_DATA || head->number >= finding->count ||
	    head->a > symbol->address)
		return false;
	symbol->start = head->a;
	symbol->name = keep_text(answer->text, SIZE_MAX);
	symbol->source_name = *answer->more ?
				      keep_text(answer->more, SIZE_MAX) :
				      symbol->name;
	return true;
}

void symbols_find_data(struct object *object, struct data_symbol *symbols,
		       size_t count)
{
	uint64_t *addresses = addresses_of(symbols, sizeof(*symbols), count);
	struct finding_data finding = { symbols, count };

	if (object_process_is_open(object))
		object_process_ask(object, NAMES_DATA, addresses,
				   (uint32_t)count, take_variable, &finding);
	free(addresses);
}

/* --- lines --- */

struct finding_lines {
	struct line *lines;
	size_t count;
};

/* Numbers the file if it is new; false: it cannot be. */
static bool read_line(struct object_files *files,
		      const struct object_answer *answer, size_t count,
		      struct line *line)
{
	const struct names_answer *head = &answer->head;

	if (head->kind != ANSWER_LINE || head->number >= count ||
	    head->a > INT32_MAX || head->b > files->name_count ||
	    (head->b == files->name_count) != (*answer->text != '\0'))
		return false;
	if (*answer->text) {
		GROW(files->names, files->name_count, files->name_room);
		files->names[files->name_count++] = keep_text(answer->text,
							      SIZE_MAX);
	}
	line->file = files->names[head->b];
	line->line = (int)head->a;
	return true;
}

static bool take_line(struct object_files *files,
		      const struct object_answer *answer, void *context)
{
	struct finding_lines *finding = context;
	struct line line;

	if (!read_line(files, answer, finding->count, &line))
		return false;
	finding->lines[answer->head.number].file = line.file;
	finding->lines[answer->head.number].line = line.line;
	return true;
}

static void ask_lines(struct object *object, uint32_t first, uint32_t count)
{
	struct object_files *files = object->files;
	struct finding_lines finding = { files->lines + first, count };
	uint32_t i;

	if (object_process_is_open(object))
		object_process_ask(object, NAMES_LINES,
				   object->addresses + first, count, take_line,
				   &finding);
	for (i = first; i < first + count; i++)
		files->lines[i].is_known = true;
}

static int compare_addresses(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* The line of a function whose name was known without symbols_find(). */
static bool find_line_alone(struct object *object, uint64_t address,
			    const char **file, int *line)
{
	struct line found = { 0 };
	struct finding_lines finding = { &found, 1 };

	if (!object_process_is_open(object))
		return false;
	object_process_ask(object, NAMES_LINES, &address, 1, take_line,
			   &finding);
	*file = found.file;
	*line = found.line;
	return found.file != NULL;
}

bool symbols_line(struct object *object, uint64_t address, const char **file,
		  int *line)
{
	struct object_files *files = object->files;
	const uint64_t *found;
	uint32_t i;

	found = object->address_count ?
			bsearch(&address, object->addresses,
				object->address_count, sizeof(address),
				compare_addresses) :
			NULL;
	if (!found)
		return find_line_alone(object, address, file, line);
	if (!files)
		return false;
	if (!files->lines)
		files->lines = allocate(object->address_count,
					sizeof(*files->lines));
	i = (uint32_t)(found - object->addresses);
	/* With many objects, reading the file again for each line would take
	 * long. */
	if (!files->lines[i].is_known && files->sandbox.fd >= 0 &&
	    files->lines_asked++ < LINES_ALONE)
		ask_lines(object, i, 1);
	if (!files->lines[i].is_known)
		ask_lines(object, 0, object->address_count);
	*file = files->lines[i].file;
	*line = files->lines[i].line;
	return *file != NULL;
}

/* --- frames --- */

struct taking_frames {
	void (*take)(void *context, uint32_t number, uint32_t id,
		     const struct frame_symbol *function);
	void *context;
	uint32_t count;
	struct frame_symbol *functions;
	uint32_t function_count, function_room;
};

static bool take_frame_function(struct taking_frames *taking,
				const struct object_answer *answer)
{
	const struct names_answer *head = &answer->head;

	if (head->b > INT32_MAX || (head->a == 0) != (*answer->text != '\0'))
		return false;
	GROW(taking->functions, taking->function_count, taking->function_room);
	taking->functions[taking->function_count++] = (struct frame_symbol){
		.start = head->a,
		.name = *answer->text ? keep_text(answer->text, SIZE_MAX) :
					NULL,
		.file = *answer->more ? keep_text(answer->more, SIZE_MAX) :
					NULL,
		.line = (int)head->b,
	};
	return true;
}

static bool take_frame(struct object_files *files,
		       const struct object_answer *answer, void *context)
{
	struct taking_frames *taking = context;
	const struct names_answer *head = &answer->head;

	(void)files;
	if (head->kind == ANSWER_FRAME_FUNCTION)
		return take_frame_function(taking, answer);
	if (head->kind != ANSWER_FRAME || head->number >= taking->count ||
	    head->a >= taking->function_count)
		return false;
	taking->take(taking->context, head->number, (uint32_t)head->a,
		     &taking->functions[head->a]);
	return true;
}

void symbols_frames(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number, uint32_t id,
				 const struct frame_symbol *function),
		    void *context)
{
	struct taking_frames taking = { .take = take,
					.context = context,
					.count = count };

	if (object_process_is_open(object))
		object_process_ask(object, NAMES_FRAMES, addresses, count,
				   take_frame, &taking);
	free(taking.functions);
}

/* --- calls of hooks --- */

struct taking_sites {
	bool *is_site;
	uint32_t count;
};

static bool take_site(struct object_files *files,
		      const struct object_answer *answer, void *context)
{
	struct taking_sites *taking = context;

	(void)files;
	if (answer->head.kind != ANSWER_HOOK_SITE ||
	    answer->head.number >= taking->count)
		return false;
	taking->is_site[answer->head.number] = true;
	return true;
}

void symbols_hook_sites(struct object *object, const uint64_t *addresses,
			uint32_t count, bool *is_site)
{
	struct taking_sites taking = { is_site, count };

	if (object_process_is_open(object))
		object_process_ask(object, NAMES_HOOK_SITES, addresses, count,
				   take_site, &taking);
}

/* --- places --- */

struct taking_places {
	void (*take)(void *context, uint32_t number, const char *file,
		     int line);
	void *context;
	uint32_t count;
};

static bool take_place(struct object_files *files,
		       const struct object_answer *answer, void *context)
{
	struct taking_places *taking = context;
	struct line line;

	if (!read_line(files, answer, taking->count, &line))
		return false;
	taking->take(taking->context, answer->head.number,
		     line.line > 0 ? line.file : NULL, line.line);
	return true;
}

void symbols_places(struct object *object, const uint64_t *addresses,
		    uint32_t count,
		    void (*take)(void *context, uint32_t number,
				 const char *file, int line),
		    void *context)
{
	struct taking_places taking = { take, context, count };

	if (object_process_is_open(object))
		object_process_ask(object, NAMES_PLACES, addresses, count,
				   take_place, &taking);
}

/* --- code --- */

struct taking_code {
	struct instruction *instructions;
	uint32_t count, room;
	uint64_t begin, end;
};

/* (Addresses rise, so that there cannot be more than bytes.) */
static bool take_instruction(struct object_files *files,
			     const struct object_answer *answer, void *context)
{
	struct taking_code *taking = context;
	const struct names_answer *head = &answer->head;

	(void)files;
	if (head->kind != ANSWER_INSTRUCTION || head->a < taking->begin ||
	    head->a >= taking->end)
		return false;
	taking->begin = head->a + 1;
	GROW(taking->instructions, taking->count, taking->room);
	taking->instructions[taking->count++] = (struct instruction){
		head->a, head->b, keep_text(answer->text, SIZE_MAX)
	};
	return true;
}

enum symbols_code symbols_code(struct object *object, uint64_t begin,
			       uint64_t end, struct instruction **instructions,
			       uint32_t *count)
{
	struct taking_code taking = { .begin = begin, .end = end };
	const uint64_t addresses[2] = { begin, end };
	struct names_request request = { .kind = NAMES_CODE,
					 .count = 2,
					 .size = sizeof(addresses) };
	uint64_t result = NAMES_CODE_IS_MISSING;

	*instructions = NULL;
	*count = 0;
	if (!object_process_is_open(object))
		return CODE_MISSING;
	sandbox_send(&object->files->sandbox, &request, sizeof(request), -1);
	sandbox_send(&object->files->sandbox, addresses, sizeof(addresses), -1);
	object_process_read(object->files, take_instruction, &taking, &result);
	*instructions = taking.instructions;
	*count = taking.count;
	return taking.count			? CODE_READ :
	       result == NAMES_CODE_IS_NOT_READ ? CODE_NO_READER :
						  CODE_MISSING;
}

/* --- names from the recording --- */

static bool take_source_name(struct object_files *files,
			     const struct object_answer *answer, void *context)
{
	const char **name = context;

	(void)files;
	if (answer->head.kind != ANSWER_NAME)
		return false;
	if (*answer->more)
		*name = keep_text(answer->more, SIZE_MAX);
	return true;
}

const char *demangle(const char *name)
{
	static struct object nothing;
	static struct object_files files = { .object = &nothing,
					     .sandbox = { .fd = -1 } };
	static unsigned begun;
	struct names_request request = { .kind = NAMES_DEMANGLE,
					 .size = strlen(name) };
	uint64_t result;

	if (!is_mangled(name) || request.size > NAMES_TEXT_MAX)
		return name;
	if (files.sandbox.fd < 0 &&
	    (begun++ == DEMANGLERS_MAX || !sandbox_open(&files.sandbox)))
		return name;
	files.said = 0;
	sandbox_send(&files.sandbox, &request, sizeof(request), -1);
	sandbox_send(&files.sandbox, name, request.size, -1);
	if (!object_process_read(&files, take_source_name, &name, &result))
		warn("%s: the demangler was ended: %s", name,
		     "names like it are shown as they are");
	return name;
}
