/*
 * The directory and the files of the recording.  Files are mapped and shared
 * with the disk, and their blocks are allocated before the first store, so a
 * full disk is an error code and not SIGBUS.
 */
#include "runtime/record.h"

#include "os/clock.h"
#include "os/directory.h"
#include "os/fine_tick.h"
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
#include <shim/cpu.h>
#include <shim/record.h>
#include <stdbool.h>

#include <shim/banned.h>

#define PAGE	  4096
#define PATH_SIZE DIRECTORY_PATH_SIZE

/* The initial sizes of a process's first file and of the following ones: the main
 * thread records more than workers do. */
#define FIRST_SIZE     (256u << 10)
#define NEXT_SIZE      (64u << 10)
#define CHUNK_SIZE_MAX (64u << 20)

struct shim_record {
	struct shim_file *file;
	struct record_file *on_disk;
	uint64_t size; /* of the first part and the chunks */
};

static struct directory base;	   /* the recording */
static struct directory directory; /* this process's part of it */
static struct shim_meta *meta;
/* Where losses are counted: a child without a recording uses its parent's meta. */
static struct shim_meta *lost_meta;
static uint32_t files;

struct shim_meta *record_meta(void)
{
	return meta;
}

const char *record_directory(void)
{
	return directory.path;
}

int record_open_directory(void)
{
	return directory_open(&directory);
}

struct shim_meta *shim_record_meta(void)
{
	return meta;
}

static enum shim_lost cause_of(int error)
{
	switch (-error) {
	case ENOSPC:
	case EDQUOT: return SHIM_LOST_SPACE;
	case EFBIG: return SHIM_LOST_FILE_SIZE;
	case ENOMEM: return SHIM_LOST_MEMORY;
	case EPERM:
		if (sys_is_forbidden())
			return SHIM_LOST_FORBIDDEN;
		return SHIM_LOST_ACCESS;
	case EACCES:
	case EROFS:
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case TRUST_OWNER:
	case TRUST_ACCESS:
	case TRUST_REPLACED:
	case TRUST_KIND:
	case TRUST_LINKS:
	case TRUST_SHORTENED: return SHIM_LOST_ACCESS;
	case EOVERFLOW: return SHIM_LOST_LIMIT;
	default: return SHIM_LOST_OTHER;
	}
}

int record_create(const char *name, size_t size, struct record_file **file,
		  void **memory)
{
	return record_file_create(&directory, name, size, file, memory);
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

static void expand(const char *pattern, struct text *text)
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
static bool holds(int fd, int pid)
{
	char name[32];
	struct text text;

	text_init(&text, name, sizeof(name));
	text_add_number(&text, (uint64_t)pid);
	text_add(&text, ".0");
	return directory_holds(fd, name, "meta");
}

/* Whether @base belongs to the user, and this process or its parent has recorded
 * into it. */
static bool goes_on(void)
{
	int fd = directory_find(&base);
	bool is_known;

	if (fd < 0) {
		log_error("%s exists and is not used", base.path, fd);
		return false;
	}
	is_known = holds(fd, sys_getpid()) || holds(fd, sys_getppid());
	sys_close(fd);
	return is_known;
}

bool record_has_parent(void)
{
	int fd = directory_find(&base);
	bool has_parent = fd >= 0 && holds(fd, sys_getppid());

	if (fd >= 0)
		sys_close(fd);
	return has_parent;
}

/* Makes the first of NAME, NAME.1, NAME.2 ... that does not exist.  A program that a
 * recorded process executes or starts continues that process's recording. */
static int make_new(struct text *name)
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
		if (fd == -EEXIST && goes_on())
			return 0;
	}
	if (fd >= 0)
		sys_close(fd);
	return fd < 0 ? fd : 0;
}

/* Only profrun, which has made the directory, writes it. */
static void use_fine_tick(int fd)
{
	const void *page = fine_tick_map(fd);

	if (page)
		hole_watch(page, FINE_TICK_SIZE, FINE_TICK_NAME);
}

static int make_base(void)
{
	struct text text;
	int r;

	text_init(&text, base.path, sizeof(base.path));
	if (config.dir[0] == '/') {
		text_add(&text, config.dir);
		r = directory_find(&base);
		if (r < 0)
			return r;
		use_fine_tick(r);
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
	expand(config.output, &text);
	return text.cut ? -ENAMETOOLONG : make_new(&text);
}

/* Makes BASE/PID.N with the first free N: a process may execute several programs. */
static int make_directory(void)
{
	int above = directory_open(&base), fd = -EEXIST;
	struct text text;
	size_t length;

	if (above < 0)
		return above;
	sys_close(above);
	text_init(&text, directory.path, sizeof(directory.path));
	text_add(&text, base.path);
	text_add(&text, "/");
	text_add_number(&text, (uint64_t)sys_getpid());
	text_add(&text, ".");
	length = text.length;
	for (unsigned n = 0; fd == -EEXIST && n < 100000; n++) {
		text.length = length;
		text_add_number(&text, n);
		fd = text.cut ? -ENAMETOOLONG : directory_make(&directory);
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
	meta->strings_size = at + (uint32_t)text.length + 1;
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

static void describe(bool forked)
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
	add_string("rank", rank());
	add_string("profile", config.profile);
	if (config.filter[0])
		add_string("filter", config.filter);
	/* Last: from now on a reader accepts the file. */
	__atomic_store_n(&meta->version, SHIM_FORMAT_VERSION, __ATOMIC_RELEASE);
}

static int open_process(bool forked)
{
	size_t size = (sizeof(*meta) + PAGE - 1) & ~(size_t)(PAGE - 1);
	struct record_file *file;
	void *memory;
	int r;

	files = 0;
	r = make_directory();
	if (r < 0) {
		log_error("cannot record into %s", base.path, r);
		return r;
	}
	r = record_create("meta", size, &file, &memory);
	if (r < 0) {
		log_error("cannot write to %s", directory.path, r);
		sys_remove_directory(directory.path);
		return r;
	}
	meta = memory;
	describe(forked);
	lost_meta = meta;
	log_to(meta);
	return 0;
}

/* --- when there is no room --- */

#define MONOTONIC_COARSE 6
#define PAUSE_NS	 1000000000u

/* On a full disk no allocation is tried before that time: tries would only slow the
 * program down. */
static uint64_t pause_end_ns;
static int pause_error;	       /* 0: the disk is not known to be full */
static uint32_t logged_causes; /* the causes that the log has, a bit each */

static int pausing(void)
{
	uint64_t now_ns;

	ASSERT_LOCKED();
	if (pause_error == 0 || sys_time_ns(MONOTONIC_COARSE, &now_ns) < 0 ||
	    now_ns >= pause_end_ns)
		return 0;
	return pause_error;
}

static void begin_pause(int error)
{
	uint64_t now_ns;

	if (sys_time_ns(MONOTONIC_COARSE, &now_ns) < 0)
		return;
	pause_end_ns = now_ns + PAUSE_NS;
	pause_error = error;
}

/* Runs work(argument), which allocates disk space, unless the disk was full less than
 * PAUSE_NS ago.  State lock held. */
static int try_room(int (*work)(void *argument), void *argument)
{
	int r = pausing();

	ASSERT_LOCKED();
	if (r < 0)
		return r;
	r = work(argument);
	if (r == -ENOSPC || r == -EDQUOT)
		begin_pause(r);
	else if (r == 0)
		pause_error = 0;
	return r;
}

static const char *advice(enum shim_lost cause)
{
	switch (cause) {
	case SHIM_LOST_SPACE:
		return " (free space and run again, or use -o DIR)";
	case SHIM_LOST_FILE_SIZE: return " (raise ulimit -f)";
	case SHIM_LOST_MEMORY: return " (raise ulimit -v)";
	default: return "";
	}
}

/* Logs each cause once.  Not inlined: its frame would cost stack on success, too. */
static __attribute__((noinline)) enum shim_lost note_failure(int error)
{
	enum shim_lost cause = cause_of(error);
	uint32_t bit = 1u << cause;

	if (cause != SHIM_LOST_FORBIDDEN &&
	    !(__atomic_fetch_or(&logged_causes, bit, __ATOMIC_RELAXED) & bit))
		log_line("%s: records may be lost from here on, and are "
			 "counted%s: %s",
			 log_reason(error), advice(cause), directory.path);
	return cause;
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

static int open_log(int above)
{
	struct sys_status status;
	int fd = sys_open_at(above, "log",
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

/* Writes the waiting lines to the file "log" in the recording's directory, which
 * profrun reads. */
static bool leave_word(void)
{
	static char memory[3072];
	int above = directory_open(&base), fd;
	struct text text;
	long r;

	if (above < 0)
		return false;
	fd = open_log(above);
	sys_close(above);
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
	int r = make_base();

	ASSERT_LOCKED();
	if (r < 0)
		log_error("cannot make the recording %s",
			  base.path[0] ? base.path : config.output, r);
	else
		r = open_process(false);
	if (r == 0)
		hole_start();
	if (r < 0 && (base.inode == 0 || config.dir[0] != '/' || !leave_word()))
		log_give_up();
	return r;
}

void record_is_short(const char *name, const void *memory)
{
	bool is_meta = memory == meta;

	/* meta contains the log. */
	if (is_meta)
		log_to(NULL);
	log_line("%s was truncated while shim wrote it: its later records are "
		 "lost (record again): %s",
		 name, directory.path);
	if (is_meta && (config.dir[0] != '/' || !leave_word()))
		log_give_up();
}

/* The parent's log is the only one that the child can reach. */
static void tell_parent(void)
{
	char number[24];
	struct text text;

	text_init(&text, number, sizeof(number));
	text_add_number(&text, (uint64_t)sys_getpid());
	log_to(lost_meta);
	log_line("the forked child %s is not recorded", number);
}

int record_fork(void)
{
	int r;

	meta = NULL;
	logged_causes = 0;
	log_to(NULL);
	r = open_process(true);
	if (r < 0)
		tell_parent();
	return r;
}

void record_give_up(void)
{
	meta = NULL;
	log_to(NULL);
}

/* --- the profilers' files --- */

static void file_name(uint32_t number, const char *kind, char name[64])
{
	struct text text;

	text_init(&text, name, 64);
	text_add_number(&text, number);
	text_add(&text, ".");
	text_add(&text, kind);
}

struct request {
	const char *kind;
	struct shim_record *record;
	void *memory;
	size_t least;
	size_t size;
	enum shim_lost cause;
};

static void add_chunk(struct shim_file *file, uint64_t offset, uint64_t size,
		      void *memory)
{
	file->chunk[file->chunks] = (struct shim_chunk){
		.offset = offset,
		.size = size,
		.address = (uint64_t)memory,
	};
	__atomic_store_n(&file->chunks, file->chunks + 1, __ATOMIC_RELEASE);
}

static int make_file(void *argument)
{
	struct request *request = argument;
	size_t size = files == 0 ? FIRST_SIZE : NEXT_SIZE;
	struct record_file *on_disk;
	struct shim_record *record;
	struct shim_file *file;
	char name[64];
	void *memory;
	int r;

	if (!meta)
		return -ENOENT;
	r = sys_map(PAGE, &memory);
	if (r < 0)
		return r;
	record = memory;
	file_name(files, request->kind, name);
	r = record_create(name, size, &on_disk, &memory);
	if (r < 0) {
		sys_unmap(record, PAGE);
		return r;
	}
	file = memory;
	*file = (struct shim_file){
		.magic = SHIM_FILE_MAGIC,
		.header_size = PAGE,
		.pid = meta->pid,
		.tid = (uint32_t)sys_gettid(),
		.number = files,
	};
	for (size_t i = 0; i < sizeof(file->kind) - 1 && request->kind[i]; i++)
		file->kind[i] = request->kind[i];
	*record = (struct shim_record){ file, on_disk, size };
	files++;
	request->record = record;
	request->memory = (char *)memory + PAGE;
	request->size = size - PAGE;
	add_chunk(file, PAGE, request->size, request->memory);
	__atomic_store_n(&file->version, SHIM_FORMAT_VERSION, __ATOMIC_RELEASE);
	clock_note(meta);
	return 0;
}

static int open_file(void *argument)
{
	return try_room(make_file, argument);
}

struct shim_record *shim_record_open(const char *kind, void **memory,
				     size_t *size, enum shim_lost *cause)
{
	struct request request = { .kind = kind };
	int r;

	if (!kind || !memory || !size || !cause)
		return NULL;
	r = state_slowly(open_file, &request);
	if (r < 0) {
		*cause = note_failure(r);
		return NULL;
	}
	*memory = request.memory;
	*size = request.size;
	return request.record;
}

static int extend_file(void *argument)
{
	struct request *request = argument;
	struct shim_record *record = request->record;
	struct shim_file *file = record->file;
	uint64_t size = record->size / 2, offset;
	int r;

	if (file->chunks >= SHIM_FILE_CHUNKS)
		return -EOVERFLOW;
	if (size < request->least)
		size = request->least;
	if (size < NEXT_SIZE)
		size = NEXT_SIZE;
	if (size > CHUNK_SIZE_MAX)
		size = CHUNK_SIZE_MAX;
	size = (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	offset = record_file_end(record->on_disk);
	r = record_file_extend(record->on_disk, size, &request->memory);
	if (r == -ENOSPC && size > NEXT_SIZE && request->least <= NEXT_SIZE) {
		size = NEXT_SIZE; /* the last free space of the disk */
		r = record_file_extend(record->on_disk, size, &request->memory);
	}
	if (r < 0)
		return r;
	add_chunk(file, offset, size, request->memory);
	record->size += size;
	request->size = size;
	clock_note(meta);
	return 0;
}

static int grow_file(void *argument)
{
	return try_room(extend_file, argument);
}

void *shim_record_grow(struct shim_record *record, size_t least, size_t *size,
		       enum shim_lost *cause)
{
	struct request request = { .record = record, .least = least };
	int r;

	if (!record || !size || !cause)
		return NULL;
	r = state_slowly(grow_file, &request);
	if (r < 0) {
		*cause = note_failure(r);
		return NULL;
	}
	*size = request.size;
	return request.memory;
}

/* --- writing without mapping --- */

struct writing {
	struct shim_record *record;
	const void *memory;
	size_t size;
	uint64_t offset;
};

static int write_part(void *argument)
{
	struct writing *writing = argument;
	int r = record_file_write(writing->record->on_disk, writing->offset,
				  writing->memory, writing->size);

	if (r == 0)
		clock_note(meta);
	return r;
}

static int write_file(void *argument)
{
	return try_room(write_part, argument);
}

bool shim_record_write(struct shim_record *record, uint64_t offset,
		       const void *memory, size_t size, enum shim_lost *cause)
{
	struct writing writing = { record, memory, size, offset };
	int r;

	if (!record || !cause)
		return false;
	r = state_slowly(write_file, &writing);
	if (r < 0)
		*cause = note_failure(r);
	return r == 0;
}

/* --- threads without a file --- */

static struct shim_lost_thread *lost_slot(uint32_t tid)
{
	struct shim_meta *at = lost_meta;
	struct shim_lost_thread *last = &at->lost[SHIM_META_THREADS - 1];
	struct shim_lost_thread *slot;

	for (slot = at->lost; slot < last; slot++) {
		uint32_t owner = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);

		if (owner == 0 && __atomic_compare_exchange_n(
					  &slot->tid, &owner, tid, false,
					  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_add(&at->lost_threads, 1,
					   __ATOMIC_RELAXED);
			return slot;
		}
		if (owner == tid)
			return slot;
	}
	__atomic_store_n(&last->tid, tid, __ATOMIC_RELAXED);
	return last;
}

/* The calling thread's slot in own_slot_meta: without a recording, every call is
 * counted there.  (A task that shares the thread's data counts as the thread.) */
static __thread struct shim_lost_thread *own_slot;
static __thread const struct shim_meta *own_slot_meta;

static void find_own_slot(void)
{
	int tid = sys_gettid();

	/* If the thread id is unknown, the call still counts. */
	own_slot = lost_slot(tid > 0 ? (uint32_t)tid : 1);
	if (tid > 0)
		own_slot_meta = lost_meta;
}

void record_lose(enum shim_lost cause, uint64_t calls)
{
	if (!lost_meta || calls == 0)
		return;
	if (own_slot_meta != lost_meta)
		find_own_slot();
	__atomic_fetch_add(&own_slot->lost[cause], calls, __ATOMIC_RELAXED);
}

void shim_record_lost(enum shim_lost cause)
{
	if (cause < SHIM_LOST_CAUSES)
		record_lose(cause, 1);
}

void shim_record_lost_other(enum shim_lost_kind kind, enum shim_lost cause,
			    uint64_t count)
{
	if (lost_meta && kind < SHIM_LOST_KINDS && cause < SHIM_LOST_CAUSES)
		__atomic_fetch_add(&lost_meta->lost_others[kind][cause], count,
				   __ATOMIC_RELAXED);
}

/* --- small services --- */

void record_note_clocks(void)
{
	if (!meta)
		return;
	clock_note(meta);
	if (fine_tick_was_killed())
		log_line("the ticks of profrun ended without notice (was it "
			 "killed?): those of the kernel timed all later calls");
}

void shim_record_log(const char *line)
{
	if (line)
		log_line("%s", line);
}

void *shim_memory_map(size_t size)
{
	void *memory;

	return sys_map(size, &memory) < 0 ? NULL : memory;
}

/* The kernel refuses memory that the program has locked, or forbids the call: then
 * only words that are not zero are overwritten, so that no page is allocated. */
void shim_memory_discard(void *memory, size_t size)
{
	uint64_t *word = memory;

	if (!memory || sys_empty(memory, size) == 0)
		return;
	for (size_t i = 0; i < size / sizeof(*word); i++)
		if (((volatile uint64_t *)word)[i] != 0)
			((volatile uint64_t *)word)[i] = 0;
}

bool shim_memory_read(void *to, const void *from, size_t size)
{
	return sys_peek(from, to, size) == 0;
}

uint32_t shim_thread_id(void)
{
	int tid = sys_gettid();

	return tid > 0 ? (uint32_t)tid : 0;
}

bool shim_thread_is_alive(uint32_t tid)
{
	/* A vfork child that records is a process of its own. */
	return sys_is_alive((int)meta->pid, (int)tid) ||
	       sys_is_alive((int)tid, (int)tid);
}

void shim_thread_name(char name[16])
{
	if (name && sys_thread_name(name) < 0)
		name[0] = '\0';
}

uint64_t shim_signals_block(void)
{
	uint64_t before = 0;

	/* All bits set means that there is nothing to restore: the kernel's
	 * masks never have SIGKILL. */
	return sys_block_signals(&before) < 0 ? ~0ull : before;
}

void shim_signals_restore(uint64_t token)
{
	if (token != ~0ull)
		sys_restore_signals(token);
}
