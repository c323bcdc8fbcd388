/*
 * A slot that the loader has not resolved yet leads into its own image.  shim finds the
 * function as the loader would: the first of the program's objects that defines the symbol
 * in the version that the image wants.
 */
#include "sources/libcall_slots.h"

#include "dispatch/call_sites.h"
#include "dispatch/callspec.h"
#include "image/image.h"
#include "image/imports.h"
#include "inspect/known.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/log.h"
#include "runtime/state.h"
#include "sources/left_out.h"
#include "sources/libcall_names.h"
#include "sources/marks.h"
#include "sources/objects.h"
#include "sources/slot_uses.h"

#include <shim/banned.h>

#define PAGE	   4096u
#define FIRST_ROOM 64

struct search {
	struct libcall_image *image;
	const struct image_entry *entry;
	bool is_system;
	bool has_shared; /* slots that are not for calls only */
	int result;
	uint32_t counts[LIBCALL_REASONS];
};

uintptr_t libcall_slots_read(const struct libcall_image *image, uintptr_t slot)
{
	uintptr_t value = 0;

	if (!image->may_go)
		return __atomic_load_n((uintptr_t *)slot, __ATOMIC_ACQUIRE);
	return sys_peek((const void *)slot, &value, sizeof(value)) < 0 ? 0 :
									 value;
}

static int add_call(struct libcall_image *image, const struct libcall *call)
{
	uint32_t room = image->room ? 2 * image->room : FIRST_ROOM;
	struct libcall *calls;
	void *memory;
	int r;

	if (image->count == image->room) {
		r = sys_map(room * sizeof(*calls), &memory);
		if (r < 0)
			return r;
		calls = memory;
		for (uint32_t i = 0; i < image->count; i++)
			calls[i] = image->calls[i];
		if (image->calls)
			sys_unmap(image->calls, image->room * sizeof(*calls));
		image->calls = calls;
		image->room = room;
	}
	image->calls[image->count++] = *call;
	return 0;
}

void libcall_slots_drop(struct libcall_image *image)
{
	if (image->calls)
		sys_unmap(image->calls, image->room * sizeof(*image->calls));
	image->calls = NULL;
	image->count = image->room = 0;
}

static bool is_in_image(const struct libcall_image *image, uintptr_t address)
{
	return address >= image->start && address < image->end;
}

static bool is_marked(uintptr_t function)
{
	const struct source_image *image = sources_image(function);
	const struct source_mark *mark = image && image->count > 0 ?
						 marks_find_function(image,
								     function) :
						 NULL;

	return (mark && !mark->is_unusable) || call_sites_has(function);
}

/* What the calls through a slot reach. */
static enum libcall_left find_function(const struct libcall_image *image,
				       const struct import *import,
				       struct libcall *call)
{
	uintptr_t value = libcall_slots_read(image, import->slot);
	bool is_bound = value != 0 && !is_in_image(image, value);
	struct lookup_import found;
	bool is_found;

	/* An object that is loaded later may have a list of its own. */
	if (value == 0 || (!is_bound && image->may_go))
		return LIBCALL_UNBOUND;
	is_found = lookup_import(import->name, import->version, !is_bound,
				 &found);
	if (is_found && found.is_data)
		return LIBCALL_COMPILER;
	if (!is_found && image_is_ours(value))
		return LIBCALL_COMPILER;
	if (!is_found && !is_bound)
		return LIBCALL_UNBOUND;
	call->target = is_bound ? value : found.target;
	/* The loader may have found another definition. */
	call->function = is_found && (found.is_chosen || !is_bound ||
				      image_is_ours(value)) ?
				 found.function :
				 value;
	return is_marked(call->function) || is_marked(call->target) ?
		       LIBCALL_MARKED :
		       LIBCALL_TAKEN;
}

static void take_import(void *argument, const struct import *import)
{
	struct search *search = argument;
	struct libcall_image *image = search->image;
	struct libcall call = { .slot = import->slot };
	enum libcall_left left;

	if (search->result < 0 || import->slot % sizeof(uintptr_t) != 0 ||
	    !is_in_image(image, import->slot) ||
	    !callspec_takes_call(search->entry->path,
				 search->entry->flags & SHIM_IMAGE_PROGRAM,
				 search->is_system, import->name))
		return;
	left = libcall_names_find(import->name);
	if (left == LIBCALL_TAKEN)
		left = find_function(image, import, &call);
	if (left != LIBCALL_TAKEN) {
		search->counts[left]++;
		return;
	}
	call.is_relro = call.slot >= image->relro &&
			call.slot < ((image->relro + image->relro_size) &
				     ~(uintptr_t)(PAGE - 1));
	/* The code's uses of the slot decide. */
	call.is_filtered = !import->is_call;
	search->has_shared |= !import->is_call;
	search->result = add_call(image, &call);
	known_add(call.function, import->name);
}

/* A Shell sort: most slots are in order already. */
static void sort(struct libcall *calls, uint32_t count)
{
	for (uint32_t gap = count / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < count; i++) {
			struct libcall call = calls[i];
			uint32_t at = i;

			for (; at >= gap && calls[at - gap].slot > call.slot;
			     at -= gap)
				calls[at] = calls[at - gap];
			calls[at] = call;
		}
}

/* Keeps the slots that serve nothing but calls. */
static int leave_shared(struct search *search)
{
	struct libcall_image *image = search->image;
	size_t size = image->count * sizeof(struct slot_place);
	struct slot_place *places;
	uint32_t count = 0, kept = 0;
	void *memory;
	int r = sys_map(size, &memory);

	if (r < 0)
		return r;
	places = memory;
	for (uint32_t i = 0; i < image->count; i++)
		if (image->calls[i].is_filtered)
			places[count++].slot = image->calls[i].slot;
	r = slot_uses_find(image->start, image->bias, places, count);
	count = 0;
	for (uint32_t i = 0; r == 0 && i < image->count; i++) {
		struct libcall call = image->calls[i];
		bool is_shared = call.is_filtered;

		call.is_filtered = 0;
		if (is_shared &&
		    (places[count].is_read || !places[count].is_called))
			search->counts[LIBCALL_SHARED] +=
				places[count].is_called ||
				places[count].is_read;
		else
			image->calls[kept++] = call;
		count += is_shared;
	}
	image->count = kept;
	sys_unmap(memory, size);
	return r;
}

static const char *const reasons[LIBCALL_REASONS] = {
	[LIBCALL_RETURNS] = "do not return once",
	[LIBCALL_ADDRESS] = "use their return address",
	[LIBCALL_SHARED] =
		"whose address the object may use for more than calls",
	[LIBCALL_MARKED] = "have marks of their own",
	[LIBCALL_UNBOUND] = "the loader has not found yet",
};

static void say_what(const struct search *search)
{
	char number[32];
	struct text text;

	text_init(&text, number, sizeof(number));
	text_add_number(&text, search->image->count);
	log_line("--libcalls: %s functions that %s calls", number,
		 search->entry->path);
	left_out_say("--libcalls", search->entry->path, reasons, search->counts,
		     LIBCALL_REASONS);
}

int libcall_slots_find(struct libcall_image *image,
		       const struct image_entry *entry)
{
	struct search search = {
		.image = image,
		.entry = entry,
		.is_system = objects_is_system(entry->path),
	};
	struct imports_image imports = {
		.bias = image->bias,
		.dynamic = image->dynamic,
		.dynamic_size = image->dynamic_size,
		.may_go = image->may_go,
	};
	int r;

	ASSERT_LOCKED();
	if (objects_is_untouchable(entry))
		return 0;
	r = imports_read(&imports, take_import, &search);
	if (r == 0)
		r = search.result;
	sort(image->calls, image->count);
	if (r == 0 && search.has_shared)
		r = leave_shared(&search);
	image->unbound = search.counts[LIBCALL_UNBOUND];
	if (r < 0)
		libcall_slots_drop(image);
	else if (image->count > 0 || search.counts[LIBCALL_SHARED] > 0 ||
		 search.counts[LIBCALL_MARKED] > 0)
		say_what(&search);
	return r;
}
