/*
 * The directory of the recording and its file "meta".  All processes of a run share one
 * directory; each creates a subdirectory of its own, so no process writes another's files.
 */
#include "runtime/record.h"

#include "os/clock.h"
#include "os/directory.h"
#include "os/fine_tick.h"
#include "os/opener.h"
#include "os/sys.h"
#include "os/text.h"
#include "os/trust.h"
#include "runtime/config.h"
#include "runtime/hole.h"
#include "runtime/log.h"
#include "runtime/record_file.h"
#include "runtime/state.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/record.h>
#include <stdbool.h>

#include <shim/banned.h>

#define PAGE	  4096
#define PATH_SIZE DIRECTORY_PATH_SIZE
/* The bytes of the file "meta". */
#define META_MAPPED \
	((sizeof(struct shim_meta) + PAGE - 1) & ~(size_t)(PAGE - 1))

static struct directory base; /* the recording */
/* This process's part of it.  Files point at their directory, so a further recording has
 * another one. */
static struct directory first_directory, *directory = &first_directory;
static struct shim_meta *meta;
static bool is_detached;

struct shim_meta *record_meta(void)
{
	return meta;
}

const char *record_directory(void)
{
	return directory->path;
}

int record_open_directory(void)
{
	return directory_open(directory);
}

int record_open_shared(void)
{
	return directory_open(&base);
}

bool record_is_out_of_reach(void)
{
	struct sys_status status;
	int fd, r;

	/* Otherwise each program makes a recording of its own. */
	if (config.dir[0] != '/' || base.inode == 0)
		return false;
	fd = r = record_open_shared();
	if (fd >= 0) {
		r = sys_get_status(fd, &status);
		if (r == 0)
			r = trust_own(&status);
		if (r == 0 && sys_is_read_only(fd))
			r = -EROFS;
		sys_close(fd);
	}
	if (r < 0 && opener_help(r, OPENER_ANSWER, "", "") == 0)
		return false;
	/* Others may be over after the exec, as too many descriptors. */
	return r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -EROFS ||
	       r <= -TRUST_OWNER;
}

struct shim_meta *shim_record_meta(void)
{
	return meta;
}

int record_create(const char *name, size_t size, struct record_file **file,
		  void **memory)
{
	return record_file_create(directory, name, size, file, memory);
}

/* --- the directory --- */

static const char *rank(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK",
					     "PMIX_RANK", "PMI_RANK",
					     "SLURM_PROCID" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (config_variable(names[i]))
			return config_variable(names[i]);
	return "0";
}

/* The number of ranks of the job; NULL: this is no parallel job. */
static const char *rank_count(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
					     "SLURM_STEP_NUM_TASKS" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (config_variable(names[i]))
			return config_variable(names[i]);
	return NULL;
}

static void program_path(char path[PATH_SIZE])
{
	long r = sys_read_link("/proc/self/exe", path, PATH_SIZE - 1);

	path[r > 0 ? r : 0] = '\0';
	if (r <= 0)
		path[0] = '?', path[1] = '\0';
}

static void host_name(char name[128])
{
	if (sys_host_name(name, 128) < 0)
		name[0] = '?', name[1] = '\0';
}

static void expand_pattern(const char *pattern, struct text *text)
{
	char memory[PATH_SIZE];

	for (; *pattern; pattern++) {
		if (pattern[0] != '%' || !pattern[1]) {
			text_add_part(text, pattern, 1);
			continue;
		}
		switch (*++pattern) {
		case 'p': text_add_number(text, (uint64_t)sys_getpid()); break;
		case 'r': text_add(text, rank()); break;
		case 'h':
			host_name(memory);
			text_add(text, memory);
			break;
		case 'n':
			program_path(memory);
			text_add(text, text_base(memory));
			break;
		default: text_add_part(text, pattern, 1);
		}
	}
}

/* Whether process @pid has recorded into the directory @fd. */
static bool has_recording_of(int fd, int pid)
{
	char name[32];
	struct text text;

	text_init(&text, name, sizeof(name));
	text_add_number(&text, (uint64_t)pid);
	text_add(&text, ".0");
	return directory_holds(fd, name, "meta");
}

/* Whether @base belongs to the user, and has a recording of this process or its parent. */
static bool continues_recording(void)
{
	int fd = directory_find(&base);
	bool continues;

	if (fd < 0) {
		log_error("%s exists and is not used", base.path, fd);
		return false;
	}
	continues = has_recording_of(fd, sys_getpid()) ||
		    has_recording_of(fd, sys_getppid());
	sys_close(fd);
	return continues;
}

bool record_has_parent(void)
{
	int fd = directory_find(&base);
	bool has_parent = fd >= 0 && has_recording_of(fd, sys_getppid());

	if (fd >= 0)
		sys_close(fd);
	return has_parent;
}

/* Creates the first of NAME, NAME.1, NAME.2 ... that does not exist.  If a recorded process
 * executes or starts another program, that program continues the recording. */
static int create_numbered(struct text *name)
{
	size_t length = name->length;
	int fd = -EEXIST;

	for (unsigned n = 0; fd == -EEXIST && n < 10000; n++) {
		name->length = length;
		if (n > 0) {
			text_add(name, ".");
			text_add_number(name, n);
		}
		if (name->cut)
			return -ENAMETOOLONG;
		fd = directory_make(&base);
		if (fd == -EEXIST && continues_recording())
			return 0;
	}
	if (fd >= 0)
		sys_close(fd);
	return fd < 0 ? fd : 0;
}

/* Maps the fine tick.  profrun, which has created the directory, writes it.  @fd is the
 * directory, or the error of its opening. */
static void use_fine_tick(int fd)
{
	const void *page = fine_tick_map(fd);

	if (page)
		hole_watch(page, FINE_TICK_SIZE, FINE_TICK_NAME);
}

static int open_or_create_base(void)
{
	struct text text;
	int r;

	text_init(&text, base.path, sizeof(base.path));
	if (config.dir[0] == '/') {
		text_add(&text, config.dir);
		r = directory_find(&base);
		if (r < 0 && opener_help(r, OPENER_ANSWER, "", "") < 0)
			return r;
		use_fine_tick(r);
		if (r >= 0)
			sys_close(r);
		return 0;
	}
	if (config.output[0] != '/') {
		r = sys_get_directory(base.path, sizeof(base.path));
		if (r < 0)
			return r;
		text.length = text_length(base.path);
		text_add(&text, "/");
	}
	expand_pattern(config.output, &text);
	return text.cut ? -ENAMETOOLONG : create_numbered(&text);
}

/* Creates the process's directory in the recording.  @parent is negative if the recording could
 * not be opened: another directory may have its path. */
static int make_own_directory(int parent)
{
	int fd = parent < 0 ? parent : directory_make(directory), r;

	if (fd >= 0 || fd == -EEXIST)
		return fd;
	r = opener_help(fd, OPENER_MAKE_DIRECTORY, directory->path, "");
	return r < 0 ? r : directory_identify(directory, r);
}

/* Creates BASE/PID.N with the first free N, because a process may execute several
 * programs. */
static int create_process_directory(void)
{
	int parent = directory_open(&base), fd = -EEXIST;
	struct text text;
	size_t length;

	if (parent >= 0)
		sys_close(parent);
	text_init(&text, directory->path, sizeof(directory->path));
	text_add(&text, base.path);
	text_add(&text, "/");
	text_add_number(&text, (uint64_t)sys_getpid());
	text_add(&text, ".");
	length = text.length;
	for (unsigned n = 0; fd == -EEXIST && n < 100000; n++) {
		text.length = length;
		text_add_number(&text, n);
		fd = text.cut ? -ENAMETOOLONG : make_own_directory(parent);
	}
	if (fd >= 0)
		sys_close(fd);
	return fd < 0 ? fd : 0;
}

/* --- meta --- */

static void add_string(const char *key, const char *value)
{
	struct text text;
	uint32_t at = meta->strings_size;

	if (at >= sizeof(meta->strings) - 1)
		return;
	text_init(&text, meta->strings + at, sizeof(meta->strings) - at);
	text_add(&text, key);
	text_add(&text, "=");
	text_add(&text, value);
	/* A reader may come at any time. */
	__atomic_store_n(&meta->strings_size, at + (uint32_t)text.length + 1,
			 __ATOMIC_RELEASE);
}

static void add_command(void)
{
	static char words[3072];
	int fd = sys_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC, 0);
	long size;

	if (fd < 0)
		return;
	size = sys_read(fd, words, sizeof(words) - 1);
	sys_close(fd);
	if (size <= 0)
		return;
	for (long i = 0; i < size - 1; i++)
		if (words[i] == '\0')
			words[i] = ' ';
	words[size] = '\0';
	add_string("command", words);
}

/* While the host is suspended, CLOCK_MONOTONIC stops and the time of day goes on: their
 * difference does not tell whether two processes have the same. */
static void add_monotonic(void)
{
	char value[128];
	size_t size = clock_read_boot(value);
	long more;

	if (size == 0)
		return;
	value[size++] = ' ';
	more = sys_read_link("/proc/self/ns/time", value + size,
			     sizeof(value) - 1 - size);
	/* Older kernels have no such namespaces. */
	if (more < 0 && (more != -ENOENT ||
			 sys_read_link("/proc/self/exe", value + size, 1) < 0))
		return;
	value[size + (size_t)(more > 0 ? more : 0)] = '\0';
	add_string("monotonic", value);
}

static void fill_meta(bool forked)
{
	static char memory[PATH_SIZE];

	*meta = (struct shim_meta){
		.magic = SHIM_META_MAGIC,
		.size = sizeof(*meta),
		.pid = (uint32_t)sys_getpid(),
		.parent_pid = (uint32_t)sys_getppid(),
		.forked = forked,
	};
	clock_describe(meta);
	program_path(memory);
	add_string("program", memory);
	add_command();
	if (sys_get_directory(memory, sizeof(memory)) >= 0)
		add_string("directory", memory);
	host_name(memory);
	add_string("host", memory);
	add_monotonic();
	add_string("rank", rank());
	if (rank_count())
		add_string("ranks", rank_count());
	add_string("profile", config.profile);
	if (config.filter[0])
		add_string("filter", config.filter);
	if (config.patch[0])
		add_string("patch", config.patch);
	/* The version comes last: from now on a reader accepts the file. */
	__atomic_store_n(&meta->version, SHIM_FORMAT_VERSION, __ATOMIC_RELEASE);
}

/* The list is written again, as a whole.  Readers use the last string with its key. */
void record_note_profiler(const char *description)
{
	static const char key[] = "profile=";

	if (!config_add_profiler(description) || !meta)
		return;
	if (text_length(config.profile) + sizeof(key) <=
	    sizeof(meta->strings) - meta->strings_size)
		add_string("profile", config.profile);
	else
		log_line("no room in the recording to name the profiler '%s'",
			 description);
}

static void remove_own_directory(void)
{
	int r = sys_remove_directory(directory->path);

	if (r < 0)
		opener_help(r, OPENER_REMOVE_DIRECTORY, directory->path, "");
}

static int open_process(bool forked)
{
	struct record_file *file;
	void *memory;
	int r;

	record_chunks_start();
	r = create_process_directory();
	if (r < 0) {
		log_error("cannot record into %s", base.path, r);
		return r;
	}
	r = record_create("meta", META_MAPPED, &file, &memory);
	if (r < 0) {
		log_error("cannot write to %s", directory->path, r);
		remove_own_directory();
		return r;
	}
	meta = memory;
	fill_meta(forked);
	record_lost_to(meta);
	log_to(meta);
	return 0;
}

void record_detach(bool begins)
{
	ASSERT_LOCKED();
	is_detached = begins;
	if (!meta)
		return;
	meta->end = begins ? SHIM_END_DETACHED : SHIM_END_UNKNOWN;
	meta->end_clock = begins ? clock_read() : 0;
	record_note_clocks();
}

bool record_is_detached(void)
{
	return is_detached;
}

void record_note_clocks(void)
{
	if (!meta)
		return;
	clock_note(meta);
	/* Earlier it would not be that of the end. */
	if (meta->end_clock)
		clock_note_cpu(meta);
	if (fine_tick_was_killed())
		log_line("the ticks of profrun ended without notice (was it "
			 "killed?): those of the kernel timed all later calls");
}

/* --- when there is no recording --- */

static void add_lines(struct text *text)
{
	size_t size;
	const char *at = log_waiting(&size);
	bool begins = true;

	for (; size > 0; size--, at++) {
		if (begins) {
			text_add(text, "process ");
			text_add_number(text, (uint64_t)sys_getpid());
			text_add(text, ": ");
		}
		text_add_part(text, at, 1);
		begins = *at == '\n';
	}
}

static int open_own_log(int parent)
{
	struct sys_status status;
	int fd = sys_open_at(parent, "log",
			     O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW |
				     O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			     0600);

	if (fd >= 0 && (sys_get_status(fd, &status) < 0 ||
			trust_own(&status) < 0 || trust_file(&status) < 0)) {
		sys_close(fd);
		return -EACCES;
	}
	return fd;
}

static int open_log(void)
{
	int parent = directory_open(&base), fd = parent;

	if (parent >= 0) {
		fd = open_own_log(parent);
		sys_close(parent);
	}
	return fd < 0 ? opener_help(fd, OPENER_LOG, "", "") : fd;
}

/* Writes the waiting lines to the file "log" in the recording's directory, which
 * profrun reads. */
static bool write_log_file(void)
{
	static char memory[3072];
	int fd = open_log();
	struct text text;
	long r;

	if (fd < 0)
		return false;
	text_init(&text, memory, sizeof(memory));
	add_lines(&text);
	r = sys_write(fd, memory, text.length);
	sys_close(fd);
	return r == (long)text.length;
}

int record_start(void)
{
	int r = open_or_create_base();

	ASSERT_LOCKED();
	if (r < 0)
		log_error("cannot make the recording %s",
			  base.path[0] ? base.path : config.output, r);
	else
		r = open_process(false);
	if (r == 0)
		hole_start();
	if (r < 0 && (config.dir[0] != '/' || !write_log_file()))
		log_give_up();
	return r;
}

/* Async. */
static void log_shortened(const char *name, const void *memory)
{
	bool is_meta = memory == meta;

	/* meta contains the log. */
	if (is_meta)
		log_to(NULL);
	log_line("%s was truncated while shim wrote it: its later records are "
		 "lost (record again): %s",
		 name, directory->path);
	if (is_meta && (config.dir[0] != '/' || !write_log_file()))
		log_give_up();
}

SUBSCRIBE(file_shortened, log_shortened);

/* Writes into the parent's log, the only log that the child can reach. */
static void log_to_parent(void)
{
	char number[24];
	struct text text;

	text_init(&text, number, sizeof(number));
	text_add_number(&text, (uint64_t)sys_getpid());
	log_to(record_lost_meta());
	log_line("the forked child %s is not recorded", number);
}

int record_fork(void)
{
	int r;

	meta = NULL;
	record_lost_forked();
	log_to(NULL);
	if (is_detached) {
		/* The directory is the parent's.  Calls of the child belong to no
		 * recording, so none is lost. */
		directory->path[0] = '\0';
		record_lost_to(NULL);
		return -ENOENT;
	}
	r = open_process(true);
	if (r < 0)
		log_to_parent();
	return r;
}

/* Takes the place of the former meta in memory: threads may still write to it, and the
 * process's mappings tell profrun which recording is the current one. */
static void hide_meta(struct shim_meta *former)
{
	void *memory = former;

	sys_map_over(memory, META_MAPPED);
}

int record_renew(void)
{
	struct shim_meta *former = meta;
	struct directory *former_directory = directory;
	struct directory former_base = base;
	void *memory;
	int r = sys_map(sizeof(*directory), &memory);

	ASSERT_LOCKED();
	if (r < 0)
		return r;
	directory = memory;
	/* Reasons of a failure go to the file "log". */
	log_to(NULL);
	r = open_or_create_base();
	if (r < 0)
		log_error("cannot make the recording %s", config.dir, r);
	else
		r = open_process(false);
	if (r < 0) {
		if (base.inode != 0)
			write_log_file();
		log_to(former);
		directory = former_directory;
		base = former_base;
		sys_unmap(memory, sizeof(*directory));
		return r;
	}
	record_lost_forked();
	if (former)
		hide_meta(former);
	return 0;
}

void record_give_up(void)
{
	meta = NULL;
	log_to(NULL);
}
