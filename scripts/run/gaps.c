/*
 * The kernel reports each context switch of a program to another process of the user,
 * which needs no further rights.  So the program itself does nothing: a thread of this
 * process reads one ring buffer for each processor and appends the events to the
 * recording (struct shim_gaps).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gaps.h"
#include "private.h"
#include "say.h"

#include <shim/format.h>

#define PROCESSORS_MAX 512
/* The pages that each user may lock for each processor by default; a wakeup at a
 * quarter of them. */
#define RING_PAGES 128u
#define WAKE_BYTES (RING_PAGES / 4 * 4096u)
#define PAUSE_MS   200
#define BUFFERED   2048

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
	const unsigned char *data;
	uint64_t size;
	uint64_t lost; /* by the records of the ring; its last loss has none */
};

/* A record of the kernel, with the fields that perf_event_attr requested. */
struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

struct switch_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t processor, unused;
};

static struct ring ring[PROCESSORS_MAX];
static unsigned rings;
static int gate[2] = { -1, -1 };
static int stop = -1;
static pthread_t reader;
static bool has_reader;
static const char *directory;
static const bool *has_directory;
static int file = -1;
static int file_error;
static struct shim_gaps head;
static struct shim_switch buffer[BUFFERED];
static unsigned buffered;

/* --- the file ----------------------------------------------------------- */

static void write_at_end(const void *memory, size_t size)
{
	if (file_error == 0 && write(file, memory, size) != (ssize_t)size)
		file_error = errno != 0 ? errno : ENOSPC;
}

/* Whether the file is open, or can be created now. */
static bool open_file(void)
{
	if (file >= 0 || file_error != 0)
		return file_error == 0;
	if (!__atomic_load_n(has_directory, __ATOMIC_ACQUIRE))
		return false;
	file = private_create(directory, "gaps");
	file_error = file < 0 ? -file : 0;
	if (file < 0)
		return false;
	write_at_end(&head, sizeof(head));
	return true;
}

static void flush(void)
{
	write_at_end(buffer, buffered * sizeof(*buffer));
	buffered = 0;
}

/* --- records of the kernel ---------------------------------------------- */

static void take_switch(const struct switch_record *record)
{
	bool is_off = record->header.misc & PERF_RECORD_MISC_SWITCH_OUT;

	if (buffered == BUFFERED)
		flush();
	buffer[buffered++] = (struct shim_switch){
		.mono_ns = record->time_ns,
		.pid = record->pid,
		.tid = record->tid,
		.processor = record->processor,
		.kind = !is_off ? SHIM_SWITCH_ON :
			record->header.misc &
					PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ?
				  SHIM_SWITCH_PREEMPTED :
				  SHIM_SWITCH_WAITS,
	};
}

static void take_record(struct ring *from, const void *record)
{
	const struct perf_event_header *header = record;
	const struct lost_record *lost = record;

	if (header->type == PERF_RECORD_SWITCH &&
	    header->size >= sizeof(struct switch_record))
		take_switch(record);
	else if (header->type == PERF_RECORD_LOST)
		from->lost += lost->lost;
}

/* A record may wrap around the end of the ring. */
static void copy_out(const struct ring *from, uint64_t at, void *to,
		     size_t size)
{
	for (size_t i = 0; i < size; i++)
		((unsigned char *)to)[i] =
			from->data[(at + i) & (from->size - 1)];
}

static void drain(struct ring *from)
{
	uint64_t end = __atomic_load_n(&from->page->data_head,
				       __ATOMIC_ACQUIRE);
	uint64_t at = from->page->data_tail;
	uint64_t record[16];
	struct perf_event_header header;

	while (at < end) {
		copy_out(from, at, &header, sizeof(header));
		if (header.size < sizeof(header))
			break;
		copy_out(from, at, record,
			 header.size < sizeof(record) ? header.size :
							sizeof(record));
		take_record(from, record);
		at += header.size;
	}
	__atomic_store_n(&from->page->data_tail, end, __ATOMIC_RELEASE);
}

/* The kernel writes a record of a loss before the next switch that finds room.  When
 * none follows, only the event itself tells (since Linux 6.0). */
static uint64_t lost_of(const struct ring *from)
{
	struct {
		uint64_t value, lost;
	} counts;

	return read(from->fd, &counts, sizeof(counts)) == sizeof(counts) ?
		       counts.lost :
		       from->lost;
}

static void drain_all(void)
{
	uint64_t lost = 0;

	if (!open_file())
		return;
	for (unsigned i = 0; i < rings; i++) {
		drain(&ring[i]);
		lost += lost_of(&ring[i]);
	}
	flush();
	if (lost != head.lost) {
		head.lost = lost;
		if (file_error == 0 &&
		    pwrite(file, &head, sizeof(head), 0) != sizeof(head))
			file_error = errno;
	}
}

static void *read_rings(void *unused)
{
	static struct pollfd polled[PROCESSORS_MAX + 1];

	for (unsigned i = 0; i < rings; i++)
		polled[i] = (struct pollfd){ ring[i].fd, POLLIN, 0 };
	polled[rings] = (struct pollfd){ stop, POLLIN, 0 };
	while (!(polled[rings].revents & POLLIN)) {
		poll(polled, rings + 1, PAUSE_MS);
		drain_all();
		/* A ring whose thread has ended is always ready. */
		for (unsigned i = 0; i < rings; i++)
			if (polled[i].revents & (POLLHUP | POLLERR))
				polled[i].fd = -1;
	}
	return unused;
}

/* --- beginning and end -------------------------------------------------- */

static int open_ring(struct ring *new, int child, int processor)
{
	struct perf_event_attr about = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(about),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.inherit = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.watermark = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.context_switch = 1,
		.read_format = PERF_FORMAT_LOST,
		.wakeup_watermark = WAKE_BYTES,
		.clockid = CLOCK_MONOTONIC,
	};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned pages = RING_PAGES;
	void *memory = MAP_FAILED;
	int error;

	new->fd = (int)syscall(SYS_perf_event_open, &about, child, processor,
			       -1, PERF_FLAG_FD_CLOEXEC);
	if (new->fd < 0 && errno == EINVAL) {
		about.read_format = 0;
		new->fd = (int)syscall(SYS_perf_event_open, &about, child,
				       processor, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (new->fd < 0)
		return -errno;
	for (; pages > 0 && memory == MAP_FAILED; pages /= 2) {
		memory = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE,
			      MAP_SHARED, new->fd, 0);
		new->size = pages *page;
	}
	if (memory == MAP_FAILED) {
		error = -errno;
		close(new->fd);
		return error;
	}
	new->page = memory;
	new->data = (unsigned char *)memory + page;
	return 0;
}

/* Processors may be offline. */
static int open_rings(int child)
{
	long processors = sysconf(_SC_NPROCESSORS_CONF);
	int r = -ENODEV, failed = 0;

	for (int i = 0; i < processors && rings < PROCESSORS_MAX; i++) {
		r = open_ring(&ring[rings], child, i);
		if (r == 0)
			rings++;
		else if (r != -ENODEV)
			failed = r;
	}
	return failed != 0 ? failed : rings == 0 ? r : 0;
}

static void say_refused(int error)
{
	char level[16] = "?";
	int fd = open("/proc/sys/kernel/perf_event_paranoid",
		      O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, level, sizeof(level) - 1);

	if (fd >= 0)
		close(fd);
	level[size > 0 ? size : 1] = '\0';
	level[strcspn(level, "\n")] = '\0';
	say("--gaps: the kernel does not tell when threads have no processor: %s"
	    " (perf_event_open; /proc/sys/kernel/perf_event_paranoid is %s, 2 or"
	    " less would do); the program runs without",
	    strerror(error), level);
}

void gaps_prepare(void)
{
	if (pipe2(gate, O_CLOEXEC) < 0)
		gate[0] = gate[1] = -1;
}

void gaps_wait(void)
{
	char byte;

	if (gate[0] < 0)
		return;
	close(gate[1]);
	while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
		;
	close(gate[0]);
}

static void open_gate(void)
{
	if (gate[0] < 0)
		return;
	close(gate[0]);
	close(gate[1]);
}

void gaps_begin(int child, const char *where, const bool *is_there)
{
	int r = open_rings(child);

	directory = where;
	has_directory = is_there;
	memcpy(head.magic, SHIM_GAPS_MAGIC, sizeof(head.magic));
	head.version = SHIM_FORMAT_VERSION;
	head.header_size = sizeof(head);
	stop = eventfd(0, EFD_CLOEXEC);
	if (r == 0 && stop < 0)
		r = -errno;
	if (r == 0)
		r = -pthread_create(&reader, NULL, read_rings, NULL);
	has_reader = r == 0;
	if (r < 0)
		say_refused(-r);
	open_gate();
}

void gaps_end(bool is_wanted)
{
	uint64_t one = 1;

	if (!has_reader || write(stop, &one, sizeof(one)) != sizeof(one))
		return;
	pthread_join(reader, NULL);
	if (file >= 0)
		close(file);
	if (is_wanted && file_error != 0)
		say("%s/gaps: cannot be written: %s", directory,
		    private_error(-file_error));
	if (head.lost > 0)
		say("--gaps: the kernel has dropped %llu switches",
		    (unsigned long long)head.lost);
}

void gaps_remove(void)
{
	if (file >= 0)
		private_remove(directory, "gaps");
}
