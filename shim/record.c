/*
 * Files are opened by absolute name, allocated, mapped and closed at once: no
 * descriptor of ours is open while the program runs.  Blocks are allocated
 * before they are mapped, because a store into a hole of a full disk would be
 * a SIGBUS in the program.
 */
#include "record.h"

#include "clock.h"
#include "config.h"
#include "log.h"
#include "state.h"
#include "sys.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/cpu.h>
#include <shim/record.h>
#include <stdbool.h>
#include <sys/resource.h>

#include <shim/banned.h>

#define PAGE 4096
#define PATH_SIZE 2048

/* The first file of a process and the following ones: the main thread of a
 * program has more to say than its workers. */
#define FIRST_SIZE (256u << 10)
#define NEXT_SIZE  (64u << 10)
#define CHUNK_SIZE_MAX (64u << 20)

struct shim_record {
	struct shim_file *file;
	uint64_t size;			/* of the first part and the chunks */
	uint64_t end;			/* of the file, with what was written */
	uint32_t number;
};

static char base[PATH_SIZE];		/* the recording */
static char directory[PATH_SIZE];	/* this process's part of it */
static struct shim_meta *meta;
/* Where losses are counted: in a child without a recording, its parent's. */
static struct shim_meta *lost_meta;
static uint32_t files;

struct shim_meta *record_meta(void)
{
	return meta;
}

const char *record_directory(void)
{
	return directory;
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
	case ELOOP: return SHIM_LOST_ACCESS;
	case EOVERFLOW: return SHIM_LOST_LIMIT;
	default: return SHIM_LOST_OTHER;
	}
}

/* Growing past RLIMIT_FSIZE would send the program a SIGXFSZ. */
static int check_file_size(uint64_t end)
{
	uint64_t limit;

	if (sys_limit(RLIMIT_FSIZE, &limit) == 0 && end > limit)
		return -EFBIG;
	return 0;
}

static int path_of(const char *name, char path[PATH_SIZE])
{
	struct text text;

	text_init(&text, path, PATH_SIZE);
	text_add(&text, directory);
	text_add(&text, "/");
	text_add(&text, name);
	return text.cut ? -ENAMETOOLONG : 0;
}

static int map_part(const char *name, int flags, uint64_t offset, size_t size,
		    void **memory)
{
	char path[PATH_SIZE];
	int fd, r;

	r = path_of(name, path);
	if (r == 0)
		r = check_file_size(offset + size);
	if (r < 0)
		return r;
	fd = sys_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return fd;
	r = sys_allocate(fd, offset, size);
	if (r == 0)
		r = sys_map_file(fd, offset, size, memory);
	sys_close(fd);
	if (r < 0 && (flags & O_CREAT))
		sys_remove(path); /* the name is free for the next try */
	return r;
}

int record_create(const char *name, size_t size, void **memory)
{
	return map_part(name, O_CREAT | O_EXCL, 0, size, memory);
}

int record_extend(const char *name, uint64_t offset, size_t size, void **memory)
{
	return map_part(name, 0, offset, size, memory);
}

/* --- the directory --- */

static const char *rank(void)
{
	static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
					     "PMI_RANK", "SLURM_PROCID" };

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

/* Has process @pid recorded into the directory @name? */
static bool holds(struct text name, int pid)
{
	char path[PATH_SIZE];
	struct text text;
	int fd;

	text_init(&text, path, sizeof(path));
	text_add(&text, name.start);
	text_add(&text, "/");
	text_add_number(&text, (uint64_t)pid);
	text_add(&text, ".0/meta");
	fd = sys_open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return false;
	sys_close(fd);
	return true;
}

/* Makes the first of NAME, NAME.1, NAME.2 ... that does not exist.  What a
 * recorded process became by exec, or started, goes on with its recording. */
static int make_new(struct text *name)
{
	size_t length = name->length;
	int r = sys_make_directory(name->start, 0700);

	if (r == -EEXIST && (holds(*name, sys_getpid()) ||
			     holds(*name, sys_getppid())))
		return 0;

	for (unsigned n = 1; r == -EEXIST && n < 10000; n++) {
		name->length = length;
		text_add(name, ".");
		text_add_number(name, n);
		r = name->cut ? -ENAMETOOLONG :
				sys_make_directory(name->start, 0700);
	}
	return r;
}

static int make_base(void)
{
	struct text text;
	int r;

	text_init(&text, base, sizeof(base));
	if (config.dir[0] == '/') {
		text_add(&text, config.dir);
		return 0;
	}
	if (config.output[0] != '/') {
		r = sys_get_directory(base, sizeof(base));
		if (r < 0)
			return r;
		text.length = text_length(base);
		text_add(&text, "/");
	}
	expand(config.output, &text);
	return text.cut ? -ENAMETOOLONG : make_new(&text);
}

/* BASE/PID.N, the first N that is free: a pid has many images, one after the
 * other. */
static int make_directory(void)
{
	struct text text;
	size_t length;
	int r = -EEXIST;

	text_init(&text, directory, sizeof(directory));
	text_add(&text, base);
	text_add(&text, "/");
	text_add_number(&text, (uint64_t)sys_getpid());
	text_add(&text, ".");
	length = text.length;
	for (unsigned n = 0; r == -EEXIST && n < 100000; n++) {
		text.length = length;
		text_add_number(&text, n);
		r = text.cut ? -ENAMETOOLONG :
			       sys_make_directory(directory, 0700);
	}
	return r;
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
	/* Last: only now does a reader accept it. */
	__atomic_store_n(&meta->version, SHIM_FORMAT_VERSION, __ATOMIC_RELEASE);
}

static int open_process(bool forked)
{
	size_t size = (sizeof(*meta) + PAGE - 1) & ~(size_t)(PAGE - 1);
	void *memory;
	int r;

	files = 0;
	r = make_directory();
	if (r < 0) {
		log_error("cannot record into %s", base, r);
		return r;
	}
	r = record_create("meta", size, &memory);
	if (r < 0) {
		log_error("cannot write to %s", directory, r);
		return r;
	}
	meta = memory;
	describe(forked);
	lost_meta = meta;
	log_to(meta);
	return 0;
}

int record_start(void)
{
	int r = make_base();

	if (r < 0)
		log_error("cannot make the recording %s",
			  base[0] ? base : config.output, r);
	else
		r = open_process(false);
	if (r < 0 && config.dir[0] != '/')
		log_give_up();
	return r;
}

int record_fork(void)
{
	meta = NULL;
	log_to(NULL);
	return open_process(true);
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

static int open_file(void *argument)
{
	struct request *request = argument;
	size_t size = files == 0 ? FIRST_SIZE : NEXT_SIZE;
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
	r = record_create(name, size, &memory);
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
	*record = (struct shim_record){ file, size, size, files++ };
	request->record = record;
	request->memory = (char *)memory + PAGE;
	request->size = size - PAGE;
	add_chunk(file, PAGE, request->size, request->memory);
	__atomic_store_n(&file->version, SHIM_FORMAT_VERSION, __ATOMIC_RELEASE);
	clock_note(meta);
	return 0;
}

struct shim_record *shim_record_open(const char *kind, void **memory,
				     size_t *size, enum shim_lost *cause)
{
	struct request request = { .kind = kind };
	int r = state_slowly(open_file, &request);

	if (r < 0) {
		*cause = cause_of(r);
		return NULL;
	}
	*memory = request.memory;
	*size = request.size;
	return request.record;
}

static int grow_file(void *argument)
{
	struct request *request = argument;
	struct shim_record *record = request->record;
	struct shim_file *file = record->file;
	uint64_t size = record->size / 2;
	char name[64];
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
	file_name(record->number, file->kind, name);
	r = record_extend(name, record->end, size, &request->memory);
	if (r == -ENOSPC && size > NEXT_SIZE && request->least <= NEXT_SIZE) {
		size = NEXT_SIZE;	/* the last corner of the disk */
		r = record_extend(name, record->end, size, &request->memory);
	}
	if (r < 0)
		return r;
	add_chunk(file, record->end, size, request->memory);
	record->size += size;
	record->end += size;
	request->size = size;
	clock_note(meta);
	return 0;
}

void *shim_record_grow(struct shim_record *record, size_t least, size_t *size,
		       enum shim_lost *cause)
{
	struct request request = { .record = record, .least = least };
	int r = state_slowly(grow_file, &request);

	if (r < 0) {
		*cause = cause_of(r);
		if (r != -EPERM || !sys_is_forbidden())
			log_error("cannot grow a file of %s", directory, r);
		return NULL;
	}
	*size = request.size;
	return request.memory;
}

/* --- what does not stay mapped --- */

struct writing {
	struct shim_record *record;
	const void *memory;
	size_t size;
	uint64_t offset;
};

static int write_all(int fd, const struct writing *writing)
{
	const char *at = writing->memory;
	size_t done = 0;
	long r;

	while (done < writing->size) {
		r = sys_write_at(fd, at + done, writing->size - done,
				 writing->offset + done);
		if (r <= 0)
			return r < 0 ? (int)r : -ENOSPC;
		done += (size_t)r;
	}
	return 0;
}

static int write_file(void *argument)
{
	struct writing *writing = argument;
	struct shim_record *record = writing->record;
	char name[64], path[PATH_SIZE];
	int fd, r;

	file_name(record->number, record->file->kind, name);
	r = path_of(name, path);
	if (r == 0)
		r = check_file_size(writing->offset + writing->size);
	if (r < 0)
		return r;
	fd = sys_open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	r = write_all(fd, writing);
	sys_close(fd);
	if (r < 0)
		return r;
	if (record->end < writing->offset + writing->size)
		record->end = writing->offset + writing->size;
	clock_note(meta);
	return 0;
}

bool shim_record_write(struct shim_record *record, uint64_t offset,
		       const void *memory, size_t size, enum shim_lost *cause)
{
	struct writing writing = { record, memory, size, offset };
	int r = state_slowly(write_file, &writing);

	if (r < 0)
		*cause = cause_of(r);
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

		if (owner == 0 &&
		    __atomic_compare_exchange_n(&slot->tid, &owner, tid, false,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
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

void record_lose(enum shim_lost cause, uint64_t calls)
{
	int tid = sys_gettid();

	/* Without a name of its own the call still counts. */
	if (lost_meta && calls > 0)
		__atomic_fetch_add(&lost_slot(tid > 0 ? (uint32_t)tid : 1)
					    ->lost[cause],
				   calls, __ATOMIC_RELAXED);
}

void shim_record_lost(enum shim_lost cause)
{
	record_lose(cause, 1);
}

/* --- small services --- */

void shim_record_log(const char *line)
{
	log_line("%s", line);
}

void *shim_memory(size_t size)
{
	void *memory;

	return sys_map(size, &memory) < 0 ? NULL : memory;
}

void shim_memory_empty(void *memory, size_t size)
{
	sys_empty(memory, size);
}

bool shim_memory_copy(void *to, const void *from, size_t size)
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
	/* A vfork child with a tree is a process of its own. */
	return sys_is_alive((int)meta->pid, (int)tid) ||
	       sys_is_alive((int)tid, (int)tid);
}

void shim_thread_name(char name[16])
{
	if (sys_thread_name(name) < 0)
		name[0] = '\0';
}

uint64_t shim_signals_block(void)
{
	uint64_t before = 0;

	/* Bit 63 is signal 64, which nobody blocks by itself: it says that
	 * there is nothing to restore. */
	return sys_block_signals(&before) < 0 ? ~0ull : before;
}

void shim_signals_restore(uint64_t token)
{
	if (token != ~0ull)
		sys_restore_signals(token);
}
