/*
 * The index of an image's functions, made from the symbol table of its file.  The table
 * is sorted by address.  Symbols at one address form a group: a function with several
 * names, or a part that the compiler has split off a function.
 */
#include "image/symbols.h"

#include "arch.h"
#include "image/elf_debug.h"
#include "image/elf_file.h"
#include "image/elf_plt.h"
#include "image/image.h"
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

/* --- the symbols of a file --- */

struct raw {
	uint64_t value;
	uint32_t size;
	uint32_t section;
	uint32_t name;	 /* in the string table */
	uint32_t length; /* of the name without a version */
	uint32_t file;	 /* the source file of a local symbol; 0: global */
	uint32_t function;
	uint32_t order; /* in the table */
	bool has_dot;
	bool is_part;
	bool is_resolver; /* of an ifunc: STT_GNU_IFUNC */
};

struct work {
	struct elf_file *file;
	struct elf_file *code; /* the image's own file */
	const struct image_entry *image;
	Elf64_Sym *table;
	size_t table_size;
	char *strings;
	size_t strings_size;
	struct raw *raw;
	size_t raw_size;
	uint32_t count;
	struct elf_plt_entry *entries;
	size_t entries_size;
	uint32_t entry_count;
	uint32_t *hash;
	size_t hash_size;
};

static bool is_number(const char *text, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return length > 0;
}

static bool ends_in(const char *name, uint32_t length, const char *suffix)
{
	uint32_t n = (uint32_t)text_length(suffix);

	if (length <= n)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (name[length - n + i] != suffix[i])
			return false;
	return true;
}

/* The length of the name without the compiler's suffix in "f.cold", "f.cold.1",
 * "f.part.0" and "f.__part.0"; @length if the name has no such suffix. */
static uint32_t whole_length(const char *name, uint32_t length)
{
	uint32_t dot = length;

	if (ends_in(name, length, ".cold"))
		return length - 5;
	while (dot > 0 && name[dot - 1] != '.')
		dot--;
	if (dot < 2 || !is_number(name + dot, length - dot))
		return length;
	if (ends_in(name, dot - 1, ".cold") || ends_in(name, dot - 1, ".part"))
		return dot - 6;
	return ends_in(name, dot - 1, ".__part") ? dot - 8 : length;
}

static bool read_symbol(struct work *work, const Elf64_Sym *symbol,
			uint32_t file, struct raw *raw)
{
	unsigned type = ELF64_ST_TYPE(symbol->st_info);
	const char *name;

	/* An undefined symbol with a value is a library's function.  The value is the
	 * program's own PLT entry, which the program uses as the function's address. */
	if ((type != STT_FUNC && type != STT_GNU_IFUNC) ||
	    (symbol->st_shndx == SHN_UNDEF && symbol->st_value == 0) ||
	    symbol->st_shndx == SHN_ABS ||
	    symbol->st_name >= work->strings_size ||
	    symbol->st_value < work->image->start - work->image->bias ||
	    symbol->st_value >= work->image->end - work->image->bias)
		return false;
	name = work->strings + symbol->st_name;
	*raw = (struct raw){
		.value = symbol->st_value,
		.size = symbol->st_size > UINT32_MAX ?
				UINT32_MAX :
				(uint32_t)symbol->st_size,
		.section = symbol->st_shndx,
		.name = symbol->st_name,
		.file = ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ? file : 0,
		.is_resolver = type == STT_GNU_IFUNC,
	};
	if (symbol->st_shndx == SHN_UNDEF)
		raw->size = ARCH_PLT_SIZE;
	for (uint32_t i = 0; name[i] && (name[i] != '@' || i == 0); i++) {
		raw->length = i + 1;
		raw->has_dot |= name[i] == '.';
	}
	raw->is_part = raw->has_dot &&
		       whole_length(name, raw->length) < raw->length;
	return raw->length > 0;
}

/* Reads the PLT only if the file has ifuncs. */
static int read_plt(struct work *work, uint32_t all)
{
	for (uint32_t i = 0; i < all; i++)
		if (ELF64_ST_TYPE(work->table[i].st_info) == STT_GNU_IFUNC)
			return elf_plt_read(work->code, &work->entries,
					    &work->entry_count,
					    &work->entries_size);
	return 0;
}

/* Far more steps than any real file needs. */
#define RESOLVER_STEPS_MAX (1u << 24)

/* Gives the PLT entry of an ifunc the name of its resolver, because the program uses
 * that entry as the function's address. */
static void add_plt_entries(struct work *work)
{
	uint32_t symbols = work->count, room = work->entry_count;
	uint32_t steps = 0;

	for (uint32_t i = 0; i < symbols; i++) {
		for (uint32_t n = 0;
		     work->raw[i].is_resolver && n < work->entry_count &&
		     room > 0 && steps < RESOLVER_STEPS_MAX;
		     n++, steps++) {
			const struct elf_plt_entry *entry = &work->entries[n];

			if (entry->resolver != work->raw[i].value ||
			    entry->address == 0)
				continue;
			work->raw[work->count] = work->raw[i];
			work->raw[work->count].value = entry->address;
			work->raw[work->count].section = SHN_UNDEF;
			work->raw[work->count++].size = ARCH_PLT_SIZE;
			room--;
		}
	}
}

static int read_symbols(struct work *work)
{
	uint32_t all = (uint32_t)(work->table_size / sizeof(Elf64_Sym));
	uint32_t file = 1;
	void *memory;
	int r = read_plt(work, all);

	if (r < 0)
		return r;
	work->raw_size = (all + work->entry_count) * sizeof(struct raw);
	r = sys_map(work->raw_size + 1, &memory);
	if (r < 0)
		return r;
	work->raw = memory;
	for (uint32_t i = 0; i < all; i++) {
		const Elf64_Sym *symbol = &work->table[i];

		if (ELF64_ST_TYPE(symbol->st_info) == STT_FILE)
			file = i + 2;
		else if (read_symbol(work, symbol, file,
				     &work->raw[work->count]))
			work->raw[work->count++].order = i;
	}
	add_plt_entries(work);
	return 0;
}

/* --- sorting --- */

static bool is_same_name(const struct work *work, const struct raw *a,
			 const struct raw *b)
{
	if (a->length != b->length)
		return false;
	for (uint32_t i = 0; i < a->length; i++)
		if (work->strings[a->name + i] != work->strings[b->name + i])
			return false;
	return true;
}

/*
 * Sorts by address.  At one address, the name to show comes first: a global name, then
 * a name that is no compiler's clone, then the first in the table.  Without debug
 * information, the report uses the same order.
 */
static bool is_before(const struct raw *a, const struct raw *b)
{
	if (a->value != b->value)
		return a->value < b->value;
	if (!a->file != !b->file)
		return !a->file;
	if (a->has_dot != b->has_dot)
		return b->has_dot;
	return a->order < b->order;
}

static void sift(const struct work *work, uint32_t root, uint32_t count)
{
	struct raw *raw = work->raw;

	while (root * 2 + 1 < count) {
		uint32_t child = root * 2 + 1;
		struct raw swap;

		if (child + 1 < count &&
		    is_before(&raw[child], &raw[child + 1]))
			child++;
		if (!is_before(&raw[root], &raw[child]))
			return;
		swap = raw[root];
		raw[root] = raw[child];
		raw[child] = swap;
		root = child;
	}
}

/* Heap sort works in place and takes at most n log n steps, for any file. */
static void sort_symbols(const struct work *work)
{
	for (uint32_t i = work->count / 2; i > 0; i--)
		sift(work, i - 1, work->count);
	for (uint32_t i = work->count; i > 1; i--) {
		struct raw swap = work->raw[0];

		work->raw[0] = work->raw[i - 1];
		work->raw[i - 1] = swap;
		sift(work, 0, i - 1);
	}
}

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

	for (uint32_t i = 0; i < work->count; i++)
		has_parts |= work->raw[i].is_part;
	if (!has_parts)
		return 0;
	while (slots < work->count * 2ull)
		slots *= 2;
	r = sys_map(slots * sizeof(uint32_t), &memory);
	if (r < 0)
		return r;
	work->hash = memory;
	work->hash_size = slots;
	for (uint32_t i = 0; i < work->count; i++) {
		const struct raw *raw = &work->raw[i];
		size_t at = hash_name(work->strings + raw->name, raw->length);

		while (work->hash[at & (slots - 1)])
			at++;
		work->hash[at & (slots - 1)] = i + 1;
	}
	return 0;
}

/* The function that the compiler has split @part off: a function of the same source
 * file, else a global function, else any function with that name.  NULL if the linker
 * has removed it. */
static struct raw *find_whole(const struct work *work, const struct raw *part)
{
	const char *name = work->strings + part->name;
	uint32_t length = whole_length(name, part->length);
	struct raw *best = NULL;

	for (size_t at = hash_name(name, length);; at++) {
		uint32_t i = work->hash[at & (work->hash_size - 1)];
		struct raw *raw = &work->raw[i - 1];
		uint32_t same = 0;

		if (i == 0)
			return best;
		if (raw->length != length)
			continue;
		while (same < length &&
		       work->strings[raw->name + same] == name[same])
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

	while (i < work->count && work->raw[i].value == work->raw[first].value)
		i++;
	return i;
}

/* The size of a group in bytes.  A symbol of assembly may have no size: it extends to
 * the next symbol or the end of its section. */
static uint32_t group_size(const struct work *work, uint32_t first,
			   uint32_t end)
{
	const struct raw *raw = &work->raw[first];
	uint64_t limit = raw->value + 1;
	uint32_t size = 0;

	for (uint32_t i = first; i < end; i++)
		if (work->raw[i].size > size)
			size = work->raw[i].size;
	if (size > 0)
		return size;
	if (raw->section < work->file->section_count) {
		const Elf64_Shdr *section = &work->file->sections[raw->section];

		if (section->sh_addr + section->sh_size > limit)
			limit = section->sh_addr + section->sh_size;
	}
	if (end < work->count && work->raw[end].value < limit)
		limit = work->raw[end].value;
	limit -= raw->value;
	return limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

#define NO_FUNCTION UINT32_MAX

/* Decides for each group whether it is a function or a part of a function.  Returns the
 * number of functions. */
static uint32_t number_functions(const struct work *work)
{
	uint32_t count = 0;

	for (uint32_t i = 0, end; i < work->count; i = end) {
		bool is_part = true;

		end = end_of_group(work, i);
		for (uint32_t k = i; k < end; k++) {
			struct raw *raw = &work->raw[k];

			is_part = is_part && raw->is_part &&
				  find_whole(work, raw) != NULL;
		}
		for (uint32_t k = i; k < end; k++)
			work->raw[k].function = is_part ? NO_FUNCTION : count;
		count += !is_part;
	}
	return count;
}

/* A part may be part of another part.  The loop ends, because the name gets shorter each
 * time. */
static uint32_t function_of(const struct work *work, const struct raw *raw)
{
	while (raw->function == NO_FUNCTION)
		raw = find_whole(work, raw);
	return raw->function;
}

/* The distance within which the table may repeat a name, with different versions. */
#define NAMES_LOOKED_AT 64

static bool is_repeated(const struct work *work, uint32_t first, uint32_t i)
{
	for (uint32_t k = i; k > first && i - k < NAMES_LOOKED_AT; k--)
		if (is_same_name(work, &work->raw[k - 1], &work->raw[i]))
			return true;
	return false;
}

static void add_names(struct index *index, const struct work *work,
		      uint32_t first, uint32_t end,
		      struct symbols_function *function)
{
	function->names = index->text_size;
	for (uint32_t i = first; i < end; i++) {
		const struct raw *raw = &work->raw[i];

		if (is_repeated(work, first, i))
			continue;
		for (uint32_t k = 0; k < raw->length; k++)
			index->text[index->text_size++] =
				work->strings[raw->name + k];
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
	uint32_t function = function_of(work, &work->raw[first]);

	range->start = work->raw[first].value;
	range->size = group_size(work, first, end);
	range->function = function;
	while (outer > 0 &&
	       index->ranges[outer - 1].start + index->ranges[outer - 1].size <=
		       range->start)
		outer = index->outer[outer - 1];
	index->outer[number] = outer;
	if (work->raw[first].function == NO_FUNCTION) {
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

	for (uint32_t i = 0; i < work->count; i++)
		text += work->raw[i].length + 1ull;
	if (text > UINT32_MAX)
		return -EFBIG;
	size = sizeof(struct symbols) +
	       functions * sizeof(struct symbols_function) +
	       work->count *
		       (2 * sizeof(struct symbols_range) + sizeof(uint32_t)) +
	       text;
	r = sys_map(size, &memory);
	if (r < 0)
		return r;
	index.symbols = memory;
	at = (char *)memory + sizeof(struct symbols);
	index.ranges = (struct symbols_range *)at;
	at += work->count * sizeof(struct symbols_range);
	index.parts = (struct symbols_range *)at;
	at += work->count * sizeof(struct symbols_range);
	index.functions = (struct symbols_function *)at;
	at += functions * sizeof(struct symbols_function);
	index.outer = (uint32_t *)at;
	at += work->count * sizeof(uint32_t);
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
	for (uint32_t i = 0, end; i < work->count; i = end) {
		end = end_of_group(work, i);
		add_group(&index, work, i, end);
	}
	add_parts(&index);
	*result = index.symbols;
	return 0;
}

/* Builds the index of one symbol table; *@result stays NULL if the table has no
 * functions. */
static int index_table(struct work *work, uint32_t number,
		       struct symbols **result)
{
	const Elf64_Shdr *section = &work->file->sections[number];
	void *memory;
	int r;

	if (section->sh_entsize != sizeof(Elf64_Sym) ||
	    section->sh_link >= work->file->section_count)
		return -ENOEXEC;
	r = elf_load_section(work->file, number, &memory, &work->table_size);
	if (r < 0)
		return r;
	work->table = memory;
	r = elf_load_section(work->file, section->sh_link, &memory,
			     &work->strings_size);
	if (r < 0)
		return r;
	work->strings = memory;
	r = read_symbols(work);
	if (r < 0 || work->count == 0)
		return r;
	sort_symbols(work);
	r = hash_names(work);
	if (r < 0)
		return r;
	return build_index(work, number_functions(work), result);
}

static void free_work(struct work *work)
{
	if (work->table)
		sys_unmap(work->table, work->table_size + 1);
	if (work->strings)
		sys_unmap(work->strings, work->strings_size + 1);
	if (work->raw)
		sys_unmap(work->raw, work->raw_size + 1);
	if (work->entries)
		sys_unmap(work->entries, work->entries_size);
	if (work->hash)
		sys_unmap(work->hash, work->hash_size * sizeof(uint32_t));
}

/* Indexes a table of @type in @file, if it has one. */
static int index_type(struct elf_file *file, struct elf_file *code,
		      const struct image_entry *image, uint32_t type,
		      struct symbols **result)
{
	int r = 0;

	for (uint32_t i = 0; !*result && i < file->section_count; i++) {
		struct work work = { .file = file,
				     .code = code,
				     .image = image };

		if (file->sections[i].sh_type != type)
			continue;
		r = index_table(&work, i, result);
		free_work(&work);
		if (r == -ENOMEM)
			return r;
	}
	return r;
}

/* Indexes .symtab; if the file was stripped, that of its debug file, or .dynsym. */
static int index_file(struct elf_file *file, const struct image_entry *image,
		      struct symbols **result)
{
	struct elf_file debug;
	int r;

	*result = NULL;
	r = index_type(file, file, image, SHT_SYMTAB, result);
	if (r == -ENOMEM || *result)
		return r;
	if (elf_open_debug(image, file, &debug) == 0) {
		r = index_type(&debug, file, image, SHT_SYMTAB, result);
		elf_close(&debug);
	}
	if (r != -ENOMEM && !*result)
		r = index_type(file, file, image, SHT_DYNSYM, result);
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

static void read_comment(const struct elf_file *file, char *text, size_t size)
{
	void *memory, *names;
	size_t names_size, comment_size;
	struct text out;

	if (elf_load_section(file, file->names, &names, &names_size) < 0)
		return;
	for (uint32_t i = 0; i < file->section_count; i++) {
		uint32_t name = file->sections[i].sh_name;

		if (name >= names_size ||
		    !text_equal((const char *)names + name, ".comment") ||
		    elf_load_section(file, i, &memory, &comment_size) < 0)
			continue;
		text_init(&out, text, size);
		text_add(&out, memory);
		sys_unmap(memory, comment_size + 1);
		break;
	}
	sys_unmap(names, names_size + 1);
}

void symbols_read_compiler(const struct image_entry *image, char *text,
			   size_t size)
{
	struct elf_file file;

	ASSERT_LOCKED();
	text[0] = '\0';
	if (elf_open(image, &file) < 0)
		return;
	read_comment(&file, text, size);
	elf_close(&file);
}
