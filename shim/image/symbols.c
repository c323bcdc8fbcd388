/*
 * The index of an image's functions, made from the symbol table of its file.  The table
 * is sorted by address.  Symbols at one address form a group: a function with several
 * names, or a part that the compiler has split off a function.
 */
#include "image/symbols.h"

#include "image/elf_debug.h"
#include "image/elf_file.h"
#include "image/image.h"
#include "image/symbol_table.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/log.h"
#include "runtime/state.h"

#include <elf.h>
#include <errno.h>
#include <shim/info.h>

#include <shim/banned.h>

const struct symbols symbols_none;

static bool enabled;

struct work {
	struct symbol_table table;
	uint32_t *hash;
	size_t hash_size;
};

/* --- the function that a part belongs to --- */

static uint32_t hash_name(const char *name, uint32_t length)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < length; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h ^ h >> 15;
}

static int hash_names(struct work *work)
{
	size_t slots = 16;
	bool has_parts = false;
	void *memory;
	int r;

	for (uint32_t i = 0; i < work->table.count; i++)
		has_parts |= work->table.symbols[i].is_part;
	if (!has_parts)
		return 0;
	while (slots < work->table.count * 2ull)
		slots *= 2;
	r = sys_map(slots * sizeof(uint32_t), &memory);
	if (r < 0)
		return r;
	work->hash = memory;
	work->hash_size = slots;
	for (uint32_t i = 0; i < work->table.count; i++) {
		const struct table_symbol *raw = &work->table.symbols[i];
		size_t at = hash_name(work->table.strings + raw->name,
				      raw->length);

		while (work->hash[at & (slots - 1)])
			at++;
		work->hash[at & (slots - 1)] = i + 1;
	}
	return 0;
}

/* The function that the compiler has split @part off: a function of the same source
 * file, else a global function, else any function with that name.  NULL if the linker
 * has removed it. */
static struct table_symbol *find_whole(const struct work *work,
				       const struct table_symbol *part)
{
	const char *name = work->table.strings + part->name;
	uint32_t length = symbol_table_whole_length(name, part->length);
	struct table_symbol *best = NULL;

	for (size_t at = hash_name(name, length);; at++) {
		uint32_t i = work->hash[at & (work->hash_size - 1)];
		struct table_symbol *raw = &work->table.symbols[i - 1];
		uint32_t same = 0;

		if (i == 0)
			return best;
		if (raw->length != length)
			continue;
		while (same < length &&
		       work->table.strings[raw->name + same] == name[same])
			same++;
		if (same < length)
			continue;
		if (raw->file == part->file)
			return raw;
		if (!best || (best->file != 0 && raw->file == 0))
			best = raw;
	}
}

/* --- the index --- */

struct index {
	struct symbols *symbols;
	struct symbols_function *functions;
	struct symbols_range *ranges;
	uint32_t *outer;
	struct symbols_range *parts;
	char *text;
	uint32_t text_size;
};

/* The index after the last symbol with the address of @first. */
static uint32_t end_of_group(const struct work *work, uint32_t first)
{
	uint32_t i = first + 1;

	while (i < work->table.count &&
	       work->table.symbols[i].value == work->table.symbols[first].value)
		i++;
	return i;
}

/* The size of a group in bytes.  A symbol of assembly may have no size: it extends to
 * the next symbol or the end of its section. */
static uint32_t group_size(const struct work *work, uint32_t first,
			   uint32_t end)
{
	const struct table_symbol *raw = &work->table.symbols[first];
	uint64_t limit = raw->value + 1;
	uint32_t size = 0;

	for (uint32_t i = first; i < end; i++)
		if (work->table.symbols[i].size > size)
			size = work->table.symbols[i].size;
	if (size > 0)
		return size;
	if (raw->section_end > limit)
		limit = raw->section_end;
	if (end < work->table.count && work->table.symbols[end].value < limit)
		limit = work->table.symbols[end].value;
	limit -= raw->value;
	return limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

#define NO_FUNCTION UINT32_MAX

/* Decides for each group whether it is a function or a part of a function.  Returns the
 * number of functions. */
static uint32_t number_functions(const struct work *work)
{
	uint32_t count = 0;

	for (uint32_t i = 0, end; i < work->table.count; i = end) {
		bool is_part = true;

		end = end_of_group(work, i);
		for (uint32_t k = i; k < end; k++) {
			struct table_symbol *raw = &work->table.symbols[k];

			is_part = is_part && raw->is_part &&
				  find_whole(work, raw) != NULL;
		}
		for (uint32_t k = i; k < end; k++)
			work->table.symbols[k].function = is_part ?
								  NO_FUNCTION :
								  count;
		count += !is_part;
	}
	return count;
}

/* A part may be part of another part.  The loop ends, because the name gets shorter each
 * time. */
static uint32_t function_of(const struct work *work,
			    const struct table_symbol *raw)
{
	while (raw->function == NO_FUNCTION)
		raw = find_whole(work, raw);
	return raw->function;
}

static bool is_same_name(const struct work *work, const struct table_symbol *a,
			 const struct table_symbol *b)
{
	if (a->length != b->length)
		return false;
	for (uint32_t i = 0; i < a->length; i++)
		if (work->table.strings[a->name + i] !=
		    work->table.strings[b->name + i])
			return false;
	return true;
}

/* The distance within which the table may repeat a name, with different versions. */
#define NAMES_LOOKED_AT 64

static bool is_repeated(const struct work *work, uint32_t first, uint32_t i)
{
	for (uint32_t k = i; k > first && i - k < NAMES_LOOKED_AT; k--)
		if (is_same_name(work, &work->table.symbols[k - 1],
				 &work->table.symbols[i]))
			return true;
	return false;
}

static void add_names(struct index *index, const struct work *work,
		      uint32_t first, uint32_t end,
		      struct symbols_function *function)
{
	function->names = index->text_size;
	for (uint32_t i = first; i < end; i++) {
		const struct table_symbol *raw = &work->table.symbols[i];

		if (is_repeated(work, first, i))
			continue;
		for (uint32_t k = 0; k < raw->length; k++)
			index->text[index->text_size++] =
				work->table.strings[raw->name + k];
		index->text[index->text_size++] = '\0';
	}
	function->names_size = index->text_size - function->names;
}

static void add_group(struct index *index, const struct work *work,
		      uint32_t first, uint32_t end)
{
	struct symbols *symbols = index->symbols;
	uint32_t number = symbols->range_count++, outer = number;
	struct symbols_range *range = &index->ranges[number];
	uint32_t function = function_of(work, &work->table.symbols[first]);

	range->start = work->table.symbols[first].value;
	range->size = group_size(work, first, end);
	range->function = function;
	while (outer > 0 &&
	       index->ranges[outer - 1].start + index->ranges[outer - 1].size <=
		       range->start)
		outer = index->outer[outer - 1];
	index->outer[number] = outer;
	if (work->table.symbols[first].function == NO_FUNCTION) {
		index->functions[function].part_count++;
		symbols->part_count++;
		return;
	}
	index->functions[function].start = range->start;
	index->functions[function].size = range->size;
	add_names(index, work, first, end, &index->functions[function]);
}

static void add_parts(struct index *index)
{
	struct symbols *symbols = index->symbols;
	uint32_t next = 0;

	for (uint32_t i = 0; i < symbols->function_count; i++) {
		index->functions[i].part = next;
		next += index->functions[i].part_count;
		index->functions[i].part_count = 0;
	}
	for (uint32_t i = 0; i < symbols->range_count; i++) {
		const struct symbols_range *range = &index->ranges[i];
		struct symbols_function *function =
			&index->functions[range->function];

		if (range->start != function->start)
			index->parts[function->part + function->part_count++] =
				*range;
	}
}

static int build_index(const struct work *work, uint32_t functions,
		       struct symbols **result)
{
	uint64_t text = 0, size;
	struct index index = { 0 };
	void *memory;
	char *at;
	int r;

	for (uint32_t i = 0; i < work->table.count; i++)
		text += work->table.symbols[i].length + 1ull;
	if (text > UINT32_MAX)
		return -EFBIG;
	size = sizeof(struct symbols) +
	       functions * sizeof(struct symbols_function) +
	       work->table.count *
		       (2 * sizeof(struct symbols_range) + sizeof(uint32_t)) +
	       text;
	r = sys_map(size, &memory);
	if (r < 0)
		return r;
	index.symbols = memory;
	at = (char *)memory + sizeof(struct symbols);
	index.ranges = (struct symbols_range *)at;
	at += work->table.count * sizeof(struct symbols_range);
	index.parts = (struct symbols_range *)at;
	at += work->table.count * sizeof(struct symbols_range);
	index.functions = (struct symbols_function *)at;
	at += functions * sizeof(struct symbols_function);
	index.outer = (uint32_t *)at;
	at += work->table.count * sizeof(uint32_t);
	index.text = at;
	*index.symbols = (struct symbols){
		.size = size,
		.function_count = functions,
		.functions = index.functions,
		.ranges = index.ranges,
		.outer = index.outer,
		.parts = index.parts,
		.text = index.text,
	};
	for (uint32_t i = 0, end; i < work->table.count; i = end) {
		end = end_of_group(work, i);
		add_group(&index, work, i, end);
	}
	add_parts(&index);
	*result = index.symbols;
	return 0;
}

/* --- the files of an image --- */

/* Builds the index of @work's table, unless there was no memory for all of it (@added).
 * *@result stays NULL if the table has no functions. */
static int index_table(struct work *work, struct elf_file *code, int added,
		       struct symbols **result)
{
	int r = added;

	if (r != -ENOMEM && work->table.count > 0)
		r = symbol_table_finish(&work->table, code);
	if (r == 0 && work->table.count > 0)
		r = hash_names(work);
	if (r == 0 && work->table.count > 0)
		r = build_index(work, number_functions(work), result);
	if (work->hash)
		sys_unmap(work->hash, work->hash_size * sizeof(uint32_t));
	symbol_table_free(&work->table);
	return r;
}

/* Indexes .symtab of @file. */
static int index_symtab(const struct elf_file *file, struct elf_file *code,
			const struct image_entry *image,
			struct symbols **result)
{
	struct work work = { .table.image = image };
	int r = symbol_table_add(&work.table, file, SHT_SYMTAB);

	return index_table(&work, code, r, result);
}

/* Indexes .dynsym, and the symbols in the file inside of the object, which are others. */
static int index_dynsym(struct elf_file *file, const struct image_entry *image,
			struct symbols **result)
{
	struct work work = { .table.image = image };
	struct elf_file inner;
	int r = symbol_table_add(&work.table, file, SHT_DYNSYM);

	if (r != -ENOMEM)
		r = elf_open_inner(file, &inner);
	if (r == 0) {
		r = symbol_table_add(&work.table, &inner, SHT_SYMTAB);
		elf_close(&inner);
	}
	return index_table(&work, file, r, result);
}

/* Indexes .symtab; if the file was stripped, that of its debug file; or what is left. */
static int index_file(struct elf_file *file, const struct image_entry *image,
		      struct symbols **result)
{
	struct elf_file debug;
	int r;

	*result = NULL;
	r = index_symtab(file, file, image, result);
	if (r == -ENOMEM || *result)
		return r;
	if (elf_open_debug(image, file, &debug) == 0) {
		r = index_symtab(&debug, file, image, result);
		elf_close(&debug);
	}
	if (r != -ENOMEM && !*result)
		r = index_dynsym(file, image, result);
	return r == -ENOMEM ? r : 0;
}

/* Whether another try may succeed. */
static bool is_temporary(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE ||
	       error == -EPERM || error == -EINTR || error == -EAGAIN;
}

int symbols_read(struct image_entry *image)
{
	struct symbols *result = NULL;
	struct elf_file file;
	int r;

	ASSERT_LOCKED();
	if (image->symbols)
		return 0;
	r = elf_open(image, &file);
	if (r == 0) {
		r = index_file(&file, image, &result);
		elf_close(&file);
	}
	if (is_temporary(r))
		return r;
	if (elf_is_refused(r))
		log_error("cannot read the names of the functions of %s",
			  image->path, r);
	__atomic_store_n(&image->symbols,
			 result ? result : (struct symbols *)&symbols_none,
			 __ATOMIC_RELEASE);
	return 0;
}

void symbols_free(struct image_entry *image)
{
	struct symbols *symbols = image->symbols;

	ASSERT_LOCKED();
	image->symbols = NULL;
	if (symbols && symbols != &symbols_none)
		sys_unmap(symbols, symbols->size);
}

static int read_all_symbols(void *unused)
{
	struct image_entry *const *images;
	uint32_t count = image_list(&images);

	(void)unused;
	enabled = true;
	for (uint32_t i = 0; i < count; i++)
		if (images[i]->id != 0)
			symbols_read(images[i]);
	return 0;
}

void symbols_enable(void)
{
	if (!enabled)
		state_call_locked(read_all_symbols, NULL);
}

bool symbols_are_enabled(void)
{
	return enabled;
}

const struct symbols_function *symbols_find(const struct symbols *symbols,
					    uint64_t address)
{
	uint32_t low = 0, high = symbols->range_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (symbols->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low > 0; low = symbols->outer[low - 1]) {
		const struct symbols_range *range = &symbols->ranges[low - 1];

		if (address - range->start < range->size)
			return &symbols->functions[range->function];
	}
	return NULL;
}

/* --- .comment --- */

void symbols_read_compiler(const struct image_entry *image, char *text,
			   size_t size)
{
	struct elf_file file;
	struct text out;
	void *comment;
	size_t comment_size;

	ASSERT_LOCKED();
	text[0] = '\0';
	if (elf_open(image, &file) < 0)
		return;
	if (elf_load_named(&file, ".comment", &comment, &comment_size) == 0) {
		text_init(&out, text, size);
		text_add(&out, comment);
		sys_unmap(comment, comment_size + 1);
	}
	elf_close(&file);
}
