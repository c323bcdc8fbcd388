/*
 * Forbidden actions of a profiler, to test that the program survives them:
 *
 *     naughty:WHAT:FILE
 *
 *     throw     an exception out of a callback
 *     filter    the same out of a filter
 *     jump      longjmp out of one
 *     block     never come back from one, while it is detached
 *     thread    leave a thread of its own running when it detaches
 *     init      an exception out of its init function
 *     forget    go without removing a callback
 *
 * FILE gets a line for each callback.
 */
#include <csetjmp>
#include <dlfcn.h>
#include <fcntl.h>
#include <shim/hooks.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

static std::string what, path;

static void note(const char *text)
{
	int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);

	if (write(fd, text, std::string(text).size()) < 0)
		_exit(99);
	close(fd);
}

static void until_file_is_gone(void *)
{
	while (access(path.c_str(), F_OK) == 0)
		usleep(1000);
}

/* The thread may be any thread of the program. */
static void on_method_enter(shim_profiler *, shim_function, shim_call_context *)
{
	static int entered;
	static int *waits = (int *)dlsym(RTLD_DEFAULT, "program_waits");

	if (what == "jump" && (!waits || !*waits))
		return;
	if (__atomic_fetch_add(&entered, 1, __ATOMIC_RELAXED))
		return;
	note("method_enter\n");
	if (what == "throw")
		throw std::runtime_error("out of a callback");
	if (what == "jump")
		longjmp(*(jmp_buf *)dlsym(RTLD_DEFAULT, "program_back"), 1);
	if (what == "block")
		until_file_is_gone(nullptr);
}

static void on_initialized(shim_profiler *)
{
	note("initialized\n");
	if (what == "throw")
		throw std::runtime_error("out of a callback");
}

static void on_shutdown_begin(shim_profiler *)
{
	note("shutdown begin\n");
}

static void on_detached(shim_profiler *)
{
	note("detached\n");
}

static shim_call_instrumentation_flags all(shim_profiler *, shim_function)
{
	if (what == "filter") {
		note("filter\n");
		throw std::runtime_error("out of a filter");
	}
	return SHIM_CALL_INSTRUMENTATION_ENTER;
}

SHIM_PROFILER_MODULE(naughty)
{
	std::string text(description);
	size_t first = text.find(':'), second = text.find(':', first + 1);
	shim_profiler_handle *handle = shim_profiler_create(nullptr);

	what = text.substr(first + 1, second - first - 1);
	path = text.substr(second + 1);
	note("init\n");
	if (what == "init")
		throw std::runtime_error("out of init");
	shim_profiler_on_runtime_initialized(handle, on_initialized);
	shim_profiler_on_runtime_shutdown_begin(handle, on_shutdown_begin);
	shim_profiler_on_method_enter(handle, on_method_enter);
	shim_profiler_on_detach_succeeded(handle, on_detached);
	if (what == "thread")
		shim_thread_create(until_file_is_gone, nullptr);
	if (what != "block" && what != "jump" && what != "filter")
		return SHIM_OK;
	return shim_profiler_set_call_instrumentation_filter_callback(handle,
								      all);
}
