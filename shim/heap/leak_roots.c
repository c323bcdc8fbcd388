/*
 * The roots of the leak scan: writable segments of images, stacks and registers of
 * sleeping threads, and thread-local storage.  shim takes them from the kernel's lists
 * in /proc, because the program may have damaged its own lists.
 */
#include "heap/leak_roots.h"

#include "arch.h"
#include "image/image.h"
#include "os/maps.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>

#include <shim/banned.h>

#define REGIONS_SIZE (REACH_REGIONS_MAX * sizeof(struct leak_roots_region))
#define THREADS_SIZE (REACH_THREADS_MAX * sizeof(struct leak_roots_thread))
#define RED_ZONE     128u
#define THREAD_SIZE  4096u /* of libc's data above the thread pointer */

/* --- mapped memory --- */

static bool is_ours(const struct image_entry *image)
{
	static const char ours;

	return (uintptr_t)&ours >= image->start &&
	       (uintptr_t)&ours < image->end;
}

/* Finds the end of an object's data in memory, which may exceed its file (.bss), and
 * the size of its thread-local storage. */
static void read_segments(struct leak_roots *roots,
			  const struct image_entry *image)
{
	Elf64_Ehdr elf;
	Elf64_Phdr part;

	if (sys_peek((const void *)image->start, &elf, sizeof(elf)) < 0)
		return;
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		uintptr_t at = image->start + elf.e_phoff + i * sizeof(part);
		uintptr_t end;

		if (sys_peek((const void *)at, &part, sizeof(part)) < 0)
			return;
		end = image->bias + part.p_vaddr + part.p_memsz;
		if (part.p_type == PT_LOAD && (part.p_flags & PF_W) &&
		    end > roots->data_end)
			roots->data_end = end;
		if (part.p_type == PT_TLS)
			roots->first_thread_size += part.p_memsz + part.p_align;
	}
}

/* An anonymous mapping after an object's begins with the rest of the object's data.
 * After data_end the mapping may belong to anything else. */
static void add_data(struct leak_roots *roots, struct leak_roots_region *region,
		     const struct map *map)
{
	const struct image_entry *image;

	if (map->path[0] == '\0') {
		region->is_data = region->low < roots->data_end;
		if (region->is_data && region->high > roots->data_end)
			region->high = (roots->data_end + 4095) & ~4095ul;
		return;
	}
	roots->data_end = 0;
	image_pin();
	image = image_find(region->low);
	if (image && !is_ours(image)) {
		region->is_data = true;
		read_segments(roots, image);
	}
	image_unpin();
}

static bool add_region(const struct map *map, void *argument)
{
	struct leak_roots *roots = argument;
	struct leak_roots_region *region = &roots->regions[roots->region_count];

	if (!map->readable)
		return true;
	if (roots->region_count == REACH_REGIONS_MAX)
		return false;
	*region = (struct leak_roots_region){
		.low = map->start,
		.high = map->end,
		.writable = map->writable,
		.is_file = map->path[0] == '/',
		.is_stack = text_equal(map->path, "[stack]"),
	};
	roots->region_count++;
	if (map->writable)
		add_data(roots, region, map);
	return true;
}

static int read_regions(void *argument)
{
	return maps_read(add_region, argument);
}

/* --- threads --- */

/* Parses "NUMBER ARGUMENT... SP PC", "-1 SP PC" or "running". */
static void parse_thread(const char *text, struct leak_roots_thread *thread)
{
	const char *at = text;
	unsigned arguments = 6;

	if (*at == '-')
		arguments = 0;
	else if (*at < '0' || *at > '9')
		return;
	while (*at && *at != ' ')
		at++;
	for (unsigned i = 0; i <= arguments; i++) {
		uint64_t value;

		at = text_after(at, " 0x");
		if (!at)
			return;
		value = text_read_hex(&at);
		if (i < arguments)
			thread->arguments[i] = value;
		else
			thread->sp = value;
	}
}

static void add_thread(struct leak_roots *roots, const char *tid)
{
	struct leak_roots_thread *thread = &roots->threads[roots->thread_count];
	struct text path;
	static char name[64], text[256];
	long size = -1;
	int fd;

	if (roots->thread_count == REACH_THREADS_MAX)
		return;
	text_init(&path, name, sizeof(name));
	text_add(&path, "/proc/self/task/");
	text_add(&path, tid);
	text_add(&path, "/syscall");
	fd = sys_open(name, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		size = sys_read(fd, text, sizeof(text) - 1);
		sys_close(fd);
	}
	text[size > 0 ? size : 0] = '\0';
	thread->tid = (uint32_t)text_read_decimal(&tid);
	parse_thread(text, thread);
	roots->thread_count++;
}

struct name {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char text[];
};

static void read_threads(struct leak_roots *roots)
{
	static char names[4096] __attribute__((aligned(8)));
	int fd = sys_open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
			  0);
	long size;

	if (fd < 0)
		return;
	while ((size = sys_read_directory(fd, names, sizeof(names))) > 0)
		for (long at = 0; at < size;) {
			const struct name *name = (void *)(names + at);
			const char *digits = name->text;

			if (*digits != '.' && text_read_decimal(&digits) !=
						      (uint64_t)sys_gettid())
				add_thread(roots, name->text);
			at += name->size;
		}
	sys_close(fd);
}

static bool add_thread_data(struct thread *thread, void *argument)
{
	struct leak_roots *roots = argument;

	for (unsigned i = 0; i < roots->thread_count; i++)
		if (roots->threads[i].tid == thread->tid) {
			roots->threads[i].data = thread->pthread;
			return true;
		}
	/* libc keeps the stack and the data of an ended thread for a later thread. */
	if (roots->thread_count < REACH_THREADS_MAX && thread != thread_current)
		roots->threads[roots->thread_count++] =
			(struct leak_roots_thread){
				.data = thread->pthread,
				.has_ended = true,
			};
	return true;
}

/* --- all roots --- */

int leak_roots_find(struct leak_roots *roots)
{
	void *memory;
	int r;

	*roots = (struct leak_roots){ .regions = NULL };
	r = sys_map(REGIONS_SIZE, &memory);
	if (r < 0)
		return r;
	roots->regions = memory;
	roots->first_thread_size = THREAD_SIZE;
	r = sys_map(THREADS_SIZE, &memory);
	if (r == 0) {
		roots->threads = memory;
		read_threads(roots);
		roots->is_alone = roots->thread_count == 0;
		thread_each(add_thread_data, roots);
		r = state_call_locked(read_regions, roots);
	}
	if (r == 0 && roots->region_count == REACH_REGIONS_MAX)
		r = -ENOMEM;
	if (r < 0)
		leak_roots_free(roots);
	return r;
}

void leak_roots_free(struct leak_roots *roots)
{
	sys_unmap(roots->regions, REGIONS_SIZE);
	if (roots->threads)
		sys_unmap(roots->threads, THREADS_SIZE);
}

/* The last region that begins at or below @address, or NULL. */
static const struct leak_roots_region *region_of(const struct leak_roots *roots,
						 uintptr_t address)
{
	unsigned low = 0, high = roots->region_count;

	while (low < high) {
		unsigned middle = low + (high - low) / 2;

		if (roots->regions[middle].low <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &roots->regions[low - 1] : NULL;
}

/* --- scanning --- */

struct scan {
	const struct leak_roots *roots;
	bool (*scan)(uintptr_t low, uintptr_t high, void *argument);
	void *argument;
};

/* Scans a thread's stack and the data above it.  An address of 0 is unknown; then only
 * the other part is scanned. */
static bool scan_thread(const struct scan *scan, uintptr_t sp, uintptr_t data,
			bool is_first)
{
	const struct leak_roots_region *region = region_of(scan->roots, data);
	uintptr_t low, high;

	if (region && data < region->high) {
		low = region->low;
		high = data + THREAD_SIZE < region->high ? data + THREAD_SIZE :
							   region->high;
		if (sp >= low && sp < high)
			low = sp;
		else if (is_first &&
			 data - low > scan->roots->first_thread_size)
			low = data - scan->roots->first_thread_size;
		if (!scan->scan(low, high, scan->argument))
			return false;
		if (low == sp)
			return true;
	}
	region = region_of(scan->roots, sp);
	if (!region || sp >= region->high)
		return true;
	return scan->scan(sp, region->high, scan->argument);
}

static bool scan_ended(const struct scan *scan, uintptr_t data)
{
	const struct leak_roots_region *region = region_of(scan->roots, data);

	if (!region || data >= region->high)
		return true;
	return scan->scan(data,
			  data + THREAD_SIZE < region->high ?
				  data + THREAD_SIZE :
				  region->high,
			  scan->argument);
}

static bool scan_others(const struct scan *scan)
{
	const struct leak_roots *roots = scan->roots;

	for (unsigned i = 0; i < roots->thread_count; i++) {
		const struct leak_roots_thread *thread = &roots->threads[i];
		bool is_first = thread->tid == (uint32_t)sys_getpid();
		uintptr_t sp = thread->sp < RED_ZONE ? 0 :
						       thread->sp - RED_ZONE;

		if (thread->has_ended && !scan_ended(scan, thread->data))
			return false;
		if (thread->has_ended)
			continue;
		if (!scan_thread(scan, sp, thread->data, is_first) ||
		    !scan->scan((uintptr_t)thread->arguments,
				(uintptr_t)(thread->arguments + 6),
				scan->argument))
			return false;
		/* The first thread is running, so its stack pointer is unknown. */
		for (unsigned j = 0; is_first && !sp && j < roots->region_count;
		     j++)
			if (roots->regions[j].is_stack &&
			    !scan->scan(roots->regions[j].low,
					roots->regions[j].high, scan->argument))
				return false;
	}
	return true;
}

bool leak_roots_each(const struct leak_roots *roots, uintptr_t sp,
		     bool (*each)(uintptr_t low, uintptr_t high,
				  void *argument),
		     void *argument)
{
	const struct scan scan = { roots, each, argument };

	for (unsigned i = 0; i < roots->region_count; i++)
		if (roots->regions[i].is_data &&
		    !each(roots->regions[i].low, roots->regions[i].high,
			  argument))
			return false;
	return scan_thread(&scan, sp, arch_thread_pointer(),
			   sys_gettid() == sys_getpid()) &&
	       scan_others(&scan);
}

bool leak_is_readable(const struct leak_roots *roots, uintptr_t low,
		      uintptr_t high)
{
	const struct leak_roots_region *region = region_of(roots, low);
	const struct leak_roots_region *end = roots->regions +
					      roots->region_count;

	for (; region && region < end && region->low <= low; region++) {
		if (region->is_file)
			return false;
		if (high <= region->high)
			return true;
		low = region->high;
	}
	return false;
}
