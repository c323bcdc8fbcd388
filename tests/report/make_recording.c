/*
 * Writes recordings in the library's format, without the library: any number of
 * call paths, of functions that exist in an ELF file.  For testing and timing
 * the report, and for damaging.  Prints the calls that it wrote.
 *
 *     make_recording DIR [--paths N] [--depth N] [--threads N] [--processes N]
 *         [--functions N] [--mode counts|exact|coarse] [--image FILE]
 *         [--open] [--duplicates] [--groups]
 *         [--damage cycle|parent|self|time|version|group]
 */
#include <elf.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <shim/format.h>

#define BIAS	    0x555555000000ull
#define FIRST_CLOCK 1000000000000ull
#define TICKS_PER_S 2000000000ull
#define HEADER	    1024u
#define MEMORY	    0x7f0000000000ull

enum mode { MODE_COUNTS, MODE_EXACT, MODE_COARSE };

static struct {
	const char *directory;
	uint64_t paths, depth, threads, processes, functions;
	enum mode mode;
	const char *image, *damage;
	bool open, duplicates, groups;
} options = { .paths = 1000, .depth = 20, .threads = 1, .processes = 1,
	      .functions = 100, .mode = MODE_EXACT, .image = "/proc/self/exe",
	      .damage = "" };

static uint64_t *addresses;
static uint64_t address_count, image_end;
static unsigned char build_id[64];
static uint32_t build_id_size;
static char image_path[4096];
static uint64_t calls_written;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Reads the functions and the build-id of options.image. */
static void read_image(void)
{
	int fd = open(options.image, O_RDONLY);
	const unsigned char *elf;
	const Elf64_Shdr *section;
	const Elf64_Sym *symbol;
	const Elf64_Nhdr *note;
	const Elf64_Ehdr *header;
	struct stat info;
	uint64_t i, j, room = 0;

	if (fd < 0 || fstat(fd, &info) || !realpath(options.image, image_path))
		fail(options.image);
	elf = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (elf == MAP_FAILED)
		fail(options.image);
	close(fd);
	header = (const void *)elf;
	section = (const void *)(elf + header->e_shoff);
	image_end = (uint64_t)info.st_size + 0x10000000;
	for (i = 0; i < header->e_shnum; i++, section++) {
		if (section->sh_type == SHT_NOTE) {
			note = (const void *)(elf + section->sh_offset);
			if (note->n_type == NT_GNU_BUILD_ID &&
			    note->n_namesz == 4) {
				build_id_size = note->n_descsz;
				memcpy(build_id, elf + section->sh_offset +
				       sizeof(*note) + 4, build_id_size);
			}
		}
		if (section->sh_type != SHT_SYMTAB &&
		    section->sh_type != SHT_DYNSYM)
			continue;
		symbol = (const void *)(elf + section->sh_offset);
		for (j = 0; j < section->sh_size / sizeof(*symbol); j++) {
			if (ELF64_ST_TYPE(symbol[j].st_info) != STT_FUNC ||
			    !symbol[j].st_value ||
			    address_count >= options.functions)
				continue;
			if (address_count == room) {
				room = room ? room * 2 : 1024;
				addresses = realloc(addresses, room * 8);
			}
			addresses[address_count++] = symbol[j].st_value;
		}
	}
	if (!address_count) {
		fprintf(stderr, "%s: no functions\n", options.image);
		exit(1);
	}
}

static void *map_new(const char *path, uint64_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	void *memory;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		fail(path);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail(path);
	close(fd);
	return memory;
}

static void write_meta(const char *directory, uint32_t pid)
{
	static const char strings[] = "program=/usr/bin/synthetic\0"
				      "command=synthetic --with \"quotes\"\0"
				      "directory=/tmp\0host=nowhere\0"
				      "profile=calltree\0SHIM_PROFILE=calltree";
	char path[4200];
	struct shim_meta *meta;

	snprintf(path, sizeof(path), "%s/meta", directory);
	meta = map_new(path, sizeof(*meta));
	memcpy(meta->magic, SHIM_META_MAGIC, 8);
	meta->version = SHIM_FORMAT_VERSION;
	if (options.groups)
		meta->version = SHIM_FORMAT_VERSION_GROUPS;
	if (!strcmp(options.damage, "version"))
		meta->version = 3;
	meta->size = sizeof(*meta);
	meta->pid = pid;
	meta->parent_pid = 1;
	meta->clock = SHIM_CLOCK_TSC;
	meta->end = SHIM_END_EXIT;
	meta->first_clock = FIRST_CLOCK;
	meta->first_mono_ns = 5000000000ull;
	meta->last_clock = FIRST_CLOCK + 100 * TICKS_PER_S;
	meta->last_mono_ns = meta->first_mono_ns + 100000000000ull;
	meta->clock_hz = TICKS_PER_S;
	meta->start_real_ns = ((uint64_t)time(NULL) - 200) * 1000000000ull;
	meta->end_clock = meta->last_clock;
	meta->tick = options.mode == MODE_COARSE ? TICKS_PER_S / 1000 : 0;
	meta->cost_coarse = (struct shim_cost){ 2000, 6000 };
	meta->cost_exact = (struct shim_cost){ 20000, 40000 };
	meta->unwound = 3;
	meta->strings_size = sizeof(strings);
	memcpy(meta->strings, strings, sizeof(strings));
	meta->log_size = (uint32_t)snprintf(meta->log, sizeof(meta->log),
					    "a line\nand \033[31mmore\n");
	munmap(meta, sizeof(*meta));
}

static void write_images(const char *directory)
{
	char path[4200];
	struct shim_images *images;
	struct shim_image_record *image;
	uint32_t path_size = (uint32_t)strlen(image_path) + 1;

	snprintf(path, sizeof(path), "%s/images", directory);
	images = map_new(path, 65536);
	memcpy(images->magic, SHIM_IMAGES_MAGIC, 8);
	images->version = SHIM_FORMAT_VERSION;
	images->header_size = sizeof(*images);
	image = (void *)(images + 1);
	image->start = BIAS;
	image->end = BIAS + image_end;
	image->bias = BIAS;
	image->load_clock = FIRST_CLOCK;
	image->build_id_size = build_id_size;
	image->path_size = path_size;
	memcpy(image->text, build_id, build_id_size);
	memcpy(image->text + build_id_size, image_path, path_size);
	image->size = (uint32_t)(sizeof(*image) + build_id_size + path_size +
				 7) & ~7u;
	munmap(images, 65536);
}

/* The nodes of one thread, before they get places in a file. */
struct plan {
	struct shim_node node;
	uint64_t parent, depth, at;	/* @at: offset in the file */
};

static struct plan *make_plan(void)
{
	struct plan *plan = calloc(options.paths, sizeof(*plan));
	uint64_t i, parent;

	for (i = 1; i < options.paths; i++) {
		parent = i - 1;
		if (plan[parent].depth >= options.depth || random_number() % 3)
			parent = random_number() % i;
		while (plan[parent].depth >= options.depth)
			parent = plan[parent].parent;
		/* A chain comes first, so that the tree reaches its depth. */
		if (i <= options.depth)
			parent = i - 1;
		plan[i].parent = parent;
		plan[i].depth = plan[parent].depth + 1;
	}
	for (i = 0; i < options.paths; i++) {
		plan[i].node.function = BIAS +
			addresses[random_number() % address_count];
		if (options.duplicates && i &&
		    plan[i - 1].parent == plan[i].parent)
			plan[i].node.function = plan[i - 1].node.function;
	}
	for (i = options.paths; i-- > 0;) {
		struct shim_node *node = &plan[i].node;
		uint64_t self = random_number() % 2000;

		node->calls = 1 + random_number() % 20;
		node->time += node->calls * (self + 100);
		calls_written += node->calls;
		if (options.mode == MODE_COUNTS) {
			node->coarse = 2;
			node->time = 0;
		} else if (options.mode == MODE_COARSE) {
			node->coarse = 1;
			node->hits = (uint32_t)(node->calls / 3);
		} else {
			node->function |= SHIM_NODE_EXACT;
		}
		if (options.open && i < options.depth && i < 10) {
			node->frame = 0x7fff00000000 - i;
			node->start = FIRST_CLOCK + 50 * TICKS_PER_S + i;
		}
		if (i)
			plan[plan[i].parent].node.time += node->time;
	}
	return plan;
}

struct layout {
	struct shim_file *file;
	uint64_t at;			/* offset of the next free byte */
	uint64_t chunk_end;
};

static void add_chunk(struct layout *layout)
{
	struct shim_chunk *chunk = &layout->file->chunk[layout->file->chunks];

	chunk->offset = layout->file->chunks ? layout->chunk_end : HEADER;
	chunk->size = 65536ull << (layout->file->chunks < 14 ?
				   layout->file->chunks : 14);
	chunk->address = MEMORY + chunk->offset * 16;
	layout->at = chunk->offset;
	layout->chunk_end = chunk->offset + chunk->size;
	layout->file->chunks++;
}

static uint64_t take(struct layout *layout, uint64_t size)
{
	uint64_t at;

	if (layout->chunk_end - layout->at < size)
		add_chunk(layout);
	at = layout->at;
	layout->at += size;
	return at;
}

static uint64_t address_of(const struct shim_file *file, uint64_t offset)
{
	uint32_t i;

	for (i = 0; i < file->chunks; i++)
		if (offset - file->chunk[i].offset < file->chunk[i].size)
			return file->chunk[i].address + offset -
			       file->chunk[i].offset;
	return 0;
}

static void write_extra(struct layout *layout, struct plan *plan)
{
	unsigned char *base = (unsigned char *)layout->file;
	uint64_t at = take(layout, sizeof(struct shim_extra_node));
	struct shim_extra_node *extra = (void *)(base + at);
	uint64_t mean = plan->node.time / plan->node.calls;

	extra->function = SHIM_NODE_EXTRA;
	extra->node = address_of(layout->file, plan->at);
	extra->min = mean / 2;
	extra->max = mean * 2;
	extra->last = mean;
	*shim_bucket(extra, mean ? 63 - (unsigned)__builtin_clzll(mean) : 0) =
		plan->node.calls - 1;
	plan->node.extra = address_of(layout->file, at);
}

/* Two of three calls of a function belong to a group. */
static void add_group(struct layout *layout, struct shim_node *node, uint64_t i)
{
	static const char *const values[] = { "kind=1", "text=\"a;b\033[1m\"",
					      "kind=?", "kind=..." };
	struct shim_group_node *group;
	uint64_t number = i % 6;

	if (!options.groups || number >= 4)
		return;
	node->group = (uint16_t)(number + 1);
	node->hits = 5;
	node->coarse = node->coarse == 2 ? 2 : 0;
	node->function |= SHIM_NODE_EXACT;
	if (i >= 6 || !strcmp(options.damage, "group"))
		return;
	group = (void *)((char *)layout->file + take(layout, sizeof(*group)));
	group->function = SHIM_NODE_GROUP | (number + 1);
	group->text_size = (uint32_t)strlen(values[number]);
	memcpy(group->text, values[number], group->text_size);
}

static void damage(struct shim_node *nodes[], const struct layout *layout)
{
	if (!strcmp(options.damage, "cycle"))
		nodes[1]->parent = address_of(layout->file,
			(uint64_t)((char *)nodes[2] - (char *)layout->file));
	if (!strcmp(options.damage, "self"))
		nodes[1]->parent = address_of(layout->file,
			(uint64_t)((char *)nodes[1] - (char *)layout->file));
	if (!strcmp(options.damage, "parent"))
		nodes[1]->parent = 12345;
	if (!strcmp(options.damage, "time"))
		nodes[1]->time = UINT64_MAX / 3;
}

static void write_tree(const char *directory, uint32_t pid, uint32_t number)
{
	char path[4200];
	uint64_t i, root, size;
	struct plan *plan = make_plan();
	struct shim_node *nodes[3] = { 0 }, *node;
	struct shim_thread_node *thread;
	struct layout layout = { 0 };
	unsigned char *base;

	snprintf(path, sizeof(path), "%s/%u.calltree", directory, number);
	size = options.paths * (options.mode == MODE_EXACT ? 448 : 64);
	size = size * 2 + (64u << 20);
	base = map_new(path, size);
	layout.file = (void *)base;
	memcpy(layout.file->magic, SHIM_FILE_MAGIC, 8);
	layout.file->version = SHIM_FORMAT_VERSION;
	layout.file->header_size = HEADER;
	strcpy(layout.file->kind, "calltree");
	layout.file->pid = pid;
	layout.file->number = number;
	layout.file->tid = pid + number;
	add_chunk(&layout);
	root = take(&layout, sizeof(*thread));
	thread = (void *)(base + root);
	thread->function = SHIM_NODE_THREAD | layout.file->tid;
	snprintf(thread->name, sizeof(thread->name), "thread-%u", number);
	thread->lost[SHIM_LOST_SPACE] = number;
	for (i = 0; i < options.paths; i++) {
		add_group(&layout, &plan[i].node, i);
		plan[i].at = take(&layout, sizeof(*node));
		if (options.mode == MODE_EXACT && plan[i].node.calls > 1)
			write_extra(&layout, &plan[i]);
		plan[i].node.parent = address_of(layout.file,
			i ? plan[plan[i].parent].at : root);
		node = (void *)(base + plan[i].at);
		*node = plan[i].node;
		if (i < 3)
			nodes[i] = node;
	}
	if (options.paths > 2)
		damage(nodes, &layout);
	munmap(base, size);
	if (truncate(path, (off_t)layout.chunk_end))
		fail(path);
	free(plan);
}

static void write_process(uint32_t pid)
{
	char path[4096 + 32];
	uint32_t i;

	snprintf(path, sizeof(path), "%s/%u.0", options.directory, pid);
	if (mkdir(path, 0700))
		fail(path);
	write_meta(path, pid);
	write_images(path);
	for (i = 0; i < options.threads; i++)
		write_tree(path, pid, i);
}

static void write_end(void)
{
	char path[4096 + 32];
	FILE *end;

	snprintf(path, sizeof(path), "%s/end", options.directory);
	end = fopen(path, "w");
	if (!end)
		fail(path);
	fprintf(end, "status 0 mono-ns %llu\n", 105000000000ull);
	fclose(end);
}

static void take_options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "paths", 1, NULL, 'p' }, { "depth", 1, NULL, 'd' },
		{ "threads", 1, NULL, 't' }, { "processes", 1, NULL, 'n' },
		{ "functions", 1, NULL, 'f' }, { "mode", 1, NULL, 'm' },
		{ "image", 1, NULL, 'i' }, { "damage", 1, NULL, 'x' },
		{ "groups", 0, NULL, 'g' },
		{ "open", 0, NULL, 'o' }, { "duplicates", 0, NULL, 'u' },
		{ NULL, 0, NULL, 0 }
	};
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1)
		switch (option) {
		case 'p': options.paths = strtoull(optarg, NULL, 0); break;
		case 'd': options.depth = strtoull(optarg, NULL, 0); break;
		case 't': options.threads = strtoull(optarg, NULL, 0); break;
		case 'n': options.processes = strtoull(optarg, NULL, 0); break;
		case 'f': options.functions = strtoull(optarg, NULL, 0); break;
		case 'm':
			options.mode = *optarg == 'e' ? MODE_EXACT :
				       !strcmp(optarg, "counts") ?
				       MODE_COUNTS : MODE_COARSE;
			break;
		case 'i': options.image = optarg; break;
		case 'x': options.damage = optarg; break;
		case 'o': options.open = true; break;
		case 'g': options.groups = true; break;
		case 'u': options.duplicates = true; break;
		default: exit(2);
		}
	if (optind != argc - 1 || !options.paths) {
		fputs("usage: make_recording DIR [OPTIONS]\n", stderr);
		exit(2);
	}
	options.directory = argv[optind];
}

int main(int argc, char **argv)
{
	uint32_t i;

	take_options(argc, argv);
	read_image();
	if (mkdir(options.directory, 0700))
		fail(options.directory);
	for (i = 0; i < options.processes; i++)
		write_process(1000 + i * 100);
	write_end();
	printf("%" PRIu64 "\n", calls_written);
	return 0;
}
