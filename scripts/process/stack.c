/*
 * The verb stack.  Stops each thread only while its registers and its stack are
 * copied.  So the stacks of different threads come from slightly different moments.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/output.h"
#include "base/text.h"
#include "names/symbols.h"
#include "process/core.h"
#include "process/naming.h"
#include "process/open_calls.h"
#include "process/priority.h"
#include "process/process_memory.h"
#include "process/stack.h"
#include "process/stop_copies.h"
#include "process/target.h"
#include "process/unwind.h"

struct thread {
	pid_t tid;
	char name[64];
	char state; /* as in /proc; 0: of a core file */
	enum stop_result result;
	uint64_t *frames; /* innermost first */
	uint32_t count;
	uint64_t stopped_ns; /* that it was stopped, at most */
};

/* All threads at (almost) one moment. */
struct round {
	struct thread *threads;
	uint32_t count, room;
};

/* The different stacks of all rounds as folded text, with their counts. */
struct folded {
	struct names texts;
	uint64_t *counts;
	uint32_t room;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
	(void)number;
	is_interrupted = 1;
}

static void free_round(struct round *round)
{
	uint32_t i;

	for (i = 0; i < round->count; i++)
		free(round->threads[i].frames);
	free(round->threads);
}

static struct thread *add_thread(struct round *round)
{
	GROW(round->threads, round->count, round->room);
	round->threads[round->count] = (struct thread){ .tid = 0 };
	return &round->threads[round->count++];
}

static uint64_t longest_ns(const struct round *round)
{
	uint64_t longest = 0;
	uint32_t i;

	for (i = 0; i < round->count; i++)
		if (round->threads[i].stopped_ns > longest)
			longest = round->threads[i].stopped_ns;
	return longest;
}

/* --- text --- */

static const char *state_text(char state)
{
	switch (state) {
	case 'R': return "running";
	case 'S': return "sleeping";
	case 'D': return "waiting in the kernel";
	case 'T': return "stopped by a signal";
	case 't': return "stopped by a debugger";
	case 'I': return "idle";
	default: return "ended";
	}
}

static const char *no_stack_text(const struct thread *thread)
{
	if (thread->result != STOP_STUCK)
		return "no stack: the thread has ended";
	switch (thread->state) {
	case 'D':
		return "no stack: the thread waits in the kernel and cannot be stopped";
	case 'R':
		return "no stack: the thread did not stop in 5 s (it may have got no processor)";
	default: return "no stack: the thread did not stop in 5 s";
	}
}

static void print_function(FILE *out, uint32_t number,
			   const struct named *function)
{
	fprintf(out, "  #%-3" PRIu32 " ", number);
	put_text(out, function->name);
	if (function->object) {
		fputs(" [", out);
		put_text(out, function->object);
		if (function->file) {
			fputc(' ', out);
			put_text(out, base_name(function->file));
			fprintf(out, ":%d", function->line);
		}
		fputc(']', out);
	}
	fputs(function->is_inlined ? " (inlined)\n" : "\n", out);
}

static void print_frames(FILE *out, const struct thread *thread)
{
	uint32_t i, n, number = 0;

	for (i = 0; i < thread->count; i++) {
		const struct chain chain = naming_get(thread->frames[i]);

		for (n = 0; n < chain.count; n++)
			print_function(out, number++, &chain.functions[n]);
	}
	if (thread->count == UNWIND_DEPTH_MAX)
		fputs("  (and further callers)\n", out);
}

/* The name of the function that begins at @address, without functions that are inlined
 * there. */
static const char *name_of_function(uint64_t address)
{
	const struct chain chain = naming_get(address);

	return chain.functions[chain.count - 1].name;
}

static void print_open_calls(FILE *out, const struct open_calls *calls,
			     pid_t tid)
{
	const struct open_path *path = NULL;
	uint32_t n;

	while ((path = open_calls_of(calls, tid, path))) {
		fputs("  open calls, as recorded:", out);
		for (n = 0; n < path->count; n++) {
			fputs(n ? " > " : " ", out);
			put_text(out, name_of_function(path->functions[n]));
		}
		fputc('\n', out);
	}
}

static void print_round(FILE *out, const struct round *round,
			const struct open_calls *calls)
{
	uint32_t i;

	for (i = 0; i < round->count; i++) {
		const struct thread *thread = &round->threads[i];

		fprintf(out, "thread %d ", (int)thread->tid);
		put_text(out, thread->name);
		if (thread->state)
			fprintf(out, ", %s", state_text(thread->state));
		fputc('\n', out);
		if (thread->result == STOP_DONE)
			print_frames(out, thread);
		else
			fprintf(out, "  (%s)\n", no_stack_text(thread));
		if (calls)
			print_open_calls(out, calls, thread->tid);
	}
}

static void print_head(FILE *out, const struct target *target,
		       const struct round *round,
		       const struct open_calls *calls)
{
	char text[SHORT_TEXT];

	fprintf(out, "%d ", (int)target->pid);
	put_text(out, target->name);
	fprintf(out, ": %" PRIu32 " thread%s, stopped for %s at most",
		round->count, round->count == 1 ? "" : "s",
		human_ns(text, (double)longest_ns(round)));
	if (calls->recording) {
		fputs(" (recording: ", out);
		put_text(out, calls->recording);
		fputc(')', out);
	}
	fputc('\n', out);
}

/* --- JSON --- */

static void put_frame(struct json *json, uint64_t address,
		      const struct named *function)
{
	json_object(json);
	json_key_text(json, "function", function->name);
	json_key_text(json, "object", function->object);
	json_key_text(json, "file", function->file);
	if (function->file)
		json_key_integer(json, "line", function->line);
	else
		json_key_null(json, "line");
	json_key_flag(json, "inlined", function->is_inlined);
	json_key_count(json, "address", address);
	json_close_object(json);
}

static void put_open_calls(struct json *json, const struct open_calls *calls,
			   pid_t tid)
{
	const struct open_path *path = NULL;
	uint32_t n;

	json_key_array(json, "open_calls");
	while (calls && (path = open_calls_of(calls, tid, path))) {
		json_array(json);
		for (n = 0; n < path->count; n++)
			json_text(json, name_of_function(path->functions[n]));
		json_close_array(json);
	}
	json_close_array(json);
}

static void put_thread(struct json *json, const struct thread *thread,
		       const struct open_calls *calls)
{
	uint32_t i, n;

	json_object(json);
	json_key_integer(json, "tid", thread->tid);
	json_key_text(json, "name", thread->name);
	json_key_text(json, "state",
		      thread->state ? state_text(thread->state) : NULL);
	json_key_text(json, "no_stack",
		      thread->result == STOP_DONE ? NULL :
						    no_stack_text(thread));
	json_key_count(json, "stopped_ns", thread->stopped_ns);
	json_key_array(json, "frames");
	for (i = 0; i < thread->count; i++) {
		const struct chain chain = naming_get(thread->frames[i]);

		for (n = 0; n < chain.count; n++)
			put_frame(json, thread->frames[i], &chain.functions[n]);
	}
	json_close_array(json);
	json_key_flag(json, "is_cut", thread->count == UNWIND_DEPTH_MAX);
	put_open_calls(json, calls, thread->tid);
	json_close_object(json);
}

/* An object on a line of its own, so that a reader need not wait for the last round. */
static void put_round(FILE *out, int pid, const char *name,
		      const struct round *round, const struct open_calls *calls)
{
	struct json json = json_begin(out);
	uint32_t i;

	json_object(&json);
	json_key_integer(&json, "pid", pid);
	json_key_text(&json, "name", name);
	json_key_text(&json, "recording", calls ? calls->recording : NULL);
	json_key_count(&json, "longest_stop_ns", longest_ns(round));
	json_key_array(&json, "threads");
	for (i = 0; i < round->count; i++)
		put_thread(&json, &round->threads[i], calls);
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
}

/* --- folded --- */

/* Replaces the characters that separate functions and counts. */
static void put_folded_name(FILE *out, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' || *name == '\n' ? '_' : *name, out);
}

static void add_folded(struct folded *folded, const struct thread *thread)
{
	uint32_t i, n, number, known = folded->texts.count;
	const char *separator = "";
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		die("%s", strerror(errno));
	for (i = thread->count; i-- > 0;) {
		const struct chain chain = naming_get(thread->frames[i]);

		for (n = chain.count; n-- > 0;) {
			fputs(separator, out);
			put_folded_name(
				out,
				chain.functions[n].has_name ||
						!chain.functions[n].object ?
					chain.functions[n].name :
					keep_format("[%s]",
						    chain.functions[n].object));
			separator = ";";
		}
	}
	if (fclose(out) != 0)
		die("%s", strerror(errno));
	number = names_find(&folded->texts, text);
	if (number == NONE) {
		number = names_add(&folded->texts, keep_text(text, SIZE_MAX));
		GROW(folded->counts, known, folded->room);
		folded->counts[number] = 0;
	}
	folded->counts[number]++;
	free(text);
}

static void print_folded(FILE *out, const struct folded *folded)
{
	uint32_t i;

	for (i = 0; i < folded->texts.count; i++) {
		put_text(out, folded->texts.text[i]);
		fprintf(out, " %" PRIu64 "\n", folded->counts[i]);
	}
}

/* --- a process --- */

static void store_frames(struct thread *thread, const uint64_t *frames,
			 uint32_t count)
{
	thread->frames = allocate(count, sizeof(*frames));
	thread->count = count;
	if (count)
		memcpy(thread->frames, frames, count * sizeof(*frames));
}

/* The data that all rounds share. */
struct stack_reader {
	const struct stack_options *options;
	struct target target;
	struct process_memory memory;
	struct unwinder *unwinder;
	uint64_t *frames; /* UNWIND_DEPTH_MAX */
};

/* Whether the thread sleeps in the kernel, and cannot be stopped.  Most such threads
 * wait for a disk for a short time.  The parent of a vfork() child waits until the
 * child has ended. */
static bool sleeps_in_the_kernel(const struct stack_reader *reader, pid_t tid,
				 char *state)
{
	static const struct timespec shortly = { 0, 1000000 };
	char name[64];
	int i;

	for (i = 0; *state == 'D' && i < 20; i++) {
		nanosleep(&shortly, NULL);
		if (!target_thread(&reader->target, tid, name, state))
			return false;
	}
	return *state == 'D';
}

/* Lists the threads that are to be shown.  *@count is the number of those that can be
 * stopped. */
static struct stopped *choose_threads(struct stack_reader *reader,
				      struct round *round, uint32_t *count)
{
	uint32_t all, i;
	pid_t *tids = target_threads(&reader->target, &all);
	struct stopped *chosen = allocate(all, sizeof(*chosen));
	struct thread *thread;
	char name[64], state;

	*count = 0;
	for (i = 0; i < all; i++) {
		if (!target_thread(&reader->target, tids[i], name, &state) ||
		    (reader->options->only_running && state != 'R' &&
		     state != 'D'))
			continue;
		thread = add_thread(round);
		thread->tid = tids[i];
		thread->state = state;
		thread->result = STOP_STUCK;
		memcpy(thread->name, name, sizeof(name));
		if (!sleeps_in_the_kernel(reader, tids[i], &state))
			chosen[(*count)++] = (struct stopped){
				.tid = tids[i], .is_running = state == 'R'
			};
	}
	free(tids);
	return chosen;
}

static void store_stack(struct stack_reader *reader, struct thread *thread,
			struct stopped *stopped)
{
	const struct unwind_from from = { &stopped->registers, stopped->stack,
					  stopped->stack_size, stopped->bytes };

	char name[sizeof(thread->name)];

	thread->result = stopped->result;
	thread->stopped_ns = stopped->stopped_ns;
	/* The state now tells why. */
	if (stopped->result == STOP_STUCK)
		target_thread(&reader->target, thread->tid, name,
			      &thread->state);
	if (stopped->result == STOP_REFUSED)
		target_refused(&reader->target, stopped->error);
	if (stopped->result == STOP_DONE)
		store_frames(thread, reader->frames,
			     unwinder_frames(reader->unwinder, &from,
					     reader->frames));
	free(stopped->bytes);
}

/* Leaves out threads that have ended meanwhile. */
static void drop_ended(struct round *round)
{
	uint32_t i, kept = 0;

	for (i = 0; i < round->count; i++)
		if (round->threads[i].result != STOP_GONE)
			round->threads[kept++] = round->threads[i];
	round->count = kept;
}

static void read_threads(struct stack_reader *reader, struct round *round)
{
	uint32_t count, done = 0, part, i, at = 0;
	struct stopped *chosen = choose_threads(reader, round, &count);

	while (done < count) {
		part = stop_copies(&reader->memory, chosen + done,
				   count - done);
		for (i = done; i < done + part; i++) {
			while (round->threads[at].tid != chosen[i].tid)
				at++;
			store_stack(reader, &round->threads[at], &chosen[i]);
		}
		done += part;
	}
	free(chosen);
	drop_ended(round);
}

static void name_round(struct space *space, const struct round *round,
		       const struct open_calls *calls)
{
	uint32_t i, n;

	for (i = 0; i < round->count; i++)
		for (n = 0; n < round->threads[i].count; n++)
			naming_want(space, round->threads[i].frames[n]);
	for (i = 0; i < calls->count; i++)
		for (n = 0; n < calls->paths[i].count; n++)
			naming_want(space, calls->paths[i].functions[n]);
	naming_finish(space);
}

/* False if the process has ended. */
static bool read_round(struct stack_reader *reader, struct round *round)
{
	bool changed;

	if (!process_memory_read(&reader->memory, &changed)) {
		if (errno == EACCES || errno == EPERM)
			target_refused(&reader->target, errno);
		return false;
	}
	if (changed) {
		unwinder_forget(reader->unwinder);
		naming_forget();
	}
	read_threads(reader, round);
	return target_is_alive(&reader->target);
}

static void sleep_until(struct timespec *next, double period_ns)
{
	uint64_t ns = (uint64_t)next->tv_nsec + (uint64_t)period_ns;

	next->tv_sec += (time_t)(ns / 1000000000u);
	next->tv_nsec = (long)(ns % 1000000000u);
	while (!is_interrupted &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL) ==
		       EINTR)
		;
}

/* Prints one round.  False if the process has ended. */
static bool do_round(struct stack_reader *reader, FILE *out,
		     struct folded *folded)
{
	struct round round = { .count = 0 };
	struct open_calls calls = { .count = 0 };
	struct priority priority;
	bool is_alive;
	uint32_t i;

	priority_prefer(&priority);
	is_alive = read_round(reader, &round);
	priority_restore(&priority);
	if (is_alive && !reader->options->is_folded)
		open_calls_read(&calls, &reader->target);
	name_round(&reader->memory.space, &round, &calls);
	if (reader->options->is_folded) {
		for (i = 0; i < round.count; i++)
			if (round.threads[i].count)
				add_folded(folded, &round.threads[i]);
	} else if (reader->options->is_json && (round.count || is_alive)) {
		put_round(out, reader->target.pid, reader->target.name, &round,
			  &calls);
		fflush(out);
	} else if (round.count || is_alive) {
		print_head(out, &reader->target, &round, &calls);
		print_round(out, &round, &calls);
		fflush(out);
	}
	open_calls_free(&calls);
	free_round(&round);
	return is_alive;
}

int stack_process(const struct stack_options *options, int pid)
{
	struct stack_reader reader = { .options = options };
	struct folded folded = { .room = 0 };
	struct sigaction action = { .sa_handler = interrupt };
	struct timespec next;
	uint64_t rounds = 0;
	bool is_alive = true;
	FILE *out;

	target_open(&reader.target, pid);
	reader.memory.target = &reader.target;
	reader.memory.is_repeated = options->every_ns > 0;
	reader.unwinder = unwinder_open(&reader.memory.space);
	reader.frames = allocate(UNWIND_DEPTH_MAX, sizeof(*reader.frames));
	out = output_open(options->output);
	if (options->every_ns > 0) {
		sigaction(SIGINT, &action, NULL);
		sigaction(SIGTERM, &action, NULL);
	}
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (is_alive && !is_interrupted) {
		is_alive = do_round(&reader, out, &folded);
		rounds++;
		if (options->every_ns <= 0 || rounds == options->count)
			break;
		if (options->is_folded)
			progress("stacks", rounds, options->count);
		if (is_alive)
			sleep_until(&next, options->every_ns);
	}
	progress_end();
	if (!is_alive && rounds <= 1)
		die("process %d (%s) has ended", pid, reader.target.name);
	if (!is_alive && options->count)
		warn("process %d (%s) ended after %" PRIu64 " of %" PRIu64
		     " rounds",
		     pid, reader.target.name, rounds - 1, options->count);
	if (options->is_folded)
		print_folded(out, &folded);
	output_close();
	return 0;
}

/* --- a core file --- */

static void print_core_head(FILE *out, const struct core *core,
			    const struct round *round)
{
	put_text(out, core->path);
	fprintf(out, ": %d ", (int)core->pid);
	put_text(out, core->name);
	fprintf(out, ", %" PRIu32 " thread%s", round->count,
		round->count == 1 ? "" : "s");
	if (core->signal)
		fprintf(out, ", ended by %s (%s)",
			sigabbrev_np(core->signal) ?
				keep_format("SIG%s",
					    sigabbrev_np(core->signal)) :
				"a signal",
			strsignal(core->signal));
	fputc('\n', out);
}

int stack_core(const struct stack_options *options, const char *path)
{
	uint64_t *frames = allocate(UNWIND_DEPTH_MAX, sizeof(*frames));
	struct round round = { .count = 0 };
	struct open_calls calls = { .count = 0 };
	struct folded folded = { .room = 0 };
	struct unwinder *unwinder;
	struct core core;
	uint32_t i;
	FILE *out;

	core_open(&core, path);
	unwinder = unwinder_open(&core.space);
	for (i = 0; i < core.thread_count; i++) {
		struct unwind_from from = {
			.registers = &core.threads[i].registers
		};
		struct thread *thread = add_thread(&round);

		thread->tid = core.threads[i].tid;
		memcpy(thread->name, core.name, sizeof(thread->name));
		store_frames(thread, frames,
			     unwinder_frames(unwinder, &from, frames));
		progress("stacks", i, core.thread_count);
	}
	name_round(&core.space, &round, &calls);
	progress_end();
	out = output_open(options->output);
	if (options->is_folded) {
		for (i = 0; i < round.count; i++)
			add_folded(&folded, &round.threads[i]);
		print_folded(out, &folded);
	} else if (options->is_json) {
		put_round(out, core.pid, core.name, &round, NULL);
	} else {
		print_core_head(out, &core, &round);
		print_round(out, &round, NULL);
	}
	output_close();
	free_round(&round);
	free(frames);
	return 0;
}
