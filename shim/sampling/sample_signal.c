/*
 * The signal of samples, and the action that the program has set for it.
 */
#include "sampling/sample.h"

#include "os/sys.h"

#include <shim/banned.h>

int sample_signal;
struct sys_action sample_program_action;
