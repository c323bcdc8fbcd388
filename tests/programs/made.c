/*
 * Makes code while it runs, as a JIT does, and spends its time there.  "map" writes what
 * it is to /tmp/perf-PID.map, in the way of perf's.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* for (; n; n--) x *= n; return x; */
static const unsigned char loop[] = {
	0xb8, 0x01, 0x00, 0x00, 0x00, /* mov eax, 1 */
	0x0f, 0xaf, 0xc7,	      /* imul eax, edi */
	0xff, 0xcf,		      /* dec edi */
	0x75, 0xf9,		      /* jnz imul */
	0xc3,
};

#define ROOM 4096
/* The addresses of the second function belonged to another one before. */
#define SECOND 1024

int main(int argc, char **argv)
{
	unsigned char *code = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned (*first)(unsigned), (*second)(unsigned);
	unsigned sum = 0;
	char name[64];
	FILE *map;

	if (code == MAP_FAILED)
		return 1;
	memcpy(code, loop, sizeof(loop));
	memcpy(code + SECOND, loop, sizeof(loop));
	if (mprotect(code, ROOM, PROT_READ | PROT_EXEC) != 0)
		return 1;
	if (argc > 1 && !strcmp(argv[1], "map")) {
		snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
		map = fopen(name, "w");
		if (!map)
			return 1;
		fprintf(map, "nonsense\n%lx %x LazyCompile:first a.js:1\n",
			(long)code, 64);
		fprintf(map, "%lx %x old\n%lx %x second\n", (long)code + SECOND,
			64, (long)code + SECOND, 64);
		fprintf(map, "%lx zz bad\n%lx", (long)code, (long)code);
		fclose(map);
	}
	memcpy(&first, &(void *){ code }, sizeof(first));
	memcpy(&second, &(void *){ code + SECOND }, sizeof(second));
	for (int i = 0; i < 20; i++)
		sum += first(10000000) + second(5000000);
	printf("%u\n", sum);
	return 0;
}
