/*
 * Notes the basic blocks that a test reaches, for tests/mutate.
 *
 * Linked into each object that was compiled with -fsanitize-coverage=trace-pc.  Each
 * block has a byte in a file of MUTATE_REACHED, named like the object, at the offset of
 * its code.  Processes share the mapping: a process that is killed has noted all.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char __ehdr_start[] __attribute__((visibility("hidden")));

static unsigned char *reached;
static uintptr_t size;

__attribute__((constructor(101))) static void map_file(void)
{
	const char *folder = getenv("MUTATE_REACHED");
	char path[4096], program[4096] = "";
	Dl_info info;
	if (!folder || !dladdr((void *)map_file, &info))
		return;
	const char *slash = strrchr(info.dli_fname, '/');
	if (!slash) {
		/* The name that Criterion gives to the process of a test. */
		if (readlink("/proc/self/exe", program, sizeof(program) - 1) <
		    0)
			return;
		slash = strrchr(program, '/');
	}
	/* profrun attach loads it by another name. */
	const char *name = strncmp(slash + 1, "libshim-attach.", 15) ?
				   slash + 1 :
				   "libshim.so.0";
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	/* open() and mmap() of this object may be shim's own. */
	long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	size = (uintptr_t)syscall(SYS_lseek, fd, 0L, SEEK_END);
	long memory = syscall(SYS_mmap, NULL, size, 3, 1, fd, 0L);
	syscall(SYS_close, fd);
	if (memory != -1)
		reached = (unsigned char *)memory;
}

/* Linked with --wrap, as libshim.so defines the name for programs. */
__attribute__((visibility("hidden"))) void __wrap___sanitizer_cov_trace_pc(void)
{
	uintptr_t offset = (uintptr_t)__builtin_return_address(0) -
			   (uintptr_t)__ehdr_start;
	if (reached && offset < size)
		reached[offset] = 1;
}
