/*
 * Finds the file with the debug information of an image: the loaded file, a file beside
 * it, or one in the system's directory.  The build ID shows whether a file belongs to
 * the image in memory.  Without a build ID, the file system and the loaded file show
 * it.
 *
 * The contents are kept in memory, and no file stays open.
 */
#define _GNU_SOURCE
#include "inspect/debuginfo/file.h"

#include "inspect/debuginfo/memory.h"
#include "inspect/debuginfo/signature.h"
#include "inspect/debuginfo/unit.h"
#include "inspect/debuginfo/units.h"
#include "inspect/debuginfo/zstd.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define KEPT_MAX      4 /* calls alternate between a program's libraries */
#define WITHOUT_MAX   256
#define SYSTEM_PREFIX "/usr/lib/debug"

/* A file, and the common file to which dwz moved its parts. */
struct kept {
	uint64_t image; /* 0: none */
	uint64_t used;	/* time of the last use */
	Elf *elf, *common_elf;
	Dwarf *dwarf, *common;
	bool is_split_missing;
	Elf *frames_elf;
	Dwarf_CFI *frames; /* from .eh_frame; NULL: none, or not read yet */
	bool has_read_frames;
};

static struct kept kept[KEPT_MAX];

/* Images without debug information. */
static uint64_t images_without[WITHOUT_MAX];
static unsigned without_count;

static void close_file(struct kept *file)
{
	struct kept closed = *file;

	/* Cleared first: the calls below may crash. */
	memset(file, 0, sizeof(*file));
	unit_forget();
	units_forget();
	signature_forget();
	if (closed.frames)
		dwarf_cfi_end(closed.frames);
	if (closed.frames_elf)
		elf_end(closed.frames_elf);
	if (closed.dwarf)
		dwarf_end(closed.dwarf);
	if (closed.common)
		dwarf_end(closed.common);
	if (closed.elf)
		elf_end(closed.elf);
	if (closed.common_elf)
		elf_end(closed.common_elf);
}

/* --- the right file --- */

struct search {
	const struct debuginfo_question *question;
	const char *trouble; /* why the files so far were refused */
	bool has_loaded;     /* one of them is the loaded file */
	/* The debug link of the loaded file. */
	char link[256];
	GElf_Word checksum;
	struct kept found;
};

static bool has_build_id(const struct search *search, Elf *elf)
{
	const struct debuginfo_question *question = search->question;
	const void *id;
	ssize_t size = dwelf_elf_gnu_build_id(elf, &id);

	return size == (ssize_t)question->build_id_size &&
	       memcmp(id, question->build_id, (size_t)size) == 0;
}

static bool is_loaded_file(const struct search *search, int fd, Elf *elf)
{
	const struct debuginfo_question *question = search->question;
	struct stat info;

	if (question->build_id_size)
		return has_build_id(search, elf);
	return fstat(fd, &info) == 0 && info.st_ino == question->inode &&
	       ((uint64_t)major(info.st_dev) << 32 | minor(info.st_dev)) ==
		       question->device;
}

/* Checks zlib's checksum of the whole file. */
static bool has_checksum(int fd, GElf_Word wanted)
{
	static uint32_t table[256];
	static unsigned char bytes[65536];
	uint32_t sum = ~0u;
	off_t at = 0;
	ssize_t size;

	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^
				   (table[i] & 1 ? 0xedb88320u : 0);
	}
	while ((size = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		for (ssize_t i = 0; i < size; i++)
			sum = table[(sum ^ bytes[i]) & 0xff] ^ sum >> 8;
		at += size;
	}
	return size == 0 && ~sum == wanted;
}

static bool is_linked_file(const struct search *search, int fd, Elf *elf)
{
	return search->question->build_id_size ?
		       has_build_id(search, elf) :
		       has_checksum(fd, search->checksum);
}

/* --- reading --- */

/* Reads the file instead of mapping it: a mapped file that is truncated would kill the
 * program. */
static int open_elf(const char *path, Elf **elf)
{
	struct stat info;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	*elf = NULL;
	if (fd < 0)
		return fd;
	if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
		*elf = elf_begin(fd, ELF_C_READ, NULL);
	if (*elf)
		return fd;
	close(fd);
	return -1;
}

static bool has_section(Elf *elf, const char *wanted)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return true; /* damaged */
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header))
			return true;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && strcmp(name, wanted) == 0)
			return true;
	}
	return false;
}

static const char *trouble_of(Elf *elf)
{
	if (zstd_is_in(elf))
		return "zstd has compressed it, which this libdw cannot read";
	return has_section(elf, ".debug_info") ||
			       has_section(elf, ".zdebug_info") ?
		       "it cannot be read" :
		       "built without -g or stripped";
}

static void read_link_name(struct search *search, Elf *elf)
{
	const char *name = dwelf_elf_gnu_debuglink(elf, &search->checksum);

	if (name && !strchr(name, '/') && strlen(name) < sizeof(search->link))
		strcpy(search->link, name);
}

/* Stores in @path the name of the system's file for the build ID; false: the build ID
 * has no such name. */
static bool name_of_build_id(char path[256], const unsigned char *id,
			     size_t size)
{
	size_t length;

	if (size < 2 || size > 64)
		return false;
	length = (size_t)sprintf(path, SYSTEM_PREFIX "/.build-id/");
	for (size_t i = 0; i < size; i++)
		length += (size_t)sprintf(path + length,
					  i == 0 ? "%02x/" : "%02x", id[i]);
	strcpy(path + length, ".debug");
	return true;
}

/* A file without anything in it. */
static Dwarf *open_nothing(void)
{
	static const struct {
		Elf64_Ehdr header;
		Elf64_Shdr sections[3];
		char names[24];
	} file = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_REL,
			    .e_machine = EM_NONE,
			    .e_version = EV_CURRENT,
			    .e_shoff = sizeof(Elf64_Ehdr),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 3,
			    .e_shstrndx = 1 },
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(typeof(file),
							    names),
				      .sh_size = sizeof(file.names) },
			      /* libdw wants one of its sections. */
			      [2] = { .sh_name = 11,
				      .sh_type = SHT_PROGBITS,
				      .sh_offset = offsetof(typeof(file),
							    names),
				      .sh_size = 1 } },
		.names = "\0.shstrtab\0.debug_line",
	};
	static Dwarf *nothing;
	static Elf *elf;

	if (!elf)
		elf = elf_memory((char *)(uintptr_t)&file, sizeof(file));
	if (elf && !nothing)
		nothing = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	return nothing;
}

static bool try_common(struct kept *file, const char *path, const void *wanted,
		       ssize_t size)
{
	const void *id;
	int fd = open_elf(path, &file->common_elf);

	if (fd < 0)
		return false;
	if (dwelf_elf_gnu_build_id(file->common_elf, &id) == size &&
	    memcmp(id, wanted, (size_t)size) == 0)
		file->common = dwarf_begin_elf(file->common_elf, DWARF_C_READ,
					       NULL);
	if (file->common) {
		elf_cntl(file->common_elf, ELF_C_FDDONE);
	} else {
		elf_end(file->common_elf);
		file->common_elf = NULL;
	}
	close(fd);
	return file->common;
}

/* Reads the file into which dwz moved parts of several files.  Without it, libdw would open
 * and map one of that name, whatever its build ID. */
static void read_common(struct kept *file, const char *beside)
{
	const char *name;
	const void *wanted;
	ssize_t size = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name,
						    &wanted);
	const char *slash = strrchr(beside, '/');
	char path[4096];

	if (size <= 0)
		return;
	snprintf(path, sizeof(path), "%.*s%s",
		 name[0] == '/' || !slash ? 0 : (int)(slash + 1 - beside),
		 beside, name);
	if (try_common(file, path, wanted, size) ||
	    (name_of_build_id(path, wanted, (size_t)size) &&
	     try_common(file, path, wanted, size)))
		dwarf_setalt(file->dwarf, file->common);
	else
		dwarf_setalt(file->dwarf, open_nothing());
}

/* Loads the other sections that queries about callers need: symbols, for weak
 * definitions, and unwind rules. */
static void load_sections(Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((section = elf_nextscn(elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (header.sh_type == SHT_SYMTAB)
			elf_getdata(section, NULL);
		else if (name && strncmp(name, ".eh_frame", 9) == 0)
			elf_rawdata(section, NULL);
	}
}

/* libdw loads all debug sections at the start, so the file can be closed afterwards. */
static bool read_dwarf(struct search *search, int fd, Elf *elf,
		       const char *path)
{
	struct kept *file = &search->found;

	file->elf = elf;
	file->dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!file->dwarf) {
		search->trouble = trouble_of(elf);
		close_file(file);
		return false;
	}
	load_sections(elf);
	elf_cntl(elf, ELF_C_FDDONE);
	close(fd);
	read_common(file, path);
	return true;
}

static bool try_file(struct search *search, const char *path,
		     bool (*is_right)(const struct search *search, int fd,
				      Elf *elf))
{
	Elf *elf;
	int fd = open_elf(path, &elf);

	if (fd < 0)
		return false;
	if (is_right(search, fd, elf)) {
		if (is_right == is_loaded_file) {
			search->has_loaded = true;
			read_link_name(search, elf);
		}
		if (read_dwarf(search, fd, elf, path))
			return true;
	} else {
		if (is_right == is_loaded_file)
			search->trouble =
				"the file differs from the loaded object";
		elf_end(elf);
	}
	close(fd);
	return false;
}

/* --- places to search --- */

/* Tries the loaded file; the main program may have been renamed or removed. */
static bool try_loaded(struct search *search)
{
	const char *trouble;

	search->trouble = "the file cannot be read";
	if (try_file(search, search->question->path, is_loaded_file))
		return true;
	if (search->has_loaded)
		return false;
	trouble = search->trouble;
	if (try_file(search, "/proc/self/exe", is_loaded_file))
		return true;
	if (!search->has_loaded)
		search->trouble = trouble;
	return false;
}

/* Tries the directory in which distributions put stripped debug information. */
static bool try_build_id(struct search *search)
{
	const struct debuginfo_question *question = search->question;
	char path[256];

	return name_of_build_id(path, question->build_id,
				question->build_id_size) &&
	       try_file(search, path, is_linked_file);
}

static bool try_link(struct search *search)
{
	static const char *const places[] = { "%s%.*s/%s", "%s%.*s/.debug/%s",
					      SYSTEM_PREFIX "%s%.*s/%s" };
	const char *path = search->question->path;
	const char *slash = strrchr(path, '/');
	char other[4096];

	if (search->link[0] == '\0' || !slash)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(other, sizeof(other), places[i], "",
			 (int)(slash - path), path, search->link);
		if (try_file(search, other, is_linked_file))
			return true;
	}
	return false;
}

/* --- kept files --- */

static bool has_none(uint64_t image)
{
	for (unsigned i = 0; i < without_count && i < WITHOUT_MAX; i++)
		if (images_without[i] == image)
			return true;
	return false;
}

static void note_none(uint64_t image)
{
	images_without[without_count++ % WITHOUT_MAX] = image;
}

static struct kept *find_kept(uint64_t image)
{
	static uint64_t now;

	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (kept[i].image == image) {
			kept[i].used = ++now;
			return &kept[i];
		}
	}
	return NULL;
}

static struct kept *find_oldest(void)
{
	struct kept *oldest = &kept[0];

	for (size_t i = 1; i < KEPT_MAX; i++)
		if (kept[i].used < oldest->used)
			oldest = &kept[i];
	return oldest;
}

Dwarf *file_open(const struct debuginfo_question *question,
		 struct debuginfo_answer *answer)
{
	struct kept *file = find_kept(question->image), *oldest;
	struct search search = { .question = question };

	if (file)
		return file->dwarf;
	if (has_none(question->image))
		return NULL;
	if (!try_loaded(&search) && !try_build_id(&search) &&
	    !try_link(&search)) {
		if (memory_lacked())
			return NULL;
		note_none(question->image);
		answer->trouble = search.trouble;
		return NULL;
	}
	oldest = find_oldest();
	close_file(oldest);
	*oldest = search.found;
	oldest->image = question->image;
	find_kept(question->image);
	return oldest->dwarf;
}

bool file_open_split(const struct debuginfo_question *question,
		     struct debuginfo_answer *answer, Dwarf_Die *unit)
{
	struct kept *file = find_kept(question->image);
	Dwarf_Die other;
	uint8_t type;

	if (dwarf_cu_info(unit->cu, NULL, &type, NULL, &other, NULL, NULL,
			  NULL) != 0 ||
	    type != DW_UT_skeleton)
		return true;
	if (other.addr) {
		*unit = other;
		return true;
	}
	if (file && !file->is_split_missing) {
		file->is_split_missing = true;
		answer->trouble = "a .dwo file is missing";
	}
	return false;
}

Elf *file_elf(const struct debuginfo_question *question)
{
	struct kept *file = find_kept(question->image);

	return file ? file->elf : NULL;
}

Dwarf_CFI *file_frames(const struct debuginfo_question *question)
{
	struct kept *file = find_kept(question->image);
	struct search search = { .question = question };
	int fd;

	if (!file)
		return NULL;
	if (!file->has_read_frames) {
		file->has_read_frames = true;
		fd = open_elf(question->path, &file->frames_elf);
		if (fd >= 0 && is_loaded_file(&search, fd, file->frames_elf))
			file->frames = dwarf_getcfi_elf(file->frames_elf);
		if (fd >= 0) {
			elf_cntl(file->frames_elf, ELF_C_FDDONE);
			close(fd);
		}
	}
	return file->frames ? file->frames : dwarf_getcfi(file->dwarf);
}

void file_forget(uint64_t image)
{
	for (size_t i = 0; i < KEPT_MAX; i++)
		if (image != 0 && kept[i].image == image)
			close_file(&kept[i]);
}

void file_abandon(uint64_t image)
{
	unit_forget();
	units_forget();
	signature_forget();
	if (image == 0)
		return;
	note_none(image);
	for (size_t i = 0; i < KEPT_MAX; i++)
		if (kept[i].image == image)
			memset(&kept[i], 0, sizeof(kept[i]));
}
