/*
 * For `profrun ctl PID load attached:FILE --data DATA`: checks for every thread that
 * calls nest, and reports when it was detached.
 *
 * At the start, some calls are already open: their leaves come when the module thinks
 * the thread is in no call.  All other calls must nest.
 */
#include <shim/hooks.h>
#include <shim/record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 64
#define DEEP	256

struct thread {
	uint32_t id;
	unsigned depth;
	unsigned long enters, leaves, open_before, wrong;
	shim_function calls[DEEP];
};

static struct thread threads[THREADS];
static char *path;
static uint32_t data_size;
static unsigned char data[1 << 20];
static int complete;

/* Only shim_thread_id distinguishes threads everywhere. */
static struct thread *this_thread(void)
{
	uint32_t id = shim_thread_id();

	for (int i = 0; i < THREADS; i++) {
		uint32_t nobody = 0;

		if (__atomic_load_n(&threads[i].id, __ATOMIC_RELAXED) == id ||
		    __atomic_compare_exchange_n(&threads[i].id, &nobody, id, 0,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return &threads[i];
	}
	return &threads[0];
}

static void entered(union shim_function_or_client function)
{
	struct thread *self = this_thread();

	/* Most threads are in this hook when the module is detached: without waiting
	 * for them, shim would unmap this code under them. */
	if (self->enters++ % 64 == 0)
		nanosleep(&(struct timespec){ 0, 200000 }, NULL);
	if (self->depth < DEEP)
		self->calls[self->depth] = function.function;
	self->depth++;
}

static void left(union shim_function_or_client function)
{
	struct thread *self = this_thread();

	self->leaves++;
	if (self->depth == 0) {
		self->open_before++;
		return;
	}
	self->depth--;
	if (self->depth < DEEP &&
	    self->calls[self->depth] != function.function)
		self->wrong++;
}

static void on_attached(struct shim_profiler *profiler)
{
	(void)profiler;
	complete++;
}

static void on_detached(struct shim_profiler *profiler)
{
	FILE *file = fopen(path, "a");

	(void)profiler;
	if (!file)
		return;
	fprintf(file, "attached %d data %u", complete, data_size);
	for (uint32_t i = 0; i < data_size; i++)
		fprintf(file, "%s%02x", i ? "" : " ", data[i]);
	for (int i = 0; i < THREADS && threads[i].id; i++)
		fprintf(file, "\nthread %u enters %lu leaves %lu before %lu "
			      "after %u wrong %lu", threads[i].id,
			threads[i].enters, threads[i].leaves,
			threads[i].open_before, threads[i].depth,
			threads[i].wrong);
	fprintf(file, "\nend\n");
	fclose(file);
}

static void cleanup(struct shim_profiler *profiler)
{
	(void)profiler;
	free(path);
}

SHIM_PROFILER_MODULE(attached)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);
	enum shim_result result;

	result = shim_profiler_attach_data(sizeof(data), &data_size, data);
	if (!handle || SHIM_FAILED(result) || data_size > (uint32_t)sizeof(data))
		return SHIM_E_FAIL;
	path = strdup(strchr(description, ':') + 1);
	shim_profiler_on_attach_complete(handle, on_attached);
	shim_profiler_on_detach_succeeded(handle, on_detached);
	shim_profiler_set_cleanup_callback(handle, cleanup);
	return shim_profiler_set_enter_leave_function_hooks3(handle, entered, left, NULL);
}
