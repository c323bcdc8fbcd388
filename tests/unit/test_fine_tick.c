/*
 * Which files are a fine tick.  The test is the system, the kernel's tick and the clock.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <string.h>

#include "../../shim/os/fine_tick.c"

static struct shim_tick file;
static uint64_t kernels_length = 4000000, file_size = FINE_TICK_SIZE;
static bool clock_is_closed;
static unsigned calls, open_files, mapped;

int sys_open_at(int directory, const char *name, int flags, unsigned mode)
{
	(void)name, (void)flags, (void)mode;
	calls++;
	open_files++;
	return directory + 1;
}

/* The opener has the file, unless it is asked after a success. */
int opener_help(int error, enum opener_what what, const char *directory,
		const char *name)
{
	(void)directory, (void)name;
	cr_expect(eq(int, what, OPENER_TICK));
	cr_expect(lt(int, error, 0));
	open_files++;
	return 7;
}

size_t clock_read_boot(char boot[CLOCK_BOOT_SIZE])
{
	strcpy(boot, "boot");
	return 4;
}

int sys_close(int fd)
{
	(void)fd;
	open_files--;
	return 0;
}

int sys_get_status(int fd, struct sys_status *status)
{
	(void)fd;
	status->size = file_size;
	return 0;
}

int sys_map_to_read(int fd, size_t size, void **memory)
{
	(void)fd, (void)size;
	mapped++;
	*memory = &file;
	return 0;
}

int sys_unmap(void *memory, size_t size)
{
	(void)memory, (void)size;
	mapped--;
	return 0;
}

static int owner;

int trust_own(const struct sys_status *status)
{
	(void)status;
	return owner;
}

int trust_file(const struct sys_status *status)
{
	(void)status;
	return 0;
}

bool text_equal(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

bool shim_clock_is_closed(void)
{
	return clock_is_closed;
}

uint64_t coarse_clock_length(void)
{
	return kernels_length;
}

uint64_t clock_hz(void)
{
	return 1000000000;
}

uint64_t shim_clock_of_coarse(uint64_t coarse)
{
	return coarse;
}

const volatile uint64_t *shim_clock_coarse(uint64_t *length)
{
	(void)length;
	return NULL;
}

static void begin(void)
{
	file = (struct shim_tick){
		.version = SHIM_FORMAT_VERSION,
		.boot = "boot",
		.clock = shim_clock_read() | 1,
		.length = 100000,
	};
	memcpy(file.magic, SHIM_TICK_MAGIC, sizeof(file.magic));
	kernels_length = 4000000;
	file_size = FINE_TICK_SIZE;
	clock_is_closed = false;
	owner = 0;
	calls = 0;
}

static void expect_none(const char *why)
{
	cr_expect(eq(ptr, (void *)fine_tick_map(3), NULL), "%s", why);
	cr_expect(zero(u32, open_files), "%s", why);
	cr_expect(zero(u32, mapped), "%s", why);
	begin();
}

Test(fine_tick, a_file_that_is_being_written_is_one)
{
	begin();
	cr_expect(eq(ptr, (void *)fine_tick_map(3), &file));
	cr_expect(zero(u32, open_files));
	cr_expect(eq(u32, mapped, 1));
}

/* Of another user, which may be no other. */
Test(fine_tick, the_opener_opens_what_this_process_may_not)
{
	begin();
	owner = -TRUST_OWNER;
	cr_expect(eq(ptr, (void *)fine_tick_map(-EACCES), &file));
	cr_expect(zero(u32, open_files));
	cr_expect(zero(u32, calls));
	cr_expect(eq(ptr, (void *)fine_tick_map(3), NULL));
	cr_expect(zero(u32, open_files));
}

Test(fine_tick, another_file_is_none)
{
	begin();
	file.magic[7] = 'X';
	expect_none("another beginning");
	file.version++;
	expect_none("another version");
	file.boot[0] = 'B';
	expect_none("another boot");
	file.is_over = 1;
	expect_none("its writer has ended");
	file.clock -= 500000000;
	expect_none("its writer stands still");
	file.clock &= ~(uint64_t)SHIM_TICK_ALIVE;
	expect_none("its writer was killed");
	file.length = kernels_length;
	expect_none("it is not finer");
	file_size--;
	expect_none("it is short");
}

/* Where the system forbids to read the clock, it may end the program for such calls. */
Test(fine_tick, without_either_clock_no_file_is_opened)
{
	begin();
	clock_is_closed = true;
	cr_expect(eq(ptr, (void *)fine_tick_map(3), NULL));
	cr_expect(zero(u32, calls));
	begin();
	kernels_length = 0;
	cr_expect(eq(ptr, (void *)fine_tick_map(3), NULL));
	cr_expect(zero(u32, calls));
}
