/*
 * Lists the functions that can be patched, and why others cannot be.  Names are written
 * so that each function is one line with tabs between its fields.
 */
#include "sources/unmarked_list.h"

#include "image/image.h"
#include "image/symbols.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "sources/left_out.h"

#include <fcntl.h>
#include <shim/format.h>

#include <shim/banned.h>

static const char *const reasons[DECODE_ENTRY_REASONS] = {
	[DECODE_ENTRY_MOVABLE] = "",
	[DECODE_ENTRY_UNKNOWN] = "data among the instructions",
	[DECODE_ENTRY_SHORT] = "first block under 5 bytes",
	[DECODE_ENTRY_LOOP] = "a loop to the entry",
	[DECODE_ENTRY_TARGET] = "jumps into the first bytes",
	[DECODE_ENTRY_ADDRESS] = "uses its return address",
	[DECODE_ENTRY_FRAME] = "a jump to it is no tail call",
	[DECODE_ENTRY_STACK] = "no unwind table of an ordinary call",
	[DECODE_ENTRY_REPLACED] = "changed by another tool",
	[DECODE_ENTRY_FIXED] = "an instruction that cannot be moved",
	[DECODE_ENTRY_SMALL] = SHIM_LISTED_SMALL,
	[DECODE_ENTRY_MARKED] = SHIM_LISTED_MARKED,
	[DECODE_ENTRY_SHARED] = "instructions that functions share",
	[DECODE_ENTRY_WALKED] = "OCaml's, whose stack its collector reads",
};

/* --- the log --- */

/* Whether the function would be patched if its instructions allowed it. */
static bool is_candidate(unsigned reason)
{
	return reason != DECODE_ENTRY_SMALL && reason != DECODE_ENTRY_MARKED;
}

static void say(const struct image_entry *image,
		const struct decode_entries *question)
{
	uint32_t counts[DECODE_ENTRY_REASONS] = { 0 }, candidates = 0;
	char numbers[64];
	struct text text;

	for (uint32_t i = 0; i < question->count; i++) {
		counts[question->entries[i].reason]++;
		candidates += is_candidate(question->entries[i].reason);
	}
	if (candidates == 0)
		return;
	text_init(&text, numbers, sizeof(numbers));
	text_add_number(&text, counts[DECODE_ENTRY_MOVABLE]);
	text_add(&text, " of ");
	text_add_number(&text, candidates);
	log_line("--patch: %s functions of %s", numbers, image->path);
	for (unsigned reason = 0; reason < DECODE_ENTRY_REASONS; reason++)
		if (reason == DECODE_ENTRY_MOVABLE || !is_candidate(reason))
			counts[reason] = 0;
	left_out_say("--patch", image->path, reasons, counts,
		     DECODE_ENTRY_REASONS);
}

/* --- the file --- */

#define BUFFER_SIZE 65536

struct file {
	int fd;
	int error; /* -errno of the first failure */
	struct text text;
};

/* @file->text is what was not written yet. */
static void write_out(struct file *file)
{
	if (file->error == 0)
		file->error = sys_write_all(file->fd, file->text.start,
					    file->text.length);
	text_init(&file->text, file->text.start, file->text.size);
}

static void add_hex(struct text *text, uint64_t number)
{
	char digits[17];
	unsigned at = 16;

	digits[16] = '\0';
	do {
		digits[--at] = "0123456789abcdef"[number & 15];
		number >>= 4;
	} while (number > 0);
	text_add(text, digits + at);
}

static void put_function(struct file *file, const struct image_entry *image,
			 const struct decode_entry *entry)
{
	uint64_t address = entry->start - image->bias;
	const struct symbols_function *function = symbols_find(image->symbols,
							       address);

	/* The name of a function has thousands of characters at most. */
	if (file->text.size - file->text.length < BUFFER_SIZE / 2)
		write_out(file);
	text_add(&file->text, "function\t");
	text_add(&file->text, reasons[entry->reason]);
	text_add(&file->text, "\t");
	add_hex(&file->text, address);
	text_add(&file->text, "\t");
	text_add_number(&file->text, entry->end - entry->start);
	text_add(&file->text, "\t");
	if (function && function->start == address)
		text_add_harmless(&file->text,
				  image->symbols->text + function->names);
	text_add(&file->text, "\n");
}

static int put_list(const struct image_entry *image,
		    const struct decode_entries *question)
{
	char path[sizeof(config.dir) + sizeof(SHIM_LISTED_FILE) + 1];
	struct file file = { 0 };
	void *memory;

	text_init(&file.text, path, sizeof(path));
	text_add(&file.text, config.dir);
	text_add(&file.text, "/" SHIM_LISTED_FILE);
	file.fd = sys_open(
		path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		0600);
	if (file.fd < 0)
		return file.fd;
	file.error = sys_map(BUFFER_SIZE, &memory);
	if (file.error == 0) {
		text_init(&file.text, memory, BUFFER_SIZE);
		text_add(&file.text, "object\t");
		text_add_harmless(&file.text, image->path);
		text_add(&file.text, "\n");
		for (uint32_t i = 0; i < question->count; i++)
			put_function(&file, image, &question->entries[i]);
		write_out(&file);
		sys_unmap(memory, BUFFER_SIZE);
	}
	sys_close(file.fd);
	return file.error;
}

void unmarked_list(const struct image_entry *image,
		   const struct decode_entries *question)
{
	int r;

	if (config.list_patch[0] != '1') {
		say(image, question);
		return;
	}
	r = put_list(image, question);
	if (r < 0)
		log_error("--patch: the functions of %s cannot be listed",
			  image->path, r);
}
