/*
 * How code uses GOT slots, in a handmade image.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "sources/slot_uses.c"

#define CODE	  0x1000u
#define CODE_SIZE (2 * BUFFER_SIZE + 0x1000)
#define SIZE	  (CODE + CODE_SIZE)
#define SLOTS	  0x100000u /* no code is there */

static _Alignas(4096) unsigned char image[SIZE];
static uintptr_t unreadable;
static unsigned reads;

int sys_peek(const void *from, void *to, size_t size)
{
	uintptr_t at = (uintptr_t)from;

	reads++;
	cr_assert(ge(ulong, at, (uintptr_t)image));
	cr_assert(le(ulong, at + size, (uintptr_t)image + SIZE));
	if (unreadable - at < size)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

/* --- functions that load a slot --- */

static bool has_decoder, has_function;
static bool is_called_later;
static struct fde function;
static struct decode_load asked;

static bool called(const struct decode_load *load)
{
	asked = *load;
	cr_assert(eq(int,
		     memcmp(load->copy, (const void *)load->start,
			    load->end - load->start),
		     0));
	return is_called_later;
}

const struct decode *code_decoder(bool *may_come)
{
	static const struct decode decoder = { .called = called };

	*may_come = false;
	return has_decoder ? &decoder : NULL;
}

bool eh_frame_open(uintptr_t address, struct tables *tables, struct fde *fde)
{
	(void)tables;
	*fde = function;
	return has_function && address >= function.start &&
	       address < function.end;
}

/* --- the image --- */

static Elf64_Phdr *part(unsigned number)
{
	return (Elf64_Phdr *)(image + sizeof(Elf64_Ehdr)) + number;
}

static void make_image(void)
{
	Elf64_Ehdr header = { .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phoff = sizeof(Elf64_Ehdr),
			      .e_phnum = 1 };

	memcpy(image, &header, sizeof(header));
	memset(image + CODE, 0x90, CODE_SIZE);
	*part(0) = (Elf64_Phdr){ .p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = CODE,
				 .p_filesz = CODE_SIZE,
				 .p_memsz = CODE_SIZE };
}

TestSuite(slot_uses, .init = make_image);

static uintptr_t slot_at(unsigned number)
{
	return (uintptr_t)image + SLOTS + number * 8;
}

/* Writes an instruction at @offset of the code that ends with the distance to a slot. */
static void put(size_t offset, const char *opcode, uintptr_t slot)
{
	unsigned char *at = image + CODE + offset;
	size_t size = strlen(opcode);
	int32_t distance = (int32_t)(slot - (uintptr_t)(at + size + 4));

	memcpy(at, opcode, size);
	memcpy(at + size, &distance, sizeof(distance));
}

static void find(struct slot_place *places, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		places[i] = (struct slot_place){ .slot = slot_at(i) };
	cr_assert(eq(int,
		     slot_uses_find((uintptr_t)image, (uintptr_t)image, places,
				    count),
		     0));
}

static void expect(const struct slot_place *place, bool is_called, bool is_read)
{
	cr_assert(eq(int, place->is_called, is_called));
	cr_assert(eq(int, place->is_read, is_read));
}

Test(slot_uses, calls_and_jumps_are_calls)
{
	static const struct {
		const char *opcode;
		bool is_called;
	} uses[] = {
		{ "\xff\x15", true },				  /* call */
		{ "\xff\x25", true },				  /* jmp */
		{ "\xff\x35", false },				  /* push */
		{ "\x48\x8b\x05", false },			  /* mov */
		{ "\x8b\x15", false },	   { "\x3b\x25", false }, /* cmp */
	};
	struct slot_place place;

	for (unsigned i = 0; i < sizeof(uses) / sizeof(*uses); i++) {
		make_image();
		put(100, uses[i].opcode, slot_at(0));
		find(&place, 1);
		expect(&place, uses[i].is_called, !uses[i].is_called);
	}
	put(200, "\xff\x15", slot_at(0));
	find(&place, 1);
	expect(&place, true, true);
}

Test(slot_uses, each_slot_has_its_own_uses)
{
	struct slot_place places[7];

	for (uint32_t count = 1; count <= 7; count++)
		for (uint32_t used = 0; used < count; used++) {
			make_image();
			put(100, "\xff\x15", slot_at(used));
			put(200, "\x48\x8b\x05", slot_at((used + 1) % count));
			/* Between two slots, and outside of all. */
			put(300, "\xff\x15", slot_at(used) + 4);
			put(400, "\xff\x15", slot_at(0) - 8);
			put(500, "\x48\x8b\x05", slot_at(count));
			find(places, count);
			for (uint32_t i = 0; i < count; i++)
				expect(&places[i], i == used,
				       i == (used + 1) % count);
		}
}

Test(slot_uses, no_byte_is_left_out_where_two_reads_meet)
{
	static const size_t ends[] = { 6, BUFFER_SIZE, 2 * BUFFER_SIZE - 5,
				       CODE_SIZE };
	struct slot_place place;

	for (unsigned i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		for (size_t at = ends[i] - 6;
		     at <= ends[i] + 6 && at + 6 <= CODE_SIZE; at++) {
			make_image();
			put(at, "\xff\x25", slot_at(0));
			find(&place, 1);
			expect(&place, true, false);
		}
}

Test(slot_uses, code_of_all_sizes_is_read_to_its_end)
{
	static const size_t sizes[] = { 5,
					6,
					7,
					BUFFER_SIZE - 1,
					BUFFER_SIZE,
					BUFFER_SIZE + 1,
					BUFFER_SIZE + 5,
					2 * BUFFER_SIZE - 5,
					CODE_SIZE };
	struct slot_place place;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		make_image();
		part(0)->p_filesz = sizes[i];
		put(sizes[i] < 6 ? 0 : sizes[i] - 6, "\xff\x25", slot_at(0));
		find(&place, 1);
		expect(&place, sizes[i] >= 6, false);
	}
}

Test(slot_uses, only_code_that_is_loaded_from_the_file_is_read)
{
	struct slot_place place;

	put(100, "\xff\x15", slot_at(0));
	part(0)->p_flags = PF_R;
	find(&place, 1);
	expect(&place, false, false);
	part(0)->p_flags = PF_X;
	part(0)->p_type = PT_NOTE;
	find(&place, 1);
	expect(&place, false, false);
	part(0)->p_type = PT_LOAD;
	find(&place, 1);
	expect(&place, true, false);
	part(0)->p_filesz = 0;
	find(&place, 1);
	expect(&place, false, false);
}

Test(slot_uses, all_parts_are_read)
{
	struct slot_place places[2];

	((Elf64_Ehdr *)image)->e_phnum = 3;
	*part(1) = (Elf64_Phdr){ .p_type = PT_LOAD, .p_flags = PF_R };
	*part(2) = *part(0);
	part(0)->p_filesz = 0x100;
	part(2)->p_vaddr = CODE + 0x800;
	part(2)->p_filesz = 0x100;
	put(0x80, "\xff\x15", slot_at(0));
	put(0x880, "\xff\x15", slot_at(1));
	find(places, 2);
	expect(&places[0], true, false);
	expect(&places[1], true, false);
}

Test(slot_uses, code_that_cannot_be_read_is_an_error)
{
	struct slot_place place = { .slot = slot_at(0) };
	uintptr_t start = (uintptr_t)image;

	((Elf64_Ehdr *)image)->e_phnum = 2;
	*part(1) = *part(0);
	unreadable = start + CODE + BUFFER_SIZE + 100;
	cr_assert(eq(int, slot_uses_find(start, start, &place, 1), -EFAULT));
	unreadable = start + CODE;
	cr_assert(eq(int, slot_uses_find(start, start, &place, 1), -EFAULT));
	/* An image that is gone has no code. */
	unreadable = start;
	cr_assert(eq(int, slot_uses_find(start, start, &place, 1), 0));
	expect(&place, false, false);
}

Test(slot_uses, no_slots_need_no_look_at_the_code)
{
	cr_assert(
		eq(int,
		   slot_uses_find((uintptr_t)image, (uintptr_t)image, NULL, 0),
		   0));
	cr_assert(le(uint, reads, 1));
}

/* What the function does with the value is asked of the decoder. */
Test(slot_uses, a_value_that_is_only_called_is_a_call)
{
	uintptr_t code = (uintptr_t)image + CODE;
	struct slot_place place;

	has_decoder = has_function = is_called_later = true;
	function = (struct fde){ .start = code + 64, .end = code + 512 };
	put(100, "\x48\x8b\x05", slot_at(0));
	find(&place, 1);
	expect(&place, true, false);
	cr_expect(eq(ulong, asked.at, code + 100));
	cr_expect(eq(ulong, asked.start, function.start));
	cr_expect(eq(ulong, asked.end, function.end));
	cr_expect(not(asked.has_handlers));
	function.lsda = 1;
	find(&place, 1);
	cr_expect(asked.has_handlers);

	is_called_later = false;
	find(&place, 1);
	expect(&place, false, true);
}

Test(slot_uses, a_value_of_an_unknown_function_is_read)
{
	uintptr_t code = (uintptr_t)image + CODE;
	struct slot_place place;

	has_function = is_called_later = true;
	function = (struct fde){ .start = code, .end = code + 512 };
	put(100, "\x48\x8b\x05", slot_at(0));
	find(&place, 1);
	expect(&place, false, true);
	has_decoder = true;
	function.end = code + 100; /* behind it */
	find(&place, 1);
	expect(&place, false, true);
	function.end = code + FUNCTION_SIZE + 1;
	find(&place, 1);
	expect(&place, false, true);
	function.end--;
	find(&place, 1);
	expect(&place, true, false);
}
