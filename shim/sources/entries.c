/*
 * Marks that are only at entries; returns.h finds the ends.  Two sections list them:
 * __patchable_function_entries (-fpatchable-function-entry=N[,M], gcc and clang) has the
 * addresses of no-ops, of which M are in front of the function, and __mcount_loc (-pg
 * -mfentry -mrecord-mcount -mnop-mcount, gcc) those of no-ops.  (Without -mnop-mcount,
 * those of calls of __fentry__: mcount.h.)
 */
#include "dispatch/patch.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "image/symbols.h"
#include "os/pages.h"
#include "os/sys.h"
#include "sources/entry_code.h"
#include "sources/left_out.h"
#include "sources/own_return.h"
#include "sources/thunks.h"
#include "unwind/unwind.h"

#include <errno.h>

#include <shim/banned.h>

#define ENTRIES_MAX (4u << 20)
#define LENGTH_MAX  255
#define LANDING	    4
#define BEFORE	    6 /* bytes that are read in front of a mark */

/* The code of an entry that is read, with the bytes in front of it. */
struct code {
	unsigned char bytes[BEFORE + LENGTH_MAX];
	size_t size; /* from @bytes + BEFORE */
};

static int read_code(struct code *code, uintptr_t address)
{
	/* The end of the image's code may be near. */
	for (code->size = LENGTH_MAX; code->size >= ENTRY_SIZE; code->size /= 2)
		if (pages_read((const void *)(address - BEFORE), code->bytes,
			       BEFORE + code->size) == 0)
			return 0;
	return -EFAULT;
}

/* The start of the function that contains @address by the unwind tables, or by the symbols of
 * an image that has no entry there; 0 if unknown. */
static uintptr_t start_of(const struct source_image *image,
			  const struct symbols *symbols, uintptr_t address)
{
	const struct symbols_function *function;

	if (!symbols)
		return unwind_code(address, NULL);
	function = symbols_find(symbols, address - image->bias);
	return function ? function->start + image->bias : 0;
}

/* Finds the function, which begins at one of the no-ops at @address, behind them, or with a
 * landing pad before them. */
static bool search_function(const struct source_image *image,
			    const struct symbols *symbols,
			    const struct code *code, uintptr_t address,
			    uintptr_t *function)
{
	uintptr_t start = start_of(image, symbols, address);
	size_t nops, at = 0, first;

	nops = entry_nops(code->bytes + BEFORE, code->size, &first);
	if (start && address - start <= LANDING) {
		*function = start;
		return true;
	}
	while (at < nops) {
		entry_nops(code->bytes + BEFORE + at, nops - at, &first);
		at += first;
		*function = address + at;
		if (start_of(image, symbols, *function) == *function)
			return true;
	}
	return false;
}

static const struct symbols *symbols_of(const struct source_image *image)
{
	struct image_entry *entry;

	image_pin();
	entry = image_find(image->start);
	image_unpin();
	return entry && symbols_read(entry) == 0 ? entry->symbols : NULL;
}

/* The first no-op at @address may be in front of the function (-fpatchable-function-entry=N,M):
 * without a function there, nothing tells where it begins. */
static bool find_function(const struct source_image *image,
			  enum shim_source source, const struct code *code,
			  uintptr_t address, uintptr_t *function)
{
	const struct symbols *symbols;
	size_t landing;

	if (search_function(image, NULL, code, address, function))
		return true;
	*function = address;
	if (entry_is_landing(code->bytes + BEFORE - LANDING, &landing)) {
		*function -= landing;
		return true;
	}
	if (source == SHIM_SOURCE_FENTRY)
		return true;
	symbols = symbols_of(image);
	return symbols &&
	       search_function(image, symbols, code, address, function);
}

/* The functions that are left out. */
struct left {
	uint32_t are_short, use_return, are_nested, are_unknown;
};

static int add_entry(struct source_image *image, enum shim_source source,
		     uintptr_t address, struct left *left, source_add *add)
{
	struct code code;
	size_t length, first, skip;
	uintptr_t function;

	if (address < image->start || address >= image->end ||
	    read_code(&code, address) < 0)
		return 0;
	/* (mcount.c finds these, or says why not.) */
	if (entry_call(code.bytes + BEFORE) > 0 ||
	    entry_call_is_far(code.bytes + BEFORE))
		return 0;
	if (entry_saves_chain(code.bytes + BEFORE)) {
		left->are_nested++;
		return 0;
	}
	if (!find_function(image, source, &code, address, &function)) {
		left->are_unknown++;
		return 0;
	}
	length = entry_nops(code.bytes + BEFORE, code.size, &first);
	/* No-ops in front of the function are not executed. */
	if (function > address) {
		address = function;
		if (read_code(&code, address) < 0)
			return 0;
		if (entry_is_landing(code.bytes + BEFORE, &skip)) {
			address += skip;
			if (read_code(&code, address) < 0)
				return 0;
		}
		length = entry_nops(code.bytes + BEFORE, code.size, &first);
	}
	if (length < ENTRY_SIZE) {
		left->are_short++;
		return 0;
	}
	if (own_return_is_read(function)) {
		left->use_return++;
		return 0;
	}
	return add(image,
		   &(struct found_mark){ source, PLAN_ENTER, address, function,
					 (uint8_t)length, false, 0 });
}

static int find_entries(struct source_image *image, const Elf64_Shdr *section,
			enum shim_source source, source_add *add)
{
	uintptr_t start = image->bias + section->sh_addr;
	size_t count = section->sh_size / sizeof(uintptr_t);
	size_t size = count * sizeof(uintptr_t);
	struct left left = { .are_short = 0 };
	uintptr_t *entries;
	void *memory;
	int r;

	if (!entry_is_known() || count == 0)
		return 0;
	if (count > ENTRIES_MAX || start < image->start ||
	    start >= image->end || size > image->end - start)
		return -ENOEXEC;
	r = sys_map(size, &memory);
	if (r < 0)
		return r;
	entries = memory;
	r = sys_peek((const void *)start, entries, size);
	pages_begin(image->end);
	own_return_begin(image);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_entry(image, source, entries[i], &left, add);
	sys_unmap(memory, size);
	own_return_end();
	pages_drop();
	left_out_say_marks(
		image->start, left.are_short,
		"functions have less than 5 bytes of no-ops at their "
		"entries, and are not recorded (compile with "
		"-fpatchable-function-entry=5)");
	left_out_say_marks(image->start, left.are_nested,
			   "nested functions save a register before their "
			   "no-ops, and are not recorded (compile with "
			   "-finstrument-functions)");
	left_out_say_marks(image->start, left.are_unknown,
			   "functions with no-ops are in no unwind table and "
			   "have no symbol, and are not recorded (compile with "
			   "-fasynchronous-unwind-tables)");
	own_return_say(image, left.use_return);
	return r;
}

static int find_patchable(struct source_image *image, const Elf64_Shdr *section,
			  source_add *add)
{
	return find_entries(image, section, SHIM_SOURCE_PATCHABLE, add);
}

static int find_fentry(struct source_image *image, const Elf64_Shdr *section,
		       source_add *add)
{
	return find_entries(image, section, SHIM_SOURCE_FENTRY, add);
}

static enum mark_state state(const struct source_image *image,
			     const struct source_mark *mark,
			     const unsigned char *code)
{
	return entry_state(code, mark_address(image, mark),
			   thunk_of(image, mark));
}

static bool prepare(const struct source_image *image,
		    const struct source_mark *mark, unsigned char *code)
{
	uintptr_t thunk = thunk_of(image, mark);
	uintptr_t address = mark_address(image, mark);
	/* Where the mark could not lead to the hooks again at once, the thunk's word counts. */
	bool counts = mark->is_counted && patch_is_one_store(address + 1);
	unsigned char before[ENTRY_SIZE];
	size_t first;

	__builtin_memcpy(before, code, sizeof(before));
	if (!thunk || !entry_prepare(code, address, thunk, counts))
		return false;
	if (code[0] == before[0] ||
	    (image->is_quiet &&
	     entry_nops(before, ENTRY_SIZE, &first) == ENTRY_SIZE))
		return true;
	__builtin_memcpy(code, before, sizeof(before));
	return false;
}

/* The bytes from the mark to the end of the no-op that goes on behind ENTRY_SIZE bytes; 0 if
 * there is none. */
static size_t long_nops(const unsigned char *code, size_t size)
{
	size_t at = 0, first;

	while (at < ENTRY_SIZE) {
		entry_nops(code + at, size - at, &first);
		if (first == 0)
			return 0;
		at += first;
	}
	return at > ENTRY_SIZE ? at : 0;
}

void entries_split(struct source_image *image)
{
	unsigned char code[LENGTH_MAX];
	struct patch patch;
	bool is_open = false;

	for (uint32_t i = 0; i < image->count; i++) {
		const struct source_mark *mark = &image->marks[i];
		uintptr_t address = mark_address(image, mark);
		size_t size;

		if ((mark->source != SHIM_SOURCE_PATCHABLE &&
		     mark->source != SHIM_SOURCE_FENTRY) ||
		    mark->is_prepared ||
		    patch_read(address, code, mark->length, image->may_go) < 0)
			continue;
		size = long_nops(code, mark->length);
		if (size == 0)
			continue;
		if (!is_open)
			patch_open(&patch, image->start, image->end);
		is_open = true;
		entry_split(code, size);
		patch_write(&patch, address, code, size);
	}
	if (is_open)
		patch_close(&patch);
}

static void change(const struct source_image *image,
		   const struct source_mark *mark, unsigned char *code, bool on)
{
	(void)image, (void)mark;
	entry_switch(code, on);
}

const struct source source_patchable = {
	.kind = SHIM_SOURCE_PATCHABLE,
	.section = "__patchable_function_entries",
	.size = ENTRY_SIZE,
	.has_thunks = true,
	.find = find_patchable,
	.state = state,
	.end = thunk_end,
	.set_counter = thunk_set_counter,
	.prepare = prepare,
	.change = change,
};

const struct source source_fentry = {
	.kind = SHIM_SOURCE_FENTRY,
	.section = "__mcount_loc",
	.size = ENTRY_SIZE,
	.has_thunks = true,
	.find = find_fentry,
	.state = state,
	.end = thunk_end,
	.set_counter = thunk_set_counter,
	.prepare = prepare,
	.change = change,
};
