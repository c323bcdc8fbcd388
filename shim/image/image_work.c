/* Measures the time that shim's own work on images takes. */
#include "image/image_work.h"

#include "os/sys.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <shim/format.h>
#include <shim/record.h>

#include <shim/banned.h>

#define OWN_PROCESSOR_TIME 3 /* of the calling thread: sys_time_ns */

static uint64_t begin_ns;
static uint32_t depth;

/* The time of a sample's handler is left out as a whole. */
void image_work_begins(void)
{
	const struct thread *self = thread_current;

	ASSERT_LOCKED();
	if (depth++ == 0 && ((self && self->sample_context) ||
			     sys_time_ns(OWN_PROCESSOR_TIME, &begin_ns) < 0))
		begin_ns = 0;
}

void image_work_ends(void)
{
	struct shim_meta *meta = shim_record_meta();
	uint64_t now_ns;

	ASSERT_LOCKED();
	if (--depth > 0 || begin_ns == 0 ||
	    sys_time_ns(OWN_PROCESSOR_TIME, &now_ns) < 0)
		return;
	if (thread_current)
		thread_current->images_ns += now_ns - begin_ns;
	if (meta)
		meta->images_ns += now_ns - begin_ns;
}
