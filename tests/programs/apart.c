/* Preloaded into the report: makes the process that reads foreign files do what APART
 * says. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void fall(void)
{
	*(volatile int *)8 = 1;
}

static int can(const char *what)
{
	void *memory;

	if (!strcmp(what, "open"))
		return open("/etc/passwd", O_RDONLY) >= 0;
	if (!strcmp(what, "create"))
		return open("created", O_WRONLY | O_CREAT, 0600) >= 0;
	if (!strcmp(what, "connect"))
		return socket(AF_INET, SOCK_STREAM, 0) >= 0;
	if (!strcmp(what, "execute"))
		return execl("/bin/true", "true", NULL) == 0 || fork() >= 0;
	if (!strcmp(what, "write code")) {
		memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return memory != MAP_FAILED;
	}
	if (!strcmp(what, "allocate")) {
		memory = malloc(1u << 30);
		return memory && memset(memory, 1, 1u << 30);
	}
	return !strcmp(what, "nothing");
}

int dwfl_module_getsymtab(void *module);

int dwfl_module_getsymtab(void *module)
{
	int (*next)(void *) = (int (*)(void *))dlsym(RTLD_NEXT,
						     "dwfl_module_getsymtab");
	const char *what = getenv("APART");

	if (!strcmp(what, "fall"))
		fall();
	while (!strcmp(what, "loop"))
		;
	if (!strcmp(what, "abort"))
		abort();
	if (!strcmp(what, "lie"))
		memset((void *)(size_t)(write(4, what, 4) * 0), 0, 0);
	if (can(what))
		fall();
	return next(module);
}
