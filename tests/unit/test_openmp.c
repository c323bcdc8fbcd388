/*
 * What the OpenMP runtime tells, as calls: the test is the runtime and the hooks.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "../../shim/edge/openmp/openmp.c"

static void *function, *at_site;
static int open_calls;
static uintptr_t lowest;

__attribute__((noinline)) void __cyg_profile_func_enter(void *called,
							void *site)
{
	function = called;
	at_site = site;
	open_calls++;
	lowest = (uintptr_t)__builtin_frame_address(0);
}

void __cyg_profile_func_exit(void *called, void *site)
{
	(void)site;
	cr_expect(eq(ptr, called, function));
	open_calls--;
}

#define EVENTS 64

static any_function callbacks[EVENTS];

static int set_callback(int event, any_function callback)
{
	cr_assert(lt(int, event, EVENTS));
	callbacks[event] = callback;
	return 5;
}

static any_function find(const char *name)
{
	return strcmp(name, "ompt_set_callback") == 0 ?
		       (any_function)set_callback :
		       NULL;
}

static any_function find_nothing(const char *name)
{
	(void)name;
	return NULL;
}

typedef void (*sync_function)(int kind, int endpoint, void *data,
			      const uint64_t *task, void *site);

static sync_function begin(void)
{
	struct tool *tool = ompt_start_tool(201811, "the test");

	cr_assert(eq(int, tool->initialize(find, 0, &tool->data), 1));
	cr_assert(ne(ptr, (void *)callbacks[SYNC_REGION], NULL));
	return (sync_function)callbacks[SYNC_REGION];
}

/* The numbers are those of omp-tools.h. */
Test(openmp, each_wait_has_a_function)
{
	static const struct {
		int kind;
		void (*function)(void);
	} waits[] = {
		{ 1, barrier },	  { 2, barrier },  { 3, barrier },
		{ 4, barrier },	  { 5, taskwait }, { 6, taskgroup },
		{ 7, reduction }, { 8, barrier },  { 9, barrier },
	};
	sync_function callback = begin();
	char site;

	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		callback(waits[i].kind, SCOPE_BEGIN, NULL, NULL, &site);
		cr_expect(eq(ptr, function, (void *)waits[i].function),
			  "kind %d", waits[i].kind);
		cr_expect(eq(ptr, at_site, &site));
		cr_expect(eq(int, open_calls, 1));
		callback(waits[i].kind, SCOPE_END, NULL, NULL, &site);
		cr_expect(zero(int, open_calls));
	}
}

/* Otherwise its task would be its callee. */
Test(openmp, a_wait_below_its_task_has_a_deeper_frame)
{
	sync_function callback = begin();
	uint64_t task = (uintptr_t)__builtin_frame_address(0) - 8000;

	callback(TASKWAIT, SCOPE_BEGIN, NULL, &task, NULL);
	cr_expect(lt(u64, lowest, task));
	cr_expect(eq(ptr, function, (void *)taskwait));
	callback(TASKWAIT, SCOPE_END, NULL, &task, NULL);
	cr_expect(zero(int, open_calls));
}

Test(openmp, a_runtime_without_callbacks_is_left_alone)
{
	struct tool *tool = ompt_start_tool(201811, "the test");

	cr_expect(zero(int, tool->initialize(find_nothing, 0, &tool->data)));
}
