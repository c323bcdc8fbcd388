/*
 * Finds a recording and opens its files, process by process.  The program could
 * write all of these files, so none of their content is trusted.  Only regular
 * files are read, no symbolic link is followed, and a file that shrinks
 * meanwhile reads as zero.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <shim/format.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/numbers.h"
#include "base/text.h"
#include "names/symbols.h"
#include "read/calltree.h"
#include "read/files.h"
#include "read/packed.h"
#include "read/pchist.h"
#include "read/process.h"
#include "read/recording.h"

static bool is_numbered(const char *name, const char *end)
{
	size_t digits = strspn(name, "0123456789");

	return digits && !strcmp(name + digits, end);
}

static bool is_histogram_name(const char *name)
{
	return is_numbered(name, ".pchist");
}

static bool is_sampled_name(const char *name)
{
	return is_numbered(name, ".sampling");
}

/* Number and kind of a file such as "12.calltree" or "12.sampling". */
static bool is_tree_name(const char *name)
{
	return is_numbered(name, ".calltree") || is_sampled_name(name);
}

/* Without samples, the counters of monitor(3) serve as samples. */
static void read_histograms(struct recording *recording, uint32_t index,
			    int directory, char **names, size_t count,
			    struct site_maps *sites)
{
	struct process *process = &recording->processes[index];
	size_t i;

	for (i = 0; i < count; i++) {
		const char *name = keep_format("%s/%s/%s", recording->path,
					       process->name, names[i]);
		int fd = pchist_as_samples(directory, names[i], name);

		if (fd < 0)
			continue;
		if (calltree_open(&process->files[process->file_count], fd,
				  name, recording, index, sites))
			process->files[process->file_count++].is_flat = true;
		close(fd);
	}
}

static bool is_any(char **names, size_t count, bool (*wanted)(const char *))
{
	while (count-- > 0)
		if (wanted(names[count]))
			return true;
	return false;
}

static int compare_ranges(const void *left, const void *right)
{
	const struct file_range *a = left, *b = right;

	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return (a->file > b->file) - (a->file < b->file);
}

void process_list_ranges(struct process *process)
{
	uint32_t i, c;

	free(process->ranges);
	process->range_count = 0;
	process->ranges = allocate((size_t)process->file_count *
					   SHIM_FILE_CHUNKS,
				   sizeof(*process->ranges));
	for (i = 0; i < process->file_count; i++)
		for (c = 0; c < process->files[i].chunk_count; c++)
			process->ranges[process->range_count++] =
				(struct file_range){
					process->files[i].chunks[c].address,
					process->files[i].chunks[c].size, i
				};
	if (process->range_count)
		qsort(process->ranges, process->range_count,
		      sizeof(*process->ranges), compare_ranges);
}

static void read_trees(struct recording *recording, uint32_t index,
		       int directory)
{
	struct process *process = &recording->processes[index];
	struct site_maps sites = { 0 };
	size_t count, histogram_count, i;
	char **names = list_names(directory, is_tree_name, &count);
	char **histograms = list_names(directory, is_histogram_name,
				       &histogram_count);
	const char *name;
	int fd;

	/* No calls: no code of that process was compiled with hooks. */
	process->files = allocate(count + histogram_count,
				  sizeof(*process->files));
	if (!is_any(names, count, is_sampled_name))
		read_histograms(recording, index, directory, histograms,
				histogram_count, &sites);
	free(histograms);
	for (i = 0; i < count; i++) {
		name = keep_format("%s/%s/%s", recording->path, process->name,
				   names[i]);
		progress("reading", i, count);
		fd = open_in(directory, names[i], name);
		if (fd < 0)
			continue;
		if (calltree_open(&process->files[process->file_count], fd,
				  name, recording, index, &sites))
			process->file_count++;
		close(fd);
	}
	process_list_ranges(process);
	map_free(&sites.plain);
	map_free(&sites.functions);
	map_free(&sites.grouped);
	map_free(&sites.frames);
	free(names);
}

static bool is_coverage_name(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && !strcmp(name + digits, ".coverage");
}

static void read_coverage(struct recording *recording, uint32_t index,
			  int directory)
{
	struct process *process = &recording->processes[index];
	struct coverage_file *file;
	size_t count, i;
	char **names = list_names(directory, is_coverage_name, &count);
	int fd;

	process->coverage = allocate(count, sizeof(*process->coverage));
	for (i = 0; i < count; i++) {
		file = &process->coverage[process->coverage_count];
		file->name = keep_format("%s/%s/%s", recording->path,
					 process->name, names[i]);
		fd = open_in(directory, names[i], file->name);
		if (fd < 0)
			continue;
		file->data = map_file(fd, file->name, &file->size);
		if (file->data)
			process->coverage_count++;
		close(fd);
	}
	free(names);
}

/* "1234.0" */
static bool is_process_name(const char *name)
{
	size_t digits = strspn(name, "0123456789");

	return digits && name[digits] == '.' && isdigit(name[digits + 1]) &&
	       !name[digits + 1 + strspn(name + digits + 1, "0123456789")];
}

static bool has_processes(int directory)
{
	size_t count, i;
	char **names = list_names(directory, is_process_name, &count);
	char meta[300];
	bool found = false;

	for (i = 0; i < count && !found; i++) {
		snprintf(meta, sizeof(meta), "%s/meta", names[i]);
		found = faccessat(directory, meta, F_OK, 0) == 0;
	}
	free(names);
	return found;
}

/* Reads the end of a run, such as "rank.2/end". */
static const char *name_in(const struct run *part, const char *name)
{
	return part->name ? keep_format("%s/%s", part->name, name) : name;
}

static void read_end(const struct recording *recording, struct run *part,
		     int directory)
{
	const char *name = keep_format("%s/%s", recording->path,
				       name_in(part, "end"));
	char text[128];
	ssize_t size;
	int fd;

	if (!has_file(directory, "end"))
		return;
	fd = open_in(directory, "end", name);
	if (fd < 0)
		return;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	if (sscanf(text, "status %d mono-ns %" SCNu64, &part->wait_status,
		   &part->end_mono_ns) == 2)
		part->has_end = true;
	else
		warn("%s: at offset 0: not \"status WAIT-STATUS mono-ns "
		     "TIME\"",
		     name);
}

static void read_log(const struct recording *recording, struct run *part,
		     int directory)
{
	static char text[65536];
	ssize_t size;
	int fd;

	if (!has_file(directory, "log"))
		return;
	fd = open_in(
		directory, "log",
		keep_format("%s/%s", recording->path, name_in(part, "log")));
	if (fd < 0)
		return;
	size = read(fd, text, sizeof(text));
	close(fd);
	if (size > 0)
		part->log = keep_text(text, (size_t)size);
}

/* Puts the clocks of @count processes on that of the earliest boot: no time of a boot
 * before becomes negative. */
static void find_shifts(struct process *process, uint32_t count)
{
	uint32_t *clocks = allocate(count, sizeof(*clocks));
	uint32_t clock_count = 0, i, clock;
	int64_t earliest = INT64_MAX;

	for (i = 0; i < count; i++) {
		if (!process_has_boot(&process[i]))
			continue;
		for (clock = 0; clock < clock_count; clock++)
			if (process_shares_clock(&process[clocks[clock]],
						 &process[i]))
				break;
		if (clock == clock_count)
			clocks[clock_count++] = i;
		process[i].shift_ns = (uint64_t)process_boot_ns(
			&process[clocks[clock]]);
		if ((int64_t)process[i].shift_ns < earliest)
			earliest = (int64_t)process[i].shift_ns;
	}
	for (i = 0; i < count; i++)
		if (process_has_boot(&process[i]))
			process[i].shift_ns -= (uint64_t)earliest;
	free(clocks);
}

static int compare_processes(const void *left, const void *right)
{
	const struct process *a = left, *b = right;
	uint64_t a_begin = a->meta.first_mono_ns + a->shift_ns;
	uint64_t b_begin = b->meta.first_mono_ns + b->shift_ns;

	if (a->has_meta != b->has_meta)
		return a->has_meta ? -1 : 1;
	if (a_begin != b_begin)
		return a_begin < b_begin ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/*
 * The time when the open calls of @process ended, as far as known. profrun saw
 * the end of image @last of the process that it ran, by its own clock, which the
 * part's first process has, too.
 */
static void find_end(const struct run *part, struct process *process,
		     uint32_t last)
{
	const struct shim_meta *meta = &process->meta;
	uint64_t end = 0;
	double ns;

	if (meta->end_clock) {
		end = meta->end_clock;
		process->end_source = END_META;
	} else if (process->is_main && process->number == last &&
		   part->has_end && process->shift_ns == 0 &&
		   part->end_mono_ns >= meta->first_mono_ns) {
		ns = (double)(part->end_mono_ns - meta->first_mono_ns);
		end = meta->first_clock + whole(ns / process->unit_ns);
		process->end_source = END_STATUS;
	}
	if (end < meta->first_clock || end > process->limit_clock) {
		end = process->latest_clock;
		process->end_source = END_UNKNOWN;
	}
	process->end_clock = end;
}

/* The first of @count images is that of the process that profrun started; its
 * execs keep its pid.  Returns the number of the last one. */
static uint32_t find_main(struct process *process, uint32_t count)
{
	uint32_t i, last = 0;

	for (i = 0; i < count; i++) {
		process[i].is_main = process[i].has_meta &&
				     process[i].pid == process[0].pid;
		if (process[i].is_main && process[i].number > last)
			last = process[i].number;
	}
	return last;
}

static struct process *add_process(struct recording *recording,
				   const char *name)
{
	struct process *process;

	GROW(recording->processes, recording->process_count,
	     recording->process_room);
	process = &recording->processes[recording->process_count++];
	*process = (struct process){
		.name = name_in(&recording->parts[recording->part_count - 1],
				name),
		.part = recording->part_count - 1,
		.pid = (uint32_t)strtoul(name, NULL, 10),
		.number = (uint32_t)strtoul(strchr(name, '.') + 1, NULL, 10),
		.unit_ns = 1,
		.limit_clock = UINT64_MAX,
	};
	return process;
}

static void sort_processes(struct process *process, uint32_t count)
{
	uint64_t first;
	uint32_t i;

	if (count == 0)
		return;
	find_shifts(process, count);
	qsort(process, count, sizeof(*process), compare_processes);
	first = process[0].shift_ns;
	for (i = 0; i < count; i++)
		process[i].shift_ns -= first;
}

/* Opens every process of the newest part, with its meta; the process that began
 * first comes first. */
static void read_metas(struct recording *recording, int directory)
{
	uint32_t first = recording->process_count;
	size_t count, i;
	char **names = list_names(directory, is_process_name, &count);
	int fd;

	if (count == 0)
		die("%s: not a recording: no directory PID.N in it",
		    recording->path);
	for (i = 0; i < count; i++) {
		fd = open_directory(directory, recording->path, names[i]);
		if (fd < 0)
			continue;
		read_meta(add_process(recording, names[i]), fd,
			  recording->path);
		close(fd);
	}
	free(names);
	sort_processes(recording->processes + first,
		       recording->process_count - first);
}

static uint32_t keep_process(struct recording *recording, uint32_t first,
			     uint32_t pid)
{
	uint32_t i, n = first;

	for (i = first; i < recording->process_count; i++)
		if (recording->processes[i].pid == pid)
			recording->processes[n++] = recording->processes[i];
	recording->process_count = n;
	return n - first;
}

/* @name is the part's directory in the recording, or NULL.  @pid: only this
 * process; 0: all. */
static void read_part(struct recording *recording, const char *name,
		      int directory, uint32_t pid, bool with_trees)
{
	uint32_t i, last, first = recording->process_count;
	const char *at;
	struct run *part;
	int fd;

	GROW(recording->parts, recording->part_count, recording->part_room);
	part = &recording->parts[recording->part_count++];
	*part = (struct run){ .name = name };
	read_end(recording, part, directory);
	read_log(recording, part, directory);
	read_metas(recording, directory);
	last = find_main(recording->processes + first,
			 recording->process_count - first);
	if (pid)
		keep_process(recording, first, pid);
	for (i = first; i < recording->process_count; i++) {
		at = recording->processes[i].name;
		fd = open_directory(directory, recording->path,
				    name ? at + strlen(name) + 1 : at);
		if (fd < 0)
			continue;
		read_images(&recording->processes[i], fd, recording->path);
		if (with_trees) {
			read_trees(recording, i, fd);
			read_coverage(recording, i, fd);
		}
		jit_map_read(&recording->processes[i].jit_map, fd,
			     keep_format("%s/%s", recording->path,
					 recording->processes[i].name));
		jit_map_sort(&recording->processes[i].jit_map);
		find_end(part, &recording->processes[i], last);
		close(fd);
	}
}

/* Finds how the whole job ended. */
static void sum_up(struct recording *recording)
{
	uint32_t i;

	recording->has_end = true;
	for (i = 0; i < recording->part_count; i++) {
		const struct run *part = &recording->parts[i];

		recording->has_end = recording->has_end && part->has_end;
		if (recording->wait_status == 0)
			recording->wait_status = part->wait_status;
	}
}

static bool is_visible(const char *name)
{
	return name[0] != '.';
}

char **recording_parts(int directory, size_t *count)
{
	char **names;
	size_t all, i;
	int fd;

	*count = 0;
	if (has_processes(directory))
		return NULL;
	if (packed_is(directory))
		return NULL;
	names = list_names(directory, is_visible, &all);
	for (i = 0; i < all; i++) {
		fd = openat(directory, names[i],
			    O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW |
				    O_NONBLOCK);
		if (fd < 0)
			continue;
		if (has_processes(fd))
			names[(*count)++] = names[i];
		close(fd);
	}
	names = packed_add_names(directory, names, count);
	sort_names(names, *count);
	return names;
}

int recording_directory(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), above;
	const char *name = base_name(path), *directory;

	if (fd >= 0 || errno != ENOENT || *name == '\0')
		return fd;
	directory = name == path ? "." : keep_text(path, (size_t)(name - path));
	above = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above >= 0) {
		fd = packed_open_rank(above, name);
		close(above);
	}
	errno = ENOENT;
	return fd;
}

/* errno is that of the failure to open @path as a directory. */
static _Noreturn void die_unopened(const char *path)
{
	if (errno != ENOTDIR)
		die("%s: %s", path, strerror(errno));
	if (access(path, X_OK) == 0)
		die("%s: is a program, not a recording; profrun %s%s records "
		    "it",
		    path, strchr(path, '/') ? "" : "./", path);
	die("%s: is a file, not the directory of a recording", path);
}

static void open_parts(struct recording *recording, const char *path,
		       uint32_t pid, bool with_trees)
{
	int fd, directory = recording_directory(path);
	size_t count, i;
	char **names;

	symbols_begin();
	survive_truncation();
	*recording = (struct recording){ .path = path };
	if (directory < 0)
		die_unopened(path);
	names = recording_parts(directory, &count);
	for (i = 0; i < count; i++) {
		fd = open_directory(directory, path, names[i]);
		if (fd < 0)
			continue;
		read_part(recording, names[i], fd, pid, with_trees);
		close(fd);
	}
	if (count == 0)
		read_part(recording, NULL, directory, pid, with_trees);
	if (pid && recording->process_count == 0)
		die("%s: no process %u in it", path, pid);
	sum_up(recording);
	free(names);
	close(directory);
}

void recording_open(struct recording *recording, const char *path, uint32_t pid)
{
	open_parts(recording, path, pid, true);
}

void recording_open_heads(struct recording *recording, const char *path)
{
	open_parts(recording, path, 0, false);
}

static void close_process(struct process *process)
{
	uint32_t i;

	for (i = 0; i < process->file_count; i++)
		calltree_close(&process->files[i]);
	free(process->files);
	free(process->ranges);
	for (i = 0; i < process->coverage_count; i++)
		unmap_file(process->coverage[i].data,
			   process->coverage[i].size);
	free(process->coverage);
	images_free(process);
}

void recording_free(struct recording *recording)
{
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		close_process(&recording->processes[i]);
	free(recording->processes);
	free(recording->parts);
	free(recording->sites);
	names_free(&recording->groups);
	names_free(&recording->code_files);
}

bool recording_is_frame(const struct recording *recording,
			const struct entry *entry)
{
	return entry->site != NONE && recording->sites[entry->site].is_frame;
}

const char *recording_find(void)
{
	DIR *stream = opendir(".");
	struct timespec newest = { 0 };
	const char *found = NULL;
	struct dirent *entry;
	struct stat info;
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (!stream || fd < 0)
		die("the working directory: %s", strerror(errno));
	if (has_processes(fd))
		found = ".";
	close(fd);
	while (!found || strcmp(found, ".")) {
		entry = readdir(stream);
		if (!entry)
			break;
		if (entry->d_name[0] == '.')
			continue;
		fd = open(entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC |
						 O_NOFOLLOW | O_NONBLOCK);
		if (fd < 0)
			continue;
		if ((!strncmp(entry->d_name, "profrun.", 8) ||
		     has_processes(fd)) &&
		    fstat(fd, &info) == 0 &&
		    (!found || info.st_mtim.tv_sec > newest.tv_sec ||
		     (info.st_mtim.tv_sec == newest.tv_sec &&
		      info.st_mtim.tv_nsec > newest.tv_nsec))) {
			newest = info.st_mtim;
			found = keep_text(entry->d_name, SIZE_MAX);
		}
		close(fd);
	}
	closedir(stream);
	if (!found)
		die("no recording in the working directory; run a program "
		    "with profrun first");
	return found;
}
