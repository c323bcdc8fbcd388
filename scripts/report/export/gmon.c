/*
 * Exports a recording for the real gprof: gmon.out, and a symbol table in a
 * second file.
 *
 * gprof knows the addresses of one object only.  To put all objects of a
 * program into one file, also closed ones, functions get artificial addresses
 * SPACING bytes apart, and gprof reads their names with
 * --external-symbol-table.  Call counts are those of the call tree.  Times
 * become samples, at a rate that makes them exact to a microsecond.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/directory.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/names.h"
#include "base/numbers.h"
#include "base/output.h"
#include "base/text.h"
#include "export/format.h"
#include "export/gmon.h"
#include "model/functions.h"
#include "model/model.h"

#define BASE	     0x10000u
#define SPACING	     16u
#define RATE_HZ	     1000000u
#define RECORDS_MOST 256.0
#define HIST_LARGEST 65535u
#define ARC_LARGEST  0x7fffffffu
/* extra records for large counts, limit for the file */
#define ARCS_MORE 65536u
#define NAME_MOST 900 /* gprof limits the length of a line */

/* The tables of one gmon.out; a function may come from the calls, the samples,
 * or both. */
struct gmon {
	FILE *out;
	/* "mangled\nobject"; 0: the caller of outermost calls */
	struct names names;
	uint32_t *of_calls; /* by function of the model: its number in @names */
	double *ns;	    /* self times, by number in @names */
	uint32_t rate_hz;
	uint32_t arcs_more; /* extra records written for large counts */
};

static uint32_t number_of(struct gmon *gmon, const struct function *function)
{
	return names_add(&gmon->names, keep_format("%s\n%s", function->mangled,
						   object_name(function)));
}

static uint32_t *number_all(struct gmon *gmon, const struct model *model)
{
	uint32_t *numbers = allocate(model->function_count, sizeof(*numbers));
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		numbers[i] = number_of(gmon, &model->functions[i]);
	return numbers;
}

/* --- bytes --- */

static void put_bytes(FILE *out, uint64_t value, unsigned size)
{
	for (; size > 0; size--, value >>= 8)
		fputc((int)(value & 0xff), out);
}

static uint64_t address_of(uint32_t number)
{
	return BASE + (uint64_t)number * SPACING;
}

/* A record has room for 2^31 - 1 calls.  The limit fits all calls that a
 * program can make in a year; a damaged count could fill the disk. */
static void put_arc(struct gmon *gmon, uint32_t from, uint32_t to,
		    uint64_t calls)
{
	while (calls > 0) {
		uint64_t part = calls > ARC_LARGEST ? ARC_LARGEST : calls;

		if (calls > part && gmon->arcs_more++ >= ARCS_MORE) {
			warn("%" PRIu64 " calls of a function cannot be: the "
			     "file has no more than %u of them",
			     calls, ARC_LARGEST);
			calls = part;
		}
		fputc(1, gmon->out);
		put_bytes(gmon->out, address_of(from), 8);
		put_bytes(gmon->out, address_of(to), 8);
		put_bytes(gmon->out, part, 4);
		calls -= part;
	}
}

/* gprof adds up several records of the same arc. */
static void put_arcs(struct gmon *gmon, const struct model *model)
{
	uint32_t i;

	for (i = 1; i < model->path_count; i++) {
		const struct path *path = &model->paths[i];
		uint32_t parent = model->paths[path->parent].function;

		if (path->function == NONE)
			continue;
		put_arc(gmon, parent == NONE ? 0 : gmon->of_calls[parent],
			gmon->of_calls[path->function], path->calls);
	}
}

static uint64_t samples_of(const struct gmon *gmon, uint32_t number)
{
	return whole(gmon->ns[number] * gmon->rate_hz / 1e9);
}

static void put_histogram(const struct gmon *gmon, uint64_t before)
{
	uint32_t i, count = gmon->names.count;

	fputc(0, gmon->out);
	put_bytes(gmon->out, BASE, 8);
	put_bytes(gmon->out, address_of(count), 8);
	put_bytes(gmon->out, count, 4);
	put_bytes(gmon->out, gmon->rate_hz, 4);
	fwrite("seconds\0\0\0\0\0\0\0\0s", 1, 16, gmon->out);
	for (i = 0; i < count; i++) {
		uint64_t samples = samples_of(gmon, i);

		samples = samples > before ? samples - before : 0;
		put_bytes(gmon->out,
			  samples > HIST_LARGEST ? HIST_LARGEST : samples, 2);
	}
}

/* --- times --- */

static double most(const struct gmon *gmon)
{
	double ns = 0;
	uint32_t i;

	for (i = 0; i < gmon->names.count; i++)
		if (gmon->ns[i] > ns)
			ns = gmon->ns[i];
	return ns;
}

static void add_times(struct gmon *gmon, const struct model *model,
		      const uint32_t *numbers)
{
	uint32_t i;

	gmon->ns = allocate(gmon->names.count, sizeof(*gmon->ns));
	gmon->rate_hz = RATE_HZ;
	if (!model)
		return;
	for (i = 0; i < model->function_count; i++)
		if (model->functions[i].sums.self > 0)
			gmon->ns[numbers[i]] += model->functions[i].sums.self;
	while (gmon->rate_hz > 1 &&
	       most(gmon) * gmon->rate_hz / 1e9 > RECORDS_MOST * HIST_LARGEST)
		gmon->rate_hz /= 10;
}

/* --- files --- */

static void put_symbols(const struct gmon *gmon, const char *path)
{
	FILE *out = output_open(path);
	uint32_t i;

	for (i = 0; i < gmon->names.count; i++) {
		const char *name = gmon->names.text[i];
		size_t length = strcspn(name, "\n"), n;

		fprintf(out, "%016" PRIx64 " t ", address_of(i));
		for (n = 0; n < length && n < NAME_MOST; n++)
			fputc((unsigned char)name[n] > ' ' ? name[n] : '_',
			      out);
		fputc('\n', out);
	}
	/* gprof gives no samples to the last symbol of a table, which has no
	 * end. */
	fprintf(out, "%016" PRIx64 " t [end]\n", address_of(i));
	output_close();
}

static void put_gmon(struct gmon *gmon, const struct model *calls)
{
	uint64_t before = 0, largest = whole(most(gmon) * gmon->rate_hz / 1e9);

	fwrite("gmon\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 1, 20, gmon->out);
	do {
		put_histogram(gmon, before);
		before += HIST_LARGEST;
	} while (before < largest);
	if (!calls->is_sampled)
		put_arcs(gmon, calls);
}

/* Writes gmon.out to @path, and its symbols to @path.syms.  @samples (or NULL)
 * supplies the times if @calls has none. */
static void gmon_write(struct model *calls, struct model *samples,
		       const char *path)
{
	struct model *timed = calls->has_times || calls->is_sampled ? calls :
								      samples;
	struct gmon gmon = { .out = NULL };
	uint32_t *of_samples = NULL;

	names_add(&gmon.names, "[start]\n");
	gmon.of_calls = number_all(&gmon, calls);
	if (samples && timed == samples)
		of_samples = number_all(&gmon, samples);
	add_times(&gmon, timed, of_samples ? of_samples : gmon.of_calls);
	put_symbols(&gmon, keep_format("%s.syms", path));
	gmon.out = output_open(path);
	put_gmon(&gmon, calls);
	output_close();
	names_free(&gmon.names);
	free(gmon.ns);
	free(gmon.of_calls);
	free(of_samples);
}

/* --- profrun gprof --- */

const char *gmon_make_directory(void)
{
	const char *place = getenv("TMPDIR");

	return keep_format("%s/gmon.out",
			   directory_make_temporary(
				   place && *place ? place : "/tmp", "gprof"));
}

/* gprof requires an object file but uses nothing of it. */
static const char *any_object(void)
{
	static char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length <= 0)
		die("/proc/self/exe: %s", strerror(errno));
	path[length] = '\0';
	return path;
}

static _Noreturn void execute(const char *file, char **options, int count)
{
	const char **words = allocate((size_t)count + 5, sizeof(*words));
	int i, n = 0;

	signal(SIGXFSZ, SIG_DFL);
	/* It may compute for long, and its files go with this process. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	words[n++] = "gprof";
	words[n++] = keep_format("--external-symbol-table=%s.syms", file);
	for (i = 0; i < count; i++)
		words[n++] = options[i];
	words[n++] = any_object();
	words[n++] = file;
	execvp(words[0], (char **)(uintptr_t)words);
	fprintf(stderr, "profrun: gprof: %s (it is part of binutils)\n",
		strerror(errno));
	_exit(125);
}

int gmon_run_gprof(const char *file, char **options, int count)
{
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (pid == 0)
		execute(file, options, count);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("waitpid: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* gprof's names are those of the program unless it is told otherwise, and addresses of the
 * file are not the program's. */
static void say_gprof(const char *file)
{
	fputs("profrun: gprof needs the table of symbols beside it:\n"
	      "    gprof --external-symbol-table=",
	      stderr);
	put_text(stderr, file);
	fputs(".syms PROGRAM ", stderr);
	put_text(stderr, file);
	fputc('\n', stderr);
}

EXPORT_FORMAT(gmon) = {
	.name = "gmon",
	.extension = "gmon",
	.description = "gmon.out and gmon.out.syms, for gprof",
	.has_no_threads = true,
	.say_how = say_gprof,
	.write_files = gmon_write,
};
