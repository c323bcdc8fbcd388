/*
 * The server for `profrun ctl`, in two threads.  The server thread has its own
 * descriptor table: the program cannot see or close its socket, and the thread keeps no
 * descriptor of the program open.  The worker thread shares the program's table,
 * because it loads modules: a file that a module opens must be open on the program's
 * threads, where the module's callbacks run.  The worker also creates the thread that
 * detaches modules.
 *
 * The server accepts its own user and root.  It does not trust requests to be
 * well-formed: each has a length and a time limit.
 */
#define _GNU_SOURCE
#include "module/control.h"

#include "dispatch/callspec.h"
#include "dispatch/plan.h"
#include "inspect/code.h"
#include "module/builtin.h"
#include "module/module.h"
#include "os/sys.h"
#include "os/tasks.h"
#include "os/text.h"
#include "runtime/config.h"
#include "runtime/events.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/runtime_threads.h"
#include "runtime/state.h"

#include <errno.h>
#include <fcntl.h>
#include <shim/format.h>
#include <shim/heap.h>
#include <shim/hooks.h>
#include <shim/trace.h>
#include <stdlib.h>

#include <shim/banned.h>

#define NAME	      "control"
#define PATH_SIZE     2048
#define LINE_SIZE     65536
#define DATA_SIZE_MAX (1u << 20)
#define ANSWER_SIZE   65536
#define REQUEST_MS    2000
#define CHECK_MS      1000

/* --- the worker --- */

enum task {
	TASK_NONE,
	TASK_LOAD,
	TASK_UNLOAD,
	TASK_FILTER,
	TASK_LIBCALLS,
	TASK_EXIT
};

static struct {
	uint32_t
		task; /* of enum task; set by the server, reset by the worker */
	const char *description;
	const void *data;
	uint32_t data_size;
	enum shim_result result;
	struct text text;
} job;

static int set_filter(void *list)
{
	if (!callspec_change(list))
		return -EINVAL;
	plan_update();
	return 0;
}

static enum shim_result change_filter(const char *list, struct text *text)
{
	uint32_t since = log_end();
	int r = state_call_locked(set_filter, (void *)list);

	if (r < 0) {
		log_copy(since, text);
		return r == -EINVAL ? SHIM_E_INVALIDARG : SHIM_E_FAIL;
	}
	callspec_prepare();
	log_line("profrun ctl: from now on the filter is '%s'", list);
	return SHIM_OK;
}

static int set_libcalls(void *list)
{
	return callspec_change_libcalls(list) ? 0 : -EINVAL;
}

static enum shim_result change_libcalls(const char *list, struct text *text)
{
	uint32_t since = log_end();

	code_start();
	if (state_call_locked(set_libcalls, (void *)list) < 0) {
		log_copy(since, text);
		return SHIM_E_INVALIDARG;
	}
	log_line("profrun ctl: from now on the library calls are '%s'", list);
	return SHIM_OK;
}

static void run_worker(void *unused)
{
	(void)unused;
	for (;;) {
		uint32_t task = __atomic_load_n(&job.task, __ATOMIC_ACQUIRE);

		if (sys_is_forbidden())
			sys_park();
		switch (task) {
		case TASK_LOAD:
			job.result = module_load(job.description, job.data,
						 job.data_size, &job.text);
			break;
		case TASK_UNLOAD:
			job.result = module_unload(job.description, &job.text);
			break;
		case TASK_FILTER:
			job.result = change_filter(job.description, &job.text);
			break;
		case TASK_LIBCALLS:
			job.result = change_libcalls(job.description,
						     &job.text);
			break;
		case TASK_EXIT:
			/* libc does the same when the last thread ends. */
			exit(0);
		default: sys_wait(&job.task, TASK_NONE, 0); continue;
		}
		__atomic_store_n(&job.task, TASK_NONE, __ATOMIC_RELEASE);
		sys_wake(&job.task);
	}
}

static void run_on_worker(enum task task)
{
	__atomic_store_n(&job.task, task, __ATOMIC_RELEASE);
	sys_wake(&job.task);
	while (__atomic_load_n(&job.task, __ATOMIC_ACQUIRE) != TASK_NONE)
		sys_wait(&job.task, task, 0);
}

/* --- requests --- */

struct request {
	char line[LINE_SIZE];
	void *data;
	uint32_t data_size;
	struct text answer;
};

static void add_line(struct text *answer, const char *key, const char *value)
{
	text_add(answer, key);
	text_add(answer, value);
	text_add(answer, "\n");
}

static void add_number(struct text *answer, const char *key, uint64_t number)
{
	text_add(answer, key);
	text_add_number(answer, number);
	text_add(answer, "\n");
}

static bool count_thread(struct thread *thread, void *argument)
{
	uint32_t *counts = argument;

	if (!sys_is_alive(sys_getpid(), (int)thread->tid))
		return true;
	counts[(thread->state & THREAD_OWN) != 0]++;
	return true;
}

static const char *status_name(uint32_t status)
{
	static const char *const names[] = { "none",	 "detaching",
					     "starting", "attaching",
					     "active",	 "loading" };

	return status < sizeof(names) / sizeof(*names) ? names[status] : "?";
}

static void add_builtin(const char *name, bool records, void *answer)
{
	text_add(answer, "builtin ");
	text_add(answer, name);
	add_line(answer, "", records ? " active" : " off");
}

static void add_modules(struct text *answer)
{
	const struct module *module;

	for (uint32_t i = 0; (module = module_get(i)); i++) {
		uint32_t status = __atomic_load_n(&module->status,
						  __ATOMIC_ACQUIRE);

		if (status == MODULE_NONE)
			continue;
		text_add(answer, "module ");
		text_add(answer, module->name);
		text_add(answer, " ");
		text_add(answer, status_name(status));
		add_line(answer, " ", module->path);
	}
}

static void add_handles(struct text *answer)
{
	for (struct shim_profiler_handle *h = events_first(); h;
	     h = events_next(h)) {
		const char *name = h->builtin ? "(shim)" :
				   h->module  ? h->module->name :
						"(program)";

		text_add(answer, "handle ");
		text_add_number(answer, h->serial);
		text_add(answer, " ");
		text_add(answer, name);
		add_line(answer, "",
			 h->broken ? " switched off" :
			 h->waits  ? " starting" :
				     " active");
	}
}

static bool calls_are_off(void)
{
	const struct shim_meta *meta = record_meta();

	return meta && meta->switched % 2 != 0;
}

static enum shim_result answer_status(struct request *request)
{
	struct text *answer = &request->answer;
	uint32_t threads[2] = { 0, 0 };

	thread_each(count_thread, threads);
	add_number(answer, "pid ", (uint64_t)sys_getpid());
	add_line(answer, "recording ", record_directory());
	add_line(answer, "profile ", config.profile);
	add_line(answer, "calls ", calls_are_off() ? "off" : "on");
	if (record_meta()) {
		add_number(answer, "sites ", record_meta()->sites);
		add_number(answer, "sites-off ", record_meta()->sites_off);
	}
	add_number(answer, "threads ", threads[0]);
	builtin_each(add_builtin, answer);
	add_modules(answer);
	add_handles(answer);
#define SHIM_DEFINE_EVENT(name, context, flag, parameters) \
	if (events_counts.name > 0) \
		add_number(answer, "event " #name " ", events_counts.name);
#include <shim/events.def>
#undef SHIM_DEFINE_EVENT
	return SHIM_OK;
}

static enum shim_result request_from_worker(struct request *request,
					    enum task task,
					    const char *description)
{
	char memory[1024];

	text_init(&job.text, memory, sizeof(memory));
	job.description = description;
	job.data = request->data;
	job.data_size = request->data_size;
	run_on_worker(task);
	if (job.text.length > 0)
		add_line(&request->answer, "", memory);
	return job.result;
}

/* Ends the word at *@at with a NUL and moves *@at to the next word. */
static char *next_word(char **at)
{
	char *word = *at;

	while (**at && **at != ' ')
		(*at)++;
	if (**at == ' ')
		*(*at)++ = '\0';
	return word;
}

static enum shim_result take_heap_snapshot(struct request *request)
{
	uint32_t number = 0;
	enum shim_result r = shim_heap_snapshot_now(&number);

	if (r == SHIM_OK)
		add_number(&request->answer, "heap snapshot ", number);
	if (r != SHIM_S_FALSE)
		return r;
	add_line(
		&request->answer, "",
		"the program's memory is not recorded (run it with -p memory)");
	return SHIM_E_INCONSISTENT_WITH_FLAGS;
}

static enum shim_result switch_trace(struct request *request, int is_on)
{
	if (events_counts.trace_switched == 0) {
		add_line(&request->answer, "",
			 "the program is not traced (run it with -p trace)");
		return SHIM_E_INCONSISTENT_WITH_FLAGS;
	}
	return shim_trace_switch(is_on);
}

#define BUDGET_MAX 99

static enum shim_result change_budget(struct request *request,
				      const char *number)
{
	uint64_t percent = text_read_decimal(&number);

	if (*number || percent == 0 || percent > BUDGET_MAX) {
		add_line(&request->answer, "",
			 "a budget is a number from 1 to 99, of percent");
		return SHIM_E_INVALIDARG;
	}
	if (builtin_change_budget((uint32_t)percent))
		return SHIM_OK;
	add_line(&request->answer, "",
		 "the program is recorded without a budget (--budget)");
	return SHIM_E_INCONSISTENT_WITH_FLAGS;
}

static enum shim_result do_request(struct request *request, const char *verb,
				   const char *rest)
{
	if (text_equal(verb, "status") && !*rest)
		return answer_status(request);
	if (text_equal(verb, "stop") && !*rest)
		return shim_hooks_disable();
	if (text_equal(verb, "start") && !*rest)
		return shim_hooks_enable();
	if (text_equal(verb, "trace-start") && !*rest)
		return switch_trace(request, 1);
	if (text_equal(verb, "trace-stop") && !*rest)
		return switch_trace(request, 0);
	if (text_equal(verb, "heap") && !*rest)
		return take_heap_snapshot(request);
	if (text_equal(verb, "budget") && *rest)
		return change_budget(request, rest);
	if (text_equal(verb, "filter") && *rest && request->data_size == 0)
		return request_from_worker(request, TASK_FILTER, rest);
	if (text_equal(verb, "libcalls") && *rest && request->data_size == 0)
		return request_from_worker(request, TASK_LIBCALLS, rest);
	if (text_equal(verb, "load") && *rest)
		return request_from_worker(request, TASK_LOAD, rest);
	if (text_equal(verb, "unload") && *rest && request->data_size == 0)
		return request_from_worker(request, TASK_UNLOAD, rest);
	return SHIM_E_UNRECOGNIZED_PIPE_MSG_FORMAT;
}

/* --- a connection --- */

struct connection {
	int fd;
	uint64_t until_ms;
};

/* Reads up to @size bytes and returns their number; 0 at the end; -ETIMEDOUT or -errno. */
static long read_some(struct connection *connection, void *memory, size_t size)
{
	uint64_t now = module_now_ms();

	if (now >= connection->until_ms ||
	    sys_wait_input(connection->fd,
			   (unsigned)(connection->until_ms - now)) <= 0)
		return -ETIMEDOUT;
	return sys_read(connection->fd, memory, size);
}

static bool read_all(struct connection *connection, void *memory, size_t size)
{
	char *at = memory;

	while (size > 0) {
		long r = read_some(connection, at, size);

		if (r <= 0)
			return false;
		at += r;
		size -= (size_t)r;
	}
	return true;
}

/* Reads one byte at a time, so that the data after the line stays unread. */
static bool read_line(struct connection *connection, char line[LINE_SIZE])
{
	for (size_t i = 0; i < LINE_SIZE; i++) {
		if (read_some(connection, &line[i], 1) != 1 || line[i] == '\0')
			return false;
		if (line[i] == '\n') {
			line[i] = '\0';
			return true;
		}
	}
	return false;
}

static void send_all(struct connection *connection, const char *text,
		     size_t size)
{
	while (size > 0 && module_now_ms() < connection->until_ms) {
		long r = sys_send(connection->fd, text, size);

		if (r == -EAGAIN) {
			sys_sleep_ms(1);
			continue;
		}
		if (r <= 0)
			return;
		text += r;
		size -= (size_t)r;
	}
}

static bool read_data(struct connection *connection, struct request *request,
		      const char *size)
{
	uint64_t number = text_read_decimal(&size);

	if (*size || number > DATA_SIZE_MAX)
		return false;
	if (number == 0)
		return true;
	if (sys_map(number, &request->data) < 0)
		return false;
	request->data_size = (uint32_t)number;
	return read_all(connection, request->data, number);
}

static enum shim_result read_request(struct connection *connection,
				     struct request *request)
{
	char *at = request->line, *verb, *size = NULL;

	if (!read_line(connection, request->line) ||
	    !text_equal(next_word(&at), "shim"))
		return SHIM_E_UNRECOGNIZED_PIPE_MSG_FORMAT;
	if (!text_equal(next_word(&at), "1"))
		return SHIM_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER;
	verb = next_word(&at);
	if (*at)
		size = next_word(&at);
	if (size && !read_data(connection, request, size))
		return SHIM_E_UNRECOGNIZED_PIPE_MSG_FORMAT;
	/* The worker has no time limit. */
	connection->until_ms = UINT64_MAX;
	return do_request(request, verb, at);
}

static void send_answer(struct connection *connection, struct request *request,
			enum shim_result result)
{
	struct text *text = &request->answer;

	connection->until_ms = module_now_ms() + REQUEST_MS;
	send_all(connection, text->start, text->length);
	text_init(text, text->start, text->size);
	add_number(text, "result ", (uint32_t)result);
	send_all(connection, text->start, text->length);
}

static void serve_connection(int fd)
{
	static struct request request;
	static char memory[ANSWER_SIZE];
	struct connection connection = { fd, module_now_ms() + REQUEST_MS };
	unsigned uid, user;

	/* Other users get no answer. */
	if (sys_peer(fd, &uid) < 0 || sys_user(&user) < 0 ||
	    (uid != 0 && uid != user))
		return;
	request.data = NULL;
	request.data_size = 0;
	text_init(&request.answer, memory, sizeof(memory));
	send_answer(&connection, &request, read_request(&connection, &request));
	if (request.data)
		sys_unmap(request.data, request.data_size);
}

/* --- the server --- */

static uint32_t is_ready;

/* The state of a task in its file "stat": the letter after the name, which is in
 * parentheses. */
static char task_state(const char *path)
{
	char text[128];
	int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	long size = fd < 0 ? -1 : sys_read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		sys_close(fd);
	for (long i = size - 3; i > 0; i--)
		if (text[i] == ')')
			return text[i + 2];
	return '?';
}

static bool is_main_or_own(uint32_t tid, void *unused)
{
	(void)unused;
	return tid == (uint32_t)sys_getpid() || thread_is_own(tid);
}

/*
 * Whether only threads of shim are left.  libc ends a process with its last thread, but
 * counts shim's threads.  So shim ends the process if main has called pthread_exit and
 * all other threads have ended.
 */
static bool only_shim_is_left(void)
{
	return task_state("/proc/self/stat") == 'Z' &&
	       tasks_each(is_main_or_own, NULL) == 0;
}

/* The path of a socket is limited to 107 bytes, and the recording's path may be longer. */
static void write_path(char path[64], int directory, const char *name)
{
	struct text text;

	text_init(&text, path, 64);
	text_add(&text, "/proc/thread-self/fd/");
	text_add_number(&text, (uint64_t)directory);
	text_add(&text, name);
}

/* The socket gets its name when it listens: who finds it can connect. */
static int open_socket(void)
{
	char path[64], unready[64];
	int directory, fd, r;

	directory = record_open_directory();
	if (directory < 0)
		return directory;
	write_path(unready, directory, "/" NAME ".new");
	write_path(path, directory, "/" NAME);
	fd = sys_listen(unready);
	r = fd < 0 ? fd : sys_rename(unready, path);
	if (r < 0) {
		sys_remove(unready);
		if (fd >= 0)
			sys_close(fd);
	}
	sys_close(directory);
	return r < 0 ? r : fd;
}

/* The number of times that the socket is to be made again, in another recording. */
static uint32_t moves;

static int open_listener(void)
{
	int r = sys_hide_files();

	if (r < 0)
		return r;
	/* Occupies descriptors 0 to 2: a log line on standard error must not go to a
	 * connection. */
	for (int i = 0; i < 3; i++)
		sys_open("/dev/null", O_RDWR, 0);
	return open_socket();
}

static void log_failure(int listener)
{
	if (listener < 0)
		log_error("profrun ctl cannot connect (%s)", "SHIM_CONTROL",
			  listener);
}

static void run_server(void *unused)
{
	uint32_t seen = __atomic_load_n(&moves, __ATOMIC_ACQUIRE);
	int listener = open_listener(), fd;

	(void)unused;
	log_failure(listener);
	__atomic_store_n(&is_ready, 1, __ATOMIC_RELEASE);
	sys_wake(&is_ready);
	for (;;) {
		if (sys_is_forbidden())
			sys_park();
		if (__atomic_load_n(&moves, __ATOMIC_ACQUIRE) != seen) {
			seen++;
			if (listener >= 0)
				sys_close(listener);
			listener = open_socket();
			log_failure(listener);
		}
		if (listener < 0)
			sys_sleep_ms(CHECK_MS);
		else if (sys_wait_input(listener, CHECK_MS) > 0 &&
			 (fd = sys_accept(listener)) >= 0) {
			serve_connection(fd);
			sys_close(fd);
			continue;
		}
		if (only_shim_is_left())
			run_on_worker(TASK_EXIT);
	}
}

/* Creates both threads, on a thread with the program's descriptors. */
void control_start(void)
{
	int r;

	if (config.control[0] != '1')
		return;
	r = runtime_thread_start(run_worker, NULL, 0, NULL, "shim-worker");
	if (r == 0)
		r = runtime_thread_start(run_server, NULL, 256u << 10, NULL,
					 "shim-control");
	if (r < 0) {
		log_error("profrun ctl cannot connect (%s)", "SHIM_CONTROL", r);
		return;
	}
	/* Waits until the socket is out of the program's descriptor table. */
	while (!__atomic_load_n(&is_ready, __ATOMIC_ACQUIRE))
		sys_wait(&is_ready, 0, 0);
}

void control_renew(void)
{
	if (!is_ready)
		control_start();
	else
		__atomic_add_fetch(&moves, 1, __ATOMIC_RELEASE);
}

void control_finish(void)
{
	int directory;

	if (!is_ready)
		return;
	directory = record_open_directory();
	if (directory < 0)
		return;
	sys_remove_at(directory, NAME);
	sys_close(directory);
}
