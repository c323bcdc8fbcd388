/*
 * Raises image_loaded and image_unloaded to modules.  A scan runs under the state lock,
 * where no module may be called.  So it stores a notice in the image's entry, and a
 * thread of the program raises the event later.
 */
#include "image/image_table.h"

#include "os/sys.h"
#include "runtime/events.h"
#include "runtime/state.h"

#include <shim/banned.h>

static uint64_t notices; /* the number of the last one */
static uint32_t notices_left;

uint64_t image_next_notice(void)
{
	__atomic_store_n(&notices_left, 1, __ATOMIC_RELEASE);
	return ++notices;
}

/* The load_notice of an image while a thread raises its event. */
#define RAISING UINT64_MAX

struct notice {
	struct image_entry *image;
	shim_image id; /* of a loaded image; 0: it was unloaded */
	uintptr_t low, high;
	uint32_t generation;
};

static uint64_t *oldest_notice(struct image_entry **which)
{
	uint64_t *oldest = NULL;

	for (uint32_t i = 0; i < image_entries(); i++) {
		struct image_entry *image = image_at(i);
		uint64_t *notice = image->status == IMAGE_LOADED ?
					   &image->load_notice :
					   &image->unload_notice;

		if (image->status == IMAGE_FREE || *notice == 0 ||
		    *notice == RAISING || (oldest && *notice > *oldest))
			continue;
		oldest = notice;
		*which = image;
	}
	return oldest;
}

static void claim_notice(struct image_entry *image, struct notice *notice)
{
	*notice = (struct notice){
		.image = image,
		.id = image->id,
		.low = image->start,
		.high = image->end,
		.generation = image->generation,
	};
	if (notice->id)
		__atomic_store_n(&image->load_notice, RAISING,
				 __ATOMIC_RELEASE);
	else
		image->unload_notice = 0;
}

static int claim_oldest_notice(void *argument)
{
	struct image_entry *image = NULL;

	if (oldest_notice(&image)) {
		claim_notice(image, argument);
		return 1;
	}
	__atomic_store_n(&notices_left, 0, __ATOMIC_RELEASE);
	image_reclaim();
	return 0;
}

static bool is_loaded(shim_image id)
{
	bool has_been, found;

	image_pin();
	found = image_get(id, &has_been) != NULL;
	image_unpin();
	return found;
}

static void raise_notice(const struct notice *notice)
{
	if (notice->id == 0)
		RAISE_TO(AUDIENCE_MODULES, image_unloaded, notice->low,
			 notice->high, notice->generation);
	else if (is_loaded(notice->id))
		RAISE(image_loaded, notice->id);
	/* The entry may have another image now, with another notice. */
	if (notice->id)
		__atomic_compare_exchange_n(&notice->image->load_notice,
					    &(uint64_t){ RAISING }, 0, false,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/*
 * One thread raises all events, so that a module gets image_unloaded after
 * image_loaded.  It also raises events that other threads have caused meanwhile.  If
 * that thread ends during a callback, another thread takes over.
 */
static struct {
	int tid;
	uintptr_t frame;
} raiser;

/* Whether the calling thread @self raises the events, and one of its callbacks makes this
 * call, perhaps on another stack. */
static bool is_raiser(int self, uintptr_t frame)
{
	return __atomic_load_n(&raiser.tid, __ATOMIC_ACQUIRE) == self &&
	       (raiser.frame > frame ||
		(thread_current && thread_current->on_callback_stack));
}

static bool begin_raising(int self, uintptr_t frame)
{
	int owner = __atomic_load_n(&raiser.tid, __ATOMIC_ACQUIRE);

	if (owner == self ? is_raiser(self, frame) :
			    owner != 0 && sys_is_alive(sys_getpid(), owner))
		return false;
	if (!__atomic_compare_exchange_n(&raiser.tid, &owner, self, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	raiser.frame = frame;
	return true;
}

void image_raise_pending(void)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	struct notice notice;
	int r = 0;

	while (r == 0 && __atomic_load_n(&notices_left, __ATOMIC_ACQUIRE)) {
		if (!begin_raising(sys_gettid(), frame))
			return;
		while ((r = state_call_locked(claim_oldest_notice, &notice)) >
		       0)
			raise_notice(&notice);
		/* A thread that has a notice now sees that none raises it, or this one
		 * sees the notice. */
		__atomic_store_n(&raiser.tid, 0, __ATOMIC_SEQ_CST);
	}
}

/* A search for the next image to catch up on: the first after @after, up to @until. */
struct catching_up {
	uint64_t after, until;
	shim_image id;
};

static int find_next_image(void *argument)
{
	struct catching_up *catching_up = argument;
	uint64_t came = UINT64_MAX;

	for (uint32_t i = 0; i < image_entries(); i++) {
		const struct image_entry *image = image_at(i);

		if (image->status != IMAGE_LOADED ||
		    image->came <= catching_up->after ||
		    image->came > catching_up->until || image->came >= came)
			continue;
		came = image->came;
		catching_up->id = image->id;
	}
	catching_up->after = came;
	return came != UINT64_MAX;
}

void image_note_came(struct shim_profiler_handle *handle)
{
	image_raise_pending();
	handle->images_until = __atomic_load_n(&notices, __ATOMIC_RELAXED);
}

static void catch_up(struct shim_profiler_handle *handle)
{
	struct catching_up catching_up = { .until = handle->images_until };

	if (handle->images_until == 0)
		return;
	handle->images_until = 0;
	if (!handle->image_loaded)
		return;
	while (state_call_locked(find_next_image, &catching_up) > 0)
		RAISE_ONE(handle, image_loaded, catching_up.id);
}

SUBSCRIBE(profiler_came, image_note_came);
SUBSCRIBE(profiler_catches_up, catch_up);

/* Returns 0 if no event is pending, RAISING while a thread raises it. */
static uint64_t load_notice_of(shim_image id)
{
	struct image_entry *image;
	bool has_been;
	uint64_t notice = 0;

	image_pin();
	image = image_get(id, &has_been);
	if (image)
		notice = __atomic_load_n(&image->load_notice, __ATOMIC_ACQUIRE);
	image_unpin();
	return notice;
}

static int claim_notice_of_image(void *argument)
{
	struct notice *notice = argument;
	struct image_entry *image;
	bool has_been;

	image = image_get(notice->id, &has_been);
	if (!image || image->load_notice == 0 || image->load_notice == RAISING)
		return 0;
	claim_notice(image, notice);
	return 1;
}

/* A thread that closes an image waits for callbacks on another thread. */
bool image_was_told(shim_image id)
{
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	struct notice notice = { .id = id };
	int self = sys_gettid(), owner;

	for (uint32_t waited = 0; waited < SYS_WAIT_STEPS;
	     waited = sys_wait_step(waited)) {
		uint64_t left = load_notice_of(id);

		if (left == 0)
			return true;
		if (sys_is_forbidden())
			return false;
		if (is_raiser(self, frame)) {
			if (state_call_locked(claim_notice_of_image, &notice) >
			    0)
				raise_notice(&notice);
			return true;
		}
		owner = __atomic_load_n(&raiser.tid, __ATOMIC_ACQUIRE);
		if (left != RAISING)
			image_raise_pending();
		else if (owner == 0 || !sys_is_alive(sys_getpid(), owner))
			return true; /* a callback did not return */
	}
	return false;
}
