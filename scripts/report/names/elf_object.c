/*
 * The object that a sandbox serves: its file, which the parent passes, its debug
 * information, and the answers about it.
 */
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/memory.h"
#include "inspect/debuginfo/zstd.h"
#include "names/demangle.h"
#include "names/elf_lines.h"
#include "names/elf_object.h"
#include "names/sandbox.h"

/* Limit for the number of debug files that may be requested. */
#define TRIES_MAX 8
/* Limit for the size of all names in answers: the size of the file that holds
 * them, and at least this. */
#define TEXTS_LEAST (4ull << 20)
#define TEXTS_TIMES 8

struct elf_object elf_object;

static Dwfl *dwfl;
static uint64_t texts_left = TEXTS_LEAST;

/* --- answers --- */

void elf_answer(struct names_answer answer, const char *text, const char *more)
{
	answer.text_size = text ? (uint32_t)strlen(text) : 0;
	if (more)
		answer.more_size = (uint32_t)strlen(more);
	fwrite(&answer, sizeof(answer), 1, elf_object.out);
	fwrite(text, 1, answer.text_size, elf_object.out);
	if (more)
		fwrite(more, 1, answer.more_size, elf_object.out);
}

void elf_answer_done(uint64_t status)
{
	elf_answer((struct names_answer){ .kind = ANSWER_DONE, .a = status },
		   "", NULL);
	if (fflush(elf_object.out))
		_exit(1);
}

bool elf_answer_has_room(size_t size)
{
	if (size > NAMES_TEXT_MAX || size > texts_left)
		return false;
	texts_left -= size;
	return true;
}

const char *elf_source_name(const char *name)
{
	const char *text = demangle_here(name);

	return text != name && elf_answer_has_room(strlen(text)) ? text : NULL;
}

void elf_answer_note(const char *what)
{
	const char *error = dwfl_errmsg(-1);

	if (error && !strncasecmp(error, "no ", 3))
		return;
	elf_answer((struct names_answer){ .kind = ANSWER_NOTE },
		   keep_format("%s: %.200s", what, error ? error : "?"), NULL);
}

/* --- files with debug information --- */

void elf_answer_grow_room(int fd)
{
	struct stat info;

	if (fstat(fd, &info) == 0)
		texts_left += TEXTS_TIMES * (uint64_t)info.st_size;
}

/* Requests the @number-th file of this kind; returns its descriptor or -1. */
static int request_file(enum names_wanted what, uint32_t number,
			const char *name, const void *id, size_t id_size)
{
	struct names_answer want = {
		.kind = ANSWER_WANT,
		.number = number,
		.a = what,
		.text_size = (uint32_t)strlen(name),
		.more_size = (uint32_t)id_size,
	};
	struct names_request request;
	int fd;

	if (want.text_size > NAMES_TEXT_MAX || id_size > NAMES_ID_MAX)
		return -1;
	fwrite(&want, sizeof(want), 1, elf_object.out);
	fwrite(name, 1, want.text_size, elf_object.out);
	fwrite(id, 1, id_size, elf_object.out);
	if (fflush(elf_object.out) ||
	    !sandbox_take(elf_object.other_end, &request, sizeof(request),
			  &fd) ||
	    request.kind != NAMES_FILE)
		_exit(1);
	if (fd >= 0)
		elf_answer_grow_room(fd);
	return fd;
}

static bool has_id(Elf *elf, const void *id, size_t id_size)
{
	const void *own;
	ssize_t size = elf ? dwelf_elf_gnu_build_id(elf, &own) : -1;

	if (size < 0)
		size = 0;
	return (size_t)size == id_size && !memcmp(own, id, id_size);
}

static bool file_has_id(int fd, const void *id, size_t id_size)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	bool has = has_id(elf, id, id_size);

	elf_end(elf);
	return has;
}

/* Called for a debug file, which libdwfl closes if it cannot read it. */
static void look_for_zstd(int fd)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);

	elf_object.has_zstd |= zstd_is_in(elf);
	elf_end(elf);
}

static bool has_checksum(int fd, GElf_Word checksum)
{
	static unsigned char bytes[65536];
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t got;

	while ((got = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		sum = crc32(sum, bytes, (uInt)got);
		at += got;
	}
	return got == 0 && sum == checksum;
}

static int find_debug_file(Dwfl_Module *wanting, void **data,
			   const char *module_name, Dwarf_Addr base,
			   const char *file_name, const char *link,
			   GElf_Word checksum, char **debug_name)
{
	const unsigned char *id;
	GElf_Addr at;
	int size = dwfl_module_build_id(wanting, &id, &at), fd;
	uint32_t i;

	(void)data, (void)module_name, (void)base, (void)file_name;
	for (i = 0; i < TRIES_MAX && size > 0; i++) {
		fd = request_file(NAMES_DEBUG_BY_ID, i, "", id, (size_t)size);
		if (fd < 0)
			break;
		if (file_has_id(fd, id, (size_t)size)) {
			look_for_zstd(fd);
			*debug_name = strdup("debug");
			return fd;
		}
		close(fd);
	}
	for (i = 0; i < TRIES_MAX && link && *link; i++) {
		fd = request_file(NAMES_DEBUG_BY_NAME, i, link, "", 0);
		if (fd < 0)
			break;
		if (has_checksum(fd, checksum)) {
			look_for_zstd(fd);
			*debug_name = strdup("debug");
			return fd;
		}
		close(fd);
	}
	return -1;
}

static int find_nothing(Dwfl_Module *wanting, void **data, const char *name,
			Dwarf_Addr base, char **file_name, Elf **elf)
{
	(void)wanting, (void)data, (void)name, (void)base, (void)elf;
	*file_name = NULL;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_nothing,
	.find_debuginfo = find_debug_file,
	.section_address = dwfl_offline_section_address,
};

enum names_opened elf_object_open(int fd, const void *id, size_t id_size)
{
	GElf_Addr bias;

	dwfl = dwfl_begin(&callbacks);
	if (!dwfl)
		return NAMES_IS_NONE;
	dwfl_report_begin(dwfl);
	elf_object.module = dwfl_report_elf(dwfl, "object", "object", fd, 0,
					    true);
	dwfl_report_end(dwfl, NULL, NULL);
	if (!elf_object.module)
		return NAMES_IS_NONE;
	if (has_id(dwfl_module_getelf(elf_object.module, &bias), id, id_size))
		return NAMES_IS_RIGHT;
	elf_object.module = NULL;
	return NAMES_IS_OTHER;
}

/* --- debug information, from the first use on --- */

/* Finds the file with the parts that dwz moved out of several files. */
static void find_shared(Dwarf *wanting)
{
	const void *id;
	const char *name;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(wanting, &name, &id);
	Dwarf *shared = NULL;
	uint32_t i;
	int fd;

	for (i = 0; i < TRIES_MAX && size > 0 && !shared; i++) {
		fd = request_file(NAMES_DEBUG_SHARED, i, name, id,
				  (size_t)size);
		if (fd < 0)
			return;
		if (file_has_id(fd, id, (size_t)size))
			shared = dwarf_begin(fd, DWARF_C_READ);
		else
			close(fd);
	}
	if (shared)
		dwarf_setalt(wanting, shared);
}

struct lines *elf_object_lines(void)
{
	GElf_Addr bias;

	if (elf_object.lines)
		return elf_object.lines;
	elf_object.dwarf = dwfl_module_getdwarf(elf_object.module,
						&elf_object.dwarf_bias);
	elf_object.has_zstd |= zstd_is_in(
		dwfl_module_getelf(elf_object.module, &bias));
	if (elf_object.dwarf)
		find_shared(elf_object.dwarf);
	else if (!elf_object.has_zstd) /* the report has a line about it */
		elf_answer_note("debug information");
	elf_object.lines = lines_open(elf_object.dwarf, elf_object.dwarf_bias);
	return elf_object.lines;
}

/* --- requests --- */

uint64_t *elf_take_addresses(uint32_t count)
{
	uint64_t *addresses = allocate(count, sizeof(*addresses));
	int passed;

	if (!sandbox_take(elf_object.other_end, addresses,
			  count * sizeof(*addresses), &passed))
		_exit(1);
	return addresses;
}

void elf_answer_reset_room(void)
{
	texts_left = TEXTS_LEAST;
}
