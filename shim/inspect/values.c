/*
 * Arguments at enter hooks.  At the first query at a call site, shim finds the location
 * of each parameter and stores it in a recipe, which later queries use.
 */
#include "inspect/values.h"

#include "inspect/recipe.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <shim/record.h>
#include <shim/values.h>

#include <shim/banned.h>

/* Site recipes take some hundred bytes each. */
#define SITES_MAX (1u << 15)

static struct code_cache recipes, site_recipes, near_table;

static inline const struct recipe *find_recipe(const struct code_cache *in,
					       uintptr_t address,
					       uintptr_t function,
					       uintptr_t site)
{
	return (const void *)code_cache_find(in, address, function, site);
}

/* --- the simple form --- */

/* The simple form uses only locations at a fixed distance from the hook's frame. */
static bool find_near(const struct arch_frame *frame,
		      const struct recipe *recipe, const struct part *part,
		      uintptr_t *address)
{
	const struct decode_place *place = &part->places.eightbytes[0];

	if (part->places.reason != SHIM_AVAILABLE || part->has_passed ||
	    part->value.is_hidden || part->value.kind == PROTOTYPE_NOTHING ||
	    part->value.kind == PROTOTYPE_REFERENCE ||
	    (part->value.size > 8 && !part->places.in_memory))
		return false;
	switch (place->where) {
	case DECODE_IN_REGISTER:
		*address = (uintptr_t)arch_frame_at(frame, place->number,
						    false);
		return *address != 0;
	case DECODE_IN_VECTOR:
		*address = (uintptr_t)arch_frame_at(frame, place->number,
						    true) +
			   (uintptr_t)place->offset;
		return *address != (uintptr_t)place->offset;
	case DECODE_ON_STACK:
		*address = ARCH_FRAME_CFA(frame) +
			   (uintptr_t)recipe->frame.offset +
			   (uintptr_t)place->offset;
		return recipe->frame.number == DECODE_SP;
	case DECODE_ABOVE_SP:
		*address = ARCH_FRAME_CFA(frame) + (uintptr_t)place->offset;
		return true;
	default: return false;
	}
}

static bool make_near(const struct arch_frame *frame,
		      const struct recipe *recipe, struct values_near *near)
{
	uintptr_t address;

	near->cached = recipe->cached;
	near->has_registers = 1;
	near->head.count = recipe->count;
	near->head.total_size = recipe->total_size;
	for (uint32_t i = 0; i < recipe->count; i++) {
		if (!find_near(frame, recipe, &recipe->parts[i], &address))
			return false;
		near->parts[i].distance = (int32_t)(address - (uintptr_t)frame);
		/* arch_arguments, which are below the frame, exist only with registers. */
		if (address < (uintptr_t)frame)
			near->has_registers = ARCH_FRAME_ALL;
		near->parts[i].length = recipe->parts[i].value.size;
	}
	near->cached.size = (uint32_t)(sizeof(*near) +
				       (recipe->count ? recipe->count : 1) *
					       sizeof(near->parts[0]));
	near->size = (uint32_t)(sizeof(struct shim_argument_info) +
				recipe->count *
					sizeof(struct shim_argument_range));
	return true;
}

/* State lock held. */
static void keep_near(const struct arch_frame *frame,
		      const struct recipe *recipe)
{
	static union {
		struct values_near near;
		unsigned char room[sizeof(struct values_near) +
				   PROTOTYPE_VALUES_MAX * 8];
	} near_draft;
	const struct code_cache_entry *kept;

	ASSERT_LOCKED();
	__builtin_memset(&near_draft, 0, sizeof(near_draft));
	if (recipe->result != SHIM_OK || recipe->asks_caller ||
	    !frame->has_registers || recipe->cached.age == 0 ||
	    !make_near(frame, recipe, &near_draft.near))
		return;
	kept = code_cache_keep(&near_table, &near_draft.near.cached);
	if (kept && near_draft.near.has_registers == 1)
		code_cache_put_in_front(KNOWN_ENTERS, kept);
}

/* --- finding a recipe --- */

/* State lock held. */
static int store_recipe(void *argument)
{
	struct recipe_job *job = argument;

	ASSERT_LOCKED();
	job->made = (const void *)code_cache_keep(job->primary ? &site_recipes :
								 &recipes,
						  &recipe_make(job)->cached);
	if (job->made && !job->primary)
		keep_near(job->frame, job->made);
	return job->made ? 0 : -1;
}

static enum shim_result find_new(struct thread *self,
				 const struct arch_frame *frame,
				 const struct recipe *primary,
				 const struct recipe **recipe)
{
	struct recipe_job job = {
		.frame = frame,
		.primary = primary,
		.age = code_cache_age(),
	};
	enum shim_result r;

	if (!self->values)
		self->values = shim_memory_map(sizeof(*self->values));
	if (!self->values)
		return SHIM_E_UNEXPECTED;
	job.space = self->values;
	r = recipe_query(&job, self->values);
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		return r;
	if (r == SHIM_E_OUTOFMEMORY ||
	    state_call_locked(store_recipe, &job) < 0 || !job.made)
		return SHIM_E_UNEXPECTED;
	*recipe = job.made;
	return job.made->result;
}

/* Uses the primary recipe if the site has none. */
static const struct recipe *find_site(struct thread *self,
				      const struct arch_frame *frame,
				      const struct recipe *primary)
{
	uintptr_t site = (uintptr_t)frame->site;
	const struct recipe *recipe = find_recipe(
		&site_recipes, primary->cached.address,
		primary->cached.function, site);

	if (!recipe &&
	    (site == 0 || code_cache_count(&site_recipes) >= SITES_MAX ||
	     find_new(self, frame, primary, &recipe) != SHIM_OK))
		return primary;
	if (recipe->same)
		return primary;
	return recipe_is_called_by(frame, recipe) ? recipe : primary;
}

enum shim_result values_find(struct thread *self,
			     const struct arch_frame *frame,
			     const struct recipe **recipe)
{
	enum shim_result r;

	*recipe = find_recipe(&recipes, frame->return_address, frame->function,
			      0);
	if (!*recipe || !self->values) {
		r = find_new(self, frame, NULL, recipe);
		if (r != SHIM_OK)
			return r;
	}
	if ((*recipe)->asks_caller)
		*recipe = find_site(self, frame, *recipe);
	return (*recipe)->result;
}

const struct values_near *values_find_near(const struct arch_frame *frame)
{
	const struct values_near *near = (const void *)code_cache_find(
		&near_table, frame->return_address, frame->function, 0);

	return near && ARCH_FRAME_REGISTERS(frame) >= near->has_registers ?
		       near :
		       NULL;
}

uint32_t values_count(const struct recipe *recipe)
{
	return recipe->declared_count;
}

bool values_has_this(const struct recipe *recipe)
{
	for (uint32_t i = 0; i < recipe->count; i++)
		if (!recipe->parts[i].value.is_hidden)
			return recipe->parts[i].value.is_this;
	return false;
}

/* --- the arguments --- */

static void read_argument(struct thread *self,
			  const struct recipe_reader *reader, uint32_t i,
			  struct shim_argument_range *range)
{
	const struct part *part = &reader->recipe->parts[i];

	range->start = recipe_read(reader, part, self->values->spilled[i]);
	range->length = part->value.size;
}

void values_fill(struct thread *self, const struct arch_frame *frame,
		 const struct recipe *recipe, struct shim_argument_info *info)
{
	struct recipe_reader reader = { .frame = frame };
	uint32_t n = 0;

	info->ranges_count = recipe->declared_count;
	info->total_size = recipe->total_size;
	recipe_begin_reader(&reader, frame, recipe);
	for (uint32_t i = 0; i < recipe->count; i++)
		if (!recipe->parts[i].value.is_hidden)
			read_argument(self, &reader, i, &info->ranges[n++]);
}

enum shim_unavailable values_get(struct thread *self,
				 const struct arch_frame *frame,
				 const struct recipe *recipe, uint32_t position,
				 struct shim_argument_range *range)
{
	struct recipe_reader reader = { .frame = frame };
	const struct part *part;
	uint32_t i = 0;

	*range = (struct shim_argument_range){ .start = 0 };
	for (; i < recipe->count; i++)
		if (!recipe->parts[i].value.is_hidden && position-- == 0)
			break;
	if (i == recipe->count)
		return SHIM_UNAVAILABLE_NONE;
	recipe_begin_reader(&reader, frame, recipe);
	read_argument(self, &reader, i, range);
	part = &recipe->parts[i];
	if (part->places.reason != SHIM_AVAILABLE)
		return part->places.reason;
	return range->start ? SHIM_AVAILABLE : SHIM_UNAVAILABLE_CODE;
}

struct shim_argument_info *values_answer(struct thread *self,
					 const struct arch_frame *frame)
{
	const struct recipe *recipe;

	if (values_find(self, frame, &recipe) != SHIM_OK)
		return NULL;
	values_fill(self, frame, recipe, &self->values->passed.info);
	return &self->values->passed.info;
}
