/*
 * Reads properties of a program's file.  This file parses ELF itself, because readelf
 * and libelf may be missing, and reads only the parts that the dynamic linker uses:
 * sections may be stripped.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/nearest.h"
#include "program.h"
#include "say.h"

#define HOOK "__cyg_profile_func_enter"

#define HEADERS_MAX 512
#define DYNAMIC_MAX 4096
#define STRINGS_MAX ((size_t)64 << 20)
#define SYMBOLS_MAX ((size_t)1 << 22)

/* An open ELF file of our own kind. */
struct elf {
	int fd;
	ElfW(Ehdr) header;
	ElfW(Phdr) segment[HEADERS_MAX];
	unsigned int segments;
	ElfW(Dyn) dynamic[DYNAMIC_MAX];
	unsigned int dynamics;
	char *strings; /* .dynstr, NUL-terminated, or NULL */
	size_t strings_size;
};

/* --- finding ------------------------------------------------------------ */

/* Returns 0 if @path seems executable, else an errno. */
static int try_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	if (faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
		return errno;
	return 0;
}

static int search_path(struct program *program)
{
	const char *path = getenv("PATH"), *end;
	int r, found = ENOENT;

	if (path == NULL)
		path = "/bin:/usr/bin";
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		r = snprintf(program->path, sizeof(program->path), "%.*s%s%s",
			     (int)(end - path), path, end == path ? "./" : "/",
			     program->name);
		if (r < (int)sizeof(program->path)) {
			r = try_path(program->path);
			if (r == 0)
				return 0;
			if (r == EACCES)
				found = r;
		}
		if (*end == '\0')
			return found;
	}
}

/* A mistyped verb is taken for a program: suggest the verb.  So is a list that does not follow
 * its option's '='. */
static void say_not_found(const char *name)
{
	static const char *const verbs[] = {
		"run",	   "record", "report",	 "export", "html",  "replay",
		"diff",	   "merge",  "gprof",	 "finish", "info",  "doctor",
		"ctl",	   "help",   "annotate", "stat",   "stack", "reduce",
		"history", "attach", "detach",	 "top",	   "tui",   NULL,
	};
	const char *meant = nearest_to(name, verbs);

	if (try_path(name) == 0)
		say("%s: not found in PATH; did you mean ./%s?", name, name);
	else if (meant != NULL)
		say("%s: not found; did you mean `profrun %s`?", name, meant);
	else if (strpbrk(name, "*?,:") != NULL)
		say("%s: not found; a list of --libcalls is part of its word: "
		    "--libcalls='%s'",
		    name, name);
	else
		say("%s: not found", name);
}

int program_find(struct program *program, const char *name)
{
	int r;

	memset(program, 0, sizeof(*program));
	program->name = name;
	if (*name == '\0') {
		r = ENOENT;
	} else if (strchr(name, '/') == NULL) {
		r = search_path(program);
	} else if (strlen(name) >= sizeof(program->path)) {
		r = ENAMETOOLONG;
	} else {
		strcpy(program->path, name);
		r = try_path(name);
	}
	switch (r) {
	case 0: return 0;
	case ENOENT:
	case ENOTDIR: say_not_found(name); return STATUS_NOT_FOUND;
	default:
		say("%s: cannot be executed: %s", name, strerror(r));
		return STATUS_NOT_EXECUTABLE;
	}
}

/* --- reading ELF files -------------------------------------------------- */

static bool read_at(int fd, void *memory, size_t size, uint64_t offset)
{
	ssize_t r;

	while (size > 0) {
		r = pread(fd, memory, size, offset);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return false;
		memory = (char *)memory + r;
		size -= r;
		offset += r;
	}
	return true;
}

/* A file of profrun's own kind can share a process with the library. */
static bool is_our_kind(const ElfW(Ehdr) * header)
{
	ElfW(Ehdr) ours;
	bool ok;
	int fd;

	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	ok = !read_at(fd, &ours, sizeof(ours), 0) ||
	     (memcmp(ours.e_ident, header->e_ident, EI_VERSION) == 0 &&
	      ours.e_machine == header->e_machine);
	close(fd);
	return ok;
}

/* Converts @address of the loaded file to an offset in the file. */
static bool find_offset(const struct elf *elf, uint64_t address,
			uint64_t *offset)
{
	const ElfW(Phdr) * p;

	for (p = elf->segment; p < elf->segment + elf->segments; p++) {
		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz) {
			*offset = p->p_offset + (address - p->p_vaddr);
			return true;
		}
	}
	return false;
}

static const ElfW(Phdr) * find_segment(const struct elf *elf, uint32_t type)
{
	const ElfW(Phdr) * p;

	for (p = elf->segment; p < elf->segment + elf->segments; p++)
		if (p->p_type == type)
			return p;
	return NULL;
}

static bool find_dynamic(const struct elf *elf, int64_t tag, uint64_t *value)
{
	const ElfW(Dyn) * d;

	for (d = elf->dynamic; d < elf->dynamic + elf->dynamics; d++) {
		if (d->d_tag == tag) {
			*value = d->d_un.d_val;
			return true;
		}
	}
	return false;
}

static void read_strings(struct elf *elf)
{
	uint64_t address, size, offset;

	if (!find_dynamic(elf, DT_STRTAB, &address) ||
	    !find_dynamic(elf, DT_STRSZ, &size) ||
	    !find_offset(elf, address, &offset) || size > STRINGS_MAX)
		return;
	elf->strings = malloc(size + 1);
	if (elf->strings == NULL)
		return;
	if (!read_at(elf->fd, elf->strings, size, offset)) {
		free(elf->strings);
		elf->strings = NULL;
		return;
	}
	elf->strings[size] = '\0';
	elf->strings_size = size;
}

static void read_dynamic(struct elf *elf)
{
	const ElfW(Phdr) *p = find_segment(elf, PT_DYNAMIC);
	size_t n;

	if (p == NULL)
		return;
	n = p->p_filesz / sizeof(elf->dynamic[0]);
	if (n > DYNAMIC_MAX)
		n = DYNAMIC_MAX;
	if (!read_at(elf->fd, elf->dynamic, n * sizeof(elf->dynamic[0]),
		     p->p_offset))
		return;
	while (elf->dynamics < n &&
	       elf->dynamic[elf->dynamics].d_tag != DT_NULL)
		elf->dynamics++;
	read_strings(elf);
}

/* @elf->header has been read and is of our kind. */
static bool read_elf(struct elf *elf)
{
	unsigned int n = elf->header.e_phnum;

	if (elf->header.e_phentsize != sizeof(elf->segment[0]))
		return false;
	if (n > HEADERS_MAX)
		n = HEADERS_MAX;
	if (!read_at(elf->fd, elf->segment, n * sizeof(elf->segment[0]),
		     elf->header.e_phoff))
		return false;
	elf->segments = n;
	read_dynamic(elf);
	return true;
}

static const char *string_at(const struct elf *elf, uint64_t offset)
{
	if (elf->strings == NULL || offset >= elf->strings_size)
		return "";
	return elf->strings + offset;
}

/* --- symbols ------------------------------------------------------------ */

/*
 * A symbol that the file refers to has its name in .dynstr, perhaps as the tail of a
 * longer name.  A search there is cheaper than counting symbols: the dynamic linker's
 * tables do not have the number of undefined ones.
 */
static bool mentions(const struct elf *elf, const char *name)
{
	return elf->strings != NULL &&
	       memmem(elf->strings, elf->strings_size + 1, name,
		      strlen(name) + 1) != NULL;
}

/* The dynamic symbols that the file defines: those of its GNU hash table. */
struct symbols {
	uint64_t offset; /* of the table in the file */
	uint64_t first;
	uint64_t end;
};

static bool read_chain_end(const struct elf *elf, uint64_t chains,
			   uint32_t first, uint32_t *index)
{
	uint32_t hash;

	do {
		if (*index - first >= SYMBOLS_MAX ||
		    !read_at(elf->fd, &hash, sizeof(hash),
			     chains + 4 * (uint64_t)(*index - first)))
			return false;
		++*index;
	} while (!(hash & 1));
	return true;
}

static bool find_symbols(const struct elf *elf, struct symbols *symbols)
{
	/* buckets, first symbol, words of the filter, shift */
	uint32_t head[4], bucket, last = 0;
	uint64_t address, hash, buckets;

	if (!find_dynamic(elf, DT_SYMTAB, &address) ||
	    !find_offset(elf, address, &symbols->offset) ||
	    !find_dynamic(elf, DT_GNU_HASH, &address) ||
	    !find_offset(elf, address, &hash) ||
	    !read_at(elf->fd, head, sizeof(head), hash))
		return false;
	buckets = hash + sizeof(head) + head[2] * (uint64_t)sizeof(ElfW(Addr));
	for (uint32_t i = 0; i < head[0] && i < SYMBOLS_MAX; i++) {
		if (!read_at(elf->fd, &bucket, sizeof(bucket), buckets + 4 * i))
			return false;
		if (bucket > last)
			last = bucket;
	}
	symbols->first = symbols->end = head[1];
	if (last < head[1])
		return true;
	if (!read_chain_end(elf, buckets + 4 * (uint64_t)head[0], head[1],
			    &last))
		return false;
	symbols->end = last;
	return true;
}

static bool find_symbol(const struct elf *elf, const char *name,
			uint64_t *index)
{
	struct symbols symbols;
	ElfW(Sym) symbol;

	if (!find_symbols(elf, &symbols))
		return false;
	for (uint64_t i = symbols.first; i < symbols.end; i++) {
		if (!read_at(elf->fd, &symbol, sizeof(symbol),
			     symbols.offset + i * sizeof(symbol)))
			return false;
		if (symbol.st_shndx != SHN_UNDEF &&
		    strcmp(string_at(elf, symbol.st_name), name) == 0) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* --- looking at programs ------------------------------------------------ */

/* Reads "#!" and the path after it. */
static void read_script(struct program *program, int fd)
{
	char line[256];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	char *start;

	if (n < 2)
		return;
	line[n] = '\0';
	if (line[0] != '#' || line[1] != '!')
		return;
	start = line + 2 + strspn(line + 2, " \t");
	start[strcspn(start, " \t\r\n")] = '\0';
	strcpy(program->interpreter, start);
}

/* gcc's runtimes refuse to start unless they are loaded first; clang's are part of the
 * program. */
static bool is_sanitizer(const char *name)
{
	static const char *const names[] = { "libasan.so", "libtsan.so",
					     "liblsan.so", "libhwasan.so" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Programs in Fortran may need only the libraries for it. */
static bool is_mpi(const char *name)
{
	static const char *const names[] = {
		"libmpi.so",	 "libmpich.so",	    "libmpi_mpifh",
		"libmpi_usempi", "libmpichfort.so",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* gcc's runtime, libgomp, has no interface for tools. */
static bool is_openmp(const char *name)
{
	return strncmp(name, "libomp.so", 9) == 0 ||
	       strncmp(name, "libomp5.so", 10) == 0 ||
	       strncmp(name, "libiomp5.so", 11) == 0;
}

static void inspect_needed(struct program *program, const struct elf *elf)
{
	const ElfW(Dyn) * d;
	const char *name;

	for (d = elf->dynamic; d < elf->dynamic + elf->dynamics; d++) {
		if (d->d_tag != DT_NEEDED)
			continue;
		name = string_at(elf, d->d_un.d_val);
		if (is_sanitizer(name) &&
		    strlen(name) < sizeof(program->sanitizer))
			strcpy(program->sanitizer, name);
		program->has_mpi |= is_mpi(name);
		program->has_openmp |= is_openmp(name);
	}
}

static void inspect_elf(struct program *program, const struct elf *elf)
{
	const ElfW(Phdr) *interpreter = find_segment(elf, PT_INTERP);
	uint64_t unused;

	if (interpreter != NULL &&
	    interpreter->p_filesz < sizeof(program->interpreter))
		read_at(elf->fd, program->interpreter, interpreter->p_filesz,
			interpreter->p_offset);
	/* The dynamic linker can be run as a program, and has a name. */
	program->is_static = interpreter == NULL &&
			     !find_dynamic(elf, DT_SONAME, &unused);
	program->calls_hooks = mentions(elf, HOOK);
	program->has_hooks = program->calls_hooks &&
			     find_symbol(elf, HOOK, &unused);
	marks_read(&program->marks, program->path);
	program->is_marked = program->calls_hooks || marks_any(&program->marks);
	inspect_needed(program, elf);
}

static bool is_privileged(const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != getuid())
		return true;
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    st.st_gid != getgid())
		return true;
	return getuid() != 0 &&
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

void program_inspect(struct program *program)
{
	static struct elf elf;

	memset(&elf, 0, sizeof(elf));
	elf.fd = open(program->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (elf.fd < 0)
		return;
	program->is_privileged = is_privileged(program->path, elf.fd);
	if (!read_at(elf.fd, &elf.header, sizeof(elf.header), 0) ||
	    memcmp(elf.header.e_ident, ELFMAG, SELFMAG) != 0) {
		read_script(program, elf.fd);
	} else {
		program->is_elf = true;
		if (!is_our_kind(&elf.header))
			program->is_foreign = true;
		else if (read_elf(&elf))
			inspect_elf(program, &elf);
	}
	close(elf.fd);
	free(elf.strings);
}

enum program_export program_exports(const char *path, const char *symbol)
{
	enum program_export result = EXPORT_MISSING;
	uint64_t index, address, offset;
	static struct elf elf;
	uint16_t version;

	memset(&elf, 0, sizeof(elf));
	elf.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (elf.fd < 0)
		return EXPORT_MISSING;
	if (read_at(elf.fd, &elf.header, sizeof(elf.header), 0) &&
	    memcmp(elf.header.e_ident, ELFMAG, SELFMAG) == 0 &&
	    is_our_kind(&elf.header) && read_elf(&elf) &&
	    find_symbol(&elf, symbol, &index)) {
		result = EXPORT_PLAIN;
		if (find_dynamic(&elf, DT_VERSYM, &address) &&
		    find_offset(&elf, address, &offset) &&
		    read_at(elf.fd, &version, sizeof(version),
			    offset + 2 * index) &&
		    (version & 0x7fff) > VER_NDX_GLOBAL)
			result = EXPORT_VERSIONED;
	}
	close(elf.fd);
	free(elf.strings);
	return result;
}

static const char *machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_386: return "32-bit x86";
	case EM_X86_64: return "x86-64";
	case EM_ARM: return "32-bit ARM";
	case EM_AARCH64: return "aarch64";
	case EM_RISCV: return "RISC-V";
	case EM_PPC64: return "64-bit POWER";
	case EM_S390: return "s390";
	case EM_MIPS: return "MIPS";
	default: return "another processor";
	}
}

const char *program_machine(const char *path)
{
	unsigned char head[20] = { 0 };
	unsigned int machine = EM_NONE;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return machine_name(EM_NONE);
	if (read_at(fd, head, sizeof(head), 0))
		machine = head[EI_DATA] == ELFDATA2MSB ?
				  head[18] << 8 | head[19] :
				  head[19] << 8 | head[18];
	close(fd);
	if (machine == EM_X86_64 && head[EI_CLASS] == ELFCLASS32)
		return "x32";
	return machine_name(machine);
}
