#include "values.h"

#include "code.h"
#include "info.h"
#include "plan.h"
#include "prototype.h"
#include "state.h"
#include "sys.h"
#include "thread.h"

#include <shim/record.h>

#include <shim/banned.h>

#define BLOCK_SIZE   (64u << 10)
#define REGISTER_MAX 16 /* bytes of what comes in registers */

struct part {
	struct prototype_value value;
	struct decode_places places;
};

struct recipe {
	uintptr_t address, function; /* what it is for */
	uint32_t age;
	enum shim_result result;
	uint32_t count; /* of parts, which are parameters */
	uint32_t declared_count, total_size;
	struct decode_frame frame;
	struct part parts[];
};

/* Of a thread, when it has asked once: the program's stack may be small. */
struct values_space {
	unsigned char spilled[PROTOTYPE_VALUES_MAX][REGISTER_MAX];
	struct prototype_value values[PROTOTYPE_VALUES_MAX];
	uint32_t value_count; /* 0: no debug information */
};

/* --- what is known: a table of open addressing that only grows --- */

struct recipes {
	uint32_t mask, used;
	struct recipe *recipes[]; /* each store publishes one */
};

static struct recipes *recipes;
/* Recipes of another age may be for code that has gone.  They stay, because
 * somebody may be reading them. */
static uint32_t age = 1;

static uint32_t hash(uintptr_t address)
{
	return (uint32_t)((address * 0x9e3779b97f4a7c15ull) >> 40);
}

/* Its place, or where it would be. */
static struct recipe **find_place(struct recipes *in, uintptr_t address,
				  uintptr_t function)
{
	for (uint32_t i = hash(address);; i++) {
		struct recipe **place = &in->recipes[i & in->mask];
		const struct recipe *at =
			__atomic_load_n(place, __ATOMIC_ACQUIRE);

		if (!at || (at->address == address && at->function == function))
			return place;
	}
}

static const struct recipe *find(uintptr_t address, uintptr_t function)
{
	struct recipes *in = __atomic_load_n(&recipes, __ATOMIC_ACQUIRE);
	const struct recipe *recipe;

	if (!in)
		return NULL;
	recipe = __atomic_load_n(find_place(in, address, function),
				 __ATOMIC_ACQUIRE);
	return recipe && __atomic_load_n(&recipe->age, __ATOMIC_ACQUIRE) ==
				 __atomic_load_n(&age, __ATOMIC_ACQUIRE) ?
		       recipe :
		       NULL;
}

/* A reader may still be in the old table, which therefore stays. */
static bool make_room(void)
{
	uint32_t room = recipes ? (recipes->mask + 1) * 2 : 1024;
	struct recipes *larger;

	if (recipes && recipes->used * 2 <= recipes->mask)
		return true;
	larger = shim_memory(sizeof(*larger) + room * sizeof(void *));
	if (!larger)
		return false;
	larger->mask = room - 1;
	for (uint32_t i = 0; recipes && i <= recipes->mask; i++) {
		struct recipe *old = recipes->recipes[i];

		if (!old)
			continue;
		*find_place(larger, old->address, old->function) = old;
		larger->used++;
	}
	__atomic_store_n(&recipes, larger, __ATOMIC_RELEASE);
	return true;
}

static void *allocate(size_t size)
{
	static char *block;
	static size_t left;
	void *memory;

	size = (size + 15) / 16 * 16;
	if (size > left) {
		if (sys_map(BLOCK_SIZE, &memory) < 0)
			return NULL;
		block = memory;
		left = BLOCK_SIZE;
	}
	memory = block;
	block += size;
	left -= size;
	return memory;
}

void values_closed(void)
{
	__atomic_add_fetch(&age, 1, __ATOMIC_ACQ_REL);
}

/* --- making one --- */

struct job {
	const struct arch_frame *frame;
	const struct values_space *space;
	uint32_t age;	/* before anything was looked at */
	const struct recipe *made;
};

static _Alignas(struct recipe) unsigned char
	draft[sizeof(struct recipe) +
	      PROTOTYPE_VALUES_MAX * sizeof(struct part)];

static size_t size_of(const struct recipe *recipe)
{
	return sizeof(*recipe) + recipe->count * sizeof(recipe->parts[0]);
}

static void locate(const struct job *job, struct recipe *recipe)
{
	static struct decode_places places[PROTOTYPE_VALUES_MAX];
	const struct values_space *space = job->space;
	struct decode_location location = {
		.function = recipe->function,
		.end = info_code_end(recipe->function),
		.hook = recipe->address,
		.values = space->values,
		.count = space->value_count,
	};

	__builtin_memset(places, 0, sizeof(places));
	/* Asked too early, it is asked again. */
	if (!code_find_arguments(&location, &recipe->frame, places))
		recipe->age = 0;
	for (uint32_t i = 0; i < recipe->count; i++)
		recipe->parts[i].places = places[i + 1];
}

static void draw_up(const struct job *job, struct recipe *recipe)
{
	const struct values_space *space = job->space;

	__builtin_memset(draft, 0, sizeof(draft));
	recipe->address = job->frame->return_address;
	recipe->function = job->frame->function;
	recipe->age = job->age;
	if (space->value_count == 0) {
		recipe->result = SHIM_E_FUNCTION_NOT_IL;
		return;
	}
	recipe->result = SHIM_OK;
	recipe->count = space->value_count - 1;
	for (uint32_t i = 0; i < recipe->count; i++) {
		const struct prototype_value *value = &space->values[i + 1];

		recipe->parts[i].value = *value;
		if (value->is_hidden)
			continue;
		recipe->declared_count++;
		recipe->total_size += value->size;
	}
	locate(job, recipe);
}

static bool is_equal(const struct recipe *a, const struct recipe *b)
{
	const unsigned char *x = (const void *)a, *y = (const void *)b;
	size_t size = size_of(a);

	for (size_t i = 0; i < size; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

/* State lock held.  The same library is often opened and closed many times: its
 * recipes become valid again. */
static int keep(void *argument)
{
	struct job *job = argument;
	struct recipe *recipe = (struct recipe *)draft, *old, **place;
	size_t size;
	uint32_t old_age;

	draw_up(job, recipe);
	if (!make_room())
		return -1;
	place = find_place(recipes, recipe->address, recipe->function);
	old = *place;
	if (old) {
		old_age = old->age;
		recipe->age = old_age;
		if (is_equal(recipe, old)) {
			__atomic_store_n(&old->age, job->age,
					 __ATOMIC_RELEASE);
			job->made = old;
			return 0;
		}
		recipe->age = job->age;
	}
	size = size_of(recipe);
	recipe = allocate(size);
	if (!recipe)
		return -1;
	__builtin_memcpy(recipe, draft, size);
	recipes->used += !old;
	__atomic_store_n(place, recipe, __ATOMIC_RELEASE);
	job->made = recipe;
	return 0;
}

static void take(const struct debuginfo_answer *answer, void *argument)
{
	struct values_space *space = argument;

	space->value_count = (uint32_t)answer->count;
	__builtin_memcpy(space->values, answer->data,
			 answer->count * sizeof(space->values[0]));
}

static enum shim_result make(struct thread *self,
			     const struct arch_frame *frame,
			     const struct recipe **recipe)
{
	struct job job = {
		.frame = frame,
		.age = __atomic_load_n(&age, __ATOMIC_ACQUIRE),
	};
	enum shim_result r;

	if (!self->values)
		self->values = shim_memory(sizeof(*self->values));
	if (!self->values)
		return SHIM_E_UNEXPECTED;
	job.space = self->values;
	self->values->value_count = 0;
	r = info_ask(HELPER_PROTOTYPE, frame->function, take, self->values);
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		return r;
	if (r == SHIM_E_OUTOFMEMORY || state_slowly(keep, &job) < 0 ||
	    !job.made)
		return SHIM_E_UNEXPECTED;
	*recipe = job.made;
	return job.made->result;
}

enum shim_result values_find(struct thread *self,
			     const struct arch_frame *frame,
			     const struct recipe **recipe)
{
	*recipe = find(frame->return_address, frame->function);
	if (!*recipe || !self->values)
		return make(self, frame, recipe);
	return (*recipe)->result;
}

uint32_t values_count(const struct recipe *recipe)
{
	return recipe->declared_count;
}

/* --- following one --- */

struct reader {
	const struct arch_frame *frame;
	uintptr_t base; /* what places on the stack are relative to ... */
	bool has_base;
};

static bool read_register(const struct arch_frame *frame, unsigned number,
			  uintptr_t *value)
{
	if (number == DECODE_SP) {
		*value = ARCH_FRAME_CFA(frame);
		return true;
	}
	return frame->has_registers &&
	       arch_frame_register(frame, number, value);
}

static bool read_place(const struct reader *reader,
		       const struct decode_place *place, uintptr_t *value)
{
	switch (place->where) {
	case DECODE_IN_REGISTER:
		return read_register(reader->frame, place->number, value);
	case DECODE_ON_STACK:
		if (!reader->has_base)
			return false;
		*value = *(const uintptr_t *)(reader->base +
					      (uintptr_t)place->offset);
		return true;
	case DECODE_ABOVE_SP:
		*value = *(const uintptr_t *)(ARCH_FRAME_CFA(reader->frame) +
					      (uintptr_t)place->offset);
		return true;
	default: return false;
	}
}

/* Where the bytes of a value are in one piece, or 0. */
static uintptr_t read_part(const struct reader *reader,
			   const struct part *part, unsigned char *spilled)
{
	const struct decode_place *places = part->places.eightbytes;
	uintptr_t value;

	if (part->value.kind == PROTOTYPE_REFERENCE)
		return read_place(reader, &places[0], &value) ? value : 0;
	if (part->places.in_memory)
		return places[0].where == DECODE_ON_STACK && reader->has_base ?
			       reader->base + (uintptr_t)places[0].offset :
			       0;
	if (part->value.size == 0 || part->value.size > REGISTER_MAX)
		return 0;
	for (uint32_t i = 0; i * 8 < part->value.size; i++) {
		if (!read_place(reader, &places[i], &value))
			return 0;
		__builtin_memcpy(spilled + i * 8, &value, 8);
	}
	return (uintptr_t)spilled;
}

void values_fill(struct thread *self, const struct arch_frame *frame,
		 const struct recipe *recipe, struct shim_argument_info *info)
{
	struct reader reader = { .frame = frame };
	uint32_t n = 0;

	reader.has_base =
		read_register(frame, recipe->frame.number, &reader.base);
	reader.base += (uintptr_t)recipe->frame.offset;
	info->ranges_count = recipe->declared_count;
	info->total_size = recipe->total_size;
	for (uint32_t i = 0; i < recipe->count; i++) {
		const struct part *part = &recipe->parts[i];

		if (part->value.is_hidden)
			continue;
		info->ranges[n].start = read_part(&reader, part,
						  self->values->spilled[i]);
		info->ranges[n++].length = part->value.size;
	}
}
