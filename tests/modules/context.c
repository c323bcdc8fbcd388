/*
 * Call contexts: prints each call of the functions that its argument names, with
 * `this`, the arguments, the locals and the result.  Values are printed as bytes: the
 * description gives their size, not their meaning.
 *
 *     context:FILE:NAME,NAME...
 */
#include <pthread.h>
#include <shim/contexts.h>
#include <shim/info.h>
#include <stdio.h>
#include <string.h>

struct shim_profiler {
	FILE *file;
	const char *names;
	pthread_mutex_t lock;
};

static struct shim_profiler self = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int is_listed(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; (at = strstr(at, name)); at++)
		if ((at == list || at[-1] == ',') &&
		    (at[length] == '\0' || at[length] == ','))
			return 1;
	return 0;
}

static enum shim_call_instrumentation_flags
choose(struct shim_profiler *profiler, shim_function function)
{
	char name[256];

	if (shim_function_name(function, sizeof(name), NULL, name) != SHIM_OK ||
	    !is_listed(profiler->names, name))
		return SHIM_CALL_INSTRUMENTATION_NONE;
	return (enum shim_call_instrumentation_flags)(
		SHIM_CALL_INSTRUMENTATION_ENTER |
		SHIM_CALL_INSTRUMENTATION_ENTER_CONTEXT |
		SHIM_CALL_INSTRUMENTATION_LEAVE |
		SHIM_CALL_INSTRUMENTATION_LEAVE_CONTEXT);
}

/* Prints @value and releases it. */
static void print(FILE *file, struct shim_call_context *context,
		  enum shim_call_value kind, uint32_t position, void *value)
{
	enum shim_unavailable reason = SHIM_AVAILABLE;

	if (!value) {
		shim_call_context_get_info(context, kind, position, NULL,
					   &reason);
		fprintf(file, " (not available: %d)", reason);
		return;
	}
	fputc(' ', file);
	for (size_t i = 0; i < shim_call_context_get_size(value); i++)
		fprintf(file, "%02x", ((unsigned char *)value)[i]);
	shim_call_context_free_buffer(value);
}

static void print_function(FILE *file, const char *when, shim_function function)
{
	char name[256] = "?";

	shim_function_name(function, sizeof(name), NULL, name);
	fprintf(file, "%s %s:", when, name);
}

static void entered(struct shim_profiler *profiler, shim_function function,
		    struct shim_call_context *context)
{
	uint32_t count = 0;

	pthread_mutex_lock(&profiler->lock);
	print_function(profiler->file, "enter", function);
	shim_call_context_get_count(context, SHIM_CALL_THIS, &count);
	if (count > 0) {
		fprintf(profiler->file, " this");
		print(profiler->file, context, SHIM_CALL_THIS, 0,
		      shim_call_context_get_this(context));
	}
	count = 0;
	shim_call_context_get_count(context, SHIM_CALL_ARGUMENT, &count);
	for (uint32_t i = 0; i < count; i++)
		print(profiler->file, context, SHIM_CALL_ARGUMENT, i,
		      shim_call_context_get_argument(context, i));
	fputc('\n', profiler->file);
	pthread_mutex_unlock(&profiler->lock);
}

static void left(struct shim_profiler *profiler, shim_function function,
		 struct shim_call_context *context)
{
	uint32_t count = 0;
	char name[64];

	pthread_mutex_lock(&profiler->lock);
	print_function(profiler->file, "leave", function);
	shim_call_context_get_count(context, SHIM_CALL_LOCAL, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (shim_call_context_get_local_info(context, i, NULL, NULL,
						     sizeof(name), NULL,
						     name) != SHIM_OK)
			break;
		fprintf(profiler->file, " %s", name);
		print(profiler->file, context, SHIM_CALL_LOCAL, i,
		      shim_call_context_get_local(context, i));
	}
	count = 0;
	shim_call_context_get_count(context, SHIM_CALL_RESULT, &count);
	if (count > 0) {
		fprintf(profiler->file, " result");
		print(profiler->file, context, SHIM_CALL_RESULT, 0,
		      shim_call_context_get_result(context));
	}
	fputc('\n', profiler->file);
	pthread_mutex_unlock(&profiler->lock);
}

static void ends(struct shim_profiler *profiler)
{
	fclose(profiler->file);
}

SHIM_PROFILER_MODULE(context)
{
	struct shim_profiler_handle *handle = shim_profiler_create(&self);
	const char *path = strchr(description, ':');
	const char *names = path ? strchr(path + 1, ':') : NULL;
	char file[4096];

	if (!handle || !names || (size_t)(names - path) > sizeof(file))
		return SHIM_E_FAIL;
	memcpy(file, path + 1, (size_t)(names - path - 1));
	file[names - path - 1] = '\0';
	self.names = names + 1;
	self.file = fopen(file, "w");
	if (!self.file)
		return SHIM_E_FAIL;
	shim_profiler_enable_symbols(handle);
	shim_profiler_on_method_enter(handle, entered);
	shim_profiler_on_method_leave(handle, left);
	shim_profiler_on_runtime_shutdown_end(handle, ends);
	shim_profiler_set_call_instrumentation_filter_callback(handle, choose);
	return shim_profiler_enable_call_context_introspection(handle);
}
