/*
 * Finds the functions of an image by its symbols, and their code by its unwind tables;
 * without a symbol, an entry of these tables is the function.
 * libshim-code.so decides which ones can be changed (inspect/decode/entries.c).  It reads a
 * copy of the image, which another thread may unload.
 *
 * An entry is changed once, while no other thread runs and before the function can have
 * been interrupted.  Later, the switch in its thunk decides.
 */
#include "sources/unmarked.h"

#include "dispatch/callspec.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "image/symbols.h"
#include "inspect/code.h"
#include "os/segments.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "sources/decoded.h"
#include "sources/entry_code.h"
#include "sources/generated.h"
#include "sources/objects.h"
#include "sources/unmarked_list.h"
#include "unwind/eh_frame.h"
#include "unwind/fde_index.h"

#include <errno.h>

#include <shim/banned.h>

/* Room for that many jumps out of each function, on average. */
#define TAILS_EACH 8

static bool has_begun;

bool unmarked_is_waiting(void)
{
	return config.patch[0] &&
	       !__atomic_load_n(&has_begun, __ATOMIC_RELAXED);
}

void unmarked_begin(void)
{
	__atomic_store_n(&has_begun, true, __ATOMIC_RELAXED);
}

/* --- what is asked of the decoder --- */

struct work {
	struct decode_entries question;
	struct source_image *image;
	const struct image_entry *image_entry;
	const struct symbols *symbols;
	struct frames frames;
	size_t copy_size, bits_size, parts_size, tails_size, entries_size;
	bool takes_unnamed; /* the list chooses functions without a symbol, too */
	/* For one_row: the function whose rows were read last, and where. */
	struct cfi_machine machine;
	struct tables tables;
	uintptr_t row_address;
	bool has_fde, has_row;
};

static struct work current;

/* Copies the image's segments. */
static int copy_image(struct work *work)
{
	const struct source_image *image = work->image;
	struct segments segments = segments_at(image->start, sys_peek);
	Elf64_Phdr part;
	void *memory;
	int r;

	work->copy_size = image->end - image->start;
	r = sys_map(work->copy_size, &memory);
	if (r < 0)
		return r;
	work->question.copy = memory;
	work->question.text = UINTPTR_MAX;
	while (segments_next(&segments, &part)) {
		uintptr_t start = image->bias + part.p_vaddr;
		uintptr_t end = start + part.p_filesz;

		if (part.p_type != PT_LOAD || part.p_filesz == 0)
			continue;
		if (start < image->start || end > image->end || end < start)
			return -ENOEXEC;
		r = sys_peek((const void *)start,
			     (char *)memory + (start - image->start),
			     end - start);
		if (r < 0)
			return r;
		if (!(part.p_flags & PF_X))
			continue;
		if (start < work->question.text)
			work->question.text = start;
		if (end > work->question.text_end)
			work->question.text_end = end;
	}
	return work->question.text_end > 0 ? 0 : -ENOEXEC;
}

static bool is_chosen(const struct work *work,
		      const struct symbols_function *function)
{
	const struct image_entry *entry = work->image_entry;

	return callspec_patches(entry->path, entry->flags & SHIM_IMAGE_PROGRAM,
				objects_is_system(entry->path),
				work->symbols->text + function->names,
				function->names_size);
}

static uint32_t count_chosen(const struct work *work)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < work->symbols->function_count; i++)
		count += is_chosen(work, &work->symbols->functions[i]);
	return count;
}

/* Numbers of DWARF and of the processor. */
static uint8_t number_of(uint32_t dwarf)
{
	static const uint8_t numbers[8] = { 0, 2, 1, 3, 6, 7, 5, 4 };

	return dwarf < 8 ? numbers[dwarf] : (uint8_t)dwarf;
}

/* Most questions are about ascending addresses. */
static bool find_row(struct work *work, uintptr_t address)
{
	struct cfi_machine *machine = &work->machine;
	bool was_found = work->has_row && address >= work->row_address;

	work->row_address = address;
	if (work->has_fde && address - machine->fde.start <
				     machine->fde.end - machine->fde.start)
		return was_found ? eh_frame_find_next_row(machine, address) :
				   eh_frame_find_row(machine, address);
	work->has_fde = eh_frame_open_copy(
		address, (uintptr_t)work->question.copy - work->image->start,
		&work->tables, &machine->fde);
	return work->has_fde && eh_frame_find_row(machine, address);
}

static bool one_row(const struct decode_entries *question, uintptr_t address,
		    struct decode_stack_row *row)
{
	struct work *work = question->argument;
	const struct cfi_machine *machine = &work->machine;
	const struct rule *cfa = &machine->row.cfa;
	const struct rule *caller = &machine->row.rules[WALK_IP];

	work->has_row = find_row(work, address);
	if (!work->has_row)
		return false;
	*row = (struct decode_stack_row){
		.until = machine->at > address ? machine->at : machine->fde.end,
		.is_ordinary = machine->fde.return_register == WALK_IP &&
			       !machine->fde.is_signal_frame &&
			       caller->how == HOW_AT && caller->value == -8,
		.base = cfa->how == HOW_IS ? number_of(cfa->size) :
					     DECODE_COMPUTED,
		.offset = (int32_t)cfa->value,
	};
	return true;
}

static bool begins_ordinarily(const struct decode_entries *question,
			      uintptr_t address)
{
	struct decode_stack_row row;

	return one_row(question, address, &row) && row.is_ordinary &&
	       row.base == number_of(WALK_SP) && row.offset == 8;
}

/* False for the code that the kernel starts. */
static bool is_called(const struct decode_entries *question, uintptr_t address)
{
	struct decode_stack_row row;

	return one_row(question, address, &row) && row.is_ordinary;
}

/* Whether the function has a mark.  The marks are sorted; *@next moves on with ascending
 * functions. */
static bool has_mark(const struct source_image *image, uintptr_t function,
		     uint32_t *next)
{
	while (*next < image->count &&
	       mark_address(image, &image->marks[*next]) < function)
		++*next;
	return *next < image->count &&
	       mark_function(image, &image->marks[*next]) == function;
}

/* Whether a jump through a slot of the GOT is at @address, as in the PLT. */
static bool is_plt(const struct work *work, uintptr_t address)
{
	const unsigned char *code = work->question.copy +
				    (address - work->question.start);
	static const unsigned char landing[4] = { 0xf3, 0x0f, 0x1e, 0xfa };
	unsigned at = 0;

	if (work->question.end - address < 8)
		return false;
	while (at < sizeof(landing) && code[at] == landing[at])
		at++;
	if (at != sizeof(landing))
		at = 0;
	at += code[at] == 0xf2;
	return code[at] == 0xff && code[at + 1] == 0x25;
}

/*
 * Finds a function without a symbol, from entry *@number of the unwind tables on.  Other
 * entries are of parts that the compiler has split off, which do not begin as functions
 * do, and of the PLT.
 */
static bool find_unnamed(struct work *work, uint32_t *number,
			 struct frame_range *range)
{
	const struct decode_entries *question = &work->question;

	for (; *number < work->frames.count; ++*number)
		if (fde_get(&work->frames, *number, range) &&
		    range->start >= question->text &&
		    range->end <= question->text_end &&
		    !symbols_find(work->symbols,
				  range->start - work->image->bias) &&
		    begins_ordinarily(question, range->start) &&
		    !is_plt(work, range->start))
			return true;
	return false;
}

/* clang's outliner makes functions that are entered and left in the middle of a statement. */
static bool is_outlined(const char *name)
{
	return text_after(name, "OUTLINED_FUNCTION_") != NULL;
}

/* Why a function of this name stays as it is; DECODE_ENTRY_STACK: its unwind table may allow
 * more. */
static enum decode_entry_reason reason_by_name(const char *name)
{
	if (is_outlined(name))
		return DECODE_ENTRY_SHARED;
	return generated_is_ocaml(name) ? DECODE_ENTRY_WALKED :
					  DECODE_ENTRY_STACK;
}

/* @name: NULL if it has none. */
static void add_entry(struct work *work, const struct frame_range *range,
		      const char *name, uint32_t *next)
{
	bool is_marked = has_mark(work->image, range->start, next);

	work->question.entries[work->question.count++] = (struct decode_entry){
		.start = range->start,
		.end = range->end,
		.reason = is_marked ? DECODE_ENTRY_MARKED :
			  range->end - range->start < ENTRY_SIZE ?
				      DECODE_ENTRY_SMALL :
			  name ? reason_by_name(name) :
				 DECODE_ENTRY_STACK,
	};
}

/* In ascending order. */
static void fill_entries(struct work *work)
{
	struct frame_range named, unnamed;
	uint32_t frame = work->takes_unnamed ? 0 : work->frames.count;
	uint32_t next = 0;
	bool is_left = find_unnamed(work, &frame, &unnamed);

	for (uint32_t i = 0; i < work->symbols->function_count; i++) {
		const struct symbols_function *function =
			&work->symbols->functions[i];

		if (!is_chosen(work, function))
			continue;
		named.start = work->image->bias + function->start;
		named.end = named.start + function->size;
		while (is_left && unnamed.start < named.start) {
			add_entry(work, &unnamed, NULL, &next);
			frame++;
			is_left = find_unnamed(work, &frame, &unnamed);
		}
		add_entry(work, &named, work->symbols->text + function->names,
			  &next);
	}
	while (is_left) {
		add_entry(work, &unnamed, NULL, &next);
		frame++;
		is_left = find_unnamed(work, &frame, &unnamed);
	}
}

static int list_entries(struct work *work, uint32_t chosen)
{
	uint64_t room = (uint64_t)chosen +
			(work->takes_unnamed ? work->frames.count : 0);
	void *memory;
	int r;

	if (room == 0)
		return 0;
	work->entries_size = room * sizeof(struct decode_entry);
	r = sys_map(work->entries_size, &memory);
	if (r < 0)
		return r;
	work->question.entries = memory;
	fill_entries(work);
	return 0;
}

/* The number of the entry that begins at @address, or UINT32_MAX. */
static uint32_t find_entry(const struct work *work, uintptr_t address)
{
	uint32_t low = 0, high = work->question.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (work->question.entries[middle].start < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < work->question.count &&
			       work->question.entries[low].start == address ?
		       low :
		       UINT32_MAX;
}

static void open_frames(struct work *work)
{
	struct view view = { work->question.start, work->copy_size,
			     work->question.copy };

	if (!work->image_entry->frames ||
	    !fde_open(&work->frames, &view, work->image_entry->frames))
		work->frames.count = 0;
}

/* Each entry of the unwind tables is a part of a function.  A function that begins where
 * none begins has code that nobody describes. */
static int list_parts(struct work *work)
{
	struct decode_entries *question = &work->question;
	struct decode_part *parts;
	void *memory;
	int r;

	if (work->frames.count == 0)
		return 0;
	work->parts_size = work->frames.count * sizeof(*parts);
	r = sys_map(work->parts_size, &memory);
	if (r < 0)
		return r;
	question->parts = parts = memory;
	question->tail_room = TAILS_EACH * work->frames.count;
	work->tails_size = question->tail_room * sizeof(*question->tails);
	r = sys_map(work->tails_size, &memory);
	if (r < 0)
		return r;
	question->tails = memory;
	for (uint32_t i = 0; i < work->frames.count; i++) {
		const struct symbols_function *function;
		struct frame_range range;
		uint32_t number;

		if (!fde_get(&work->frames, i, &range) ||
		    range.start < question->text ||
		    range.end > question->text_end)
			continue;
		function = symbols_find(work->symbols,
					range.start - work->image->bias);
		number = find_entry(work, function ? work->image->bias +
							     function->start :
						     range.start);
		parts[question->part_count++] = (struct decode_part){
			.start = range.start,
			.end = range.end,
			.owner = number,
			.is_piece = !function && number == UINT32_MAX &&
				    is_called(question, range.start),
		};
		if (number == UINT32_MAX ||
		    question->entries[number].start != range.start)
			continue;
		question->entries[number].end = range.end;
		if (question->entries[number].reason == DECODE_ENTRY_STACK)
			question->entries[number].reason = DECODE_ENTRY_MOVABLE;
	}
	return 0;
}

static int map_bits(struct work *work)
{
	struct decode_entries *question = &work->question;
	size_t size = (question->text_end - question->text) / 8 + 1;
	void *memory;
	int r;

	work->bits_size = 3 * size + work->copy_size / 8 + 1;
	r = sys_map(work->bits_size, &memory);
	if (r < 0)
		return r;
	question->begins = memory;
	question->jumps = question->begins + size;
	question->targets = question->jumps + size;
	question->objects = question->targets + size;
	return 0;
}

static void free_work(struct work *work)
{
	struct decode_entries *question = &work->question;

	if (question->copy)
		sys_unmap((void *)question->copy, work->copy_size);
	if (question->parts)
		sys_unmap(question->parts, work->parts_size);
	if (question->tails)
		sys_unmap(question->tails, work->tails_size);
	if (question->entries)
		sys_unmap(question->entries, work->entries_size);
	if (question->begins)
		sys_unmap(question->begins, work->bits_size);
}

/* --- the search --- */

static int add_movable(struct work *work, source_add *add)
{
	struct decode_entries *question = &work->question;

	for (uint32_t i = 0; i < question->count; i++) {
		struct decode_entry *entry = &question->entries[i];
		uintptr_t address = entry->start + entry->skip;
		size_t size;
		int r;

		if (entry->reason != DECODE_ENTRY_MOVABLE)
			continue;
		size = unmarked_moved_size(question->copy +
						   (address - question->start),
					   question->end - address, address,
					   entry->length, question->start);
		if (size == 0 || size > PATCHED_ROOM) {
			entry->reason = DECODE_ENTRY_FIXED;
			continue;
		}
		r = add(work->image,
			&(struct found_mark){ SHIM_SOURCE_UNMARKED, PLAN_ENTER,
					      address, entry->start,
					      entry->length, entry->may_leave,
					      0 });
		if (r < 0)
			return r;
	}
	return 0;
}

static int answer(struct work *work, const struct decode *decoder)
{
	struct decode_entries *question = &work->question;
	decoded_key key = decoded_key_of(work->image_entry, question);
	int r;

	if (decoded_read(key, question))
		return 0;
	r = map_bits(work);
	if (r < 0)
		return r;
	decoder->entries(question);
	decoded_write(key, question);
	return 0;
}

static int find_functions(struct work *work, const struct decode *decoder,
			  source_add *add)
{
	struct decode_entries *question = &work->question;
	const struct image_entry *entry = work->image_entry;
	uint32_t chosen = count_chosen(work);
	int r;

	work->takes_unnamed = callspec_patches(
		entry->path, entry->flags & SHIM_IMAGE_PROGRAM,
		objects_is_system(entry->path), "", 1);
	if (chosen == 0 && !work->takes_unnamed)
		return 0;
	if (objects_is_java(entry->path)) {
		log_line("--patch: the functions of %s stay as they are: the "
			 "Java virtual machine reads their return addresses",
			 entry->path);
		return 0;
	}
	r = copy_image(work);
	if (r < 0)
		return r;
	open_frames(work);
	r = list_entries(work, chosen);
	if (r < 0 || question->count == 0)
		return r;
	r = list_parts(work);
	if (r == 0)
		r = answer(work, decoder);
	if (r == 0)
		r = add_movable(work, add);
	if (r == 0)
		unmarked_list(work->image_entry, question);
	return r;
}

static int find_in(struct source_image *image, struct image_entry *entry,
		   source_add *add)
{
	bool may_come;
	const struct decode *decoder = code_decoder(&may_come);
	int r;

	if (!decoder || objects_is_untouchable(entry) ||
	    symbols_read(entry) < 0)
		return 0;
	current = (struct work){
		.image = image,
		.image_entry = entry,
		.symbols = entry->symbols,
		.question = { .start = image->start,
			      .end = image->end,
			      .size = ENTRY_SIZE,
			      .row = one_row,
			      .argument = &current },
	};
	r = find_functions(&current, decoder, add);
	if (r < 0)
		log_error("--patch: the functions of %s stay as they are",
			  entry->path, r);
	free_work(&current);
	return r;
}

int unmarked_find(struct source_image *image, source_add *add)
{
	struct image_entry *entry;
	int r = 0;

	ASSERT_LOCKED();
	if (!config.patch[0] || !entry_is_known())
		return 0;
	image_pin();
	entry = image_find(image->start);
	if (entry)
		r = find_in(image, entry, add);
	image_unpin();
	return r;
}
