/*
 * Copies of images in which functions without marks are searched, and their PLT: the test
 * has images, also damaged ones, in its memory.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "not_called.h"
#include "../../shim/sources/unmarked.c"

NOT_CALLED(callspec_patches);
NOT_CALLED(code_decoder);
NOT_CALLED(config);
NOT_CALLED(decoded_key_of);
NOT_CALLED(decoded_read);
NOT_CALLED(decoded_write);
NOT_CALLED(eh_frame_find_next_row);
NOT_CALLED(eh_frame_find_row);
NOT_CALLED(eh_frame_open_copy);
NOT_CALLED(entry_is_known);
NOT_CALLED(fde_get);
NOT_CALLED(fde_open);
NOT_CALLED(generated_is_ocaml);
NOT_CALLED(image_find);
NOT_CALLED(image_pin);
NOT_CALLED(image_unpin);
NOT_CALLED(log_error);
NOT_CALLED(log_line);
NOT_CALLED(objects_is_java);
NOT_CALLED(objects_is_system);
NOT_CALLED(objects_is_untouchable);
NOT_CALLED(symbols_find);
NOT_CALLED(symbols_read);
NOT_CALLED(sys_unmap);
NOT_CALLED(text_after);
NOT_CALLED(text_length);
NOT_CALLED(unmarked_list);
NOT_CALLED(unmarked_moved_size);

#define SIZE 0x4000

/* The memory around the copy must stay as it is. */
static unsigned char copy[3 * SIZE];
static _Alignas(4096) unsigned char program[3 * SIZE];

int sys_map(size_t size, void **memory)
{
	cr_assert(eq(sz, size, SIZE));
	*memory = copy + SIZE;
	return 0;
}

int sys_peek(const void *from, void *to, size_t size)
{
	uintptr_t offset = (uintptr_t)from - (uintptr_t)program;

	if (offset > sizeof(program) || size > sizeof(program) - offset)
		return -EFAULT;
	memcpy(to, from, size);
	return 0;
}

static struct source_image image;
static Elf64_Phdr *parts;

/* The image is the middle part of @program: headers and data, then code. */
static void begin(void)
{
	unsigned char *start = program + SIZE;
	Elf64_Ehdr *elf = (void *)start;

	memset(program, 1, sizeof(program));
	memset(copy, 0, sizeof(copy));
	for (unsigned i = 0; i < SIZE; i++)
		start[i] = (unsigned char)(i % 251);
	elf->e_phentsize = sizeof(Elf64_Phdr);
	elf->e_phoff = sizeof(*elf);
	elf->e_phnum = 2;
	parts = (void *)(elf + 1);
	parts[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_filesz = 0x1000 };
	parts[1] = (Elf64_Phdr){ .p_type = PT_LOAD,
				 .p_vaddr = 0x2000,
				 .p_filesz = 0x1800,
				 .p_flags = PF_X | PF_R };
	image = (struct source_image){ .start = (uintptr_t)start,
				       .end = (uintptr_t)start + SIZE,
				       .bias = (uintptr_t)start };
	current = (struct work){ .image = &image };
}

Test(unmarked, a_copy_has_the_segments_where_they_are)
{
	begin();
	cr_assert(zero(int, copy_image(&current)));
	cr_expect(zero(int, memcmp(copy + SIZE, program + SIZE, 0x1000)));
	cr_expect(zero(int, memcmp(copy + SIZE + 0x2000,
				   program + SIZE + 0x2000, 0x1800)));
	cr_expect(zero(u32, copy[SIZE + 0x1fff]));
	cr_expect(eq(u64, current.question.text, image.start + 0x2000));
	cr_expect(eq(u64, current.question.text_end, image.start + 0x3800));
}

static void expect_refused(const char *why)
{
	cr_expect(eq(int, copy_image(&current), -ENOEXEC), "%s", why);
	for (unsigned i = 0; i < SIZE; i++)
		cr_assert(not(copy[i] | copy[2 * SIZE + i]), "%s", why);
	begin();
}

Test(unmarked, segments_outside_the_image_are_not_copied)
{
	begin();
	parts[1].p_filesz = SIZE - 0x2000 + 1;
	expect_refused("it ends behind the image");
	parts[1].p_vaddr = (Elf64_Addr)-0x800;
	expect_refused("it begins before the image");
	parts[1].p_vaddr = (Elf64_Addr)-0x800;
	parts[1].p_filesz = SIZE + 0x1000;
	expect_refused("the image is inside of it");
	parts[1].p_filesz = (Elf64_Xword)-0x1000;
	expect_refused("it ends before it begins");
	parts[1].p_filesz = SIZE - 0x2000;
	cr_expect(zero(int, copy_image(&current)));
}

static bool begins_a_plt(const char *code, size_t size)
{
	begin();
	memset(copy, 0, sizeof(copy));
	memcpy(copy + SIZE, code, size);
	current.question.copy = copy + SIZE;
	current.question.start = image.start;
	current.question.end = image.end;
	return is_plt(&current, image.start);
}

#define PLT(code) begins_a_plt(code, sizeof(code) - 1)

Test(unmarked, a_jump_through_a_slot_is_of_the_plt)
{
	cr_expect(PLT("\xff\x25\x10\x20\0\0\x66\x90"), "plain");
	cr_expect(PLT("\xf2\xff\x25\x10\x20\0\0\x90"), "bnd");
	cr_expect(PLT("\xf3\x0f\x1e\xfa\xff\x25\x10\x20\0\0"), "endbr64");
	cr_expect(PLT("\xf3\x0f\x1e\xfa\xf2\xff\x25\x10\x20\0\0"), "both");
}

Test(unmarked, other_code_is_not)
{
	cr_expect(not(PLT("\xf3\x0f\x1e\xfa\x55\x48\x89\xe5")), "a function");
	cr_expect(not(PLT("\x55\xff\x25\x10\x20\0\0\x90")), "push first");
	cr_expect(not(PLT("\xff\x15\x10\x20\0\0\x66\x90")), "a call");
	cr_expect(not(PLT("\xf3\xff\x25\x10\x20\0\0\x90")), "rep");
	cr_expect(not(PLT("\xf3\x0f\x1e\xff\x25\x10\x20\0")), "a long nop");
	current.question.end = image.start + 7;
	cr_expect(not(is_plt(&current, image.start)), "too short");
}
