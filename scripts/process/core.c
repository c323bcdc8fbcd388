/*
 * Reads core files.  The kernel leaves out memory that files contain.  That memory is
 * read from the mapped file, if the file's first page is the same as in the core file.
 *
 * The core file may be damaged, so all sizes are checked against the size of the file.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/messages.h"
#include "process/core.h"

#define PAGE	 4096u
#define NOTE_MAX (64u << 20)

static bool read_at(int fd, uint64_t offset, void *bytes, size_t size)
{
	return pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* --- memory --- */

static bool read_part(struct core *core, uint64_t address, void *bytes,
		      size_t size)
{
	uint32_t i;

	for (i = 0; i < core->part_count; i++) {
		const struct core_part *part = &core->parts[i];

		if (address - part->start < part->in_file &&
		    part->in_file - (address - part->start) >= size)
			return read_at(core->fd,
				       part->offset + (address - part->start),
				       bytes, size);
	}
	return false;
}

/* Whether the page of the mapping in the core file is the same as in the file. */
static bool is_same_file(struct core *core, const struct core_file *file,
			 int fd)
{
	unsigned char theirs[PAGE], ours[PAGE];
	uint32_t i;

	for (i = 0; i < core->file_count; i++)
		if (core->files[i].offset == 0 &&
		    !strcmp(core->files[i].path, file->path))
			return !read_part(core, core->files[i].start, theirs,
					  PAGE) ||
			       (pread(fd, ours, PAGE, 0) > 0 &&
				!memcmp(theirs, ours, sizeof(Elf64_Ehdr)) &&
				!memcmp(theirs, ours, PAGE));
	return true;
}

static void open_file(struct core *core, struct core_file *file)
{
	struct stat info;
	int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool is_same = fd >= 0 && fstat(fd, &info) == 0 &&
		       S_ISREG(info.st_mode) && is_same_file(core, file, fd);
	uint32_t i;

	if (fd >= 0 && !is_same) {
		close(fd);
		fd = -1;
	}
	if (!is_same)
		warn("%s: %s: its frames and their callers may be missing",
		     file->path,
		     fd < 0 && access(file->path, F_OK) ?
			     "is missing" :
			     "differs from the file that the program used");
	for (i = 0; i < core->file_count; i++)
		if (!strcmp(core->files[i].path, file->path))
			core->files[i].fd = is_same ? fd : -2;
}

static bool read_core(struct space *space, uint64_t address, void *bytes,
		      size_t size)
{
	struct core *core = (void *)space;
	uint32_t i;

	if (read_part(core, address, bytes, size))
		return true;
	for (i = 0; i < core->file_count; i++) {
		struct core_file *file = &core->files[i];

		if (address < file->start || address >= file->end)
			continue;
		if (file->fd == -1)
			open_file(core, file);
		if (file->fd < 0)
			return false;
		memset(bytes, 0, size);
		return pread(file->fd, bytes, size,
			     (off_t)(file->offset + (address - file->start))) >
		       0;
	}
	return false;
}

/* --- notes --- */

static void read_status(struct core *core, const unsigned char *bytes,
			size_t size)
{
	struct elf_prstatus status;
	struct core_thread *thread;

	if (size < sizeof(status))
		return;
	memcpy(&status, bytes, sizeof(status));
	GROW(core->threads, core->thread_count, core->thread_room);
	thread = &core->threads[core->thread_count++];
	thread->tid = status.pr_pid;
	_Static_assert(sizeof(status.pr_reg) == sizeof(thread->registers),
		       "registers");
	memcpy(&thread->registers, &status.pr_reg, sizeof(thread->registers));
	if (core->thread_count == 1)
		core->signal = status.pr_cursig;
}

static void read_program(struct core *core, const unsigned char *bytes,
			 size_t size)
{
	struct elf_prpsinfo program;

	if (size < sizeof(program))
		return;
	memcpy(&program, bytes, sizeof(program));
	core->pid = program.pr_pid;
	memcpy(core->name, program.pr_fname, sizeof(program.pr_fname));
	core->name[sizeof(program.pr_fname)] = '\0';
}

/* Reads a count, the size of a page, three numbers for each file, and then their
 * names. */
static void read_files(struct core *core, const unsigned char *bytes,
		       size_t size)
{
	uint64_t head[2], numbers[3];
	const unsigned char *name, *end = bytes + size, *nul;
	uint64_t i;

	if (size < sizeof(head))
		return;
	memcpy(head, bytes, sizeof(head));
	if (head[0] > (size - sizeof(head)) / sizeof(numbers))
		return;
	name = bytes + sizeof(head) + head[0] * sizeof(numbers);
	for (i = 0; i < head[0]; i++) {
		memcpy(numbers, bytes + sizeof(head) + i * sizeof(numbers),
		       sizeof(numbers));
		nul = name < end ? memchr(name, '\0', (size_t)(end - name)) :
				   NULL;
		if (!nul)
			return;
		if (numbers[0] < numbers[1] && name[0] == '/') {
			GROW(core->files, core->file_count, core->file_room);
			core->files[core->file_count++] = (struct core_file){
				.start = numbers[0],
				.end = numbers[1],
				.offset = numbers[2] * head[1],
				.path = keep_text((const char *)name, SIZE_MAX),
				.fd = -1,
			};
		}
		name = nul + 1;
	}
}

static void read_auxiliary(struct core *core, const unsigned char *bytes,
			   size_t size)
{
	uint64_t pair[2];
	size_t at;

	for (at = 0; at + sizeof(pair) <= size; at += sizeof(pair)) {
		memcpy(pair, bytes + at, sizeof(pair));
		if (pair[0] == AT_SYSINFO_EHDR)
			core->vdso = pair[1];
	}
}

static void read_notes(struct core *core, uint64_t offset, uint64_t size)
{
	size_t at = 0, contents, end;
	unsigned char *notes;
	Elf64_Nhdr note;

	if (size > NOTE_MAX || offset > core->size ||
	    size > core->size - offset)
		return;
	notes = allocate(1, size + 1);
	if (!read_at(core->fd, offset, notes, size))
		size = 0;
	while (at + sizeof(note) <= size) {
		memcpy(&note, notes + at, sizeof(note));
		contents = at + sizeof(note) + ((note.n_namesz + 3ull) & ~3ull);
		end = contents + note.n_descsz;
		at = contents + ((note.n_descsz + 3ull) & ~3ull);
		if (contents > size || end > size)
			break;
		switch (note.n_type) {
		case NT_PRSTATUS:
			read_status(core, notes + contents, note.n_descsz);
			break;
		case NT_PRPSINFO:
			read_program(core, notes + contents, note.n_descsz);
			break;
		case NT_FILE:
			read_files(core, notes + contents, note.n_descsz);
			break;
		case NT_AUXV:
			read_auxiliary(core, notes + contents, note.n_descsz);
			break;
		default: break;
		}
	}
	free(notes);
}

/* --- the file --- */

static void add_part(struct core *core, const Elf64_Phdr *header)
{
	if (header->p_type == PT_NOTE)
		read_notes(core, header->p_offset, header->p_filesz);
	if (header->p_type != PT_LOAD || header->p_memsz == 0 ||
	    header->p_vaddr + header->p_memsz < header->p_vaddr)
		return;
	GROW(core->parts, core->part_count, core->part_room);
	if (header->p_filesz <= UINT64_MAX - header->p_offset &&
	    header->p_offset + header->p_filesz > core->whole_size)
		core->whole_size = header->p_offset + header->p_filesz;
	core->parts[core->part_count++] = (struct core_part){
		.start = header->p_vaddr,
		.end = header->p_vaddr + header->p_memsz,
		.offset = header->p_offset,
		.in_file = header->p_offset > core->size ?
				   0 :
			   header->p_filesz > core->size - header->p_offset ?
				   core->size - header->p_offset :
				   header->p_filesz,
		.is_writable = header->p_flags & PF_W,
	};
}

/* In a large file, the first section has the number of headers. */
static uint64_t header_count(const struct core *core, const Elf64_Ehdr *elf)
{
	Elf64_Shdr section;

	if (elf->e_phnum != PN_XNUM ||
	    !read_at(core->fd, elf->e_shoff, &section, sizeof(section)))
		return elf->e_phnum;
	return section.sh_info;
}

static int compare_parts(const void *left, const void *right)
{
	const struct core_part *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
}

static const struct core_file *file_at(const struct core *core,
				       uint64_t address)
{
	uint32_t i;

	for (i = 0; i < core->file_count; i++)
		if (address >= core->files[i].start &&
		    address < core->files[i].end)
			return &core->files[i];
	return NULL;
}

/* For memory that files contain, the kernel writes an empty part, and gdb writes
 * none. */
static void add_missing_parts(struct core *core)
{
	uint32_t i, n, count = core->part_count;

	for (i = 0; i < core->file_count; i++) {
		const struct core_file *file = &core->files[i];

		for (n = 0; n < count; n++)
			if (file->start < core->parts[n].end &&
			    core->parts[n].start < file->end)
				break;
		if (n < count)
			continue;
		GROW(core->parts, core->part_count, core->part_room);
		core->parts[core->part_count++] = (struct core_part){
			.start = file->start, .end = file->end
		};
	}
}

static void add_mappings(struct core *core)
{
	uint32_t i;

	for (i = 0; i < core->part_count; i++) {
		const struct core_part *part = &core->parts[i];
		const struct core_file *file = file_at(core, part->start);

		space_add(&core->space, part->start, part->end,
			  file ? file->offset + (part->start - file->start) : 0,
			  part->is_writable,
			  file			    ? file->path :
			  part->start == core->vdso ? "[vdso]" :
						      NULL,
			  "");
	}
}

void core_open(struct core *core, const char *path)
{
	Elf64_Phdr header;
	struct stat info;
	Elf64_Ehdr elf;
	uint64_t count, i;

	*core = (struct core){ .path = path };
	core->space.read = read_core;
	core->space.is_constant = true;
	core->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (core->fd < 0 || fstat(core->fd, &info) != 0)
		die("%s: %s", path, strerror(errno));
	core->size = (uint64_t)info.st_size;
	if (!S_ISREG(info.st_mode) ||
	    !read_at(core->fd, 0, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG))
		die("%s: is neither a process id nor a core file (unpack a "
		    "compressed core file first)",
		    path);
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != EM_X86_64)
		die("%s: belongs to another kind of processor, or to a 32-bit program",
		    path);
	if (elf.e_type != ET_CORE)
		die("%s: is a program or library, not a core file", path);
	count = header_count(core, &elf);
	for (i = 0; i < count; i++)
		if (elf.e_phentsize == sizeof(header) &&
		    read_at(core->fd, elf.e_phoff + i * sizeof(header), &header,
			    sizeof(header)))
			add_part(core, &header);
	if (core->thread_count && core->size < core->whole_size)
		warn("%s: is cut off: it has %" PRIu64 " of %" PRIu64
		     " bytes, so frames may be missing (`ulimit -c unlimited`, or "
		     "more space on the disk)",
		     path, core->size, core->whole_size);
	if (!core->thread_count)
		die("%s: has no threads: it is truncated or damaged", path);
	add_missing_parts(core);
	if (core->part_count)
		qsort(core->parts, core->part_count, sizeof(*core->parts),
		      compare_parts);
	add_mappings(core);
}
