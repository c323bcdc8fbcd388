/*
 * Finds the marks of an image.  The compiler lists them in sections, whose addresses are in
 * the file's section headers; their content is in memory, where the loader has relocated
 * it.  The code trusts no value of them.
 */
#include "sources/marks.h"

#include "dispatch/call_sites.h"
#include "dispatch/hook_table.h"
#include "image/elf_file.h"
#include "image/image.h"
#include "os/maps.h"
#include "os/pages.h"
#include "os/segments.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/state.h"
#include "sources/mcount.h"
#include "sources/unmarked.h"

#include <errno.h>

#include <shim/banned.h>

#define FIRST_ROOM 256
#define TEXTS_MAX  8

/* --- the image's code --- */

/* The executable segments of the image that is searched. */
static struct {
	uintptr_t start, end;
} texts[TEXTS_MAX];
static unsigned text_count;
static bool has_texts; /* they are known */
static bool has_hooks;

static void find_texts(const struct source_image *image)
{
	struct segments segments;
	Elf64_Phdr part;

	has_texts = true;
	text_count = 0;
	pages_begin(image->end);
	segments = segments_at(image->start, pages_read);
	while (segments_next(&segments, &part)) {
		uintptr_t start = image->bias + part.p_vaddr;

		if (part.p_type != PT_LOAD || !(part.p_flags & PF_X) ||
		    text_count == TEXTS_MAX || start < image->start ||
		    start >= image->end || part.p_memsz > image->end - start)
			continue;
		texts[text_count].start = start;
		texts[text_count++].end = start + part.p_memsz;
	}
}

static bool is_code(const struct source_image *image, uintptr_t address,
		    size_t size)
{
	if (!has_texts)
		find_texts(image);
	for (unsigned i = 0; i < text_count; i++)
		if (address >= texts[i].start && address < texts[i].end)
			return size <= texts[i].end - address;
	return false;
}

/* --- the table --- */

static int grow(struct source_image *image)
{
	uint32_t room = image->room ? image->room * 2 : FIRST_ROOM;
	struct source_mark *before = image->marks, *marks;
	size_t size_before = image->room * sizeof(*marks);
	void *memory;
	int r = sys_map(room * sizeof(*marks), &memory);

	if (r < 0)
		return r;
	marks = memory;
	for (uint32_t i = 0; i < image->count; i++)
		marks[i] = before[i];
	/* The unmapping comes last, so that a child that is forked meanwhile has valid
	 * marks. */
	image->marks = marks;
	image->room = room;
	if (before)
		sys_unmap(before, size_before);
	return 0;
}

static int add_mark(struct source_image *image, const struct found_mark *found)
{
	const struct source *kind = source_of(found->source);
	uintptr_t address = found->address, function = found->function;
	int64_t depth = (int64_t)(address - function);
	int r = 0;

	if (!is_code(image, address, kind->size) ||
	    !is_code(image, function, 1) ||
	    address - image->start > UINT32_MAX || depth > INT32_MAX ||
	    depth < INT32_MIN || (has_hooks && call_sites_has(function)))
		return 0;
	if (image->count == image->room)
		r = grow(image);
	if (r < 0)
		return r;
	image->marks[image->count++] = (struct source_mark){
		.offset = (uint32_t)(address - image->start),
		.depth = (int32_t)depth,
		.source = (uint8_t)found->source & 0x1f,
		.event = (uint8_t)found->event & 3,
		.jump = found->jump,
		.length = found->length,
		.may_leave = found->may_leave,
	};
	return 0;
}

/* The compiler lists the marks of each function in turn, so they are nearly sorted. */
static void sift(struct source_mark *marks, uint32_t at, uint32_t count)
{
	struct source_mark moved = marks[at];

	for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count &&
		    marks[child + 1].offset > marks[child].offset)
			child++;
		if (marks[child].offset <= moved.offset)
			break;
		marks[at] = marks[child];
	}
	marks[at] = moved;
}

static bool is_sorted(const struct source_image *image)
{
	for (uint32_t i = 1; i < image->count; i++)
		if (image->marks[i].offset < image->marks[i - 1].offset)
			return false;
	return true;
}

static void sort(struct source_image *image)
{
	struct source_mark *marks = image->marks;

	if (is_sorted(image))
		return;
	for (uint32_t i = image->count / 2; i-- > 0;)
		sift(marks, i, image->count);
	for (uint32_t i = image->count; i-- > 1;) {
		struct source_mark last = marks[i];

		marks[i] = marks[0];
		marks[0] = last;
		sift(marks, 0, i);
	}
}

/* Two lists may name a place, and one place may be listed twice.  Overlapping marks cannot
 * be right: the first stays. */
static void remove_overlaps(struct source_image *image)
{
	uint32_t kept = 0, end = 0;

	for (uint32_t i = 0; i < image->count; i++) {
		struct source_mark mark = image->marks[i];

		if (mark.offset < end)
			continue;
		end = mark.offset + source_of(mark.source)->size;
		image->marks[kept++] = mark;
	}
	image->count = kept;
}

/* --- the search --- */

/* What is done with a section that lists marks.  Returns 0 to go on. */
typedef int each_list(const struct source *source, const Elf64_Shdr *section,
		      void *argument);

static int visit_named(const struct elf_file *file, const char *names,
		       size_t size, each_list *each, void *argument)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < file->section_count; i++) {
		const Elf64_Shdr *section = &file->sections[i];
		const struct source *source;

		if (!(section->sh_flags & SHF_ALLOC) ||
		    section->sh_name >= size)
			continue;
		source = source_of_section(names + section->sh_name);
		if (source)
			r = each(source, section, argument);
	}
	return r;
}

static int visit_lists(const struct elf_file *file, each_list *each,
		       void *argument)
{
	size_t size;
	const char *names = elf_names(file, &size);
	void *memory;
	int r;

	if (names)
		return visit_named(file, names, size, each, argument);
	r = elf_load_section(file, file->names, &memory, &size);
	if (r < 0)
		return r;
	r = visit_named(file, memory, size, each, argument);
	sys_unmap(memory, size + 1);
	return r;
}

static int search_list(const struct source *source, const Elf64_Shdr *section,
		       void *image)
{
	if (source->release && ((struct source_image *)image)->is_released)
		return 0;
	return source->find(image, section, add_mark);
}

static int search_idle_list(const struct source *source,
			    const Elf64_Shdr *section, void *image)
{
	return source->idles ? search_list(source, section, image) : 0;
}

static int search_file(struct source_image *image, each_list *search)
{
	struct elf_file file;
	struct image_entry *entry;
	int r = -ENOENT;

	image_pin();
	entry = image_find(image->start);
	if (entry)
		r = elf_open(entry, &file);
	image_unpin();
	if (r < 0)
		return r;
	r = visit_lists(&file, search, image);
	elf_close(&file);
	return r;
}

static int find_listed(struct source_image *image, each_list *search)
{
	uintptr_t slot;
	int r;

	image->count = 0;
	has_texts = false;
	has_hooks = hook_table_slots(image->start, image->end, &slot, 1) > 0;
	r = search_file(image, search);
	if (r < 0)
		image->count = 0;
	sort(image);
	remove_overlaps(image);
	changes_add_all(&image->changes, image->count);
	return r;
}

int marks_find_idle(struct source_image *image)
{
	int r;

	image->is_searched_idle = true;
	r = find_listed(image, search_idle_list);
	image->is_searched_idle = !elf_is_refused(r);
	return r == -ENOENT || r == -ENOEXEC ? 0 : r;
}

int marks_find(struct source_image *image)
{
	int r;

	if (image->is_searched)
		return 0;
	image->is_searched = image->is_searched_idle = true;
	r = find_listed(image, search_list);
	image->is_searched = !elf_is_refused(r);
	if (r == 0 && mcount_find(image, add_mark) == 0)
		sort(image);
	if (r == 0 && unmarked_find(image, add_mark) == 0)
		sort(image);
	changes_add_all(&image->changes, image->count);
	return r == -ENOENT || r == -ENOEXEC ? 0 : r;
}

static int stop_at_list(const struct source *source, const Elf64_Shdr *section,
			void *unused)
{
	(void)source;
	(void)section;
	(void)unused;
	return 1;
}

static bool search_mapped_file(const struct map *map, void *argument)
{
	int *result = argument;
	struct elf_file file;

	if (map->path[0] != '/')
		return true;
	*result = elf_open_path(map->path, &file);
	if (*result < 0)
		return false;
	*result = visit_lists(&file, stop_at_list, NULL);
	elf_close(&file);
	return false;
}

bool marks_may_be_in(uintptr_t start, uintptr_t end)
{
	int result = 0;

	ASSERT_LOCKED();
	/* Without the kernel's help, a scan finds out. */
	if (maps_read_range(start, end, search_mapped_file, &result) < 0)
		return true;
	return result > 0 || elf_is_refused(result);
}

void marks_drop(struct source_image *image)
{
	if (image->marks)
		sys_unmap(image->marks, image->room * sizeof(*image->marks));
	image->marks = NULL;
	image->count = image->room = image->on = 0;
	changes_clear(&image->changes);
}

/* --- look-ups --- */

/* The number of the last mark that begins before @offset; -1: none. */
static int64_t find_before(const struct source_image *image, uint64_t offset)
{
	uint32_t low = 0, high = image->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (image->marks[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low - 1;
}

struct source_mark *marks_find_return(const struct source_image *image,
				      uintptr_t address)
{
	int64_t i = find_before(image, address - image->start);
	struct source_mark *mark;

	if (i < 0)
		return NULL;
	mark = &image->marks[i];
	return mark_address(image,
			    mark) + source_of(mark->source)->end(image, mark) ==
			       address ?
		       mark :
		       NULL;
}

/* The marks of a function follow its beginning, which another function's cannot. */
struct source_mark *marks_find_function(const struct source_image *image,
					uintptr_t function)
{
	int64_t i = find_before(image, function - image->start) + 1;

	if (i == image->count)
		return NULL;
	return mark_function(image, &image->marks[i]) == function ?
		       &image->marks[i] :
		       NULL;
}
