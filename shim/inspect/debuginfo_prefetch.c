/*
 * Opens debug information of images before a hook needs it: at the start, and at the
 * end of dlopen.
 */
#include "inspect/debuginfo_prefetch.h"

#include "image/image.h"
#include "image/symbols.h"
#include "inspect/helper.h"
#include "inspect/info.h"
#include "runtime/contract.h"
#include "runtime/state.h"

#include <shim/values.h>

#include <shim/banned.h>

static bool is_on;

bool prefetch_is_on(void)
{
	return __atomic_load_n(&is_on, __ATOMIC_ACQUIRE);
}

void prefetch_enable(void)
{
	symbols_enable();
	__atomic_store_n(&is_on, true, __ATOMIC_RELEASE);
}

enum shim_result
shim_profiler_enable_values(struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	prefetch_enable();
	return SHIM_OK;
}

static void ignore_answer(const struct debuginfo_answer *answer, void *unused)
{
	(void)answer;
	(void)unused;
}

static void open_debuginfo(const struct image_entry *image)
{
	struct debuginfo_question question;

	if (!__atomic_load_n(&image->has_hooks, __ATOMIC_ACQUIRE))
		return;
	info_describe(image, &question);
	helper_ask(HELPER_OPEN_IMAGE, &question, NULL, ignore_answer, NULL);
}

void prefetch_new_images(void)
{
	struct image_entry *const *images;
	uint32_t count;

	if (!prefetch_is_on())
		return;
	image_pin();
	count = image_list(&images);
	for (uint32_t i = 0; i < count; i++)
		if (images[i]->id != 0 &&
		    !__atomic_exchange_n(&images[i]->is_opened, true,
					 __ATOMIC_ACQ_REL))
			open_debuginfo(images[i]);
	image_unpin();
}
