/*
 * The functions that the compiler has split parts off, in a handmade table.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "not_called.h"
#include "../../shim/image/symbols.c"

NOT_CALLED(elf_close);
NOT_CALLED(elf_is_refused);
NOT_CALLED(elf_load_named);
NOT_CALLED(elf_open);
NOT_CALLED(elf_open_debug);
NOT_CALLED(elf_open_inner);
NOT_CALLED(image_list);
NOT_CALLED(log_error);
NOT_CALLED(state_call_locked);
NOT_CALLED(symbol_table_add);
NOT_CALLED(symbol_table_finish);
NOT_CALLED(symbol_table_free);
NOT_CALLED(sys_unmap);
NOT_CALLED(text_add);
NOT_CALLED(text_init);

static uint32_t slots[1 << 12];

int sys_map(size_t size, void **memory)
{
	cr_assert(le(sz, size, sizeof(slots)));
	memset(slots, 0, sizeof(slots));
	*memory = slots;
	return 0;
}

uint32_t symbol_table_whole_length(const char *name, uint32_t length)
{
	const char *dot = memchr(name, '.', length);

	return dot ? (uint32_t)(dot - name) : length;
}

#define SYMBOLS 1000

static struct table_symbol symbols[SYMBOLS];
static char strings[SYMBOLS * 32];
static struct work work = {
	.table = { .symbols = symbols, .strings = strings },
};

static struct table_symbol *add(const char *name, uint32_t file)
{
	struct table_symbol *symbol = &symbols[work.table.count];

	symbol->name = work.table.count++ * 32;
	symbol->length = (uint32_t)strlen(name);
	symbol->file = file;
	strcpy(strings + symbol->name, name);
	symbol->has_dot = symbol->is_part = strchr(name, '.') != NULL;
	return symbol;
}

static struct table_symbol *whole_of(const struct table_symbol *part)
{
	return find_whole(&work, part);
}

Test(symbols, a_part_is_of_its_source_file_or_of_a_global_function)
{
	struct table_symbol *of_1 = add("same", 1), *of_2 = add("same", 2);
	struct table_symbol *global = add("same", 0), *other = add("other", 3);
	struct table_symbol *part_1 = add("same.cold", 1);
	struct table_symbol *part_2 = add("same.cold", 2);
	struct table_symbol *part_3 = add("same.cold", 3);
	struct table_symbol *part_of_other = add("other.part.0", 1);
	struct table_symbol *part_of_none = add("gone.cold", 1);

	cr_assert(zero(int, hash_names(&work)));
	cr_expect(eq(ptr, whole_of(part_1), of_1));
	cr_expect(eq(ptr, whole_of(part_2), of_2));
	cr_expect(eq(ptr, whole_of(part_3), global));
	cr_expect(eq(ptr, whole_of(part_of_other), other));
	cr_expect(eq(ptr, whole_of(part_of_none), NULL));
}

static void number_name(char name[16], unsigned number)
{
	for (unsigned i = 4; i > 0; i--, number /= 10)
		name[i] = (char)('0' + number % 10);
}

/* Among many names, those with the same slot differ only in some characters. */
Test(symbols, names_that_begin_alike_are_not_mixed_up)
{
	struct table_symbol *parts[SYMBOLS / 2];

	for (unsigned i = 0; i < SYMBOLS / 2; i++) {
		char name[16] = "f0000";

		number_name(name, i);
		add(name, 1);
	}
	for (unsigned i = 0; i < SYMBOLS / 2; i++) {
		char name[16] = "f0000.cold";

		number_name(name, i);
		parts[i] = add(name, 1);
	}
	cr_assert(zero(int, hash_names(&work)));
	for (unsigned i = 0; i < SYMBOLS / 2; i++)
		cr_expect(eq(ptr, whole_of(parts[i]), &symbols[i]), "%u", i);
}
