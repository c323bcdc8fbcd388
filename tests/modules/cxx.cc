/*
 * A profiler in C++: it records the order of the process's events.
 */
#include <fstream>
#include <memory>
#include <mutex>
#include <shim/profiler.h>
#include <string>
#include <vector>

struct shim_profiler {
	std::string path;
	std::mutex lock;
	std::vector<std::string> events;

	void note(const char *event)
	{
		std::lock_guard<std::mutex> guard(lock);
		events.push_back(event);
	}
};

/* Exceptions must stay inside: shim would stop one that left a callback, and switch
 * this profiler off. */
static std::string arguments_of(const std::string &description)
{
	return description.substr(description.find(':') + 1);
}

static void on_initialized(shim_profiler *self)
{
	self->note("initialized");
}

static void on_shutdown_begin(shim_profiler *self)
{
	self->note("shutdown begin");
}

static void on_shutdown_end(shim_profiler *self)
{
	self->note("shutdown end");
}

/* Called once, after all other callbacks: frees the objects of init. */
static void on_cleanup(shim_profiler *self)
{
	std::unique_ptr<shim_profiler> owner(self);
	std::ofstream file(self->path);

	self->note("cleanup");
	for (const std::string &event : self->events)
		file << event << "\n";
}

/* "cxx:FILE" */
SHIM_PROFILER_MODULE(cxx)
{
	auto self = std::make_unique<shim_profiler>();
	shim_profiler_handle *handle;

	self->path = arguments_of(description);
	handle = shim_profiler_create(self.get());
	if (!handle)
		return SHIM_E_FAIL;
	shim_profiler_on_runtime_initialized(handle, on_initialized);
	shim_profiler_on_runtime_shutdown_begin(handle, on_shutdown_begin);
	shim_profiler_on_runtime_shutdown_end(handle, on_shutdown_end);
	shim_profiler_set_cleanup_callback(handle, on_cleanup);
	self.release();
	return SHIM_OK;
}
