/*
 * /proc/self/maps is the one source: it is true in a constructor, in a signal
 * handler, under dlmopen, and needs no lock of the loader.  An image is a run
 * of mappings of one file that begins at offset 0 and has code in it.
 */
#include "image.h"

#include "calls.h"
#include "clock.h"
#include "events.h"
#include "log.h"
#include "maps.h"
#include "record.h"
#include "sites.h"
#include "state.h"
#include "sys.h"
#include "table.h"
#include "text.h"
#include "verdict.h"

#include <elf.h>
#include <errno.h>
#include <shim/record.h>

#include <shim/banned.h>

#define IMAGES_MAX  4096
#define WINDOW_SIZE (128u << 10)
#define PATH_SIZE   2048

struct image {
	uintptr_t start, end;
	uint64_t device, inode;
	uintptr_t bias;
	struct shim_image *record;	/* NULL: it did not fit */
	uint32_t scan;			/* the last one that saw it; 0: free */
};

static struct image images[IMAGES_MAX];
static uint32_t image_count;
static uint32_t scans;
static uint32_t generations;

/* Where the next record goes. */
static struct shim_images *header;
static char *window;
static uint32_t window_used;
static uint64_t file_size;

/* The run of mappings being read. */
static struct {
	struct image image;
	bool has_code;
	char path[PATH_SIZE];
} run;

/* --- what the memory says about an image --- */

struct facts {
	uintptr_t bias;
	unsigned char build_id[64];
	uint32_t build_id_size;
};

static void read_build_id(uintptr_t at, uint64_t size, struct facts *facts)
{
	Elf64_Nhdr note;
	char name[4];

	while (size >= sizeof(note) && facts->build_id_size == 0) {
		uint64_t whole;

		if (sys_peek((const void *)at, &note, sizeof(note)) < 0)
			return;
		whole = sizeof(note) + ((note.n_namesz + 3ull) & ~3ull) +
			((note.n_descsz + 3ull) & ~3ull);
		if (whole > size)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    note.n_descsz <= sizeof(facts->build_id) &&
		    sys_peek((const void *)(at + sizeof(note)), name, 4) == 0 &&
		    name[0] == 'G' && name[1] == 'N' && name[2] == 'U' &&
		    sys_peek((const void *)(at + sizeof(note) + 4),
			     facts->build_id, note.n_descsz) == 0)
			facts->build_id_size = note.n_descsz;
		at += whole;
		size -= whole;
	}
}

/* Reads the program headers at @start as they were mapped.  False if it is no
 * ELF image of this machine. */
static bool read_facts(uintptr_t start, struct facts *facts,
		       struct table_image *bind, struct sites_image *sites)
{
	Elf64_Ehdr elf;
	Elf64_Phdr program;
	bool have_bias = false;

	*facts = (struct facts){ 0 };
	*bind = (struct table_image){ 0 };
	*sites = (struct sites_image){ 0 };
	if (sys_peek((const void *)start, &elf, sizeof(elf)) < 0 ||
	    elf.e_ident[0] != 0x7f || elf.e_ident[1] != 'E' ||
	    elf.e_ident[2] != 'L' || elf.e_ident[3] != 'F' ||
	    elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phentsize != sizeof(program))
		return false;
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < elf.e_phnum; i++) {
			uintptr_t at = start + elf.e_phoff +
				       i * sizeof(program);

			if (sys_peek((const void *)at, &program,
				     sizeof(program)) < 0)
				return false;
			if (pass == 0) {
				if (program.p_type != PT_LOAD || have_bias)
					continue;
				facts->bias =
					start - ((program.p_vaddr -
						  program.p_offset) &
						 ~(uintptr_t)4095);
				have_bias = true;
			} else if (program.p_type == PT_NOTE) {
				read_build_id(facts->bias + program.p_vaddr,
					      program.p_memsz, facts);
			} else if (program.p_type == PT_DYNAMIC) {
				bind->dynamic = facts->bias + program.p_vaddr;
				bind->dynamic_size = program.p_memsz;
			} else if (program.p_type == PT_GNU_RELRO) {
				bind->relro = facts->bias + program.p_vaddr;
				bind->relro_size = program.p_memsz;
			} else if (program.p_type == PT_GNU_EH_FRAME) {
				sites->frames = facts->bias + program.p_vaddr;
			}
		}
		if (!have_bias)
			return false;
	}
	bind->bias = facts->bias;
	sites->may_go = bind->may_go = scans > 1;
	return true;
}

/* How far the segments of the image at @start reach, or 0. */
static uintptr_t read_span(uintptr_t start)
{
	uintptr_t first = 0, end = 0;
	Elf64_Ehdr elf;
	Elf64_Phdr program;

	if (sys_peek((const void *)start, &elf, sizeof(elf)) < 0 ||
	    elf.e_phentsize != sizeof(program))
		return 0;
	for (unsigned i = 0; i < elf.e_phnum; i++) {
		uintptr_t at = start + elf.e_phoff + i * sizeof(program);

		if (sys_peek((const void *)at, &program, sizeof(program)) < 0)
			return 0;
		if (program.p_type != PT_LOAD)
			continue;
		if (end == 0)
			first = program.p_vaddr & ~(uintptr_t)4095;
		end = program.p_vaddr + program.p_memsz;
	}
	return end - first;
}

/* --- the file --- */

static int open_images(void)
{
	void *memory;
	int r = record_create("images", WINDOW_SIZE, &memory);

	if (r < 0) {
		log_error("cannot record the loaded objects (%s)", "images", r);
		return r;
	}
	header = memory;
	*header = (struct shim_images){
		.magic = SHIM_IMAGES_MAGIC,
		.header_size = sizeof(*header),
	};
	__atomic_store_n(&header->version, SHIM_FORMAT_VERSION,
			 __ATOMIC_RELEASE);
	window = memory;
	window_used = sizeof(*header);
	file_size = WINDOW_SIZE;
	return 0;
}

/* Room for @size bytes.  A record does not lie across windows: the last one
 * before a new window is made as long as the old window. */
static struct shim_image *make_room(uint32_t size)
{
	static struct shim_image *last;
	struct shim_image *record;
	void *memory;

	if (!header)
		return NULL;
	if (window_used + size + sizeof(*record) > WINDOW_SIZE) {
		if (record_extend("images", file_size, WINDOW_SIZE, &memory) <
		    0)
			return NULL;
		if (last)
			last->size += WINDOW_SIZE - window_used;
		window = memory;
		window_used = 0;
		file_size += WINDOW_SIZE;
	}
	record = (struct shim_image *)(window + window_used);
	window_used += size;
	last = record;
	return record;
}

static struct shim_image *write_image(const struct image *image,
				      const struct facts *facts,
				      const char *path)
{
	uint32_t path_size = (uint32_t)text_length(path) + 1;
	uint32_t size = (uint32_t)(sizeof(struct shim_image) +
				   facts->build_id_size + path_size + 7) &
			~7u;
	struct shim_image *record = make_room(size);

	if (!record) {
		if (header)
			header->lost++;
		return NULL;
	}
	record->start = image->start;
	record->end = image->end;
	record->bias = facts->bias;
	record->load_clock = clock_read();
	record->device = image->device;
	record->inode = image->inode;
	record->build_id_size = facts->build_id_size;
	record->path_size = path_size;
	for (uint32_t i = 0; i < facts->build_id_size; i++)
		record->text[i] = facts->build_id[i];
	for (uint32_t i = 0; i < path_size; i++)
		record->text[facts->build_id_size + i] =
			(unsigned char)path[i];
	__atomic_store_n(&record->size, size, __ATOMIC_RELEASE);
	return record;
}

/* --- finding the difference --- */

static struct image *find_known(const struct image *like)
{
	for (uint32_t i = 0; i < image_count; i++) {
		struct image *image = &images[i];

		if (image->scan != 0 && image->start == like->start &&
		    image->inode == like->inode &&
		    image->device == like->device)
			return image;
	}
	return NULL;
}

static struct image *find_free(void)
{
	for (uint32_t i = 0; i < image_count; i++)
		if (images[i].scan == 0)
			return &images[i];
	return image_count < IMAGES_MAX ? &images[image_count++] : NULL;
}

static void end_run(void)
{
	struct image *image;
	struct facts facts;
	struct table_image bind;
	struct sites_image sites;

	if (!run.has_code)
		return;
	run.has_code = false;
	image = find_known(&run.image);
	if (image) {
		image->scan = scans;
		image->end = run.image.end;
		return;
	}
	if (!read_facts(run.image.start, &facts, &bind, &sites))
		return;
	image = find_free();
	if (!image) {
		if (header)
			header->lost++;
		return;
	}
	*image = run.image;
	image->bias = facts.bias;
	image->scan = scans;
	image->record = write_image(image, &facts, run.path);
	table_bind(&bind);
	sites.start = image->start;
	sites.end = image->end;
	sites_add(&sites);
}

/* A mapping of the file's start begins an image, unless linkers put the next
 * segment right behind the last (lld): then it has the same page again. */
static bool begins_image(const struct map *map)
{
	if (run.image.inode != map->inode || run.image.device != map->device)
		return true;
	if (map->offset != 0)
		return false;
	return map->start != run.image.end ||
	       map->start - run.image.start >= read_span(run.image.start);
}

static bool next_map(const struct map *map, void *unused)
{
	struct text path;

	(void)unused;
	if (map->path[0] != '/' && !text_equal(map->path, "[vdso]")) {
		/* bss and the like lie between the mappings of an image, too:
		 * only another file or a new offset 0 ends the run. */
		return true;
	}
	if (begins_image(map)) {
		end_run();
		run.image = (struct image){
			.start = map->start,
			.device = map->device,
			.inode = map->inode,
		};
		text_init(&path, run.path, sizeof(run.path));
		text_add(&path, map->path);
		if (map->offset != 0)
			run.image.inode = ~0ull; /* a piece of something */
	}
	run.image.end = map->end;
	if (map->executable && run.image.inode != ~0ull)
		run.has_code = true;
	return true;
}

static void forget(struct image *image)
{
	uint32_t generation = ++generations;

	if (generation > SHIM_GENERATION_MAX)
		generation = SHIM_GENERATION_MAX;
	if (image->record) {
		image->record->unload_clock = clock_read();
		__atomic_store_n(&image->record->generation, generation,
				 __ATOMIC_RELEASE);
	}
	table_unbind(image->start, image->end);
	verdict_forget(image->start, image->end);
	sites_remove(image->start, image->end);
	RAISE(image_unloaded, image->start, image->end, generation);
	image->scan = 0;
}

int image_scan(void)
{
	int r;

	if (!header && open_images() < 0 && image_count == 0)
		log_line("%s", "functions will be shown as numbers");
	scans++;
	run.has_code = false;
	run.image = (struct image){ .inode = ~0ull };
	r = maps_read(next_map, NULL);
	if (r < 0)
		return r;
	end_run();
	for (uint32_t i = 0; i < image_count; i++)
		if (images[i].scan != 0 && images[i].scan != scans)
			forget(&images[i]);
	sites_settle();
	return 0;
}

void image_forked(void)
{
	header = NULL;
	image_count = 0;
	sites_fork_begin();
	if (image_scan() == 0)
		sites_fork_end();
	calls_forked();
}

static bool is_known(uintptr_t address)
{
	static uint32_t last;
	uint32_t count = __atomic_load_n(&image_count, __ATOMIC_ACQUIRE);
	uint32_t i = __atomic_load_n(&last, __ATOMIC_RELAXED);

	if (i < count && address - images[i].start <
				 images[i].end - images[i].start)
		return images[i].scan != 0;
	for (i = 0; i < count; i++) {
		if (images[i].scan != 0 && address >= images[i].start &&
		    address < images[i].end) {
			__atomic_store_n(&last, i, __ATOMIC_RELAXED);
			return true;
		}
	}
	return false;
}

static int scan(void *unused)
{
	(void)unused;
	return image_scan();
}

void image_look_again(void)
{
	state_slowly(scan, NULL);
}

static int closing;

static int begin_closing(void *unused)
{
	(void)unused;
	__atomic_fetch_add(&closing, 1, __ATOMIC_ACQ_REL);
	return 0;
}

void image_closing(int begins)
{
	if (begins) {
		/* With the lock, so that nothing goes while it is held. */
		if (state_slowly(begin_closing, NULL) < 0)
			begin_closing(NULL);
		return;
	}
	__atomic_fetch_add(&closing, -1, __ATOMIC_ACQ_REL);
	image_look_again();
}

bool image_is_closing(void)
{
	return __atomic_load_n(&closing, __ATOMIC_ACQUIRE) > 0;
}

/* Code that belongs to no file (generated at run time) would make us look
 * again for each of its functions. */
void shim_image_note(shim_function function)
{
	static uintptr_t hopeless[8];
	static unsigned next;
	uintptr_t region = function >> 21;

	if (__atomic_load_n(&closing, __ATOMIC_ACQUIRE) > 0) {
		image_look_again();
		return;
	}
	if (is_known(function))
		return;
	for (unsigned i = 0; i < 8; i++)
		if (hopeless[i] == region)
			return;
	image_look_again();
	if (!is_known(function))
		hopeless[next++ % 8] = region;
}
