/* Histograms of the durations of calls, see histograms.h. */
#include "model/histograms.h"
#include "base/map.h"
#include "base/memory.h"

static uint64_t key_of(uint32_t thread, uint32_t function)
{
	return (uint64_t)thread << 32 | function;
}

static uint64_t *find_histogram(struct model *model, uint32_t thread,
				uint32_t function)
{
	uint32_t number = map_add(&model->histogram_numbers,
				  key_of(thread, function),
				  model->histogram_count);

	if (number == model->histogram_count) {
		GROW(model->histograms, model->histogram_count,
		     model->histogram_room);
		model->histograms[model->histogram_count++] = allocate(
			SHIM_BUCKETS, sizeof(uint64_t));
	}
	return model->histograms[number];
}

void histogram_add(struct model *model, const struct path *path, int bucket,
		   uint64_t calls)
{
	struct function *function = &model->functions[path->function];

	if (!function->histogram)
		function->histogram = allocate(SHIM_BUCKETS, sizeof(uint64_t));
	function->histogram[bucket] += calls;
	if (model->by_thread)
		find_histogram(model, path->thread,
			       path->function)[bucket] += calls;
}

const uint64_t *histogram_of_thread(const struct model *model, uint32_t thread,
				    uint32_t function)
{
	uint32_t number = map_get(&model->histogram_numbers,
				  key_of(thread, function));

	return number == NONE ? NULL : model->histograms[number];
}
