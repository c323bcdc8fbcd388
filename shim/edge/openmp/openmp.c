/*
 * libshim-openmp.so: what the runtime of OpenMP does, as functions of the call tree.
 *
 * It is a tool of OMPT, the interface of OpenMP 5.0 for tools, which clang's libomp has:
 * the runtime asks for `ompt_start_tool` and then calls the functions below.  They call the
 * compiler's hooks as if the functions named omp.* were entered and left.  So a thread of a
 * team has its implicit task in the tree, the region's function below it, and beside that
 * its waits at barriers.
 *
 * The numbers and types are those of the OpenMP specification, so that no header of a
 * compiler is needed.
 */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* enum ompt_callbacks_t */
enum {
	PARALLEL_BEGIN = 3,
	PARALLEL_END = 4,
	IMPLICIT_TASK = 7,
	SYNC_REGION = 23
};

enum { SCOPE_BEGIN = 1, SCOPE_END = 2 };

/* enum ompt_sync_region_t; all others are barriers */
enum { TASKWAIT = 5, TASKGROUP = 6, REDUCTION = 7 };

#define TASK_INITIAL 1 /* the whole program: a flag of implicit tasks */

typedef void (*any_function)(void);
typedef any_function (*find_function)(const char *name);
typedef int (*set_function)(int event, any_function callback);

struct tool {
	int (*initialize)(find_function find, int device, uint64_t *data);
	void (*finalize)(uint64_t *data);
	uint64_t data;
};

EXPORT struct tool *ompt_start_tool(unsigned version, const char *runtime);

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

/* --- the functions of the call tree --- */

/* No C program can have functions of these names.  They are never called. */
#define FUNCTION(name, shown, number) \
	void name(void) __asm__(shown); \
	EXPORT void name(void) \
	{ \
		__asm__ volatile("" ::"i"(number)); \
	}

FUNCTION(parallel, "omp.parallel", 1)
FUNCTION(implicit_task, "omp.implicit_task", 2)
FUNCTION(barrier, "omp.barrier", 3)
FUNCTION(taskwait, "omp.taskwait", 4)
FUNCTION(taskgroup, "omp.taskgroup", 5)
FUNCTION(reduction, "omp.reduction", 6)

/* --- what the runtime tells --- */

/*
 * shim takes the stack pointer for the frame of a call: calls from below it are its callees.
 * The runtime calls the functions of a region from deeper frames than the callbacks that
 * begin it, so hooks are called by a jump, without a frame here.  But it may call the
 * callback of the wait that ends an implicit task from a higher frame than the one that
 * began the task.  Then the wait gets a frame just below that of the task; tasks that the
 * thread executes while it waits are still deeper.
 */
#define ROOM	 64
#define ROOM_MAX 65536 /* more than between two frames of the runtime */

static __attribute__((noinline)) void enter_deep(void *function, void *site,
						 uint64_t depth)
{
	char space[depth];

	__asm__ volatile("" ::"r"(space) : "memory");
	__cyg_profile_func_enter(function, site);
	__asm__ volatile("" ::"r"(space) : "memory");
}

static void begin_parallel(void *task, const void *frame, void *data,
			   unsigned requested, int flags, void *site)
{
	(void)task;
	(void)frame;
	(void)data;
	(void)requested;
	(void)flags;
	__cyg_profile_func_enter((void *)parallel, site);
}

static void end_parallel(void *data, void *task, int flags, void *site)
{
	(void)data;
	(void)task;
	(void)flags;
	__cyg_profile_func_exit((void *)parallel, site);
}

/* *@task is ours; it keeps the frame. */
static void change_task(int endpoint, void *data, uint64_t *task,
			unsigned threads, unsigned index, int flags)
{
	(void)data;
	(void)threads;
	(void)index;
	if (flags & TASK_INITIAL)
		return;
	if (endpoint == SCOPE_BEGIN && task)
		*task = (uint64_t)__builtin_frame_address(0);
	if (endpoint == SCOPE_BEGIN)
		__cyg_profile_func_enter((void *)implicit_task, NULL);
	else if (endpoint == SCOPE_END)
		__cyg_profile_func_exit((void *)implicit_task, NULL);
}

static void *function_of(int kind)
{
	switch (kind) {
	case TASKWAIT: return (void *)taskwait;
	case TASKGROUP: return (void *)taskgroup;
	case REDUCTION: return (void *)reduction;
	default: return (void *)barrier;
	}
}

static void synchronize(int kind, int endpoint, void *data,
			const uint64_t *task, void *site)
{
	uint64_t frame = (uint64_t)__builtin_frame_address(0);

	(void)data;
	if (endpoint == SCOPE_BEGIN && task && frame > *task &&
	    frame - *task < ROOM_MAX)
		enter_deep(function_of(kind), site, frame - *task + ROOM);
	else if (endpoint == SCOPE_BEGIN)
		__cyg_profile_func_enter(function_of(kind), site);
	else if (endpoint == SCOPE_END)
		__cyg_profile_func_exit(function_of(kind), site);
}

/* --- the start --- */

static int initialize(find_function find, int device, uint64_t *data)
{
	set_function set = (set_function)find("ompt_set_callback");

	(void)device;
	(void)data;
	if (!set)
		return 0;
	set(PARALLEL_BEGIN, (any_function)begin_parallel);
	set(PARALLEL_END, (any_function)end_parallel);
	set(IMPLICIT_TASK, (any_function)change_task);
	set(SYNC_REGION, (any_function)synchronize);
	return 1;
}

static void finalize(uint64_t *data)
{
	(void)data;
}

struct tool *ompt_start_tool(unsigned version, const char *runtime)
{
	static struct tool tool = { .initialize = initialize,
				    .finalize = finalize };

	(void)version;
	(void)runtime;
	return &tool;
}
