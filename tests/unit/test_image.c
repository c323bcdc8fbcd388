/*
 * Image events for modules, and damaged symbol tables.
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "image/soname.h"
#include "image/symbols.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "runtime/events.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <shim/info.h>
#include <shim/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- events --- */

static struct {
	bool loaded, is_listed;
	shim_image image;
	uintptr_t low;
} told[1024];

static unsigned count;
static void (*during)(void);

static bool is_listed(shim_image image)
{
	struct shim_enum *list;
	bool found = false;
	uint64_t id;

	if (shim_image_enumerate(&list) != SHIM_OK)
		return false;
	while (shim_enum_next(list, 1, &id, NULL) == SHIM_OK)
		found = found || id == image;
	shim_enum_destroy(list);
	return found;
}

static void on_loaded(struct shim_profiler *profiler, shim_image image)
{
	void (*call)(void) = during;

	(void)profiler;
	told[count].loaded = true;
	told[count].image = image;
	told[count++].is_listed = is_listed(image);
	during = NULL;
	if (call)
		call();
}

static void on_unloaded(struct shim_profiler *profiler, uintptr_t low,
			uintptr_t high, uint32_t generation)
{
	(void)profiler, (void)high, (void)generation;
	told[count].loaded = false;
	told[count++].low = low;
}

static struct shim_profiler_handle *listen(void)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	shim_profiler_on_image_loaded(handle, on_loaded);
	shim_profiler_on_image_unloaded(handle, on_unloaded);
	/* The tests query images between events in the state of a callback. */
	thread_get()->state |= THREAD_CALLBACK | THREAD_MAY_BLOCK;
	return handle;
}

static void *library;
static shim_image image;
static uintptr_t base;

static void open_plugin(void)
{
	const void *start;

	library = dlopen(PLUGIN, RTLD_NOW);
	image_look_again();
	shim_image_from_address(dlsym(library, "plugin_function"), &image);
	shim_image_info(image, &start, NULL, NULL, NULL, 0, NULL, NULL);
	base = (uintptr_t)start;
}

static void close_plugin(void)
{
	dlclose(library);
	image_look_again();
}

Test(image, modules_are_told_of_all_images_there_are)
{
	struct shim_enum *list;
	uint32_t all;

	listen();
	image_look_again();
	cr_expect(eq(u32, count, 0), "told while the lock was held");
	image_raise_pending();
	shim_image_enumerate(&list);
	shim_enum_count(list, &all);
	cr_assert(eq(u32, count, all));
	for (unsigned i = 0; i < count; i++)
		cr_expect(told[i].loaded && told[i].is_listed);
	image_raise_pending();
	cr_expect(eq(u32, count, all), "told twice");
}

/* Row P-66. */
Test(image, one_that_comes_is_told_after_it_is_listed_and_one_that_goes_before)
{
	listen();
	image_look_again();
	image_raise_pending();
	count = 0;
	open_plugin();
	cr_expect(is_listed(image));
	image_raise_pending();
	cr_assert(eq(u32, count, 1));
	cr_expect(told[0].image == image);
	close_plugin();
	cr_expect(is_listed(image) == false);
	cr_expect(eq(u32, count, 1));
	image_raise_pending();
	cr_assert(eq(u32, count, 2));
	cr_expect(told[1].low == base);
	cr_expect(told[1].loaded == false);
}

Test(image, our_own_profilers_are_told_of_an_end_at_once)
{
	listen()->builtin = true;
	image_look_again();
	image_raise_pending();
	count = 0;
	open_plugin();
	image_raise_pending();
	cr_assert(eq(u32, count, 1));
	cr_expect(told[0].loaded && told[0].image == image);
	close_plugin();
	cr_assert(eq(u32, count, 2));
	cr_expect(told[1].low == base && !told[1].loaded);
	image_raise_pending();
	cr_expect(eq(u32, count, 2));
}

Test(image, one_that_came_and_went_meanwhile_has_only_an_end)
{
	listen();
	image_look_again();
	image_raise_pending();
	count = 0;
	open_plugin();
	close_plugin();
	image_raise_pending();
	cr_assert(eq(u32, count, 1));
	cr_expect(told[0].low == base);
}

/* --- objects that the loader has just added --- */

struct extent {
	uintptr_t start, end;
};

static int find_extent(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct extent *extent = argument;
	uintptr_t end = 0;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD)
			end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr +
			      info->dlpi_phdr[i].p_memsz;
	if (extent->start < info->dlpi_addr || extent->start >= end)
		return 0;
	extent->start = info->dlpi_addr;
	extent->end = (end + 4095) / 4096 * 4096;
	return 1;
}

/* Another object with the same code. */
static void *open_copy(void)
{
	char name[] = "/tmp/shim-copy.XXXXXX", command[512];
	void *copy;

	close(mkstemp(name));
	snprintf(command, sizeof(command), "cp '%s' %s", PLUGIN, name);
	cr_assert(eq(int, system(command), 0));
	copy = dlopen(name, RTLD_NOW);
	unlink(name);
	cr_assert(copy != NULL);
	return copy;
}

static bool is_known(const void *address)
{
	shim_image of;

	return shim_image_from_address(address, &of) == SHIM_OK;
}

static bool kernel_reads_ranges(void)
{
	struct utsname system;
	int major = 0, minor = 0;

	uname(&system);
	sscanf(system.release, "%d.%d", &major, &minor);
	return major > 6 || (major == 6 && minor >= 11);
}

Test(image, added_objects_are_found_and_no_others)
{
	struct image_objects *added = calloc(1, sizeof(*added));
	struct extent first, second;
	void *one, *other;

	image_look_again();
	one = dlsym(dlopen(PLUGIN, RTLD_NOW), "plugin_function");
	other = dlsym(open_copy(), "plugin_function");
	cr_assert(one != NULL && other != NULL && one != other);
	first.start = (uintptr_t)one;
	second.start = (uintptr_t)other;
	cr_assert(eq(int, dl_iterate_phdr(find_extent, &first), 1));
	cr_assert(eq(int, dl_iterate_phdr(find_extent, &second), 1));
	added->count = 1;
	added->objects[0].start = first.start;
	added->objects[0].end = first.end;
	/* Behind the end of the list. */
	added->objects[1].start = second.start;
	added->objects[1].end = second.end;
	cr_expect(not(is_known(one)));
	image_look_for_added(added);
	cr_expect(is_known(one));
	if (kernel_reads_ranges())
		cr_expect(not(is_known(other)));
	/* If one is not there, the list may be wrong: all are looked for. */
	added->objects[0].start = 4096;
	added->objects[0].end = 8192;
	image_look_for_added(added);
	cr_expect(is_known(other));
	free(added);
}

static bool may_go(const void *address)
{
	const struct image_entry *entry;
	bool result;

	image_pin();
	entry = image_find((uintptr_t)address);
	cr_assert(entry != NULL);
	result = entry->may_go;
	image_unpin();
	return result;
}

/* The test is in the program, and so are the functions of shim. */
Test(image, objects_that_were_opened_before_an_attach_may_go)
{
	const void *opened = dlsym(dlopen(PLUGIN, RTLD_NOW), "plugin_function");
	const void *later;

	cr_assert(lookup_attach());
	image_look_again();
	cr_expect(not(may_go((const void *)(uintptr_t)is_known)));
	cr_expect(not(may_go(dlsym(RTLD_DEFAULT, "atoi"))));
	cr_expect(may_go(opened));
	later = dlsym(open_copy(), "plugin_function");
	image_look_again();
	cr_expect(may_go(later));
}

/* They are those of constructors, which are not closed. */
Test(image, objects_that_were_there_at_the_start_stay)
{
	const void *opened = dlsym(dlopen(PLUGIN, RTLD_NOW), "plugin_function");
	const void *later;

	image_look_again();
	cr_expect(not(may_go((const void *)(uintptr_t)is_known)));
	cr_expect(not(may_go(opened)));
	later = dlsym(open_copy(), "plugin_function");
	image_look_again();
	cr_expect(may_go(later));
}

Test(image, the_call_of_a_hook_tells_nobody)
{
	listen();
	image_look_again();
	image_raise_pending();
	count = 0;
	library = dlopen(PLUGIN, RTLD_NOW);
	shim_image_note((shim_function)dlsym(library, "plugin_function"));
	cr_expect(eq(u32, count, 0));
	image_raise_pending();
	cr_expect(eq(u32, count, 1));
}

Test(image, the_image_that_a_walk_has_found_needs_another_scan)
{
	uintptr_t address;

	image_look_again();
	library = dlopen(PLUGIN, RTLD_NOW);
	address = (uintptr_t)dlsym(library, "plugin_function");
	image_look_for_walk(address);
	cr_expect(image_find(address) != NULL);
	cr_expect(image_has_early());
	image_look_for_walk(address);
	cr_expect(image_has_early(), "a walk has ended it");
	shim_image_note((shim_function)address);
	cr_expect(not(image_has_early()), "a call has not ended it");
}

static void open_and_tell(void)
{
	unsigned before = count;

	open_plugin();
	image_raise_pending();
	cr_expect(eq(u32, count, before), "told inside of a callback");
}

Test(image, what_a_callback_loads_is_told_after_it)
{
	listen();
	during = open_and_tell;
	image_look_again();
	image_raise_pending();
	cr_assert(count > 1);
	cr_expect(told[count - 1].image == image);
}

static jmp_buf back;

static uintptr_t goes_on;

static void jump(void)
{
	/* The interposed longjmp calls this, too. */
	guard_jumped(goes_on);
	longjmp(back, 1);
}

Test(image, a_callback_that_is_left_by_a_jump_does_not_silence_the_others)
{
	volatile bool first = true;

	listen();
	listen();
	image_look_again();
	during = jump;
	goes_on = (uintptr_t)__builtin_frame_address(0);
	if (setjmp(back) == 0)
		image_raise_pending();
	else
		first = false;
	cr_expect(first == false);
	open_plugin();
	count = 0;
	image_raise_pending();
	cr_expect(count > 0);
	cr_expect(told[count - 1].image == image);
}

Test(image, ids_are_the_same_in_a_forked_child)
{
	int status = 1;
	pid_t child;

	open_plugin();
	child = fork();
	if (child == 0) {
		shim_image again = 0;

		image_forked();
		shim_image_from_address(dlsym(library, "plugin_function"),
					&again);
		_exit(again == image && is_listed(image) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	cr_expect(eq(int, status, 0));
}

/* A reader may finish: its symbols stay mapped. */
Test(image, what_somebody_reads_stays)
{
	struct image_entry *found;
	bool has_been;

	symbols_enable();
	open_plugin();
	image_pin();
	found = image_get(image, &has_been);
	cr_assert(found != NULL);
	cr_assert(found->symbols != NULL);
	for (unsigned i = 0; i < 20; i++) {
		close_plugin();
		open_plugin();
	}
	cr_expect(strstr(found->path, "info-plugin") != NULL);
	cr_expect(found->symbols->function_count > 0);
	image_unpin();
	close_plugin();
	image_raise_pending();
	cr_expect(found->symbols == NULL);
}

static long count_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	cr_assert(eq(int, fscanf(file, "%ld", &pages), 1));
	fclose(file);
	return pages;
}

Test(image, as_many_images_as_there_is_room_come_and_go)
{
	long before;

	/* No module is notified here, so each image keeps its place but frees
	 * its symbols. */
	listen();
	symbols_enable();
	before = count_pages();
	for (unsigned i = 0; i < 5000; i++) {
		library = dlopen(PLUGIN, RTLD_NOW);
		image_look_again();
		dlclose(library);
		image_look_again();
	}
	open_plugin();
	cr_expect(is_listed(image));
	cr_expect(lt(long, count_pages(), before + 4500));
}

/* --- damaged files --- */

static unsigned char original[1 << 20], damaged[1 << 20];
static size_t size;

static uint32_t next_random(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	return (uint32_t)((state ^= state << 17) >> 11);
}

static void read_original(const char *path)
{
	FILE *file = fopen(path, "r");

	cr_assert(file != NULL);
	size = fread(original, 1, sizeof(original), file);
	fclose(file);
	cr_assert(size > 1000);
	cr_assert(size < sizeof(original));
}

/* Makes a number point outside its table. */
static void mislead(void)
{
	Elf64_Ehdr *elf = (Elf64_Ehdr *)damaged;
	Elf64_Shdr *section = (Elf64_Shdr *)(damaged + elf->e_shoff);

	for (unsigned i = 0; i < elf->e_shnum; i++, section++) {
		Elf64_Sym *symbols = (Elf64_Sym *)(damaged +
						   section->sh_offset);
		size_t n = section->sh_size / sizeof(*symbols);

		if (section->sh_type != SHT_SYMTAB &&
		    section->sh_type != SHT_DYNSYM)
			continue;
		if (next_random() % 4 == 0)
			section->sh_link = next_random();
		for (size_t k = 0; k < n; k += 1 + next_random() % 4)
			symbols[k].st_name = next_random();
	}
}

static void damage(unsigned how)
{
	const uint64_t *header = (const uint64_t *)original;
	uint64_t sections = header[5]; /* e_shoff */
	unsigned changes = 1 + next_random() % 8;

	memcpy(damaged, original, size);
	if (how % 16 == 0) {
		mislead();
		return;
	}
	while (changes-- > 0) {
		size_t at = next_random() % size;

		if (how % 4 == 1)
			at = next_random() % 64;
		else if (how % 4 >= 2 && sections < size)
			at = sections + next_random() % (size - sections);
		if (how % 8 < 4 || at + 8 > size)
			damaged[at] = (unsigned char)next_random();
		else
			*(uint64_t *)(damaged +
				      (at & ~7ul)) = next_random() % 3 ?
							     next_random() :
							     ~0ull >> 1;
	}
}

/* A passing Criterion assertion costs a message: too slow for a million
 * checks. */
static void must(bool condition)
{
	if (!condition)
		cr_fatal("a damaged file");
}

/* All references of an index must lie within it. */
static void walk(const struct symbols *symbols)
{
	static volatile size_t sum;

	for (uint32_t i = 0; i < symbols->function_count; i++) {
		const struct symbols_function *f = &symbols->functions[i];

		sum += strlen(symbols->text + f->names) + f->names_size;
		for (uint32_t k = 0; k < f->part_count; k++)
			sum += symbols->parts[f->part + k].start;
		must(symbols_find(symbols, f->start) != NULL);
	}
	for (unsigned i = 0; i < 1000; i++)
		sum += symbols_find(symbols, next_random() % 65536) != NULL;
	(void)sum;
}

static unsigned read_damaged(struct image_entry *fake, size_t length)
{
	struct stat info;
	int fd = open(fake->path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
	unsigned functions = 0;
	char text[16];

	must(fd >= 0);
	must((size_t)write(fd, damaged, length) == length);
	fstat(fd, &info);
	close(fd);
	fake->device = (uint64_t)(info.st_dev >> 8 & 0xfff) << 32 |
		       (info.st_dev & 0xff);
	fake->inode = info.st_ino;
	fake->symbols = NULL;
	must(symbols_read(fake) == 0);
	functions = fake->symbols->function_count;
	walk(fake->symbols);
	symbols_free(fake);
	symbols_read_compiler(fake, text, sizeof(text));
	must(memchr(text, 0, sizeof(text)) != NULL);
	return functions;
}

Test(image, symbols_of_a_damaged_file_do_no_harm, .timeout = 120)
{
	static struct image_entry fake = { .id = 1,
					   .end = 1ull << 40,
					   .flags = SHIM_IMAGE_DISK };
	bool all = getenv("CHECK_ALL");
	unsigned with_functions = 0, changes = all ? 4000 : 1000;

	snprintf(fake.path, sizeof(fake.path), "/tmp/shim-damaged.%d",
		 getpid());
	read_original(PLUGIN);
	memcpy(damaged, original, size);
	cr_assert(read_damaged(&fake, size) > 0);
	for (unsigned i = 0; i < changes; i++) {
		damage(i);
		with_functions += read_damaged(&fake, size) > 0;
	}
	cr_expect(with_functions > changes / 8);
	cr_expect(with_functions < changes);
	memcpy(damaged, original, size);
	for (size_t length = 0; length < size; length += all ? 97 : 389)
		read_damaged(&fake, length);
	unlink(fake.path);
}

/* Tables that grow and those that symbols are sorted in are mapped. */
Test(image, reading_symbols_leaves_nothing_mapped_but_the_symbols)
{
	static struct image_entry fake = { .id = 1,
					   .end = 1ull << 40,
					   .flags = SHIM_IMAGE_DISK };
	struct stat info;
	long before;

	snprintf(fake.path, sizeof(fake.path), "%s", PLUGIN);
	cr_assert(eq(int, stat(PLUGIN, &info), 0));
	fake.device = (uint64_t)(info.st_dev >> 8 & 0xfff) << 32 |
		      (info.st_dev & 0xff);
	fake.inode = info.st_ino;
	before = count_pages();
	for (unsigned i = 0; i < 100; i++) {
		fake.symbols = NULL;
		cr_assert(eq(int, symbols_read(&fake), 0));
		cr_assert(gt(u32, fake.symbols->function_count, 0));
		symbols_free(&fake);
	}
	cr_expect(lt(long, count_pages(), before + 100));
}

/* The file at @path, as if it was loaded at 0. */
static struct image_entry entry_of(const char *path)
{
	struct image_entry fake = { .id = 1,
				    .end = 1ull << 40,
				    .flags = SHIM_IMAGE_DISK };
	struct stat info;

	snprintf(fake.path, sizeof(fake.path), "%s", path);
	cr_assert(zero(int, stat(path, &info)));
	fake.device = (uint64_t)(info.st_dev >> 8 & 0xfff) << 32 |
		      (info.st_dev & 0xff);
	fake.inode = info.st_ino;
	return fake;
}

/* libc has resolvers, whose functions are known by their stubs. */
Test(image, reading_symbols_of_libc_leaves_nothing_mapped)
{
	const struct link_map *libc = dlopen("libc.so.6", RTLD_NOW);
	static struct image_entry fake;
	uint64_t before;

	cr_assert(libc != NULL);
	fake = entry_of(libc->l_name);
	before = sys_mapped();
	for (unsigned i = 0; i < 2; i++) {
		fake.symbols = NULL;
		cr_assert(zero(int, symbols_read(&fake)));
		cr_expect(gt(u32, fake.symbols->function_count, 1000));
		symbols_free(&fake);
		cr_expect(eq(u64, sys_mapped(), before));
	}
}

/* Two names of 3 and 5 bytes, one without a size, and the next. */
__asm__(".pushsection .text.sizes, \"ax\", %progbits\n"
	".balign 64\n"
	".globl sized, sized_more, unsized, after_unsized\n"
	".type sized, %function\n"
	".type sized_more, %function\n"
	".type unsized, %function\n"
	".type after_unsized, %function\n"
	".size sized, 3\n"
	".size sized_more, 5\n"
	".size after_unsized, 4\n"
	"sized:\n"
	"sized_more:\n"
	".skip 16\n"
	"unsized:\n"
	".skip 12\n"
	"after_unsized:\n"
	".skip 16\n"
	".popsection\n");

extern const char sized[], unsized[], after_unsized[], __executable_start[];

static size_t size_at(const struct symbols *symbols, const char *address)
{
	uint64_t start = (uint64_t)(address - __executable_start);
	const struct symbols_function *found = symbols_find(symbols, start);

	cr_assert(found != NULL);
	cr_assert(eq(u64, found->start, start));
	cr_expect(eq(ptr,
		     (void *)symbols_find(symbols, start + found->size - 1),
		     (void *)found));
	cr_expect(ne(ptr, (void *)symbols_find(symbols, start + found->size),
		     (void *)found));
	return found->size;
}

Test(image, a_function_has_the_largest_of_its_sizes_or_ends_at_the_next)
{
	static struct image_entry fake;
	char path[4096] = "";

	cr_assert(gt(long, readlink("/proc/self/exe", path, sizeof(path) - 1),
		     0));
	fake = entry_of(path);
	cr_assert(zero(int, symbols_read(&fake)));
	cr_expect(eq(sz, size_at(fake.symbols, sized), 5));
	cr_expect(eq(sz, size_at(fake.symbols, unsized), 12));
	cr_expect(eq(sz, size_at(fake.symbols, after_unsized), 4));
	symbols_free(&fake);
}

static int fails(const char *path)
{
	static struct image_entry fake;
	int r;

	fake = (struct image_entry){ .id = 1,
				     .end = 1ull << 40,
				     .flags = SHIM_IMAGE_DISK };
	snprintf(fake.path, sizeof(fake.path), "%s", path);
	r = symbols_read(&fake);
	return r ? r : fake.symbols->function_count != 0;
}

Test(image, what_is_no_file_has_no_symbols, .timeout = 10)
{
	char fifo[64];

	cr_expect(eq(int, fails("/nonexistent"), 0));
	cr_expect(eq(int, fails("/"), 0));
	cr_expect(eq(int, fails("/dev/zero"), 0));
	cr_expect(eq(int, fails("/proc/self/maps"), 0));
	snprintf(fifo, sizeof(fifo), "/tmp/shim-fifo.%d", getpid());
	cr_assert(eq(int, mkfifo(fifo, 0600), 0));
	cr_expect(eq(int, fails(fifo), 0));
	unlink(fifo);
}

/* --- names in dynamic sections --- */

/* An object as it is mapped: its last bytes are the names, and nothing follows them. */
struct object {
	Elf64_Ehdr elf;
	Elf64_Phdr parts[2];
	Elf64_Dyn dynamic[300];
	char names[304];
};

static struct object *object;

static struct image_entry map_object(void)
{
	size_t page = (size_t)getpagesize();
	size_t room = (sizeof(*object) + page - 1) & ~(page - 1);
	char *memory = mmap(NULL, room + page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(memory != MAP_FAILED &&
		  mprotect(memory + room, page, PROT_NONE) == 0);
	object = (struct object *)(void *)(memory + room - sizeof(*object));
	object->elf.e_phoff = offsetof(struct object, parts);
	object->elf.e_phentsize = sizeof(object->parts[0]);
	object->elf.e_phnum = 2;
	object->parts[0].p_type = PT_LOAD;
	object->parts[1].p_type = PT_DYNAMIC;
	object->parts[1].p_vaddr = offsetof(struct object, dynamic);
	for (unsigned i = 0; i < 300; i++)
		object->dynamic[i].d_tag = DT_DEBUG;
	object->dynamic[0].d_tag = DT_STRTAB;
	object->dynamic[0].d_un.d_ptr = (uintptr_t)object->names;
	object->dynamic[1].d_tag = DT_SONAME;
	object->dynamic[1].d_un.d_val = 1;
	object->dynamic[2].d_tag = DT_NULL;
	memcpy(object->names + 1, "libname.so", sizeof("libname.so"));
	return (struct image_entry){ .start = (uintptr_t)object,
				     .bias = (uintptr_t)object };
}

Test(sonames, are_read_from_relocated_sections_and_others)
{
	struct image_entry entry = map_object();
	char name[SONAME_SIZE];

	cr_assert(soname_read(&entry, name));
	cr_assert(eq(str, name, "libname.so"));
	object->dynamic[0].d_un.d_ptr = offsetof(struct object, names);
	cr_assert(soname_read(&entry, name));
	cr_assert(eq(str, name, "libname.so"));
}

Test(sonames, of_damaged_objects_are_not_read)
{
	struct image_entry entry = map_object();
	char name[SONAME_SIZE];

	object->dynamic[1].d_un.d_val = 1ull << 60;
	cr_assert(not(soname_read(&entry, name)), "outside");
	object->dynamic[1].d_un.d_val = sizeof(object->names) - 2;
	object->names[302] = object->names[303] = 'x';
	cr_assert(not(soname_read(&entry, name)), "beyond the last page");
	object->dynamic[1].d_un.d_val = 1;
	memset(object->names + 1, 'x', SONAME_SIZE);
	cr_assert(not(soname_read(&entry, name)), "no end in %d bytes",
		  SONAME_SIZE);
	object->names[SONAME_SIZE] = '\0';
	cr_assert(soname_read(&entry, name));
	cr_assert(eq(sz, strlen(name), SONAME_SIZE - 1));
	object->dynamic[1].d_tag = DT_DEBUG;
	cr_assert(not(soname_read(&entry, name)), "none");
	object->dynamic[2].d_tag = DT_DEBUG;
	object->dynamic[299].d_tag = DT_SONAME;
	object->dynamic[299].d_un.d_val = 1;
	cr_assert(not(soname_read(&entry, name)), "after too many entries");
	object->parts[1].p_vaddr = 1ull << 60;
	cr_assert(not(soname_read(&entry, name)), "no section");
	object->elf.e_phoff = 1ull << 60;
	cr_assert(not(soname_read(&entry, name)), "no table of parts");
	object->elf.e_phentsize = 1;
	cr_assert(not(soname_read(&entry, name)), "no parts");
}
