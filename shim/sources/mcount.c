/*
 * Finds calls of mcount and __fentry__ by the slots that they go through.  Only functions that
 * begin with the usual frame can be marks of mcount: gcc makes a copy of the return address in
 * functions whose stack it aligns to more than 16 bytes.
 */
#include "sources/mcount.h"

#include "dispatch/find_sites.h"
#include "dispatch/hook_table.h"
#include "dispatch/plan.h"
#include "dispatch/scan.h"
#include "image/image.h"
#include "os/lookup.h"
#include "os/pages.h"
#include "os/text.h"
#include "runtime/log.h"
#include "sources/entry_code.h"
#include "sources/left_out.h"
#include "sources/marks.h"
#include "sources/own_return.h"

#include <shim/banned.h>

#define BEGIN_SIZE 8 /* of the code that entry_has_frame reads */

struct search {
	struct source_image *image;
	source_add *add;
	struct source_image before; /* with the marks that were found before */
	uintptr_t last;		    /* the function of the last mark */
	bool is_entry;		    /* of __fentry__ */
	uint32_t refused, are_fixed;
	uint32_t use_return;
	bool has_calls;
	int result;
};

static bool is_usual(const struct search *search, uintptr_t address,
		     uintptr_t function)
{
	unsigned char begin[BEGIN_SIZE];
	size_t size;

	if (search->is_entry && address == function)
		return true;
	if (pages_read((const void *)function, begin, sizeof(begin)) < 0)
		return false;
	return search->is_entry ? entry_is_landing(begin, &size) &&
					  address - function == size :
				  entry_has_frame(begin);
}

static bool take_call(void *argument, uintptr_t address, uint32_t size,
		      uintptr_t function, bool is_fixed)
{
	struct search *search = argument;

	search->has_calls = true;
	search->before.marks = search->image->marks;
	if (function == search->last ||
	    marks_find_function(&search->before, function))
		return true;
	if (!is_usual(search, address, function)) {
		search->refused++;
		return true;
	}
	search->last = function;
	if (is_fixed) {
		search->are_fixed++;
		return true;
	}
	if (own_return_is_read(function)) {
		search->use_return++;
		return true;
	}
	search->result = search->add(
		search->image,
		&(struct found_mark){ SHIM_SOURCE_MCOUNT, PLAN_ENTER, address,
				      function, (uint8_t)size, false, 0 });
	return search->result == 0;
}

static void say_refused(const struct search *search,
			const struct image_entry *entry)
{
	char number[24];
	struct text text;

	if (search->refused == 0)
		return;
	text_init(&text, number, sizeof(number));
	text_add_number(&text, search->refused);
	log_line(search->is_entry ?
			 "%s: %s functions do not begin with their call of "
			 "__fentry__, and are not recorded (compile with "
			 "-finstrument-functions)" :
			 "%s: %s functions that call mcount have no frame "
			 "pointer at their beginning, and are not recorded "
			 "(compile with -pg -mfentry)",
		 entry->path, number);
}

/* With a slot there are calls.  Those through a register are not found. */
static void say_far(const struct search *search,
		    const struct image_entry *entry, uint32_t unknown)
{
	if (!search->has_calls && unknown == 0)
		log_line("%s: its functions call %s through a register "
			 "(-mcmodel=large), and are not recorded (compile with "
			 "-finstrument-functions)",
			 entry->path,
			 search->is_entry ? "__fentry__" : "mcount");
}

/* Calls may reach another definition: the program's, or after an attach libc's. */
static bool calls_reach_shim(void)
{
	return !lookup_was_attached() &&
	       image_is_ours((uintptr_t)lookup_first("mcount")) &&
	       image_is_ours((uintptr_t)lookup_first("_mcount")) &&
	       image_is_ours((uintptr_t)lookup_first("__fentry__"));
}

static int find_calls(struct source_image *image,
		      const struct image_entry *entry, bool is_entry,
		      source_add *add)
{
	struct search search = { .image = image,
				 .add = add,
				 .before = *image,
				 .is_entry = is_entry };
	struct call_sites_image memory = { .start = image->start,
					   .end = image->end,
					   .frames = entry->frames,
					   .may_go = image->may_go };
	uintptr_t slots[SCAN_SLOTS_MAX];
	unsigned count = hook_table_mcount_slots(
		image->start, image->end, is_entry, slots, SCAN_SLOTS_MAX);
	uint32_t unknown;
	int r;

	if (count == 0 || !calls_reach_shim())
		return 0;
	pages_begin(image->end);
	own_return_begin(image);
	r = sites_search(&memory, slots, count, take_call, &search, &unknown);
	own_return_end();
	pages_drop();
	if (r == 0)
		say_far(&search, entry, unknown);
	left_out_say_marks(
		image->start, unknown,
		"calls of mcount or __fentry__ are in functions of "
		"no unwind table, and are not recorded (compile with "
		"-fasynchronous-unwind-tables)");
	say_refused(&search, entry);
	left_out_say_marks(
		image->start, search.are_fixed,
		"functions read the return address of their call of mcount (clang's "
		"-mspeculative-load-hardening), and are not recorded (compile with "
		"-pg -mfentry)");
	own_return_say(image, search.use_return);
	return r < 0 ? r : search.result;
}

int mcount_find(struct source_image *image, source_add *add)
{
	struct image_entry *entry;
	int r = 0;

	if (!entry_is_known() || !mcount_counter)
		return 0;
	image_pin();
	entry = image_find(image->start);
	for (unsigned is_entry = 0; entry && r == 0 && is_entry < 2; is_entry++)
		r = find_calls(image, entry, is_entry, add);
	image_unpin();
	return r;
}
