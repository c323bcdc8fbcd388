/*
 * Memory near an object for copies of its code, and the table of which line was copied
 * where.  libshim-code.so makes the copies (inspect/decode/copy.c).  Each line is
 * copied once, with the code after it up to the next line that has a copy.
 */
#include "coverage/code_copies.h"

#include "arch.h"
#include "inspect/code.h"
#include "inspect/decode/decode.h"
#include "os/sys.h"

#include <errno.h>
#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE 4096u
#define NEAR (1ull << 30) /* copies can refer to data within 2 GiB */
#define STEP (16ull << 20)
#define PART 512 /* bytes of code per copy */

/* The memory is mapped twice: writable here, executable at copies_at.  Fork children
 * share it.  Copies are never changed. */
struct code_copies {
	uint64_t size;	  /* of this memory */
	uint64_t many;	  /* beyond this size, single instructions are copied */
	uint64_t used;	  /* in bytes */
	uint32_t index[]; /* by line: the offset of its copy; 0: no copy */
};

/* --- memory --- */

static uintptr_t page_up(uintptr_t size)
{
	return (size + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
}

/* Maps below the object, because the heap is above the program.  Maps above the object
 * if there is no room below, as for a program at a low address. */
static int map_near(const struct coverage_object *object, size_t size,
		    uintptr_t *at)
{
	int r = -ENOMEM;

	for (uint64_t away = STEP; away < NEAR; away += STEP) {
		*at = (object->start & ~(uintptr_t)(PAGE - 1)) - away - size;
		if (object->start > away + size + STEP)
			r = sys_map_shared_at((void *)*at, size);
		if (r == 0 || (r != -EEXIST && object->start > NEAR + size))
			return r;
	}
	for (uint64_t away = NEAR; away < NEAR + NEAR / 2; away += STEP) {
		*at = page_up(object->start + object->size) + away;
		r = sys_map_shared_at((void *)*at, size);
		if (r != -EEXIST)
			return r;
	}
	return r;
}

static int map_twice(void *executable, size_t size, void **writable)
{
	int r = sys_map_again(executable, size, writable);

	if (r < 0)
		return r;
	r = sys_protect(executable, size, PROT_READ | PROT_EXEC);
	if (r < 0)
		sys_unmap(*writable, size);
	return r;
}

static void unmap_copies(struct coverage_object *object)
{
	uint64_t size;

	if (!object->copies)
		return;
	size = object->copies->size;
	sys_unmap(object->copies, size);
	sys_unmap((void *)object->copies_at, size);
	object->copies = NULL;
}

void code_copies_prepare(struct coverage_object *object)
{
	const struct shim_coverage_object *info = &object->info;
	uint64_t code, index, size;
	bool may_come;
	void *memory;

	unmap_copies(object);
	if (info->line_count == 0 || !code_decoder(&may_come))
		return;
	code = info->lines[info->line_count - 1].offset - info->lines[0].offset;
	index = sizeof(struct code_copies) +
		info->line_count * sizeof(uint32_t);
	size = page_up(index + 4 * code + 16 * PART +
		       (uint64_t)info->line_count * DECODE_COPY_ONE);
	if (size > NEAR / 4 || object->size > NEAR / 2 ||
	    map_near(object, size, &object->copies_at) < 0)
		return;
	if (map_twice((void *)object->copies_at, size, &memory) < 0) {
		sys_unmap((void *)object->copies_at, size);
		return;
	}
	object->copies = memory;
	object->copies->size = size;
	object->copies->many = index + 4 * code;
	object->copies->used = index;
}

/* --- copying --- */

uintptr_t code_copies_find(const struct coverage_object *object, uint32_t line)
{
	uint32_t at = object->copies ?
			      __atomic_load_n(&object->copies->index[line],
					      __ATOMIC_ACQUIRE) :
			      0;

	return at ? object->copies_at + at : 0;
}

/* Finds the first line at @address that has a trap; false if no line there has one. */
static bool find_line(const struct coverage_object *object, uintptr_t address,
		      uint32_t *line)
{
	const struct shim_coverage_object *info = &object->info;
	uint64_t offset = address - object->start;

	if (offset >= object->size)
		return false;
	*line = coverage_find_line(info, offset);
	return *line < info->line_count &&
	       info->lines[*line].offset == offset &&
	       info->lines[*line].line != 0;
}

void code_copies_restore(const struct coverage_object *object,
			 uintptr_t address, unsigned char *bytes, size_t size)
{
	const struct shim_coverage_object *info = &object->info;
	uint32_t line = coverage_find_line(info, address - object->start);

	for (; line < info->line_count; line++) {
		uint64_t at = info->lines[line].offset -
			      (address - object->start);

		if (at >= size)
			break;
		if (info->lines[line].line != 0 && bytes[at] == ARCH_TRAP &&
		    (line == 0 ||
		     info->lines[line].offset != info->lines[line - 1].offset))
			bytes[at] = object->originals[line];
	}
}

static void read_code(const struct decode_copy *copy, uintptr_t address,
		      unsigned char *bytes, unsigned size)
{
	for (unsigned i = 0; i < size; i++)
		bytes[i] = ((const volatile unsigned char *)address)[i];
	code_copies_restore(copy->argument, address, bytes, size);
}

static unsigned char *find_marks(const struct decode_copy *copy,
				 uintptr_t address, unsigned *count)
{
	const struct coverage_object *object = copy->argument;
	const struct shim_coverage_object *info = &object->info;
	uint32_t line, end;

	if (!find_line(object, address, &line))
		return NULL;
	for (end = line; end < info->line_count &&
			 info->lines[end].offset == info->lines[line].offset;)
		end++;
	*count = end - line;
	return &info->reached[line];
}

static uintptr_t find_target(const struct decode_copy *copy, uintptr_t address)
{
	const struct coverage_object *object = copy->argument;
	uintptr_t found = 0;
	uint32_t line;

	if (find_line(object, address, &line))
		found = code_copies_find(object, line);
	return found ? found : address;
}

/* The end of the code to copy from @line on: the next line that has a copy.  There is
 * no page between two lines, so all of the code is mapped. */
static uintptr_t find_end(const struct coverage_object *object, uint32_t line)
{
	const struct shim_coverage_object *info = &object->info;
	uint64_t first = info->lines[line].offset, end = first;

	for (; line < info->line_count; line++) {
		uint64_t offset = info->lines[line].offset;

		if (offset > first + PART)
			break;
		end = offset;
		if (offset > first && code_copies_find(object, line))
			break;
	}
	return object->start + end;
}

static bool reserve(struct code_copies *copies, uint64_t size, uint64_t *at)
{
	*at = __atomic_load_n(&copies->used, __ATOMIC_RELAXED);
	do {
		if (*at + size > copies->size)
			return false;
	} while (!__atomic_compare_exchange_n(&copies->used, at, *at + size,
					      true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	return true;
}

static void publish_copy(const struct coverage_object *object, uint32_t line,
			 const struct decode_copy *copy, uint64_t at)
{
	const struct shim_coverage_object *info = &object->info;
	uint32_t *index = object->copies->index;

	__atomic_store_n(&index[line], (uint32_t)at, __ATOMIC_RELEASE);
	for (line++; copy->places && line < info->line_count; line++) {
		uintptr_t offset = object->start + info->lines[line].offset -
				   copy->code;

		if (offset >= copy->end - copy->code)
			break;
		if (copy->places[offset] != 0 && index[line] == 0)
			__atomic_store_n(
				&index[line],
				(uint32_t)(at + copy->places[offset] - 1),
				__ATOMIC_RELEASE);
	}
}

static uintptr_t copy_line(const struct coverage_object *object, uint32_t line,
			   const struct decode *decode)
{
	struct code_copies *copies = object->copies;
	uint16_t places[PART] = { 0 };
	struct decode_copy copy = {
		.code = object->start + object->info.lines[line].offset,
		.to = object->copies_at,
		.read = read_code,
		.mark = find_marks,
		.target = find_target,
		.argument = object,
	};
	uint64_t size, at;

	copy.end = copy.code;
	if (__atomic_load_n(&copies->used, __ATOMIC_RELAXED) < copies->many) {
		copy.end = find_end(object, line);
		copy.places = copy.end > copy.code ? places : NULL;
	}
	size = decode->copy(&copy);
	if (size == 0 || !reserve(copies, size, &at))
		return 0;
	copy.to = object->copies_at + at;
	copy.memory = (unsigned char *)copies + at;
	if (decode->copy(&copy) != size)
		return 0;
	publish_copy(object, line, &copy, at);
	return copy.to;
}

uintptr_t code_copies_make(const struct coverage_object *object, uint32_t line)
{
	uintptr_t found = code_copies_find(object, line);
	bool may_come;
	const struct decode *decode = code_decoder(&may_come);

	return found || !object->copies || !decode ?
		       found :
		       copy_line(object, line, decode);
}
