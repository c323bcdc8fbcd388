/*
 * The fine tick, a clock that profrun writes and shim reads.  When profrun stops writing,
 * it sets a flag in the file and changes the clock once more.  Each thread sees the
 * change, reads the flag, and continues with the kernel's tick.  When all processes of
 * profrun are killed, the kernel changes the clock.
 */
#include "os/fine_tick.h"

#include "os/clock.h"
#include "os/coarse_clock.h"
#include "os/opener.h"
#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"

#include <fcntl.h>
#include <shim/builtin.h>
#include <shim/cpu.h>
#include <shim/format.h>
#include <shim/record.h>

#include <shim/banned.h>

static const volatile struct shim_tick
	*mapped_tick; /* NULL: the kernel's tick counts */
static const volatile struct shim_tick *ended_tick; /* the last @mapped_tick */
static bool is_logged;
static const volatile uint64_t *kernels_tick;
static struct shim_meta *meta_of_recording;

/* If the last write is older than a second divided by this, profrun has ended. */
#define LATE_PER_SECOND 4

static bool is_of_this_boot(const struct shim_tick *tick)
{
	char boot[CLOCK_BOOT_SIZE];

	_Static_assert(sizeof(tick->boot) == sizeof(boot), "a boot_id");
	if (clock_read_boot(boot) == 0)
		return false;
	return tick->boot[sizeof(tick->boot) - 1] == '\0' &&
	       text_equal(boot, tick->boot);
}

/* A file that was truncated reads as zero. */
static inline bool is_alive(uint64_t clock)
{
	return (clock & SHIM_TICK_ALIVE) != 0;
}

static bool is_written(const struct shim_tick *tick)
{
	uint64_t then = tick->clock, now = shim_clock_read();

	return is_alive(then) &&
	       __builtin_memcmp(tick->magic, SHIM_TICK_MAGIC,
				sizeof(tick->magic)) == 0 &&
	       tick->version == SHIM_FORMAT_VERSION && !tick->is_over &&
	       tick->length < coarse_clock_length() &&
	       now - then < clock_hz() / LATE_PER_SECOND &&
	       is_of_this_boot(tick);
}

/* profrun has opened @fd itself if this process cannot open the @directory. */
static bool is_file(int fd, int directory)
{
	struct sys_status status;

	return sys_get_status(fd, &status) == 0 &&
	       (directory < 0 || trust_own(&status) == 0) &&
	       trust_file(&status) == 0 && status.size >= FINE_TICK_SIZE;
}

const void *fine_tick_map(int directory)
{
	void *memory = NULL;
	int fd;

	if (coarse_clock_length() == 0 || shim_clock_is_closed())
		return NULL;
	fd = directory < 0 ?
		     opener_help(directory, OPENER_TICK, "", "") :
		     sys_open_at(directory, FINE_TICK_NAME,
				 O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
				 0);
	if (fd < 0)
		return NULL;
	if (!is_file(fd, directory) ||
	    sys_map_to_read(fd, FINE_TICK_SIZE, &memory) < 0)
		memory = NULL;
	sys_close(fd);
	if (memory && !is_written(memory)) {
		sys_unmap(memory, FINE_TICK_SIZE);
		memory = NULL;
	}
	mapped_tick = memory;
	return memory;
}

void fine_tick_describe(struct shim_meta *meta)
{
	const volatile struct shim_tick *tick = mapped_tick;

	meta_of_recording = meta;
	meta->fine_tick = tick ? tick->length : 0;
}

const volatile uint64_t *shim_clock_tick(void)
{
	const volatile struct shim_tick *tick = mapped_tick;

	kernels_tick = shim_clock_coarse(NULL);
	return tick ? &tick->clock : kernels_tick;
}

uint64_t shim_clock_of_tick(const volatile uint64_t *tick, uint64_t value)
{
	return tick == kernels_tick ? shim_clock_of_coarse(value) : value;
}

/* Hooks call shim_clock_follow_tick on a small stack: neither of these two functions needs
 * a frame of its own. */
static __attribute__((noinline)) void
use_kernels(const volatile uint64_t **all, const volatile uint64_t **tick)
{
	if (mapped_tick)
		ended_tick = mapped_tick;
	mapped_tick = NULL;
	if (meta_of_recording)
		meta_of_recording->fine_tick = 0;
	*all = *tick = kernels_tick;
}

void shim_clock_follow_tick(const volatile uint64_t **all,
			    const volatile uint64_t **tick)
{
	const volatile struct shim_tick *from = mapped_tick;

	/* A thread that has read the last clock must also see @is_over. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (!from || from->is_over || !is_alive(from->clock))
		use_kernels(all, tick);
	else if (meta_of_recording &&
		 meta_of_recording->fine_tick != from->length)
		meta_of_recording->fine_tick = from->length;
}

bool fine_tick_was_killed(void)
{
	if (!ended_tick || ended_tick->is_over || ended_tick->is_ending ||
	    is_logged)
		return false;
	is_logged = true;
	return true;
}
