/*
 * The memory for copies of code, and the table of which line was copied where.  The test
 * is the system and the decoder.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "../../shim/coverage/code_copies.c"

/* --- the object: 8 lines in 80 bytes of code, and one that is far away --- */

#define LINES 9
#define FAR   2000

static unsigned char code[FAR + 16];
static uint8_t originals[LINES], reached[LINES];
static struct shim_coverage_line lines[LINES];
static struct coverage_object object;

static unsigned char copies_memory[1 << 20] __attribute__((aligned(4096)));
static unsigned mapped, unmapped, mappings_fail, protected;

int sys_map_shared_at(void *at, size_t size)
{
	(void)at;
	if (mappings_fail > 0)
		return --mappings_fail, -EEXIST;
	cr_assert(le(sz, size, sizeof(copies_memory)));
	mapped++;
	return 0;
}

static int again_result, protect_result;

int sys_map_again(void *memory, size_t size, void **again)
{
	(void)memory;
	if (again_result < 0)
		return again_result;
	mapped++;
	memset(copies_memory, 0, size);
	*again = copies_memory;
	return 0;
}

int sys_protect(void *memory, size_t size, int how)
{
	(void)memory, (void)size;
	cr_expect(eq(int, how, PROT_READ | PROT_EXEC));
	protected++;
	return protect_result;
}

int sys_unmap(void *memory, size_t size)
{
	(void)memory, (void)size;
	unmapped++;
	return 0;
}

/* --- the decoder: a copy has 3 bytes more than its code --- */

static unsigned copied;
static size_t most = SIZE_MAX;

static size_t copy_code(struct decode_copy *copy)
{
	size_t size = copy->end == copy->code ? 10 : copy->end - copy->code;

	copied += copy->memory != NULL;
	if (size > most)
		return 0;
	for (size_t i = 0; copy->places && i < size; i++)
		copy->places[i] = i % 10 ? 0 : (uint16_t)(i + 3 + 1);
	return size + 3;
}

static const struct decode decoder = { .copy = copy_code };
static const struct decode *the_decoder = &decoder;

const struct decode *code_decoder(bool *may_come)
{
	*may_come = false;
	return the_decoder;
}

static void begin(void)
{
	for (uint32_t i = 0; i < LINES; i++) {
		lines[i].offset = i < LINES - 1 ? i * 10 : FAR;
		lines[i].line = i + 1;
	}
	object = (struct coverage_object){
		.info = { .line_count = LINES,
			  .lines = lines,
			  .reached = reached },
		.start = (uintptr_t)code,
		.size = sizeof(code),
		.originals = originals,
	};
	code_copies_prepare(&object);
	cr_assert(ne(ptr, object.copies, NULL));
}

/* --- the tests --- */

Test(code_copies, a_copy_has_all_lines_up_to_the_next_that_has_one)
{
	uintptr_t at[LINES], first;

	begin();
	for (uint32_t i = 0; i < LINES; i++)
		cr_expect(zero(u64, code_copies_find(&object, i)));
	at[4] = code_copies_make(&object, 4);
	cr_assert(ne(u64, at[4], 0));
	cr_expect(eq(u64, code_copies_find(&object, 4), at[4]));
	for (uint32_t i = 5; i < LINES - 2; i++) {
		at[i] = code_copies_find(&object, i);
		cr_expect(eq(u64, at[i], at[4] + (i - 4) * 10 + 3));
	}
	for (uint32_t i = 0; i < 4; i++)
		cr_expect(zero(u64, code_copies_find(&object, i)));
	/* The end of the line before the gap is not known. */
	cr_expect(zero(u64, code_copies_find(&object, LINES - 2)));
	cr_expect(zero(u64, code_copies_find(&object, LINES - 1)));
	cr_expect(eq(u32, copied, 1));
	first = code_copies_make(&object, 1);
	cr_assert(ne(u64, first, 0));
	cr_expect(zero(u64, code_copies_find(&object, 0)));
	cr_expect(eq(u64, code_copies_find(&object, 3), first + 23));
	/* Lines keep the copies that they have. */
	for (uint32_t i = 4; i < LINES - 2; i++)
		cr_expect(eq(u64, code_copies_make(&object, i), at[i]));
	cr_expect(eq(u32, copied, 2));
}

Test(code_copies, a_line_that_cannot_be_copied_has_no_copy)
{
	begin();
	most = 0;
	cr_expect(zero(u64, code_copies_make(&object, 2)));
	cr_expect(zero(u64, code_copies_find(&object, 2)));
	most = SIZE_MAX;
	the_decoder = NULL;
	cr_expect(zero(u64, code_copies_make(&object, 2)));
	the_decoder = &decoder;
	cr_expect(ne(u64, code_copies_make(&object, 2), 0));
}

/* Beyond the size for long copies, single instructions are copied, until all is used. */
Test(code_copies, memory_that_is_nearly_full_has_single_instructions)
{
	begin();
	object.copies->used = object.copies->many;
	cr_expect(ne(u64, code_copies_make(&object, 4), 0));
	cr_expect(zero(u64, code_copies_find(&object, 5)));
	object.copies->used = object.copies->size - 13;
	cr_expect(ne(u64, code_copies_make(&object, 5), 0));
	cr_expect(eq(u64, object.copies->used, object.copies->size));
	cr_expect(zero(u64, code_copies_make(&object, 6)));
	cr_expect(eq(u64, object.copies->used, object.copies->size));
}

Test(code_copies, without_memory_there_are_none_and_nothing_stays_mapped)
{
	begin();
	again_result = -ENOMEM;
	code_copies_prepare(&object);
	cr_expect(eq(ptr, object.copies, NULL));
	cr_expect(eq(u32, mapped, unmapped));
	again_result = 0;
	protect_result = -EACCES;
	code_copies_prepare(&object);
	cr_expect(eq(ptr, object.copies, NULL));
	cr_expect(eq(u32, mapped, unmapped));
	cr_expect(zero(u64, code_copies_make(&object, 1)));
	cr_expect(zero(u64, code_copies_find(&object, 1)));
	protect_result = 0;
	mappings_fail = 3;
	code_copies_prepare(&object);
	cr_expect(ne(ptr, object.copies, NULL));
	cr_expect(eq(u32, mapped, unmapped + 2));
}

static void check_read(uint32_t from, unsigned size)
{
	unsigned char bytes[LINES * 10];
	struct decode_copy copy = { .argument = &object };

	read_code(&copy, (uintptr_t)code + from, bytes, size);
	for (unsigned i = 0; i < size; i++)
		cr_expect(eq(u32, bytes[i], (unsigned char)(from + i)),
			  "%u bytes from %u: %u", size, from, i);
}

Test(code_copies, the_decoder_reads_what_the_traps_are_in_place_of)
{
	begin();
	for (uint32_t i = 0; i < sizeof(code); i++)
		code[i] = (unsigned char)i;
	/* Two lines at an address have one trap. */
	lines[3].offset = lines[2].offset;
	for (uint32_t i = 0; i < LINES; i++) {
		originals[i] = (uint8_t)lines[i].offset;
		code[lines[i].offset] = ARCH_TRAP;
	}
	originals[3] = ARCH_TRAP;
	check_read(0, 80);
	check_read(0, 1);
	check_read(5, 15);
	check_read(20, 21);
	check_read(45, 5);
	check_read(FAR - 1, 2);
}

Test(code_copies, an_instruction_that_has_the_byte_of_a_trap_keeps_it)
{
	unsigned char byte;
	struct decode_copy copy = { .argument = &object };

	begin();
	lines[4].line = 0;
	originals[4] = 1;
	code[40] = code[43] = ARCH_TRAP;
	read_code(&copy, (uintptr_t)code + 43, &byte, 1);
	cr_expect(eq(u32, byte, ARCH_TRAP));
	read_code(&copy, (uintptr_t)code + 40, &byte, 1);
	cr_expect(eq(u32, byte, ARCH_TRAP));
}
