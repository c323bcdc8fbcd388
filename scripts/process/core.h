/* A core file: the memory and the threads of a process that died. */
#ifndef PROCESS_CORE_H
#define PROCESS_CORE_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "process/space.h"

struct core_thread {
	pid_t tid;
	struct user_regs_struct registers;
};

struct core_part {
	uint64_t start, end;	  /* addresses */
	uint64_t offset, in_file; /* the bytes that the core file has */
	bool is_writable;
};

/* A file that was mapped. */
struct core_file {
	uint64_t start, end, offset; /* offset in the file */
	const char *path;
	int fd; /* -1: not opened; -2: missing or different */
};

struct core {
	struct space space; /* first */
	const char *path;
	int fd;
	uint64_t size,
		whole_size; /* of the file as it is, and was meant to be */
	char name[64];	    /* of the program */
	pid_t pid;
	int signal;		     /* that ended it; 0: unknown */
	struct core_thread *threads; /* the thread that died is first */
	uint32_t thread_count, thread_room;
	struct core_part *parts;
	uint32_t part_count, part_room;
	struct core_file *files;
	uint32_t file_count, file_room;
	uint64_t vdso;
};

/* Dies with a message if @path is not a core file of a 64-bit program. */
void core_open(struct core *core, const char *path);

#endif
