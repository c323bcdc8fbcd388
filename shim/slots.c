#include "slots.h"

#include "sys.h"
#include "text.h"

#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE 4096

struct slot {
	uintptr_t place;
	uint8_t function;
	bool is_relro;		/* its page is read-only */
	bool may_go;
	/* What leads into here is not yet resolved, and will lead to our door. */
	uintptr_t lazy_start, lazy_end;
};

static struct slot slots[1024];
static unsigned slot_count;
static bool stays, passes;
static bool doors_are_first;
static struct slots_function targets[SLOTS_FUNCTIONS];

static const char *const names[SLOTS_FUNCTIONS] = {
	"malloc",     "calloc",	       "realloc",	"reallocarray",
	"free",	      "posix_memalign", "aligned_alloc", "memalign",
	"valloc",     "pvalloc",
};

static int find(const char *name)
{
	for (int i = 0; i < SLOTS_FUNCTIONS; i++)
		if (text_equal(name, names[i]))
			return i;
	return -1;
}

static bool leads_to_door(const struct slot *slot)
{
	uintptr_t value;

	if (sys_peek((const void *)slot->place, &value, sizeof(value)) < 0)
		return false;
	if (value == (uintptr_t)targets[slot->function].door)
		return true;
	return doors_are_first && value >= slot->lazy_start &&
	       value < slot->lazy_end;
}

static void point(const struct slot *slot)
{
	void *target = targets[slot->function].target;
	void *page = (void *)(slot->place & ~(uintptr_t)(PAGE - 1));

	if (!target || !leads_to_door(slot))
		return;
	if (slot->may_go) {
		sys_poke((void *)slot->place, &target, sizeof(target));
		return;
	}
	/* Refused by a hardened kernel: it goes on coming by. */
	if (slot->is_relro && sys_protect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
		return;
	__atomic_store_n((void **)slot->place, target, __ATOMIC_RELEASE);
	if (slot->is_relro)
		sys_protect(page, PAGE, PROT_READ);
}

void slots_found(const struct table_image *image, const char *name,
		 uintptr_t place, bool is_undefined)
{
	int function = stays || !is_undefined ? -1 : find(name);
	struct slot slot;

	if (function < 0)
		return;
	slot = (struct slot){
		.place = place,
		.function = (uint8_t)function,
		.is_relro = place - image->relro < image->relro_size,
		.may_go = image->may_go,
	};
	/* Who comes later may have libraries of its own that come first. */
	if (!image->may_go) {
		slot.lazy_start = image->bias;
		slot.lazy_end = image->dynamic;
	}
	if (passes)
		point(&slot);
	else if (slot_count < sizeof(slots) / sizeof(*slots))
		slots[slot_count++] = slot;
}

void slots_pass_by(const struct slots_function functions[SLOTS_FUNCTIONS],
		   bool is_first)
{
	for (unsigned i = 0; i < SLOTS_FUNCTIONS; i++) {
		int number = find(functions[i].name);

		if (number >= 0)
			targets[number] = functions[i];
	}
	doors_are_first = is_first;
	passes = true;
	for (unsigned i = 0; i < slot_count; i++)
		point(&slots[i]);
	slot_count = 0;
}

void slots_stay(void)
{
	stays = true;
	slot_count = 0;
}

void slots_forget(uintptr_t start, uintptr_t end)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < slot_count; i++)
		if (slots[i].place < start || slots[i].place >= end)
			slots[kept++] = slots[i];
	slot_count = kept;
}
