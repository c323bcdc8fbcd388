/*
 * What a recording says at one moment, flat: taken by a process of its own, which builds
 * the model and ends, so that nothing adds up in a screen that stays for hours, and damage
 * ends that process alone.
 */
#ifndef REPORT_SCREEN_SNAPSHOT_H
#define REPORT_SCREEN_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct options;

/* Offsets of text in snapshot.text. */
struct snapshot_row {
	uint64_t key; /* equal in all snapshots of the recording */
	uint32_t name, short_name, object;
	bool is_timed, is_counted, is_estimate;
	uint64_t calls, bytes, blocks;
	double self, total, waited; /* ns */
};

struct snapshot_thread {
	uint32_t tid, name;
	uint64_t calls, lost;
	double self;
};

/* A caller, or a callee, of the chosen function. */
struct snapshot_neighbour {
	uint64_t key;
	uint32_t name;
	bool is_caller;
	uint64_t calls;
	double total;
};

/* A function that the process had to look up; its text offsets are 0 if unknown. */
struct snapshot_name {
	uint64_t address;
	uint32_t object, name, source_name, file;
	int line;
	bool has_line;
};

struct snapshot_head {
	double seconds;	      /* CLOCK_MONOTONIC */
	uint64_t calls, lost; /* lost of any kind */
	double time, cost;    /* ns; our own cost, which is not in @time */
	double period_ns;     /* of samples; 0: there are none */
	bool has_times, has_memory, has_waits, is_sampled, has_budget;
	bool has_end;
	uint32_t row_count, thread_count, neighbour_count, name_count;
	uint32_t text_size;
};

struct snapshot {
	struct snapshot_head head;
	struct snapshot_row *rows;
	struct snapshot_thread *threads;
	struct snapshot_neighbour *neighbours;
	struct snapshot_name *names;
	const char *text;
	char *memory; /* has all of it */
};

/* A snapshot that is being taken. */
struct shot {
	int fd; /* has data now and then; -1: none is being taken */
	int pid, errors;
	char *memory;
	size_t size, room;
	double cpu; /* seconds that all snapshots have cost */
};

/*
 * shot_begin - take a snapshot of the recording at @path in a new process
 *
 * @chosen: the function whose neighbours are wanted, by its key; 0: none.  False: no
 * process, or no descriptor.
 */
bool shot_begin(struct shot *shot, const char *path,
		const struct options *options, uint64_t chosen);

enum shot_state { SHOT_GOES_ON, SHOT_DONE, SHOT_FAILED };

/* Call it when the descriptor has data.  SHOT_DONE: the caller frees @snapshot.memory;
 * @why has the first warning, or "".  SHOT_FAILED: @why has the reason. */
enum shot_state shot_read(struct shot *shot, struct snapshot *snapshot,
			  char *why, size_t why_size);
/* Gives up. */
void shot_end(struct shot *shot);

/* The row with the key, or NULL.  Rows are sorted by key. */
const struct snapshot_row *snapshot_find(const struct snapshot *snapshot,
					 uint64_t key);

#endif
