/*
 * Finds names and lines for the addresses of one object, with elfutils.  This
 * runs in a sandbox (names/sandbox.h), which gets the file from its parent.
 * The object has a Dwfl of its own, with its only module at address 0, so
 * addresses in the file are addresses in the Dwfl.  Requests have fewer
 * addresses than the file has symbols: so one walk over the symbols compares
 * each symbol with the sorted addresses.
 */
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/names.h"
#include "names/demangle.h"
#include "names/elf_callees.h"
#include "names/elf_code.h"
#include "names/elf_frames.h"
#include "names/elf_lines.h"
#include "names/elf_names.h"
#include "names/plt.h"
#include "names/symbol_choice.h"
#include "names/sandbox.h"
#include "names/symbols.h"

/* Limit for one object: a hostile file must not take minutes. */
#define STEPS_MAX 20000000
/* Limit for the number of debug files that may be requested. */
#define TRIES_MAX 8
/* Limit for the size of all names in answers: the size of the file that holds
 * them, and at least this. */
#define TEXTS_LEAST (4ull << 20)
#define TEXTS_TIMES 8

/* The state of the process, which serves one object. */
static int other_end;
static FILE *out;
static Dwfl *dwfl;
static Dwfl_Module *module;
static struct lines *lines;
static struct names line_files; /* files that answers have named */
static uint64_t texts_left = TEXTS_LEAST;

/* --- answers --- */

static void put(struct names_answer answer, const char *text, const char *more)
{
	answer.text_size = text ? (uint32_t)strlen(text) : 0;
	if (more)
		answer.more_size = (uint32_t)strlen(more);
	fwrite(&answer, sizeof(answer), 1, out);
	fwrite(text, 1, answer.text_size, out);
	if (more)
		fwrite(more, 1, answer.more_size, out);
}

static void done(uint64_t status)
{
	put((struct names_answer){ .kind = ANSWER_DONE, .a = status }, "",
	    NULL);
	if (fflush(out))
		_exit(1);
}

/* Whether the limit allows a text of this size.  A name may begin at any byte
 * of a string table, which could turn one string into a million names. */
static bool has_room(size_t size)
{
	if (size > NAMES_TEXT_MAX || size > texts_left)
		return false;
	texts_left -= size;
	return true;
}

/* The demangled name, if it differs and the limit allows it. */
static const char *source_name(const char *name)
{
	const char *text = demangle_here(name);

	return text != name && has_room(strlen(text)) ? text : NULL;
}

/* A missing name is no error. */
static void note(const char *what)
{
	const char *error = dwfl_errmsg(-1);

	if (error && !strncasecmp(error, "no ", 3))
		return;
	put((struct names_answer){ .kind = ANSWER_NOTE },
	    keep_format("%s: %.200s", what, error ? error : "?"), NULL);
}

/* --- files with debug information --- */

static void grow_room(int fd)
{
	struct stat info;

	if (fstat(fd, &info) == 0)
		texts_left += TEXTS_TIMES * (uint64_t)info.st_size;
}

/* Requests the @number-th file of this kind; returns its descriptor or -1. */
static int ask(enum names_wanted what, uint32_t number, const char *name,
	       const void *id, size_t id_size)
{
	struct names_answer want = {
		.kind = ANSWER_WANT,
		.number = number,
		.a = what,
		.text_size = (uint32_t)strlen(name),
		.more_size = (uint32_t)id_size,
	};
	struct names_request request;
	int fd;

	if (want.text_size > NAMES_TEXT_MAX || id_size > NAMES_ID_MAX)
		return -1;
	fwrite(&want, sizeof(want), 1, out);
	fwrite(name, 1, want.text_size, out);
	fwrite(id, 1, id_size, out);
	if (fflush(out) ||
	    !sandbox_take(other_end, &request, sizeof(request), &fd) ||
	    request.kind != NAMES_FILE)
		_exit(1);
	if (fd >= 0)
		grow_room(fd);
	return fd;
}

static bool has_id(Elf *elf, const void *id, size_t id_size)
{
	const void *own;
	ssize_t size = elf ? dwelf_elf_gnu_build_id(elf, &own) : -1;

	if (size < 0)
		size = 0;
	return (size_t)size == id_size && !memcmp(own, id, id_size);
}

static bool file_has_id(int fd, const void *id, size_t id_size)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool has = has_id(elf, id, id_size);

	elf_end(elf);
	return has;
}

static bool has_checksum(int fd, GElf_Word checksum)
{
	static unsigned char bytes[65536];
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t got;

	while ((got = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		sum = crc32(sum, bytes, (uInt)got);
		at += got;
	}
	return got == 0 && sum == checksum;
}

static int find_debug_file(Dwfl_Module *wanting, void **data,
			   const char *module_name, Dwarf_Addr base,
			   const char *file_name, const char *link,
			   GElf_Word checksum, char **debug_name)
{
	const unsigned char *id;
	GElf_Addr at;
	int size = dwfl_module_build_id(wanting, &id, &at), fd;
	uint32_t i;

	(void)data, (void)module_name, (void)base, (void)file_name;
	for (i = 0; i < TRIES_MAX && size > 0; i++) {
		fd = ask(NAMES_DEBUG_BY_ID, i, "", id, (size_t)size);
		if (fd < 0)
			break;
		if (file_has_id(fd, id, (size_t)size)) {
			*debug_name = strdup("debug");
			return fd;
		}
		close(fd);
	}
	for (i = 0; i < TRIES_MAX && link && *link; i++) {
		fd = ask(NAMES_DEBUG_BY_NAME, i, link, "", 0);
		if (fd < 0)
			break;
		if (has_checksum(fd, checksum)) {
			*debug_name = strdup("debug");
			return fd;
		}
		close(fd);
	}
	return -1;
}

static int find_nothing(Dwfl_Module *wanting, void **data, const char *name,
			Dwarf_Addr base, char **file_name, Elf **elf)
{
	(void)wanting, (void)data, (void)name, (void)base, (void)elf;
	*file_name = NULL;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_nothing,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
};

static enum names_opened open_object(int fd, const void *id, size_t id_size)
{
	GElf_Addr bias;

	dwfl = dwfl_begin(&callbacks);
	if (!dwfl)
		return NAMES_IS_NONE;
	dwfl_report_begin(dwfl);
	module = dwfl_report_elf(dwfl, "object", "object", fd, 0, true);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!module)
		return NAMES_IS_NONE;
	if (has_id(dwfl_module_getelf(module, &bias), id, id_size))
		return NAMES_IS_RIGHT;
	module = NULL;
	return NAMES_IS_OTHER;
}

/* --- functions --- */

/* ARM has "$x" and "$d.1" where code and data begin.  (Names of Swift begin with "$s".) */
static bool is_mark(const char *name)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (!name[2] || name[2] == '.');
}

static bool is_function(const GElf_Sym *symbol, const char *name)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	return name && name[0] && !is_mark(name) &&
	       symbol->st_shndx != SHN_UNDEF &&
	       (type == STT_FUNC || type == STT_GNU_IFUNC ||
		type == STT_NOTYPE);
}

/* The index of the first of @count records at or after @address.  Records have
 * @size bytes, begin with their address, and are sorted by it. */
static size_t find_address(const void *records, size_t size, size_t count,
			   uint64_t address)
{
	size_t low = 0, high = count, middle;
	uint64_t found;

	while (low < high) {
		middle = low + (high - low) / 2;
		memcpy(&found, (const char *)records + middle * size,
		       sizeof(found));
		if (found < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

_Static_assert(offsetof(struct symbol, address) == 0 &&
		       offsetof(struct data_symbol, address) == 0,
	       "find_address");

/* The symbol that begins at @address among @count sorted ones, or NULL. */
static struct symbol *symbol_at(struct symbol *symbols, size_t count,
				uint64_t address)
{
	size_t found = find_address(symbols, sizeof(*symbols), count, address);

	return found < count && symbols[found].address == address ?
		       &symbols[found] :
		       NULL;
}

static void find_exact(struct symbol *symbols, size_t count)
{
	int i, all = dwfl_module_getsymtab(module);
	struct symbol *found;
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(module, i, &symbol, &value, NULL,
					       NULL, NULL);
		if (!is_function(&symbol, name))
			continue;
		found = symbol_at(symbols, count, value);
		if (!found)
			continue;
		symbol_take_name(found, &symbol, name);
		found->is_exact = true;
	}
}

/*
 * For addresses inside a function, which are unusual: finds the innermost
 * symbol around them.  @starts holds the start of the best symbol so far.
 */
static void find_around(struct symbol *symbols, size_t count)
{
	int i, all = dwfl_module_getsymtab(module);
	uint64_t *starts = allocate(count, sizeof(*starts));
	/* In a hostile file, every symbol could cover every address. */
	uint64_t steps = 10000000;
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;
	size_t j;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(module, i, &symbol, &value, NULL,
					       NULL, NULL);
		if (!is_function(&symbol, name) || symbol.st_size == 0)
			continue;
		j = find_address(symbols, sizeof(*symbols), count, value);
		for (; j < count && symbols[j].address - value < symbol.st_size;
		     j++) {
			if (steps-- == 0)
				goto out;
			if (symbols[j].is_exact ||
			    (symbols[j].name && starts[j] > value))
				continue;
			if (starts[j] < value)
				symbols[j].name = NULL;
			symbol_take_name(&symbols[j], &symbol, name);
			starts[j] = value;
		}
	}
out:
	free(starts);
}

static int compare_symbols(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Finds the names of resolvers of linkage table entries; their addresses are in
 * @entries, sorted by slot. */
static void name_choosers(struct symbol *symbols,
			  const struct plt_entry *entries, size_t count)
{
	struct symbol *choosers = allocate(count, sizeof(*choosers)), *found;
	size_t i, n = 0, kept = 0;

	for (i = 0; i < count; i++)
		if (entries[i].chooser)
			choosers[n++].address = entries[i].chooser;
	if (n)
		qsort(choosers, n, sizeof(*choosers), compare_symbols);
	for (i = 0; i < n; i++)
		if (!kept || choosers[kept - 1].address != choosers[i].address)
			choosers[kept++] = choosers[i];
	find_exact(choosers, kept);
	for (i = 0; i < count; i++) {
		found = symbol_at(choosers, kept, entries[i].chooser);
		if (found)
			symbols[entries[i].symbol].name = found->name;
	}
	free(choosers);
}

static void find_behind_plt(struct symbol *symbols, size_t count)
{
	struct plt_entry *entries = NULL;
	size_t i, n = 0, room = 0;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	uint64_t slot;

	for (i = 0; elf && i < count; i++) {
		if (symbols[i].name ||
		    !plt_slot(elf, symbols[i].address, &slot))
			continue;
		GROW(entries, n, room);
		entries[n++] = (struct plt_entry){ .slot = slot, .symbol = i };
	}
	if (!n)
		return;
	plt_resolve(elf, entries, n);
	for (i = 0; i < n; i++)
		if (entries[i].name && entries[i].name[0])
			symbols[entries[i].symbol].name = symbol_plain_name(
				entries[i].name,
				symbol_name_length(entries[i].name));
	name_choosers(symbols, entries, n);
	free(entries);
}

static uint64_t *take_addresses(uint32_t count)
{
	uint64_t *addresses = allocate(count, sizeof(*addresses));
	int passed;

	if (!sandbox_take(other_end, addresses, count * sizeof(*addresses),
			  &passed))
		_exit(1);
	return addresses;
}

static void put_name(uint32_t number, const struct symbol *symbol)
{
	if (symbol->name && has_room(strlen(symbol->name)))
		put(
			(struct names_answer){
				.kind = ANSWER_NAME,
				.number = number,
				.a = (symbol->is_exact ? NAMES_EXACT : 0) |
				     (symbol->is_global ? NAMES_GLOBAL : 0) |
				     (symbol->has_others ? NAMES_OTHERS : 0) |
				     (symbol->is_in_doubt ? NAMES_DOUBT : 0),
			},
			symbol->name, source_name(symbol->name));
}

static void find_functions_at(uint32_t count)
{
	uint64_t *addresses = take_addresses(count);
	struct symbol *symbols = allocate(count, sizeof(*symbols));
	bool is_all_exact = true;
	uint32_t i;

	for (i = 0; i < count; i++)
		symbols[i].address = addresses[i];
	if (dwfl_module_getsymtab(module) < 0)
		note("symbols");
	find_exact(symbols, count);
	for (i = 0; i < count; i++)
		is_all_exact = is_all_exact && symbols[i].is_exact;
	if (!is_all_exact) {
		find_around(symbols, count);
		find_behind_plt(symbols, count);
	}
	for (i = 0; i < count; i++)
		put_name(i, &symbols[i]);
	free(symbols);
	free(addresses);
	done(0);
}

/* --- all functions --- */

static void list_functions(void)
{
	struct function_symbol *all = NULL;
	int i, end = dwfl_module_getsymtab(module);
	size_t count = 0, room = 0, n;

	if (end < 0)
		note("symbols");
	for (i = 0; i < end; i++) {
		GElf_Addr value;
		GElf_Sym symbol;
		const char *name = dwfl_module_getsym_info(
			module, i, &symbol, &value, NULL, NULL, NULL);

		if (!is_function(&symbol, name) || symbol.st_size == 0 ||
		    strchr(name, '.') ||
		    symbol_name_length(name) > NAMES_TEXT_MAX)
			continue;
		GROW(all, count, room);
		all[count++] = (struct function_symbol){
			.address = value,
			.size = symbol.st_size,
			.name = symbol_plain_name(name,
						  symbol_name_length(name)),
			.is_global = GELF_ST_BIND(symbol.st_info) != STB_LOCAL,
			.order = i,
		};
	}
	count = symbol_keep_best(all, count);
	for (n = 0; n < count; n++)
		if (has_room(strlen(all[n].name)))
			put((struct names_answer){ .kind = ANSWER_FUNCTION,
						   .a = all[n].address,
						   .b = all[n].size },
			    all[n].name, NULL);
	free(all);
	done(0);
}

/* --- variables --- */

/* Prefers the innermost variable, then the alphabetically first: the result
 * does not depend on the order of the table. */
static bool is_better_data(const struct data_symbol *old, uint64_t start,
			   const char *name, size_t length)
{
	if (!old->name || start != old->start)
		return !old->name || start > old->start;
	return strncmp(name, old->name, length) < 0;
}

/* Returns the number of comparisons. */
static size_t name_data(struct data_symbol *symbols, size_t count,
			const GElf_Sym *symbol, uint64_t start,
			const char *name)
{
	size_t length = symbol_name_length(name);
	size_t first = find_address(symbols, sizeof(*symbols), count, start);
	size_t i = first;

	if (length > NAMES_TEXT_MAX)
		return 1;
	for (; i < count && symbols[i].address - start < symbol->st_size; i++) {
		if (!is_better_data(&symbols[i], start, name, length))
			continue;
		symbols[i].name = symbol_plain_name(name, length);
		symbols[i].start = start;
	}
	return i - first + 1;
}

static void find_variables_at(uint32_t count)
{
	uint64_t *addresses = take_addresses(count), steps = 0;
	struct data_symbol *symbols = allocate(count, sizeof(*symbols));
	int n, all = dwfl_module_getsymtab(module);
	GElf_Addr value;
	const char *name;
	GElf_Sym symbol;
	uint32_t i;

	if (all < 0)
		note("symbols");
	for (i = 0; i < count; i++)
		symbols[i].address = addresses[i];
	for (n = 0; n < all && steps < STEPS_MAX; n++) {
		name = dwfl_module_getsym_info(module, n, &symbol, &value, NULL,
					       NULL, NULL);
		if (name && name[0] && symbol.st_shndx != SHN_UNDEF &&
		    GELF_ST_TYPE(symbol.st_info) == STT_OBJECT)
			steps += name_data(symbols, count, &symbol, value,
					   name);
	}
	for (i = 0; i < count; i++)
		if (symbols[i].name && has_room(strlen(symbols[i].name)))
			put((struct names_answer){ .kind = ANSWER_DATA,
						   .number = i,
						   .a = symbols[i].start },
			    symbols[i].name, source_name(symbols[i].name));
	free(symbols);
	free(addresses);
	done(0);
}

/* --- lines --- */

/* Finds the file with the parts that dwz moved out of several files. */
static void find_shared(Dwarf *wanting)
{
	const void *id;
	const char *name;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(wanting, &name, &id);
	Dwarf *shared = NULL;
	uint32_t i;
	int fd;

	for (i = 0; i < TRIES_MAX && size > 0 && !shared; i++) {
		fd = ask(NAMES_DEBUG_SHARED, i, name, id, (size_t)size);
		if (fd < 0)
			return;
		if (file_has_id(fd, id, (size_t)size))
			shared = dwarf_begin(fd, DWARF_C_READ);
		else
			close(fd);
	}
	if (shared)
		dwarf_setalt(wanting, shared);
}

static Dwarf *dwarf; /* set by the first lines_here() */
static Dwarf_Addr dwarf_bias;

static struct lines *lines_here(void)
{
	if (lines)
		return lines;
	dwarf = dwfl_module_getdwarf(module, &dwarf_bias);
	if (dwarf)
		find_shared(dwarf);
	else
		note("debug information");
	lines = lines_open(dwarf, dwarf_bias);
	return lines;
}

static void put_line(uint32_t number, const char *file, int line)
{
	uint32_t known = names_find(&line_files, file), i;
	bool is_new = known == NONE;

	if (strlen(file) > NAMES_TEXT_MAX ||
	    (is_new && !has_room(strlen(file))))
		return;
	i = is_new ? names_add(&line_files, keep_text(file, SIZE_MAX)) : known;
	put((struct names_answer){ .kind = ANSWER_LINE,
				   .number = number,
				   .a = (uint64_t)line,
				   .b = i },
	    is_new ? file : "", NULL);
}

static void find_lines_at(uint32_t count)
{
	uint64_t *addresses = take_addresses(count);
	const char *file;
	uint32_t i;
	int line;

	for (i = 0; i < count; i++)
		if (lines_find(lines_here(), addresses[i], &file, &line))
			put_line(i, file, line);
	free(addresses);
	done(0);
}

/* --- frames --- */

static struct frames *frames_here(void)
{
	static struct frames *frames;

	lines_here();
	if (!frames)
		frames = frames_open(lines, dwarf, dwarf_bias);
	return frames;
}

static bool can_tell(const struct frame_function *function)
{
	size_t size = function->file ? strlen(function->file) : 0;

	return function->start || (size <= NAMES_TEXT_MAX &&
				   has_room(strlen(function->name) + size));
}

/* Describes each function once.  A function with @start gets no name here:
 * NAMES_FIND finds it. */
static void put_frame(struct map *told, uint32_t number,
		      const struct frame_function *function)
{
	uint32_t next = (uint32_t)told->count, id;
	uint64_t key = function->start ? function->start :
					 function->die | (uint64_t)1 << 63;

	if (map_get(told, key) == NONE && !can_tell(function))
		return;
	id = map_add(told, key, next);
	if (id == next)
		put(
			(struct names_answer){
				.kind = ANSWER_FRAME_FUNCTION,
				.a = function->start,
				.b = (uint64_t)function->line,
			},
			function->start ? "" : function->name,
			function->start ? NULL : function->file);
	put((struct names_answer){ .kind = ANSWER_FRAME,
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

/* The places in the functions instead, if @wants_places. */
static void find_frames_at(uint32_t count, bool wants_places)
{
	uint64_t *addresses = take_addresses(count);
	uint64_t *starts = allocate(count, sizeof(*starts));
	struct frame_function chain[FRAMES_DEPTH];
	struct frames *frames = frames_here();
	struct map told = { 0 };
	uint64_t slot;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);
	uint32_t i, n, depth;

	frames_starts_by_symbols(module, addresses, count, starts);
	for (i = 0; i < count; i++)
		frames_list(frames, addresses[i]);
	for (i = 0; i < count; i++) {
		depth = frames_find(frames, addresses[i], wants_places, chain);
		/* Entries of linkage tables have 16 bytes and no symbols. */
		if (!depth && !starts[i] && elf &&
		    plt_slot(elf, addresses[i] & ~(uint64_t)15, &slot))
			starts[i] = addresses[i] & ~(uint64_t)15;
		if (!depth && !starts[i])
			starts[i] = frames_start_by_unwinding(elf,
							      addresses[i]);
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
				put_frame(&told, i, &chain[n]);
	}
	map_free(&told);
	free(starts);
	free(addresses);
	done(0);
}

/* --- code --- */

static void put_instruction(uint64_t address, uint64_t target, const char *text)
{
	put((struct names_answer){ .kind = ANSWER_INSTRUCTION,
				   .a = address,
				   .b = target },
	    text, NULL);
}

static void read_code(uint32_t count)
{
	uint64_t *addresses = take_addresses(count);
	GElf_Addr bias;

	done(count != 2 ?
		     NAMES_CODE_IS_MISSING :
		     code_read(dwfl_module_getelf(module, &bias), addresses[0],
			       addresses[1], put_instruction));
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

static bool is_stripped(void)
{
	const char *debug_file = NULL;
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(module, &bias);

	dwfl_module_getsymtab(module);
	dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL,
			 &debug_file);
	return elf && !debug_file && !has_symbol_table(elf);
}

/* --- names by which functions are called --- */

/* Each name is reported once. */
static void put_called(const char *name)
{
	static struct names known;

	if (!name || !name[0] || strlen(name) > NAMES_TEXT_MAX ||
	    names_find(&known, name) != NONE || !has_room(strlen(name)))
		return;
	names_add(&known, name);
	put((struct names_answer){ .kind = ANSWER_NAME }, name, NULL);
}

static void find_called_by_table(void)
{
	GElf_Addr bias;

	called_by_table(dwfl_module_getelf(module, &bias), put_called);
	done(0);
}

static void find_called_by_sites(uint64_t steps)
{
	lines_here();
	called_by_sites(dwarf, put_called, &steps);
	done(steps);
}

/* Reports all names of the functions that begin at these addresses. */
static void find_names_at(uint32_t count)
{
	uint64_t *addresses = take_addresses(count);
	int i, all = dwfl_module_getsymtab(module);
	const char *name;
	GElf_Addr value;
	GElf_Sym symbol;
	size_t found;

	for (i = 0; i < all; i++) {
		name = dwfl_module_getsym_info(module, i, &symbol, &value, NULL,
					       NULL, NULL);
		if (!is_function(&symbol, name) ||
		    symbol_name_length(name) > NAMES_TEXT_MAX)
			continue;
		found = find_address(addresses, sizeof(*addresses), count,
				     value);
		if (found == count || addresses[found] != value)
			continue;
		name = symbol_plain_name(name, symbol_name_length(name));
		if (has_room(strlen(name)))
			put((struct names_answer){ .kind = ANSWER_NAME,
						   .number = (uint32_t)found },
			    name, source_name(name));
	}
	free(addresses);
	done(0);
}

/* --- requests --- */

static void take_object(const struct names_request *request, int fd)
{
	char id[NAMES_ID_MAX];
	int passed;

	if (request->size > sizeof(id) ||
	    !sandbox_take(other_end, id, request->size, &passed))
		_exit(1);
	grow_room(fd);
	done(open_object(fd, id, request->size));
}

static void demangle_one(const struct names_request *request)
{
	static char name[NAMES_TEXT_MAX + 1];
	int passed;

	if (request->size > NAMES_TEXT_MAX ||
	    !sandbox_take(other_end, name, request->size, &passed))
		_exit(1);
	name[request->size] = '\0';
	/* the names come from different files, so each has the full limit */
	texts_left = TEXTS_LEAST;
	put((struct names_answer){ .kind = ANSWER_NAME }, name,
	    source_name(name));
	done(0);
}

static void take_request(const struct names_request *request, int fd)
{
	switch (request->kind) {
	case NAMES_OPEN: take_object(request, fd); break;
	case NAMES_FIND: find_functions_at(request->count); break;
	case NAMES_DATA: find_variables_at(request->count); break;
	case NAMES_LINES: find_lines_at(request->count); break;
	case NAMES_FRAMES: find_frames_at(request->count, false); break;
	case NAMES_PLACES: find_frames_at(request->count, true); break;
	case NAMES_CODE: read_code(request->count); break;
	case NAMES_LIST: list_functions(); break;
	case NAMES_ALL: find_names_at(request->count); break;
	case NAMES_CALLED_BY_TABLE: find_called_by_table(); break;
	case NAMES_CALLED_BY_SITES: find_called_by_sites(request->size); break;
	case NAMES_IS_STRIPPED: done(is_stripped()); break;
	case NAMES_HAS_LINES: done(lines_are_there(lines_here())); break;
	case NAMES_DEMANGLE: demangle_one(request); break;
	default: _exit(1);
	}
}

void elf_names_serve(int fd)
{
	struct names_request request;
	int passed;

	other_end = fd;
	out = fdopen(fd, "w");
	if (!out)
		return;
	setvbuf(out, NULL, _IOFBF, 1 << 16);
	while (sandbox_take(fd, &request, sizeof(request), &passed))
		take_request(&request, passed);
}
