/*
 * The lines of the log that are copied into messages.
 */
#include "os/text.h"
#include "runtime/log.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <shim/format.h>
#include <stdlib.h>
#include <string.h>

static struct shim_meta *meta;
static char memory[8192];

/* The size of what log_copy adds. */
static size_t copy_since(uint32_t since)
{
	struct text text;

	text_init(&text, memory, sizeof(memory));
	log_copy(since, &text);
	return text.length;
}

static void check_lines(void)
{
	uint32_t since = log_end(), later;

	cr_expect(zero(sz, copy_since(since)));
	log_line("one %s", "line");
	cr_expect(eq(sz, copy_since(since), 8));
	cr_expect(eq(str, memory, "one line"));
	later = log_end();
	log_line("%s", "two");
	cr_expect(eq(sz, copy_since(since), 13));
	cr_expect(eq(str, memory, "one line; two"));
	cr_expect(eq(sz, copy_since(later), 3));
	cr_expect(eq(str, memory, "two"));
}

/* As much as fits. */
static void check_full(size_t room)
{
	uint32_t since = log_end();

	for (size_t size = since; size < room; size += 11)
		log_line("%s", "0123456789");
	cr_expect(ge(u32, log_end(), room));
	cr_expect(le(sz, copy_since(since), 2 * room));
	cr_expect(eq(int, strncmp(memory, "0123456789; 01", 14), 0));
	cr_expect(eq(sz, strlen(memory), copy_since(since)));
	cr_expect(zero(sz, copy_since(log_end())));
}

Test(log, lines_that_wait_are_copied_with_semicolons_between_them)
{
	check_lines();
	check_full(2048);
}

Test(log, lines_of_the_recording_are_copied_with_semicolons_between_them)
{
	meta = calloc(1, sizeof(*meta));
	log_line("%s", "before");
	log_to(meta);
	cr_expect(eq(str, meta->log, "before\n"));
	check_lines();
	check_full(sizeof(meta->log));
}
