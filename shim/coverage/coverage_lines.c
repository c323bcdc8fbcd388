/*
 * The lines of an object, and their traps.  A trap is one byte at the beginning of an
 * instruction.  shim sets all traps of an object in a few writes.  The first thread
 * that hits a trap restores the original byte and continues.  Another thread may hit
 * the trap before that and arrive later: its line counts, too.
 */
#include "coverage/coverage.h"

#include "arch.h"
#include "coverage/code_copies.h"
#include "coverage/sigtrap.h"
#include "dispatch/call_sites.h"
#include "dispatch/patch.h"
#include "image/elf_file.h"
#include "image/image.h"
#include "image/symbols.h"
#include "inspect/helper.h"
#include "os/assert.h"
#include "os/segments.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "sources/sources.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/format.h>
#include <shim/info.h>
#include <shim/record.h>

#include <shim/banned.h>

static bool has_given_up;

/* --- does the file have lines? --- */

/* Returns 1 or 0; -errno if the file cannot be read. */
static int has_table(const struct elf_file *file)
{
	bool found = false;
	void *memory;
	size_t size;
	int r = elf_load_section(file, file->names, &memory, &size);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < file->section_count && !found; i++) {
		uint32_t name = file->sections[i].sh_name;

		found = name < size &&
			(text_equal((char *)memory + name, ".debug_line") ||
			 text_equal((char *)memory + name, ".zdebug_line"));
	}
	sys_unmap(memory, size + 1);
	return found;
}

struct table_search {
	const struct image_entry *image;
	bool has_lines;
};

static int search_table(void *argument)
{
	struct table_search *search = argument;
	struct elf_file file;
	int r;

	/* The program's debug information may be in a separate file. */
	search->has_lines = search->image->flags & SHIM_IMAGE_PROGRAM;
	if (search->has_lines)
		return 0;
	r = elf_open(search->image, &file);
	if (r == 0) {
		r = has_table(&file);
		elf_close(&file);
	}
	search->has_lines = r > 0;
	if (elf_is_refused(r))
		coverage_log_missing(search->image->path, r);
	return 0;
}

/* --- the code of the file --- */

static int find_code(const struct image_entry *image,
		     struct debuginfo_question *question)
{
	Elf64_Ehdr elf;
	Elf64_Phdr part;
	int r = sys_peek((const void *)image->start, &elf, sizeof(elf));

	if (r < 0 || elf.e_phentsize != sizeof(part))
		return r;
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		uintptr_t at = image->start + elf.e_phoff + i * sizeof(part);

		r = sys_peek((const void *)at, &part, sizeof(part));
		if (r < 0)
			return r;
		if (part.p_type != PT_LOAD || !(part.p_flags & PF_X) ||
		    question->range_count == DEBUGINFO_RANGES)
			continue;
		question->ranges[question->range_count++] =
			(struct debuginfo_range){ part.p_vaddr, part.p_filesz };
	}
	return 0;
}

/* --- the lines of the file --- */

struct reading {
	const struct image_entry *image;
	struct coverage_object *object;
};

/* Whether the row's address is in the image. */
static bool is_in(const struct image_entry *image,
		  const struct debuginfo_row *row)
{
	uint64_t offset = row->address + image->bias - image->start;

	return offset < image->end - image->start && offset < UINT32_MAX;
}

static bool lines_are_sorted(const struct shim_coverage_object *info)
{
	for (uint32_t i = 1; i < info->line_count; i++)
		if (info->lines[i - 1].offset > info->lines[i].offset)
			return false;
	return true;
}

static void copy_rows(struct coverage_object *object,
		      const struct image_entry *image,
		      const struct debuginfo_lines *found)
{
	struct shim_coverage_line *to = (void *)object->info.lines;
	uint32_t count = 0;

	for (uint64_t i = 0; i < found->row_count; i++) {
		const struct debuginfo_row *row = &found->rows[i];

		if (!is_in(image, row) || row->file >= found->file_count)
			continue;
		to[count++] = (struct shim_coverage_line){
			.offset = (uint32_t)(row->address + image->bias -
					     image->start),
			.line = row->line,
			.file = row->file,
			.column = row->column,
		};
	}
	object->info.line_count = count;
	/* Lines are searched by address (coverage_find_line). */
	SHIM_ASSERT(lines_are_sorted(&object->info));
}

static void copy_lines(const struct debuginfo_answer *answer, void *argument)
{
	const struct debuginfo_lines *found = answer->data;
	struct reading *reading = argument;
	struct coverage_object *object = coverage_make(reading->image,
						       SHIM_COVERAGE_LINES);
	size_t rows_size, size;
	char *memory;

	if (found->row_count > UINT32_MAX / sizeof(struct shim_coverage_line)) {
		coverage_log_missing(reading->image->path, -EFBIG);
		return;
	}
	rows_size = found->row_count * sizeof(struct shim_coverage_line);
	size = rows_size + found->row_count + found->files_size;
	memory = object ? shim_memory_map(size) : NULL;
	if (!memory) {
		coverage_log_missing(reading->image->path, -ENOMEM);
		return;
	}
	object->info.lines = (void *)memory;
	object->originals = (uint8_t *)memory + rows_size;
	object->info.files = memory + rows_size + found->row_count;
	object->info.file_count = found->file_count;
	object->info.files_size = found->files_size;
	object->info.dropped = (uint32_t)found->dropped;
	for (uint32_t i = 0; i < found->files_size; i++)
		((char *)object->info.files)[i] = found->files[i];
	copy_rows(object, reading->image, found);
	reading->object = object;
}

/* --- filters --- */

static int read_symbols(void *image)
{
	return symbols_read(image);
}

/* Calls the filters once for each function, because the lines of a function are
 * consecutive. */
struct filter_state {
	const struct image_entry *image;
	const struct symbols_function *last;
	bool is_wanted;
};

static bool is_chosen(struct filter_state *state, uint32_t offset)
{
	const struct image_entry *image = state->image;
	const struct symbols_function *function =
		image->symbols ?
			symbols_find(image->symbols,
				     image->start + offset - image->bias) :
			NULL;

	if (!function)
		return false;
	if (function != state->last)
		state->is_wanted = coverage_wants(function->start +
						  image->bias);
	state->last = function;
	return state->is_wanted;
}

static void apply_filters(struct coverage_object *object,
			  const struct image_entry *image)
{
	struct shim_coverage_line *lines = (void *)object->info.lines;
	struct filter_state state = { .image = image };
	uint32_t kept = 0;
	int r;

	if (!coverage_has_filters())
		return;
	r = state_call_locked(read_symbols, (void *)image);
	if (elf_is_refused(r))
		coverage_log_missing(image->path, r);
	for (uint32_t i = 0; i < object->info.line_count; i++)
		if (is_chosen(&state, lines[i].offset))
			lines[kept++] = lines[i];
	object->info.line_count = kept;
}

struct coverage_object *coverage_read_lines(const struct image_entry *image)
{
	struct reading reading = { .image = image };
	struct table_search search = { .image = image };
	struct debuginfo_question question = {
		.image = image->id,
		.path = image->path,
		.build_id = image->build_id,
		.build_id_size = image->build_id_size,
		.device = image->device,
		.inode = image->inode,
	};
	enum shim_result r = SHIM_OK;

	if (ARCH_TRAP_SIZE == 0)
		return coverage_make(image, SHIM_COVERAGE_UNSUPPORTED);
	if (__atomic_load_n(&has_given_up, __ATOMIC_ACQUIRE))
		return coverage_make(image, SHIM_COVERAGE_UNWRITABLE);
	state_call_locked(search_table, &search);
	/* Go's runtime blocks SIGTRAP at times, by system calls that shim does not see. */
	if (search.has_lines && image->is_of_go) {
		log_line("Go's runtime handles SIGTRAP itself: no lines: %s",
			 image->path);
		return coverage_make(image, SHIM_COVERAGE_UNWRITABLE);
	}
	if (search.has_lines) {
		int error = find_code(image, &question);

		if (error < 0)
			coverage_log_missing(image->path, error);
		r = helper_ask(HELPER_LINETABLE, &question, NULL, copy_lines,
			       &reading);
	}
	if (r == SHIM_E_OUTOFMEMORY)
		log_line("no memory to read line numbers: no lines: %s",
			 image->path);
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		log_line("line numbers could not be read, because of another "
			 "thread or a failing system call: no lines: %s",
			 image->path);
	if (!reading.object)
		return coverage_make(image, SHIM_COVERAGE_NO_LINES);
	apply_filters(reading.object, image);
	return reading.object;
}

/* --- setting and removing traps --- */

/* The size of the code that one write changes. */
#define WINDOW 65536

static unsigned char window[WINDOW];

struct work {
	struct coverage_object *object;
	struct patch patch;
	bool sets; /* false: removes */
	int error;
};

/* Whether all lines that begin where @line does were reached. */
static bool are_reached(const struct shim_coverage_object *info, uint32_t line)
{
	uint32_t offset = info->lines[line].offset;

	for (; line < info->line_count && info->lines[line].offset == offset;
	     line++)
		if (!info->reached[line])
			return false;
	return true;
}

/* Changes the byte at a line. */
static void change_byte(struct work *work, uint32_t line, unsigned char *byte)
{
	struct coverage_object *object = work->object;

	if (object->info.lines[line].line == 0)
		return;
	if (!work->sets) {
		if (*byte == ARCH_TRAP)
			*byte = object->originals[line];
		return;
	}
	/* handle_trap leaves a trap of the program itself to the program. */
	object->originals[line] = *byte;
	if (!are_reached(&object->info, line))
		*byte = ARCH_TRAP;
}

/* A line whose code does not run where it is. */
static void move_line(struct shim_coverage_object *info,
		      struct shim_coverage_line *line, uint64_t offset)
{
	uint8_t *reached = &info->reached[line - info->lines];
	const struct shim_coverage_line *next = line + 1;

	if (offset == UINT64_MAX) {
		info->dropped += line->line != 0;
		line->line = 0;
		if (!*reached)
			*reached = SHIM_COVERAGE_UNKNOWN;
		return;
	}
	/* The first of the lines at an address must be one. */
	if (line->line == 0 && next < info->lines + info->line_count &&
	    next->offset <= offset)
		*line = *next;
	line->offset = (uint32_t)offset;
}

/* Moves lines that begin in the code of marks, which shim changes: to where a trap can be.  The
 * order stays.  No trap is set now. */
static void move_lines(struct coverage_object *object)
{
	struct shim_coverage_object *info = &object->info;
	struct shim_coverage_line *lines = (void *)info->lines;
	struct mark_bytes bytes;
	uint32_t at = 0;

	while (sources_next_mark(object->start, &at, &bytes)) {
		uint64_t start = bytes.start - object->start;
		uint64_t end = bytes.end - object->start;

		for (uint32_t i = coverage_find_line(info, start);
		     i < info->line_count && lines[i].offset < end; i++) {
			bool is_sure = lines[i].offset == start ||
				       !bytes.may_leave;

			move_line(info, &lines[i],
				  bytes.met && is_sure ?
					  bytes.met - object->start :
					  UINT64_MAX);
		}
	}
}

/* The code may just have been unmapped by a thread of this process or its parent. */
static int read_window(uintptr_t address, size_t size)
{
	int r = sys_peek((const void *)address, window, size);

	if (r == 0 || r == -EFAULT)
		return r;
	for (size_t i = 0; i < size; i++)
		window[i] = ((const volatile unsigned char *)address)[i];
	return 0;
}

/* Changes the lines from @line on that fit into the window.  Returns the next line. */
static uint32_t change_window(struct work *work, uint32_t line)
{
	const struct shim_coverage_object *info = &work->object->info;
	uint32_t first = info->lines[line].offset, last = first;
	uintptr_t address = work->object->start + first;
	uint32_t end = line;

	while (end < info->line_count &&
	       info->lines[end].offset - first < WINDOW)
		last = info->lines[end++].offset;
	work->error = read_window(address, last - first + 1);
	if (work->error < 0)
		return end;
	/* If several lines begin at an address, the first one has the original byte. */
	for (; line < end; line++)
		if (line == 0 ||
		    info->lines[line].offset != info->lines[line - 1].offset)
			change_byte(work, line,
				    &window[info->lines[line].offset - first]);
	work->error = patch_write(&work->patch, address, window,
				  last - first + 1);
	return end;
}

static int change_all(void *argument)
{
	struct work *work = argument;
	struct coverage_object *object = work->object;
	uint32_t line = 0;

	if (object->start == 0 || (work->sets && has_given_up))
		return 0;
	object->is_set = object->is_set || work->sets;
	/* Scans for call sites of hooks before traps hide them. */
	if (work->sets) {
		call_sites_has(object->start);
		move_lines(object);
	}
	patch_open(&work->patch, object->start, object->start + object->size);
	while (line < object->info.line_count && work->error == 0)
		line = change_window(work, line);
	patch_close(&work->patch);
	sys_sync_cores();
	if (work->error == 0)
		object->is_set = work->sets;
	return work->error;
}

/* Restores byte by byte, because the code could not be written as a whole. */
static int restore_all(void *argument)
{
	struct coverage_object *object = argument;
	const struct shim_coverage_object *info = &object->info;
	bool is_left = false;

	for (uint32_t i = 0; i < info->line_count && object->start != 0; i++) {
		uintptr_t address = object->start + info->lines[i].offset;

		if (info->lines[i].line == 0 ||
		    (i > 0 &&
		     info->lines[i].offset == info->lines[i - 1].offset))
			continue;
		if (read_window(address, 1) < 0)
			break; /* the object was unmapped */
		if (window[0] == ARCH_TRAP)
			is_left |= patch_put_back(address,
						  object->originals[i]) < 0;
	}
	sys_sync_cores();
	object->is_set = is_left;
	return 0;
}

/* Marks are changed only while no trap is in them; then their lines are moved. */
static void make_way_for_marks(uintptr_t start, bool begins)
{
	struct coverage_object *object = coverage_objects;
	struct work work = { .sets = !begins };

	while (object && object->start != start)
		object = object->next;
	if (!object || !(begins ? object->is_set : object->makes_way))
		return;
	object->makes_way = begins;
	work.object = object;
	if (change_all(&work) < 0 && begins)
		restore_all(object);
}

SUBSCRIBE(marks_changed, make_way_for_marks);

static void remove_traps(struct coverage_object *object)
{
	struct work work = { .object = object, .sets = false };

	if (object->is_set && state_call_locked(change_all, &work) < 0)
		state_call_locked(restore_all, object);
}

static void set_traps(struct coverage_object *object)
{
	struct work work = { .object = object, .sets = true };

	state_call_locked(change_all, &work);
	if (work.error == 0)
		return;
	coverage_log_missing(object->info.path, work.error);
	remove_traps(object);
	object->info.state = SHIM_COVERAGE_UNWRITABLE;
}

void coverage_set_traps(struct coverage_object *object)
{
	code_copies_prepare(object);
	set_traps(object);
}

/* Threads may be in copies of code, so these stay. */
void coverage_detach_traps(bool begins)
{
	for (struct coverage_object *o = coverage_objects; o; o = o->next)
		if (begins)
			remove_traps(o);
		else if (o->info.state == SHIM_COVERAGE_LINES &&
			 o->info.reached)
			set_traps(o);
}

void coverage_forbid_traps(void)
{
	__atomic_store_n(&has_given_up, true, __ATOMIC_RELEASE);
}

void coverage_give_up(const char *reason)
{
	bool is_left = false;

	if (!coverage_is_on() ||
	    __atomic_exchange_n(&has_given_up, true, __ATOMIC_ACQ_REL))
		return;
	for (struct coverage_object *o = coverage_objects; o; o = o->next) {
		remove_traps(o);
		is_left |= o->is_set;
	}
	/* The handler stays if a trap could not be removed. */
	if (coverage_leave_loader() && !is_left && sigtrap_stop())
		log_line("%s: no more lines are recorded", reason);
}

/* --- in the signal handler --- */

struct trap_byte {
	uintptr_t address;
	unsigned char original;
};

static int restore_byte_locked(void *argument)
{
	const struct trap_byte *byte = argument;

	return patch_put_back(byte->address, byte->original);
}

static bool restore_byte(struct trap_byte byte)
{
	long r;
	int fd;

	if (*(const volatile uint8_t *)byte.address == byte.original)
		return true;
	fd = sys_open_memory(O_WRONLY | O_CLOEXEC);
	r = fd;
	if (fd >= 0) {
		r = sys_write_at(fd, &byte.original, 1, byte.address);
		sys_close(fd);
	}
	return r == 1 ||
	       state_call_locked_in_handler(restore_byte_locked, &byte) == 0;
}

/* A thread whose code is copied tries again to remove the trap once in this many
 * hits. */
#define HITS_PER_RETRY 1024

/* Returns the address at which the thread continues; 0 if no code can run. */
static uintptr_t continue_at(const struct coverage_object *object,
			     uint32_t line)
{
	static uint32_t turns, is_logged;
	uintptr_t address = object->start + object->info.lines[line].offset;
	uintptr_t copy = code_copies_find(object, line);

	if (copy &&
	    __atomic_add_fetch(&turns, 1, __ATOMIC_RELAXED) % HITS_PER_RETRY !=
		    0)
		return copy;
	if (restore_byte(
		    (struct trap_byte){ address, object->originals[line] }))
		return address;
	copy = code_copies_make(object, line);
	if (!copy)
		log_line(
			"%s",
			"the original code could not be restored: every way to "
			"write it is refused");
	else if (!__atomic_exchange_n(&is_logged, 1, __ATOMIC_RELAXED))
		log_line("%s", "every way to write code is refused: lines not "
			       "reached before run as copies, much slower");
	return copy;
}

static void mark_reached(struct coverage_object *object, uint32_t line)
{
	const struct shim_coverage_object *info = &object->info;
	uint32_t offset = info->lines[line].offset;

	for (; line < info->line_count && info->lines[line].offset == offset;
	     line++)
		__atomic_store_n(&info->reached[line], 1, __ATOMIC_RELAXED);
}

/* If shim has set a trap at @address: counts the line as reached and removes the trap.
 * TRAP_STAYS if the trap cannot be removed. */
static enum sigtrap_owner handle_trap(uintptr_t address, ucontext_t *context)
{
	for (struct coverage_object *o =
		     __atomic_load_n(&coverage_objects, __ATOMIC_ACQUIRE);
	     o; o = o->next) {
		uintptr_t start = __atomic_load_n(&o->start, __ATOMIC_ACQUIRE);
		uint32_t line;

		if (start == 0 || address - start >= o->size)
			continue;
		line = coverage_find_line(&o->info, address - start);
		if (!o->is_set || line == o->info.line_count ||
		    o->info.lines[line].offset != address - start ||
		    o->info.lines[line].line == 0) {
			if (*(const volatile uint8_t *)address == ARCH_TRAP)
				continue;
			/* It was removed meanwhile: by a detach, or for a mark. */
			ARCH_CONTEXT_GO_TO(context, address);
			return TRAP_OURS;
		}
		if (o->originals[line] == ARCH_TRAP)
			continue;
		mark_reached(o, line);
		address = continue_at(o, line);
		if (!address)
			return TRAP_STAYS;
		ARCH_CONTEXT_GO_TO(context, address);
		return TRAP_OURS;
	}
	return TRAP_NOT_OURS;
}

static void take_trap(uintptr_t address, ucontext_t *context,
		      enum sigtrap_owner *whose)
{
	if (*whose == TRAP_NOT_OURS)
		*whose = handle_trap(address, context);
}

SUBSCRIBE(sigtrap_taken, take_trap);
