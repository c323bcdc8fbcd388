/*
 * Sets of monitor(3): ranges of code with counters.  A request has the ranges that a
 * caller wishes; each must be code of one loaded object.  A sample counts in the range
 * that contains it.
 */
#define _GNU_SOURCE
#include "monitor/monitor.h"

#include "image/image.h"
#include "os/segments.h"
#include "os/sys.h"
#include "os/text.h"

#include <errno.h>
#include <shim/format.h>

#include <shim/banned.h>

/* --- counting --- */

static uint64_t bin_of(const struct monitor_range *range, uintptr_t pc)
{
	if (range->step)
		return (pc - range->base) / range->step;
	return (uint64_t)((unsigned __int128)(pc - range->low) * range->bins /
			  (range->high - range->low));
}

/* A counter stays at its largest value; @saturated counts the rest. */
#define ADD_SATURATED(type, largest) \
	do { \
		type *counter_ = (type *)range->counters + bin; \
		type before_ = __atomic_load_n(counter_, __ATOMIC_RELAXED); \
		uint32_t fits_; \
		do { \
			fits_ = (largest)-before_; \
			if (fits_ > count) \
				fits_ = count; \
		} while (!__atomic_compare_exchange_n( \
			counter_, &before_, (type)(before_ + fits_), false, \
			__ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
		if (fits_ < count) \
			__atomic_add_fetch(&range->saturated, count - fits_, \
					   __ATOMIC_RELAXED); \
	} while (0)

static void add_to(struct monitor_range *range, uint64_t bin, uint32_t count)
{
	if (range->width == 2)
		ADD_SATURATED(uint16_t, UINT16_MAX);
	else
		ADD_SATURATED(uint32_t, UINT32_MAX);
}

bool monitor_add_to(struct monitor_set *set, uintptr_t pc, uint32_t count)
{
	if (!__atomic_load_n(&set->counts, __ATOMIC_RELAXED))
		return false;
	for (uint32_t i = 0; i < set->range_count; i++) {
		struct monitor_range *range = &set->ranges[i];

		if (pc - range->low < range->high - range->low &&
		    !__atomic_load_n(&range->is_gone, __ATOMIC_RELAXED)) {
			add_to(range, bin_of(range, pc), count);
			return true;
		}
	}
	__atomic_add_fetch(set->kept ? &set->kept->outside : &set->outside,
			   count, __ATOMIC_RELAXED);
	return false;
}

/* --- ranges --- */

bool monitor_find_code(const struct image_entry *image, uintptr_t *low,
		       uintptr_t *high, uintptr_t *entry)
{
	struct segments segments = segments_at(image->start, sys_peek);
	Elf64_Ehdr elf;
	Elf64_Phdr part;

	*low = UINTPTR_MAX;
	*high = 0;
	if (sys_peek((const void *)image->start, &elf, sizeof(elf)) < 0)
		return false;
	*entry = elf.e_entry;
	while (segments_next(&segments, &part)) {
		if (part.p_type != PT_LOAD || !(part.p_flags & PF_X))
			continue;
		if (part.p_vaddr < *low)
			*low = part.p_vaddr;
		if (part.p_vaddr + part.p_memsz > *high)
			*high = part.p_vaddr + part.p_memsz;
	}
	return *low < *high;
}

/* Fills the fields of @range that depend on its object.  The caller must have pinned
 * images. */
static int place_in_object(struct monitor_range *range,
			   const struct monitor_wish *wish)
{
	const struct image_entry *image = image_find(wish->low);
	struct text path;
	uintptr_t low, high;

	if (!image || wish->high > image->end ||
	    !monitor_find_code(image, &low, &high, &range->entry) ||
	    wish->low >= image->bias + high || wish->high <= image->bias + low)
		return -EINVAL;
	range->low = wish->low;
	range->high = wish->high;
	range->bias = image->bias;
	text_init(&path, range->path, sizeof(range->path));
	text_add(&path, image->path);
	return 0;
}

static bool is_wish_valid(const struct monitor_wish *wish, uint32_t width)
{
	if (wish->low >= wish->high)
		return false;
	return !wish->counters ||
	       (wish->size >= width && wish->size <= INTPTR_MAX);
}

/* Divides a range into steps.  The counters cover a multiple of the step, because gprof
 * requires equal scales. */
static void divide_into_steps(const struct monitor_flags *flags,
			      struct monitor_range *range)
{
	range->step = flags->step ? flags->step : range->high - range->low;
	range->base = range->low;
	if (flags->step)
		range->base -= (range->low - range->bias) % flags->step;
	range->bins = (range->high - range->base + range->step - 1) /
		      range->step;
	range->end = range->base + range->bins * range->step;
	range->width = sizeof(uint32_t);
}

static void use_program_counters(struct monitor_range *range,
				 const struct monitor_wish *wish,
				 uint32_t width)
{
	range->base = range->low;
	range->end = range->high;
	range->width = width;
	range->counters = wish->counters;
	range->bins = wish->size / width;
	if (range->bins > range->high - range->low)
		range->bins = range->high - range->low;
}

/* --- sets --- */

bool monitor_is_given(const struct monitor_range *range)
{
	return range->step == 0; /* the program's own counters */
}

int monitor_give_counters(struct monitor_set *set)
{
	int r = 0;

	if (monitor_keep(set))
		return 0;
	for (uint32_t i = 0; i < set->range_count && r == 0; i++) {
		struct monitor_range *range = &set->ranges[i];

		if (!range->counters)
			r = sys_map(range->bins * range->width,
				    &range->counters);
	}
	return r;
}

void monitor_free_set(struct monitor_set *set)
{
	monitor_keep_done(set, true);
	for (uint32_t i = 0; i < set->range_count; i++) {
		struct monitor_range *range = &set->ranges[i];

		if (range->counters && !monitor_is_given(range) && !set->kept)
			sys_unmap(range->counters, range->bins * range->width);
	}
	sys_unmap(set, set->size);
}

static int fill_set(const struct monitor_flags *flags, struct monitor_set *set,
		    const struct monitor_request *request)
{
	for (uint32_t i = 0; i < request->count; i++) {
		const struct monitor_wish *wish = &request->wishes[i];
		struct monitor_range *range = &set->ranges[set->range_count];
		int r = place_in_object(range, wish);

		if (r < 0)
			return r;
		if (monitor_is_named(flags->excluded, flags->excluded_count,
				     image_find(wish->low)))
			continue;
		set->range_count++;
		if (wish->counters)
			use_program_counters(range, wish, request->width);
		else
			divide_into_steps(flags, range);
	}
	return monitor_give_counters(set);
}

int monitor_make_set(const struct monitor_flags *flags,
		     const struct monitor_request *request,
		     struct monitor_set **set)
{
	size_t size = sizeof(**set) +
		      request->count * sizeof((*set)->ranges[0]);
	void *memory;
	int r = sys_map(size, &memory);

	if (r < 0)
		return r;
	*set = memory;
	(*set)->size = size;
	image_pin();
	r = fill_set(flags, *set, request);
	image_unpin();
	if (r < 0)
		monitor_free_set(*set);
	return r;
}

static bool overlap(const struct monitor_request *request)
{
	for (uint32_t i = 0; i < request->count; i++)
		for (uint32_t n = 0; n < i; n++)
			if (request->wishes[i].low < request->wishes[n].high &&
			    request->wishes[n].low < request->wishes[i].high)
				return true;
	return false;
}

/* Scans if a wished range is unknown: shim may not have seen an object that the program
 * has just opened. */
static void scan_for(const struct monitor_request *request)
{
	bool is_known = true;

	image_pin();
	for (uint32_t i = 0; i < request->count; i++)
		is_known &= image_find(request->wishes[i].low) != NULL;
	image_unpin();
	if (!is_known)
		image_scan();
}

int monitor_check(const struct monitor_request *request)
{
	struct monitor_range range;
	int r = 0;

	if (request->count > MONITOR_RANGES_MAX || overlap(request))
		return -EINVAL;
	scan_for(request);
	image_pin();
	for (uint32_t i = 0; i < request->count && r == 0; i++)
		r = is_wish_valid(&request->wishes[i], request->width) ?
			    place_in_object(&range, &request->wishes[i]) :
			    -EINVAL;
	image_unpin();
	return r;
}

bool monitor_is_like(const struct monitor_set *set,
		     const struct monitor_request *request)
{
	if (set->range_count != request->count)
		return false;
	for (uint32_t i = 0; i < request->count; i++)
		if (set->ranges[i].is_gone ||
		    set->ranges[i].low != request->wishes[i].low ||
		    set->ranges[i].high != request->wishes[i].high ||
		    monitor_is_given(&set->ranges[i]) !=
			    (request->wishes[i].counters != NULL) ||
		    (monitor_is_given(&set->ranges[i]) &&
		     set->ranges[i].counters != request->wishes[i].counters))
			return false;
	return true;
}
