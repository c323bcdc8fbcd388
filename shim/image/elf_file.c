/*
 * Reads sections of an ELF file.  It uses read(2) and maps nothing: if another process
 * truncated a mapped file, the program would get SIGBUS.
 */
#include "image/elf_file.h"

#include "image/image.h"
#include "os/sys.h"
#include "os/text.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/info.h>

#include <shim/banned.h>

/* Larger than in any real file.  Within these limits, no sum below overflows. */
#define SECTION_SIZE_MAX (1u << 30)
#define SECTIONS_MAX	 (1u << 16)
#define LEAD		 1024u /* bytes before the section headers */

int elf_read(const struct elf_source *source, uint64_t offset, void *to,
	     size_t size)
{
	char *at = to;

	if (offset > source->size || size > source->size - offset)
		return -ENOEXEC;
	if (source->fd < 0)
		return sys_peek((const void *)(source->memory + offset), to,
				size);
	while (size > 0) {
		long r = sys_read_at(source->fd, at, size, offset);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? (int)r : -ENOEXEC;
		at += r;
		offset += (uint64_t)r;
		size -= (size_t)r;
	}
	return 0;
}

static int open_path(const char *path, struct elf_source *source,
		     uint64_t *device, uint64_t *inode)
{
	/* O_NONBLOCK, because a FIFO may have replaced the file. */
	int r = sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);

	if (r < 0)
		return r;
	source->fd = r;
	r = sys_file(source->fd, device, inode, &source->size);
	if (r < 0)
		sys_close(source->fd);
	return r;
}

static int open_source(const struct image_entry *image, const char *path,
		       struct elf_source *source, bool *is_same)
{
	uint64_t device, inode;
	int r;

	*is_same = true;
	if (!(image->flags & SHIM_IMAGE_DISK)) {
		source->fd = -1;
		source->memory = image->start;
		source->size = image->end - image->start;
		return 0;
	}
	r = open_path(path, source, &device, &inode);
	*is_same = r == 0 && device == image->device && inode == image->inode;
	return r;
}

/* For the program: /proc/self/exe leads to its file even if its name was removed or
 * reused. */
static int open_any_source(const struct image_entry *image,
			   struct elf_source *source, bool *is_same)
{
	int r = open_source(image, image->path, source, is_same);

	if (!(image->flags & SHIM_IMAGE_PROGRAM) || (r == 0 && *is_same))
		return r;
	if (r == 0)
		sys_close(source->fd);
	return open_source(image, "/proc/self/exe", source, is_same);
}

static bool is_elf64(const Elf64_Ehdr *elf)
{
	return elf->e_ident[0] == 0x7f && elf->e_ident[1] == 'E' &&
	       elf->e_ident[2] == 'L' && elf->e_ident[3] == 'F' &&
	       elf->e_ident[EI_CLASS] == ELFCLASS64 &&
	       elf->e_shentsize == sizeof(Elf64_Shdr) && elf->e_shoff != 0;
}

/* Finds how many sections there are, and the one with their names.  Numbers that are too
 * large for the file's header are in the first section. */
static int count_sections(struct elf_file *file, const Elf64_Ehdr *elf)
{
	Elf64_Shdr first = { 0 };
	uint64_t count;
	int r = 0;

	if (elf->e_shnum == 0 || elf->e_shstrndx == SHN_XINDEX)
		r = elf_read(&file->source, elf->e_shoff, &first,
			     sizeof(first));
	if (r < 0)
		return r;
	count = elf->e_shnum ? elf->e_shnum : first.sh_size;
	file->names = elf->e_shstrndx == SHN_XINDEX ? first.sh_link :
						      elf->e_shstrndx;
	if (count == 0 || count > SECTIONS_MAX)
		return -ENOEXEC;
	file->section_count = (uint32_t)count;
	return 0;
}

/* Reads the headers, and LEAD bytes before them, by one system call. */
static int read_sections(struct elf_file *file)
{
	Elf64_Ehdr elf;
	void *memory;
	size_t size;
	int r = elf_read(&file->source, 0, &elf, sizeof(elf));

	if (r < 0)
		return r;
	r = is_elf64(&elf) ? count_sections(file, &elf) : -ENOEXEC;
	if (r < 0)
		return r;
	file->sections_offset = elf.e_shoff;
	file->lead_size = elf.e_shoff < LEAD ? elf.e_shoff : LEAD;
	size = file->section_count * sizeof(Elf64_Shdr);
	file->memory_size = LEAD + size + 1;
	r = sys_map(file->memory_size, &memory);
	if (r < 0)
		return r;
	r = elf_read(&file->source, elf.e_shoff - file->lead_size,
		     (char *)memory + LEAD - file->lead_size,
		     file->lead_size + size);
	if (r < 0) {
		sys_unmap(memory, file->memory_size);
		return r;
	}
	file->memory = memory;
	file->sections = (void *)((char *)memory + LEAD);
	return 0;
}

const char *elf_names(const struct elf_file *file, size_t *size)
{
	uint64_t first = file->sections_offset - file->lead_size, offset;

	if (file->names >= file->section_count ||
	    file->sections[file->names].sh_type == SHT_NOBITS)
		return NULL;
	offset = file->sections[file->names].sh_offset;
	*size = file->sections[file->names].sh_size;
	if (offset < first || offset > file->sections_offset ||
	    *size > file->sections_offset - offset)
		return NULL;
	return file->memory + LEAD - (file->sections_offset - offset);
}

int elf_load_section(const struct elf_file *file, uint32_t number,
		     void **memory, size_t *size)
{
	const Elf64_Shdr *section = &file->sections[number];
	int r;

	if (number >= file->section_count || section->sh_type == SHT_NOBITS ||
	    section->sh_size > SECTION_SIZE_MAX)
		return -ENOEXEC;
	*size = section->sh_size;
	r = sys_map(*size + 1, memory);
	if (r < 0)
		return r;
	r = elf_read(&file->source, section->sh_offset, *memory, *size);
	if (r < 0)
		sys_unmap(*memory, *size + 1);
	return r;
}

int elf_load_named(const struct elf_file *file, const char *name, void **memory,
		   size_t *size)
{
	void *names;
	size_t names_size;
	int r = elf_load_section(file, file->names, &names, &names_size);

	if (r < 0)
		return r;
	r = -ENOENT;
	for (uint32_t i = 0; r == -ENOENT && i < file->section_count; i++) {
		uint32_t at = file->sections[i].sh_name;

		if (at < names_size &&
		    text_equal((const char *)names + at, name))
			r = elf_load_section(file, i, memory, size);
	}
	sys_unmap(names, names_size + 1);
	return r;
}

int elf_has_build_id(const struct elf_file *file,
		     const struct image_entry *image)
{
	unsigned char id[IMAGE_BUILD_ID_SIZE + 16];
	uint32_t size = image->build_id_size;
	int r = 0;

	for (uint32_t i = 0; i < file->section_count; i++) {
		const Elf64_Shdr *section = &file->sections[i];
		bool same = true;

		if (section->sh_type != SHT_NOTE ||
		    section->sh_size != size + 16)
			continue;
		r = elf_read(&file->source, section->sh_offset, id, size + 16);
		for (uint32_t k = 0; r == 0 && k < size; k++)
			same = same && id[16 + k] == image->build_id[k];
		if (r == 0 && same)
			return 1;
	}
	return r;
}

void elf_close(struct elf_file *file)
{
	if (file->sections)
		sys_unmap(file->memory, file->memory_size);
	if (file->source.fd >= 0)
		sys_close(file->source.fd);
	if (file->source.is_ours)
		sys_unmap((void *)file->source.memory, file->source.size);
}

bool elf_is_refused(int error)
{
	return error < 0 && error != -ENOENT && error != -ENOEXEC &&
	       error != -ENOTDIR && error != -ESPIPE;
}

int elf_open(const struct image_entry *image, struct elf_file *file)
{
	bool is_same;
	int r;

	*file = (struct elf_file){ .source.fd = -1 };
	r = open_any_source(image, &file->source, &is_same);
	if (r < 0)
		return r;
	r = read_sections(file);
	if (r == 0 && file->source.fd >= 0) {
		r = image->build_id_size ? elf_has_build_id(file, image) :
					   is_same;
		r = r == 0 ? -ENOENT : r;
	}
	if (r < 0)
		elf_close(file);
	return r < 0 ? r : 0;
}

int elf_open_path(const char *path, struct elf_file *file)
{
	uint64_t device, inode;
	int r;

	*file = (struct elf_file){ .source.fd = -1 };
	r = open_path(path, &file->source, &device, &inode);
	if (r < 0)
		return r;
	r = read_sections(file);
	if (r < 0)
		elf_close(file);
	return r;
}

int elf_open_memory(void *memory, size_t size, struct elf_file *file)
{
	int r;

	*file = (struct elf_file){ .source = { .fd = -1,
					       .memory = (uintptr_t)memory,
					       .size = size,
					       .is_ours = true } };
	r = read_sections(file);
	if (r < 0)
		elf_close(file);
	return r;
}
