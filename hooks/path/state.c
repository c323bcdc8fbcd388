/*
 * State that all files of the engine share: the current call of each thread, and the
 * needs of profilers.
 */
#include "path/path.h"
#include "path/calls.h"
#include "path/times.h"

#include <shim/banned.h>

/* A tick that never changes: a changing one could make the node of a measurement
 * exact. */
const uint64_t cost_no_tick;

uint32_t tree_restarts;
uint32_t tree_starts = 1; /* a thread that has not looked back has 0 */
uint32_t tree_recording = FIRST_RECORDING;
struct shim_node tree_no_call = { .function = ~0ull };
struct shim_node tree_no_child = { .function = ~0ull,
				   .parent = (uint64_t)&tree_no_call };
struct shim_node *tree_no_cache[1] = { &tree_no_child };

/* libc may leave all of it 0 in a thread that is being created while an attach opens shim's
 * library.  Then it is that of a former recording, and its hooks look back first. */
__thread struct hot tree_hot = { .current = &tree_no_call,
				 .below = HOT_NOWHERE,
				 .cache = tree_no_cache,
				 .tick = &cost_no_tick,
				 .recording = FIRST_RECORDING };

enum clock tree_mode;
bool tree_has_file;
const volatile uint64_t *tree_tick;
bool tree_is_cpu;
uint64_t tree_long_clock;

bool tree_is_asked;
bool tree_is_traced;

const struct path_client *path_clients[PATH_CLIENTS + 1];
const struct path_writer *path_writer;
