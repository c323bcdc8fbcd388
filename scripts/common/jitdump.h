/*
 * The format of jitdump files (tools/perf/Documentation/jitdump-specification.txt of
 * Linux), in which JITs say what code they made: a head, then records one after the other.
 */
#ifndef COMMON_JITDUMP_H
#define COMMON_JITDUMP_H

#include <stdint.h>

#define JITDUMP_MAGIC	0x4a695444u /* in the byte order of the file */
#define JITDUMP_VERSION 1u

struct jitdump_head {
	uint32_t magic, version;
	uint32_t size; /* of the head */
	uint32_t machine, unused, pid;
	uint64_t time, flags;
};

enum jitdump_kind {
	JITDUMP_LOAD,
	JITDUMP_MOVE,
	JITDUMP_LINES, /* of the code that the next load has at the same address */
};

struct jitdump_record {
	uint32_t kind;
	uint32_t size; /* with this head */
	uint64_t time;
};

/* The name follows, NUL-terminated, then the code. */
struct jitdump_load {
	struct jitdump_record head;
	uint32_t pid, tid;
	uint64_t virtual_address, address, size, index;
};

struct jitdump_move {
	struct jitdump_record head;
	uint32_t pid, tid;
	uint64_t virtual_address, from, to, size, index;
};

/* @count struct jitdump_line follow, each with the name of its file behind it,
 * NUL-terminated; "\xff" is the name of the line before. */
struct jitdump_lines {
	struct jitdump_record head;
	uint64_t address, count;
};

struct jitdump_line {
	uint64_t address;
	uint32_t line, column;
};

#endif
