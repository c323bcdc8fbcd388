/*
 * XRay's sleds (clang -fxray-instrument), which xray_instr_map lists.  The section has an
 * entry for each sled; versions 0 and 1 have addresses, which the loader has relocated,
 * version 2 has distances from the fields themselves.
 */
#include "dispatch/call_counters.h"
#include "dispatch/patch.h"
#include "dispatch/plan.h"
#include "os/sys.h"
#include "sources/sources.h"

#include <errno.h>

#include <shim/banned.h>

/* compiler-rt's XRaySledEntry, and its kinds. */
struct entry {
	uint64_t address;
	uint64_t function;
	uint8_t kind;
	uint8_t is_always;
	uint8_t version;
	uint8_t unused[13];
};

enum { FUNCTION_ENTER, FUNCTION_EXIT, TAIL_CALL, LOG_ARGUMENTS_ENTER };

#define ENTRIES_MAX (4u << 20)

/* arch/.../sources.S: what threads without counters call. */
void sources_uncounted0(void);
void sources_uncounted4(void);

/* The event of a sled; -1 for events of the program's own, which shim leaves alone. */
static int event_of(uint8_t kind)
{
	switch (kind) {
	case FUNCTION_ENTER:
	case LOG_ARGUMENTS_ENTER: return PLAN_ENTER;
	case FUNCTION_EXIT: return PLAN_LEAVE;
	case TAIL_CALL: return PLAN_TAILCALL;
	}
	return -1;
}

/* A part of the code, which is read once for the sleds in it. */
static struct {
	uintptr_t start;
	size_t size;
	unsigned char bytes[4096];
} window;

static int read_window(uintptr_t start, size_t size)
{
	int r = sys_peek((const void *)start, window.bytes, size);

	window.start = start;
	window.size = r < 0 ? 0 : size;
	return r;
}

/* The condition of the jump behind the sled of a tail call. */
static uint8_t condition_at(uintptr_t sled)
{
	uintptr_t behind = sled + XRAY_SLED_SIZE;

	if ((behind < window.start ||
	     behind + XRAY_BEHIND > window.start + window.size) &&
	    read_window(behind, sizeof(window.bytes)) < 0 &&
	    read_window(behind, XRAY_BEHIND) < 0)
		return 0;
	return xray_condition(&window.bytes[behind - window.start]);
}

static int add_entry(struct source_image *image, const struct entry *entry,
		     uintptr_t place, source_add *add)
{
	uintptr_t address = entry->address, function = entry->function;
	int event = event_of(entry->kind);

	if (entry->version >= 2) {
		address += place + offsetof(struct entry, address);
		function += place + offsetof(struct entry, function);
	}
	if (event < 0)
		return 0;
	return add(image, &(struct found_mark){
				  .source = SHIM_SOURCE_XRAY,
				  .event = (unsigned)event,
				  .address = address,
				  .function = function,
				  .length = XRAY_SLED_SIZE,
				  .jump = event == PLAN_TAILCALL ?
						  condition_at(address) :
						  0,
			  });
}

static int find(struct source_image *image, const Elf64_Shdr *section,
		source_add *add)
{
	uintptr_t start = image->bias + section->sh_addr;
	size_t count = section->sh_size / sizeof(struct entry);
	size_t size = count * sizeof(struct entry);
	struct entry *entries;
	void *memory;
	int r;

	if (!xray_is_known() || count == 0)
		return 0;
	if (count > ENTRIES_MAX || start < image->start ||
	    start >= image->end || size > image->end - start)
		return -ENOEXEC;
	r = sys_map(size, &memory);
	if (r < 0)
		return r;
	entries = memory;
	window.size = 0;
	r = sys_peek((const void *)start, entries, size);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = add_entry(image, &entries[i], start + i * sizeof(*entries),
			      add);
	sys_unmap(memory, size);
	return r;
}

static struct xray_sled sled_of(const struct source_image *image,
				const struct source_mark *mark)
{
	return (struct xray_sled){
		.event = mark->event,
		.jump = mark->jump,
		.address = mark_address(image, mark),
		.function = mark_function(image, mark),
	};
}

static uintptr_t counter_of(const struct source_image *image,
			    const struct xray_sled *sled, uint32_t counter)
{
	static void (*const uncounted[SLED_DEPTHS])(
		void) = { sources_uncounted0, sources_uncounted4 };

	return call_counter_code(uncounted[xray_depth(sled)], image->start,
				 image->end, counter);
}

static enum mark_state state(const struct source_image *image,
			     const struct source_mark *mark,
			     const unsigned char *code)
{
	struct xray_sled sled = sled_of(image, mark);

	return xray_state(&sled, code);
}

static uint8_t end(const struct source_image *image,
		   const struct source_mark *mark)
{
	struct xray_sled sled = sled_of(image, mark);

	return xray_end(&sled);
}

static bool prepare(const struct source_image *image,
		    const struct source_mark *mark, unsigned char *code)
{
	struct xray_sled sled = sled_of(image, mark);

	if (mark->is_counted && xray_counts(&sled))
		sled.counter = counter_of(image, &sled, mark->counter);
	return xray_prepare(&sled, code, image->veneers);
}

static void change(const struct source_image *image,
		   const struct source_mark *mark, unsigned char *code, bool on)
{
	struct xray_sled sled = sled_of(image, mark);

	xray_switch(&sled, code, on);
}

/* Code that calls a veneer comes first. */
static bool set_counter(const struct source_image *image,
			struct source_mark *mark, uint32_t counter)
{
	struct xray_sled sled = sled_of(image, mark);
	unsigned char code[XRAY_SLED_SIZE];
	enum mark_state state;

	if (!xray_counts(&sled) ||
	    patch_read(sled.address, code, sizeof(code), image->may_go) < 0)
		return false;
	state = xray_state(&sled, code);
	if ((state != MARK_READY && state != MARK_ON) ||
	    !counter_of(image, &sled, counter))
		return false;
	/* Its code is written anew. */
	if (mark->counter != counter)
		mark->has_counter = 0;
	mark->counter = counter;
	return true;
}

static bool idles(const struct source_image *image,
		  const struct source_mark *mark)
{
	struct xray_sled sled = sled_of(image, mark);

	return xray_idles(&sled);
}

static void release(const struct source_image *image,
		    const struct source_mark *mark, unsigned char *code)
{
	struct xray_sled sled = sled_of(image, mark);

	xray_release(&sled, code);
}

const struct source source_xray = {
	.kind = SHIM_SOURCE_XRAY,
	.section = "xray_instr_map",
	.size = XRAY_SLED_SIZE,
	.find = find,
	.state = state,
	.end = end,
	.prepare = prepare,
	.change = change,
	.set_counter = set_counter,
	.idles = idles,
	.idle = xray_idle,
	.release = release,
};
