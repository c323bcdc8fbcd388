/*
 * Finds separate debug files, and those inside of objects.  Nothing in them or in the
 * object is trusted.
 */
#include "image/elf_debug.h"

#include "image/elf_file.h"
#include "image/image.h"
#include "image/xz.h"
#include "os/sys.h"
#include "os/text.h"

#include <errno.h>

#include <shim/banned.h>

#define DEBUG_DIRECTORY "/usr/lib/debug"
#define NAME_SIZE	256
#define PATH_SIZE	(IMAGE_PATH_SIZE + NAME_SIZE + sizeof(DEBUG_DIRECTORY) + 16)
#define CHUNK		65536

/* The content of .gnu_debuglink: a name, zeros up to a multiple of 4, and the checksum. */
struct link {
	char name[NAME_SIZE];
	uint32_t checksum;
};

static int read_link(const struct elf_file *file, struct link *link)
{
	struct text text;
	void *memory;
	size_t size;
	int r = elf_load_named(file, ".gnu_debuglink", &memory, &size);

	if (r < 0)
		return r;
	text_init(&text, link->name, sizeof(link->name));
	text_add(&text, memory);
	r = -ENOEXEC;
	if (size % 4 == 0 && size >= text.length + 5 && !text.cut &&
	    text.length > 0) {
		__builtin_memcpy(&link->checksum,
				 (const char *)memory + size - 4, 4);
		r = 0;
	}
	sys_unmap(memory, size + 1);
	return r;
}

/* The CRC-32 of zlib and gdb, without a table: files are small enough. */
static uint32_t add_to_checksum(uint32_t sum, const unsigned char *at,
				size_t size)
{
	while (size-- > 0) {
		sum ^= *at++;
		for (unsigned bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
	}
	return sum;
}

static bool has_checksum(const struct elf_file *file, uint32_t wanted)
{
	uint64_t left = file->source.size;
	uint32_t sum = 0xffffffffu;
	void *memory;

	if (sys_map(CHUNK, &memory) < 0)
		return false;
	while (left > 0) {
		size_t size = left < CHUNK ? (size_t)left : CHUNK;

		if (elf_read(&file->source, file->source.size - left, memory,
			     size) < 0)
			break;
		sum = add_to_checksum(sum, memory, size);
		left -= size;
	}
	sys_unmap(memory, CHUNK);
	return left == 0 && ~sum == wanted;
}

/* @link is NULL if the image has a build-id. */
static int open_right(const struct image_entry *image, const char *path,
		      const struct link *link, struct elf_file *debug)
{
	int r = elf_open_path(path, debug);
	bool is_right;

	if (r < 0)
		return r;
	is_right = link ? has_checksum(debug, link->checksum) :
			  elf_has_build_id(debug, image) == 1;
	if (!is_right)
		elf_close(debug);
	return is_right ? 0 : -ENOENT;
}

static void add_byte(struct text *text, unsigned char byte)
{
	const char digits[] = "0123456789abcdef";
	char both[3] = { digits[byte >> 4], digits[byte & 15], '\0' };

	text_add(text, both);
}

static int open_by_id(const struct image_entry *image, char *path,
		      struct elf_file *debug)
{
	struct text text;

	if (image->build_id_size < 2)
		return -ENOENT;
	text_init(&text, path, PATH_SIZE);
	text_add(&text, DEBUG_DIRECTORY "/.build-id/");
	for (uint32_t i = 0; i < image->build_id_size; i++) {
		add_byte(&text, image->build_id[i]);
		text_add(&text, i == 0 ? "/" : "");
	}
	text_add(&text, ".debug");
	return open_right(image, path, NULL, debug);
}

static int open_by_link(const struct image_entry *image, char *path,
			const struct link *link, struct elf_file *debug)
{
	static const char *const places[][2] = { { "", "" },
						 { "", ".debug/" },
						 { DEBUG_DIRECTORY, "" } };
	size_t directory = (size_t)(text_base(image->path) - image->path);
	struct text text;
	int r = -ENOENT;

	for (unsigned i = 0; i < sizeof(places) / sizeof(*places) && r < 0;
	     i++) {
		text_init(&text, path, PATH_SIZE);
		text_add(&text, places[i][0]);
		text_add_part(&text, image->path, directory);
		text_add(&text, places[i][1]);
		text_add(&text, link->name);
		if (!text.cut)
			r = open_right(image, path,
				       image->build_id_size ? NULL : link,
				       debug);
	}
	return r;
}

int elf_open_debug(const struct image_entry *image, const struct elf_file *file,
		   struct elf_file *debug)
{
	static char path[PATH_SIZE];
	static struct link link;
	int r;

	if (file->source.fd < 0)
		return -ENOENT;
	r = open_by_id(image, path, debug);
	if (r < 0 && read_link(file, &link) == 0)
		r = open_by_link(image, path, &link, debug);
	return r;
}

int elf_open_inner(const struct elf_file *file, struct elf_file *inner)
{
	void *packed, *memory;
	size_t packed_size, size;
	int r = elf_load_named(file, ".gnu_debugdata", &packed, &packed_size);

	if (r < 0)
		return r;
	r = xz_unpack(packed, packed_size, &memory, &size);
	sys_unmap(packed, packed_size + 1);
	return r < 0 ? r : elf_open_memory(memory, size, inner);
}
