/*
 * Answers requests about one object, with elfutils.  This runs in a sandbox
 * (names/sandbox.h), which gets the file from its parent (elf_object.h).  Here are lines,
 * frames and code; elf_symbols.c has the symbols.
 */
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "names/elf_callees.h"
#include "names/elf_code.h"
#include "names/elf_frames.h"
#include "names/elf_hook_sites.h"
#include "names/elf_lines.h"
#include "names/elf_names.h"
#include "names/go_table.h"
#include "names/elf_object.h"
#include "names/elf_symbols.h"
#include "names/plt.h"
#include "names/sandbox.h"

static struct names line_files; /* files that answers have named */

/* --- lines --- */

static void put_line(uint32_t number, const char *file, int line)
{
	uint32_t found = names_find(&line_files, file), i;
	bool is_new = found == NONE;

	if (strlen(file) > NAMES_TEXT_MAX ||
	    (is_new && !elf_answer_has_room(strlen(file))))
		return;
	i = is_new ? names_add(&line_files, keep_text(file, SIZE_MAX)) : found;
	elf_answer((struct names_answer){ .kind = ANSWER_LINE,
					  .number = number,
					  .a = (uint64_t)line,
					  .b = i },
		   is_new ? file : "", NULL);
}

static bool find_line_in_go(uint64_t address, const char **file, int *line)
{
	struct go_function found;
	GElf_Addr bias;

	return go_table_function(dwfl_module_getelf(elf_object.module, &bias),
				 address, &found) &&
	       go_table_line(&found, address, file, line);
}

static void find_lines_at(uint32_t count)
{
	uint64_t *addresses = elf_take_addresses(count);
	const char *file;
	uint32_t i;
	int line;

	for (i = 0; i < count; i++)
		if (lines_find(elf_object_lines(), addresses[i], &file,
			       &line) ||
		    find_line_in_go(addresses[i], &file, &line))
			put_line(i, file, line);
	free(addresses);
	elf_answer_done(0);
}

/* --- frames --- */

static struct frames *frames_here(void)
{
	static struct frames *frames;

	elf_object_lines();
	if (!frames)
		frames = frames_open(elf_object.lines, elf_object.dwarf,
				     elf_object.dwarf_bias);
	return frames;
}

static bool has_room_for(const struct frame_function *function)
{
	size_t size = function->file ? strlen(function->file) : 0;

	return function->start ||
	       (size <= NAMES_TEXT_MAX &&
		elf_answer_has_room(strlen(function->name) + size));
}

/* Describes each function once.  A function with @start gets no name here:
 * NAMES_FIND finds it. */
static void put_frame(struct map *reported, uint32_t number,
		      const struct frame_function *function)
{
	uint32_t next = (uint32_t)reported->count, id;
	uint64_t key = function->start ? function->start :
					 function->die | (uint64_t)1 << 63;

	if (map_get(reported, key) == NONE && !has_room_for(function))
		return;
	id = map_add(reported, key, next);
	if (id == next)
		elf_answer(
			(struct names_answer){
				.kind = ANSWER_FRAME_FUNCTION,
				.a = function->start,
				.b = (uint64_t)function->line,
			},
			function->start ? "" : function->name,
			function->start ? NULL : function->file);
	elf_answer((struct names_answer){ .kind = ANSWER_FRAME,
					  .number = number,
					  .a = id },
		   "", NULL);
}

/* The line that the instruction, or the inlined call, has in @function. */
static void put_place(uint32_t number, const struct frame_function *function)
{
	bool is_known = function->place_file && *function->place_file &&
			function->place_line > 0;

	put_line(number, is_known ? function->place_file : "?",
		 is_known ? function->place_line : 0);
}

/* Stripped programs of Go have no other table. */
static uint32_t find_in_go(Elf *elf, uint64_t address, bool wants_place,
			   struct frame_function *function)
{
	struct go_function found;

	if (!go_table_function(elf, address, &found))
		return 0;
	*function = (struct frame_function){ .start = found.start };
	if (wants_place &&
	    !go_table_line(&found, address, &function->place_file,
			   &function->place_line))
		function->place_file = NULL;
	return 1;
}

/* The places in the functions instead, if @wants_places. */
static void find_frames_at(uint32_t count, bool wants_places)
{
	uint64_t *addresses = elf_take_addresses(count);
	uint64_t *starts = allocate(count, sizeof(*starts));
	uint64_t *loose = allocate(count, sizeof(*loose));
	struct frame_function chain[FRAMES_DEPTH];
	struct frames *frames = frames_here();
	struct map reported = { 0 };
	uint64_t slot;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(elf_object.module, &bias);
	uint32_t i, n, depth;

	frames_starts_by_symbols(elf_object.module, addresses, count, starts,
				 loose);
	for (i = 0; i < count; i++)
		frames_list(frames, addresses[i]);
	for (i = 0; i < count; i++) {
		depth = frames_find(frames, addresses[i], wants_places, chain);
		if (!depth)
			depth = find_in_go(elf, addresses[i], wants_places,
					   chain);
		/* Entries of linkage tables have 16 bytes and no symbols. */
		if (!depth && !starts[i] && elf &&
		    plt_slot(elf, addresses[i] & ~(uint64_t)15, &slot))
			starts[i] = addresses[i] & ~(uint64_t)15;
		if (!depth && !starts[i]) {
			starts[i] = frames_start_by_unwinding(elf,
							      addresses[i]);
			if (starts[i] < loose[i])
				starts[i] = loose[i];
		}
		if (!depth && starts[i]) {
			chain[0] = (struct frame_function){
				.start = starts[i]
			};
			depth = 1;
		}
		for (n = 0; n < depth; n++)
			if (wants_places)
				put_place(i, &chain[n]);
			else
				put_frame(&reported, i, &chain[n]);
	}
	map_free(&reported);
	free(loose);
	free(starts);
	free(addresses);
	elf_answer_done(0);
}

/* --- code --- */

static void put_instruction(uint64_t address, uint64_t target, const char *text)
{
	elf_answer((struct names_answer){ .kind = ANSWER_INSTRUCTION,
					  .a = address,
					  .b = target },
		   text, NULL);
}

/* Disassembling begins at a symbol, or where unwinding tables begin. */
static void find_hook_sites_at(uint32_t count)
{
	uint64_t *addresses = elf_take_addresses(count);
	uint64_t *starts = allocate(count, sizeof(*starts));
	bool *is_site = allocate(count, sizeof(*is_site));
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(elf_object.module, &bias);
	uint32_t i;

	if (hook_sites_may_be_there(elf)) {
		frames_starts_by_symbols(elf_object.module, addresses, count,
					 starts, NULL);
		for (i = 0; i < count; i++)
			if (!starts[i])
				starts[i] = frames_start_by_unwinding(
					elf, addresses[i]);
		hook_sites_find(elf, addresses, starts, count, is_site);
	}
	for (i = 0; i < count; i++)
		if (is_site[i])
			elf_answer(
				(struct names_answer){ .kind = ANSWER_HOOK_SITE,
						       .number = i },
				"", NULL);
	free(is_site);
	free(starts);
	free(addresses);
	elf_answer_done(0);
}

static void read_code(uint32_t count)
{
	uint64_t *addresses = elf_take_addresses(count);
	GElf_Addr bias;

	elf_answer_done(
		count != 2 ?
			NAMES_CODE_IS_MISSING :
			code_read(dwfl_module_getelf(elf_object.module, &bias),
				  addresses[0], addresses[1], put_instruction));
	free(addresses);
}

/* --- contents of the file --- */

static bool has_symbol_table(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section)) != NULL)
		if (gelf_getshdr(section, &header) &&
		    header.sh_type == SHT_SYMTAB)
			return true;
	return false;
}

static enum names_lines find_lines(void)
{
	GElf_Addr bias;

	if (lines_are_there(elf_object_lines()) ||
	    go_table_is_there(dwfl_module_getelf(elf_object.module, &bias)))
		return NAMES_LINES_THERE;
	return elf_object.has_zstd ? NAMES_LINES_ZSTD : NAMES_LINES_MISSING;
}

static bool is_stripped(void)
{
	const char *debug_file = NULL;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(elf_object.module, &bias);

	dwfl_module_getsymtab(elf_object.module);
	dwfl_module_info(elf_object.module, NULL, NULL, NULL, NULL, NULL, NULL,
			 &debug_file);
	return elf && !debug_file && !has_symbol_table(elf) &&
	       !go_table_is_there(elf);
}

/* --- names by which functions are called --- */

/* Each name is reported once. */
static void put_called(const char *name)
{
	static struct names reported;

	if (!name || !name[0] || strlen(name) > NAMES_TEXT_MAX ||
	    names_find(&reported, name) != NONE ||
	    !elf_answer_has_room(strlen(name)))
		return;
	names_add(&reported, name);
	elf_answer((struct names_answer){ .kind = ANSWER_NAME }, name, NULL);
}

static void find_called_by_table(void)
{
	GElf_Addr bias;

	called_by_table(dwfl_module_getelf(elf_object.module, &bias),
			put_called);
	elf_answer_done(0);
}

static void find_called_by_sites(uint64_t steps)
{
	elf_object_lines();
	called_by_sites(elf_object.dwarf, put_called, &steps);
	elf_answer_done(steps);
}

/* --- requests --- */

static void take_object(const struct names_request *request, int fd)
{
	char id[NAMES_ID_MAX];
	int passed;

	if (request->size > sizeof(id) ||
	    !sandbox_take(elf_object.other_end, id, request->size, &passed))
		_exit(1);
	elf_answer_grow_room(fd);
	elf_answer_done(elf_object_open(fd, id, request->size));
}

static void demangle_one(const struct names_request *request)
{
	static char name[NAMES_TEXT_MAX + 1];
	int passed;

	if (request->size > NAMES_TEXT_MAX ||
	    !sandbox_take(elf_object.other_end, name, request->size, &passed))
		_exit(1);
	name[request->size] = '\0';
	/* the names come from different files, so each has the full limit */
	elf_answer_reset_room();
	elf_answer((struct names_answer){ .kind = ANSWER_NAME }, name,
		   elf_source_name(name));
	elf_answer_done(0);
}

static void take_request(const struct names_request *request, int fd)
{
	switch (request->kind) {
	case NAMES_OPEN: take_object(request, fd); break;
	case NAMES_FIND: elf_find_functions(request->count); break;
	case NAMES_DATA: elf_find_variables(request->count); break;
	case NAMES_LINES: find_lines_at(request->count); break;
	case NAMES_FRAMES: find_frames_at(request->count, false); break;
	case NAMES_PLACES: find_frames_at(request->count, true); break;
	case NAMES_HOOK_SITES: find_hook_sites_at(request->count); break;
	case NAMES_CODE: read_code(request->count); break;
	case NAMES_LIST: elf_list_functions(); break;
	case NAMES_ALL: elf_find_all_names(request->count); break;
	case NAMES_CALLED_BY_TABLE: find_called_by_table(); break;
	case NAMES_CALLED_BY_SITES: find_called_by_sites(request->size); break;
	case NAMES_IS_STRIPPED: elf_answer_done(is_stripped()); break;
	case NAMES_HAS_LINES: elf_answer_done(find_lines()); break;
	case NAMES_DEMANGLE: demangle_one(request); break;
	default: _exit(1);
	}
}

void elf_names_serve(int fd)
{
	struct names_request request;
	int passed;

	elf_object.other_end = fd;
	elf_object.out = fdopen(fd, "w");
	if (!elf_object.out)
		return;
	setvbuf(elf_object.out, NULL, _IOFBF, 1 << 16);
	while (sandbox_take(fd, &request, sizeof(request), &passed))
		take_request(&request, passed);
}
