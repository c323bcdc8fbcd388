/* Reads as little as tells the kind: exec takes a hundred times as long. */
#define _GNU_SOURCE
#include "edge/executed.h"

#include "arch.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/config.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <shim/banned.h>

#define PRELOAD "LD_PRELOAD="
/* Longer names are not looked for: the stack may be small. */
#define NAME_SIZE    512
#define SEGMENTS_MAX 64
/* As many as the kernel follows, and as much as it reads of each. */
#define SCRIPTS_MAX 5
#define SCRIPT_LINE 256

/* --- the file --- */

static bool read_whole(int fd, void *buffer, size_t size, uint64_t offset)
{
	return sys_read_at(fd, buffer, size, offset) == (long)size;
}

/* The dynamic linker itself, as a program, has none and loads shim. */
static bool is_linker(const char *name)
{
	const char *base = text_base(name);

	return text_after(base, "ld-") || text_after(base, "ld.so");
}

static bool is_static(int fd, const Elf64_Ehdr *elf, const char *name)
{
	Elf64_Phdr part;

	if (is_linker(name) || elf->e_phentsize != sizeof(part) ||
	    elf->e_phnum > SEGMENTS_MAX)
		return false;
	for (unsigned i = 0; i < elf->e_phnum; i++)
		if (!read_whole(fd, &part, sizeof(part),
				elf->e_phoff + i * sizeof(part)) ||
		    part.p_type == PT_INTERP)
			return false;
	return true;
}

static enum executed_kind kind_of(int fd, const char *name)
{
	Elf64_Ehdr elf;

	if (!read_whole(fd, &elf, sizeof(elf), 0) ||
	    !text_after((const char *)elf.e_ident, ELFMAG))
		return EXECUTED_ORDINARY;
	if (elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    (ARCH_ELF_MACHINE && elf.e_machine != ARCH_ELF_MACHINE))
		return EXECUTED_FOREIGN;
	return is_static(fd, &elf, name) ? EXECUTED_STATIC : EXECUTED_ORDINARY;
}

static bool is_blank(char character)
{
	return character == ' ' || character == '\t';
}

/* Reads which program a script names in its first line ("#!"). */
static void read_interpreter(int fd, char name[SCRIPT_LINE])
{
	long size = sys_read_at(fd, name, SCRIPT_LINE - 1, 0);
	size_t at = 2, length = 0;

	name[size > 2 ? size : 2] = '\0';
	while (is_blank(name[at]))
		at++;
	while (name[at] && name[at] != '\n' && !is_blank(name[at]))
		name[length++] = name[at++];
	/* A name that is cut may be that of another program. */
	name[at < SCRIPT_LINE - 1 ? length : 0] = '\0';
}

static bool is_script(int fd)
{
	char begin[2];

	return read_whole(fd, begin, sizeof(begin), 0) && begin[0] == '#' &&
	       begin[1] == '!';
}

/* A file that may be executed need not be readable.  @interpreter, in which @path may be,
 * is empty if it is no script. */
static bool look_at_one(int directory, const char *path,
			struct executed *executed,
			char interpreter[SCRIPT_LINE])
{
	struct sys_status *status = &executed->status;
	int fd = sys_open_at(directory, path, O_PATH | O_CLOEXEC, 0);
	bool is_there = fd >= 0 && sys_get_status(fd, status) == 0 &&
			S_ISREG(status->mode) &&
			status->mode & (S_IXUSR | S_IXGRP | S_IXOTH);

	if (fd >= 0)
		sys_close(fd);
	executed->kind = EXECUTED_ORDINARY;
	fd = is_there ?
		     sys_open_at(directory, path,
				 O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				 0) :
		     -ENOENT;
	if (fd >= 0 && is_script(fd)) {
		read_interpreter(fd, interpreter);
	} else {
		if (fd >= 0)
			executed->kind = kind_of(fd, path);
		interpreter[0] = '\0';
	}
	if (fd >= 0)
		sys_close(fd);
	return is_there;
}

/* Of a script, the kernel executes the interpreter, with that one's rights. */
static bool look_at(int directory, const char *path, struct executed *executed)
{
	char name[SCRIPT_LINE];
	bool is_there = look_at_one(directory, path, executed, name);

	for (unsigned i = 0; i < SCRIPTS_MAX && name[0]; i++)
		look_at_one(AT_FDCWD, name, executed, name);
	return is_there;
}

static bool has_slash(const char *name)
{
	return *text_base(name) == '\0' || text_base(name) != name;
}

bool executed_find(int directory, const char *name, struct executed *executed)
{
	const char *list = config_variable("PATH"), *end;
	char memory[NAME_SIZE];
	struct text path;

	if (directory != EXECUTED_IN_PATH)
		return look_at(directory, name, executed);
	if (has_slash(name))
		return look_at(AT_FDCWD, name, executed);
	for (list = list ? list : "/bin:/usr/bin";; list = end + 1) {
		for (end = list; *end && *end != ':'; end++)
			continue;
		text_init(&path, memory, sizeof(memory));
		text_add_part(&path, list, (size_t)(end - list));
		text_add(&path, end > list ? "/" : "");
		text_add(&path, name);
		if (!path.cut && look_at(AT_FDCWD, memory, executed))
			return true;
		if (!*end)
			return false;
	}
}

/* --- the environment --- */

static bool ends_name(char character)
{
	return character == '\0' || character == ':' || character == ' ';
}

/* The length of the name of a library at the begin of @list. */
static size_t length_of(const char *list)
{
	size_t length = 0;

	while (!ends_name(list[length]))
		length++;
	return length;
}

static bool is_shim(const char *name, size_t length)
{
	static const char base[] = "libshim.so";

	for (size_t at = 0; at + sizeof(base) - 1 <= length; at++)
		if (text_after(name + at, base))
			return true;
	return false;
}

bool executed_names_shim(const char *list)
{
	while (list && *list) {
		size_t length = length_of(list);

		if (is_shim(list, length))
			return true;
		list += length;
		list += *list != '\0';
	}
	return false;
}

/* The variable's value, or NULL if it does not name shim. */
static const char *list_with_shim(char *const environment[])
{
	for (; environment && *environment; environment++) {
		const char *list = text_after(*environment, PRELOAD);

		if (executed_names_shim(list))
			return list;
	}
	return NULL;
}

bool executed_preloads_shim(char *const environment[])
{
	return list_with_shim(environment) != NULL;
}

/* Whether the dynamic linker replaces parts of it: $LIB, $ORIGIN. */
static bool has_token(const char *path)
{
	while (*path && *path != '$')
		path++;
	return *path != '\0';
}

bool executed_opens_shim(char *const environment[])
{
	const char *list = list_with_shim(environment);
	char memory[NAME_SIZE];
	struct text path;
	size_t length;
	int fd;

	while (!is_shim(list, length = length_of(list)))
		list += length + 1;
	text_init(&path, memory, sizeof(memory));
	text_add_part(&path, list, length);
	if (path.cut || !has_slash(memory) || has_token(memory))
		return true;
	fd = sys_open_at(AT_FDCWD, memory, O_PATH | O_CLOEXEC, 0);
	if (fd >= 0)
		sys_close(fd);
	return fd != -ENOENT && fd != -ENOTDIR && fd != -EACCES;
}

size_t executed_room(char *const environment[])
{
	size_t room = 1;

	for (; *environment; environment++) {
		room++;
		if (executed_names_shim(text_after(*environment, PRELOAD)))
			room += text_length(*environment) / sizeof(char *) + 1;
	}
	return room;
}

/* Returns whether there are any others. */
static bool copy_others(const char *list, struct text *to)
{
	bool has_others = false;

	text_add(to, PRELOAD);
	while (*list) {
		size_t length = length_of(list);

		if (length > 0 && !is_shim(list, length)) {
			text_add(to, has_others ? ":" : "");
			text_add_part(to, list, length);
			has_others = true;
		}
		list += length;
		list += *list != '\0';
	}
	return has_others;
}

char *const *executed_without_shim(char *const environment[], char **room)
{
	size_t count = 0, kept = 0;
	char *memory;

	while (environment[count])
		count++;
	memory = (char *)&room[count + 1];
	for (size_t i = 0; i < count; i++) {
		const char *list = text_after(environment[i], PRELOAD);
		size_t size = text_length(environment[i]) + 1;
		struct text text;

		room[kept] = environment[i];
		if (!executed_names_shim(list)) {
			kept++;
			continue;
		}
		text_init(&text, memory, size);
		if (copy_others(list, &text)) {
			room[kept++] = memory;
			memory += size;
		}
	}
	room[kept] = NULL;
	return room;
}
