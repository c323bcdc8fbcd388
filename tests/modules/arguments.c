/*
 * Prints calls with their arguments and results, one line an event:
 *
 *     profrun -p ./libshim-profiler-arguments.so:args=PATTERNS,results=PATTERNS \
 *             ./program
 *
 *     12345 parse(text = "1 + 2", length = 5)
 *     12345   next(from = 0x55d0c8 <input+4>, kind = NUMBER)
 *     12345   next -> true
 *     12345 parse -> {kind = SUM, left = {...}}
 *
 * The number is the thread's.  Options, between commas:
 *
 *     args=PATTERNS     of which functions: names without their parameters, * and
 *                       ? stand for any text and any character; + is between two
 *     results=PATTERNS  the same for results
 *     file=PATH         calls.PID.txt by default
 *     json              values as JSON
 *     long              longer strings and arrays
 *
 * Without args and results, both are printed, for all functions.  An unavailable value
 * is a `?`, with the reason if there is one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <shim/hooks.h>
#include <shim/info.h>
#include <shim/record.h>
#include <shim/values.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_MAX_SIZE  8192
#define THREADS_MAX    4096
#define DEPTH_MAX      512
#define PARAMETERS_MAX 64

static struct {
	const char *arguments, *results;	/* patterns; NULL: none */
	uint32_t flags;				/* flags of shim_print_value */
	char path[PATH_MAX];
} options;

/* The client id of a function, which the hooks get, points to this. */
struct function {
	shim_function id;
	int has_arguments, has_results;
	char name[];
};

/* --- which functions --- */

static int matches_one(const char *pattern, size_t length, const char *name)
{
	for (; length > 0; pattern++, length--, name++) {
		if (*pattern == '*') {
			for (;; name++) {
				if (matches_one(pattern + 1, length - 1, name))
					return 1;
				if (!*name)
					return 0;
			}
		}
		if (!*name || (*pattern != '?' && *pattern != *name))
			return 0;
	}
	return !*name;
}

static int matches(const char *patterns, const char *name)
{
	while (patterns) {
		size_t length = strcspn(patterns, "+,");

		if (matches_one(patterns, length, name))
			return 1;
		patterns = patterns[length] == '+' ? patterns + length + 1 :
						     NULL;
	}
	return 0;
}

/* "int *f<int>(char)" becomes f<int>: only names of templates include the result. */
static void drop_result(char *name)
{
	char *begin = name;
	int depth = 0;

	for (char *at = name; *at; at++) {
		if (strncmp(at, "operator", 8) == 0)
			break;
		depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
		if (depth == 0 && *at == ' ')
			begin = at + 1;
	}
	memmove(name, begin, strlen(begin) + 1);
}

/* Cuts off "(int, char)", but not "(anonymous namespace)" or "operator()". */
static void drop_parameters(char *name)
{
	char *end = strrchr(name, ')');
	int depth = 0;

	for (; end && end > name; end--) {
		depth += (*end == ')') - (*end == '(');
		if (depth == 0)
			break;
	}
	if (end && end > name)
		*end = '\0';
}

/* Called once for each function. */
static uintptr_t map_function(shim_function id, void *unused, int *hook)
{
	char name[1024];
	struct function *function;
	int has_arguments, has_results;

	(void)unused;
	*hook = 0;
	if (shim_function_demangled_name(id, sizeof(name), NULL, name) !=
	    SHIM_OK)
		snprintf(name, sizeof(name), "%#lx", (unsigned long)id);
	drop_parameters(name);
	drop_result(name);
	has_arguments = matches(options.arguments, name);
	has_results = matches(options.results, name);
	if (!has_arguments && !has_results)
		return 0;
	function = shim_memory_map(sizeof(*function) + strlen(name) + 1);
	if (!function)
		return 0;
	function->id = id;
	function->has_arguments = has_arguments;
	function->has_results = has_results;
	strcpy(function->name, name);
	*hook = 1;
	return (uintptr_t)function;
}

/* --- a thread's line, and its depth --- */

/* No hook of the same thread can interrupt a hook. */
struct calls {
	shim_thread thread;
	uint32_t tid;
	uint32_t depth;
	struct {
		const struct function *function;
		uintptr_t frame;
	} stack[DEPTH_MAX];
	size_t length;
	char line[LINE_MAX_SIZE];
	char arguments[sizeof(struct shim_argument_info) +
		       PARAMETERS_MAX * sizeof(struct shim_argument_range)];
};

/* By thread id.  Thread-local data of a module might have to be allocated at its first
 * use. */
static struct calls *threads[THREADS_MAX];

static struct calls *my_calls(void)
{
	struct calls *mine, *none;
	shim_thread self;

	if (shim_thread_current(&self) != SHIM_OK)
		return NULL;
	for (uint64_t i = 0; i < THREADS_MAX; i++) {
		struct calls **place = &threads[(self + i) % THREADS_MAX];

		mine = __atomic_load_n(place, __ATOMIC_ACQUIRE);
		if (mine && mine->thread == self)
			return mine;
		if (mine)
			continue;
		mine = shim_memory_map(sizeof(*mine));
		if (!mine)
			return NULL;
		mine->thread = self;
		mine->tid = shim_thread_id();
		none = NULL;
		if (__atomic_compare_exchange_n(place, &none, mine, 0,
						__ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return mine;
	}
	return NULL;
}

/* Drops frames below this one: they were left by longjmp or an exception. */
static void drop_left(struct calls *calls, uintptr_t frame)
{
	while (calls->depth > 0 && calls->depth <= DEPTH_MAX &&
	       calls->stack[calls->depth - 1].frame <= frame)
		calls->depth--;
}

static void push(struct calls *calls, const struct function *function,
		 uintptr_t frame)
{
	if (calls->depth < DEPTH_MAX) {
		calls->stack[calls->depth].function = function;
		calls->stack[calls->depth].frame = frame;
	}
	calls->depth++;
}

static void pop(struct calls *calls, const struct function *function)
{
	uint32_t depth = calls->depth;

	if (depth > DEPTH_MAX) {
		calls->depth--;
		return;
	}
	while (depth > 0 && calls->stack[depth - 1].function != function)
		depth--;
	if (depth > 0)
		calls->depth = depth - 1;
}

/* --- lines: text that does not fit is cut --- */

static void add(struct calls *calls, const char *text)
{
	size_t left = LINE_MAX_SIZE - 1 - calls->length;
	size_t size = strlen(text);

	size = size < left ? size : left;
	memcpy(calls->line + calls->length, text, size);
	calls->length += size;
}

static void begin(struct calls *calls, const char *name)
{
	char tid[16];

	snprintf(tid, sizeof(tid), "%u ", (unsigned)calls->tid);
	calls->length = 0;
	add(calls, tid);
	for (uint32_t i = 0; i < calls->depth && i < 100; i++)
		add(calls, "  ");
	add(calls, name);
}

/* The program may have closed all files: the module keeps none open. */
static void end(struct calls *calls)
{
	long file = syscall(SYS_openat, AT_FDCWD, options.path,
			    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
				    O_NOFOLLOW,
			    0600);

	calls->line[calls->length++] = '\n';
	if (file < 0)
		return;
	syscall(SYS_write, file, calls->line, calls->length);
	syscall(SYS_close, file);
}

static void add_reason(struct calls *calls, const char *reason)
{
	add(calls, "? (");
	add(calls, reason ? reason : "not known");
	add(calls, ")");
}

static void add_missing(struct calls *calls, shim_elt_info info,
			uint32_t position)
{
	enum shim_unavailable reason;
	enum shim_result result = shim_get_value_reason(info, position, &reason);

	add_reason(calls, result == SHIM_OK ? shim_unavailable_text(reason) :
					      shim_result_text(result));
}

static void add_value(struct calls *calls, shim_type type,
		      const struct shim_argument_range *range)
{
	size_t left = LINE_MAX_SIZE - 1 - calls->length;
	uint32_t total;
	enum shim_result result;

	result = shim_print_value(type, (const void *)range->start,
				  options.flags, (uint32_t)left, &total,
				  calls->line + calls->length);
	if (result != SHIM_OK)
		add(calls, "?");
	else if (total <= left)
		calls->length += total - 1;
	else
		calls->length += strlen(calls->line + calls->length);
}

/* --- hooks --- */

static void add_arguments(struct calls *calls, const struct function *function,
			  shim_elt_info info)
{
	struct shim_argument_info *arguments = (void *)calls->arguments;
	uint32_t size = sizeof(calls->arguments);
	enum shim_result result;
	char name[64];
	shim_type type;

	result = shim_get_function_enter3_info(function->id, info, NULL, &size,
					       arguments);
	if (result != SHIM_OK) {
		add_reason(calls, shim_result_text(result));
		return;
	}
	for (uint32_t i = 0; i < arguments->ranges_count; i++) {
		if (i > 0)
			add(calls, ", ");
		result = shim_get_parameter_info(function->id, i, &type,
						 sizeof(name), NULL, name);
		if (result != SHIM_OK) {
			add_reason(calls, shim_result_text(result));
			continue;
		}
		if (name[0]) {
			add(calls, name);
			add(calls, " = ");
		}
		if (arguments->ranges[i].start)
			add_value(calls, type, &arguments->ranges[i]);
		else
			add_missing(calls, info, i);
	}
}

static void entered(union shim_function_or_client client, shim_elt_info info)
{
	const struct function *function = (const void *)client.client;
	struct calls *calls = my_calls();
	uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

	if (!calls)
		return;
	drop_left(calls, frame);
	if (function->has_arguments) {
		begin(calls, function->name);
		add(calls, "(");
		add_arguments(calls, function, info);
		add(calls, ")");
		end(calls);
	}
	push(calls, function, frame);
}

static void add_result(struct calls *calls, const struct function *function,
		       shim_elt_info info)
{
	struct shim_argument_range range = { 0, 0 };
	enum shim_type_kind kind = SHIM_TYPE_UNKNOWN;
	shim_frame_info frame;
	enum shim_result result;
	shim_type type;

	result = shim_get_result_type(function->id, &type);
	if (result == SHIM_OK)
		shim_get_type_info(type, &kind, NULL, 0, NULL, NULL);
	if (kind == SHIM_TYPE_VOID) {
		add(calls, "void");
		return;
	}
	if (result == SHIM_OK)
		result = shim_get_function_leave3_info(function->id, info,
						       &frame, &range);
	if (result != SHIM_OK)
		add_reason(calls, shim_result_text(result));
	else if (range.start)
		add_value(calls, type, &range);
	else
		add_missing(calls, info, SHIM_RESULT);
}

static void left(union shim_function_or_client client, shim_elt_info info)
{
	const struct function *function = (const void *)client.client;
	struct calls *calls = my_calls();

	if (!calls)
		return;
	pop(calls, function);
	if (!function->has_results)
		return;
	begin(calls, function->name);
	add(calls, " -> ");
	add_result(calls, function, info);
	end(calls);
}

static void tail_called(union shim_function_or_client client,
			shim_elt_info info)
{
	const struct function *function = (const void *)client.client;
	struct calls *calls = my_calls();

	(void)info;
	if (!calls)
		return;
	pop(calls, function);
	if (!function->has_results)
		return;
	begin(calls, function->name);
	add(calls, " -> (calls another function last)");
	end(calls);
}

/* --- start --- */

static int set_option(const char *option, size_t length)
{
	if (strncmp(option, "args=", 5) == 0)
		options.arguments = option + 5;
	else if (strncmp(option, "results=", 8) == 0)
		options.results = option + 8;
	else if (strncmp(option, "file=", 5) == 0)
		snprintf(options.path, sizeof(options.path), "%.*s",
			 (int)length - 5, option + 5);
	else if (length == 4 && strncmp(option, "json", 4) == 0)
		options.flags |= SHIM_PRINT_JSON;
	else if (length == 4 && strncmp(option, "long", 4) == 0)
		options.flags |= SHIM_PRINT_LONG;
	else
		return 0;
	return 1;
}

/* The description stays valid as long as the module. */
static int read_options(const char *description)
{
	const char *option = strchr(description, ':');

	while (option) {
		size_t length = strcspn(option + 1, ",");

		if (length > 0 && !set_option(option + 1, length))
			return 0;
		option += 1 + length;
		if (*option != ',')
			option = NULL;
	}
	if (!options.arguments && !options.results)
		options.arguments = options.results = "*";
	return 1;
}

/* The program may change its working directory. */
static void complete_path(void)
{
	char directory[PATH_MAX], file[NAME_MAX];

	if (options.path[0] == '/')
		return;
	if (!options.path[0]) {
		snprintf(file, sizeof(file), "calls.%d.txt", (int)getpid());
		strcpy(options.path, file);
	}
	if (getcwd(directory, sizeof(directory)) &&
	    strlen(directory) + strlen(options.path) + 2 <=
		    sizeof(options.path)) {
		memmove(options.path + strlen(directory) + 1, options.path,
			strlen(options.path) + 1);
		memcpy(options.path, directory, strlen(directory));
		options.path[strlen(directory)] = '/';
	}
}

SHIM_PROFILER_MODULE(arguments)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	enum shim_result result;

	if (!handle || !read_options(description))
		return SHIM_E_FAIL;
	complete_path();
	result = shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
						     SHIM_ENABLE_FUNCTION_ARGS |
						     SHIM_ENABLE_FUNCTION_RETVAL);
	if (result == SHIM_OK)
		result = shim_profiler_set_function_id_mapper2(handle, map_function,
						      NULL);
	if (result == SHIM_OK)
		result = shim_profiler_set_enter_leave_function_hooks3_with_info(
			handle, entered, left, tail_called);
	return result;
}
