/*
 * The arcs of a program compiled with -pg.  The test is the system and the recording.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>

#include "../../shim/monitor/monitor_arcs.c"

static struct monitor_arc system_memory[ROOM], kept_memory[ROOM];
static bool is_mapped, is_unmapped, no_memory, has_recording;

/* Another thread makes its table while this one maps memory. */
static struct monitor_arc *other_table;

int sys_map(size_t size, void **memory)
{
	cr_assert(eq(sz, size, sizeof(system_memory)));
	if (no_memory)
		return -ENOMEM;
	is_mapped = true;
	*memory = system_memory;
	if (other_table)
		table = other_table;
	return 0;
}

int sys_unmap(void *memory, size_t size)
{
	cr_assert(eq(ptr, memory, system_memory));
	cr_assert(eq(sz, size, sizeof(system_memory)));
	is_unmapped = true;
	return 0;
}

struct shim_record *shim_record_open(const char *kind, void **memory,
				     size_t *size, enum shim_lost *cause)
{
	(void)memory, (void)size, (void)cause;
	cr_assert(eq(str, (char *)kind, "arcs"));
	return has_recording ? (struct shim_record *)kept_memory : NULL;
}

void *shim_record_grow(struct shim_record *record, size_t size, size_t *got,
		       enum shim_lost *cause)
{
	(void)got, (void)cause;
	cr_assert(eq(sz, size, sizeof(kept_memory)));
	return record;
}

static void count(unsigned calls)
{
	monitor_counts_arcs = true;
	for (unsigned i = 0; i < calls; i++)
		monitor_count_arc(0x1000, 0x2000);
}

static void check_arc(uint64_t calls)
{
	struct monitor_arc *arc = monitor_next_arc(NULL);

	cr_assert(ne(ptr, arc, NULL));
	cr_expect(eq(u64, arc->from, 0x1000));
	cr_expect(eq(u64, arc->self, 0x2000));
	cr_expect(eq(u64, arc->calls, calls));
	cr_expect(eq(ptr, monitor_next_arc(arc), NULL));
	cr_expect(zero(u64, monitor_lost_arcs()));
}

Test(monitor_arcs, without_a_recording_they_are_in_memory_that_stays)
{
	count(3);
	check_arc(3);
	cr_expect(is_mapped);
	cr_expect(not(is_unmapped));
	monitor_forget_arcs();
	count(2);
	check_arc(2);
}

Test(monitor_arcs, a_recording_keeps_them)
{
	has_recording = true;
	count(3);
	check_arc(3);
	cr_expect(eq(ptr, table, kept_memory));
	cr_expect(not(is_mapped));
	/* The child must not count in the parent's. */
	monitor_forget_arcs();
	cr_expect(eq(ptr, monitor_next_arc(NULL), NULL));
}

Test(monitor_arcs, the_memory_of_the_second_thread_is_given_back)
{
	other_table = kept_memory;
	count(3);
	check_arc(3);
	cr_expect(eq(ptr, table, kept_memory));
	cr_expect(is_unmapped);
}

Test(monitor_arcs, without_memory_they_are_counted_as_lost)
{
	no_memory = true;
	count(3);
	cr_expect(eq(ptr, monitor_next_arc(NULL), NULL));
	cr_expect(eq(u64, monitor_lost_arcs(), 3));
}
