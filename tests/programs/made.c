/*
 * Makes code while it runs, as a JIT does, and spends its time there.  "map" writes what
 * it is to /tmp/perf-PID.map, in the way of perf's.  "dump" writes jit-PID.dump here, with
 * lines in FILE (0: without), and "v8" the same with the peculiarities of V8.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * for (; n; n--) x *= n * n * n * n; return x;  Several multiplications: a processor may
 * report an instruction behind the one that it was at.
 */
static const unsigned char loop[] = {
	0xb8, 0x01, 0x00, 0x00, 0x00, /* mov eax, 1 */
	0x0f, 0xaf, 0xc7,	      /* imul eax, edi */
	0x0f, 0xaf, 0xc7,	      /* imul eax, edi */
	0x0f, 0xaf, 0xc7,	      /* imul eax, edi */
	0x0f, 0xaf, 0xc7,	      /* imul eax, edi */
	0xff, 0xcf,		      /* dec edi */
	0x75, 0xf0,		      /* jnz imul, the first */
	0xc3,
};
#define LINE_3 5
#define LINE_4 17

#define ROOM 4096
/* The addresses of the second function belonged to another one before. */
#define SECOND 1024
/* Where it was made. */
#define BEFORE 2048

/* --- a dump --- */

static FILE *dump;

static void put(const void *bytes, size_t size)
{
	fwrite(bytes, 1, size, dump);
}

static void put_numbers(const uint64_t *numbers, int count)
{
	put(numbers, (size_t)count * sizeof(*numbers));
}

static void begin_record(uint32_t kind, size_t size)
{
	uint32_t head[] = { kind, (uint32_t)size };

	put(head, sizeof(head));
	put_numbers((uint64_t[]){ 0 }, 1);
}

static void put_load(uint64_t address, const char *name)
{
	begin_record(0, 56 + strlen(name) + 1 + sizeof(loop));
	put_numbers((uint64_t[]){ 0, address, address, sizeof(loop), 1 }, 5);
	put(name, strlen(name) + 1);
	put(loop, sizeof(loop));
}

static void put_line(uint64_t address, uint32_t line, const char *file,
		     size_t size)
{
	put_numbers((uint64_t[]){ address, line }, 2);
	put(file, size);
}

/* The multiplications are in line 3, the rest of the loop in line 4. */
static void put_lines(uint64_t address, const char *file)
{
	begin_record(2, 32 + 3 * 16 + strlen(file) + 1 + 4);
	put_numbers((uint64_t[]){ address, 3 }, 2);
	put_line(address, 2, file, strlen(file) + 1);
	put_line(address + LINE_3, 3, "\xff", 2);
	put_line(address + LINE_4, 4, "\xff", 2);
}

static void put_lines_of_v8(uint64_t address)
{
	begin_record(2, 32 + 3 * (16 + 8));
	put_numbers((uint64_t[]){ address, 3 }, 2);
	put_line(address + 0x40, 2, "\1\0\0\2\3\0\4", 8);
	put_line(address + 0x40 + LINE_3, 3, "\1\0\0\2\3\0\4", 8);
	put_line(address + 0x40 + LINE_4, 4, "\1\0\0\2\3\0\4", 8);
}

static int write_dump(uint64_t code, const char *kind, const char *file)
{
	uint32_t head[] = { 0x4a695444, 1, 40, 62, 0, (uint32_t)getpid() };
	char name[512];

	snprintf(name, sizeof(name), "jit-%d.dump", getpid());
	dump = fopen(name, "w");
	if (!dump)
		return 1;
	put(head, sizeof(head));
	put_numbers((uint64_t[]){ 0, 0 }, 2);
	if (!strcmp(kind, "v8"))
		put_lines_of_v8(code);
	else if (strcmp(file, "0"))
		put_lines(code, file);
	snprintf(name, sizeof(name), "JS:*first %s:1:2", file);
	put_load(code, name);
	put_load(code + SECOND, "old");
	put_load(code + BEFORE, "second");
	begin_record(4, 24);
	put_numbers((uint64_t[]){ 0 }, 1);
	begin_record(1, 64);
	put_numbers((uint64_t[]){ 0, code + SECOND, code + BEFORE,
				  code + SECOND, sizeof(loop), 1 },
		    6);
	begin_record(0, 1 << 20); /* it is not whole */
	return fclose(dump);
}

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
	if (argc > 2 && write_dump((uint64_t)(uintptr_t)code, argv[1], argv[2]))
		return 1;
	memcpy(&first, &(void *){ code }, sizeof(first));
	memcpy(&second, &(void *){ code + SECOND }, sizeof(second));
	for (int i = 0; i < 20; i++)
		sum += first(4000000) + second(2000000);
	printf("%u\n", sum);
	return 0;
}
