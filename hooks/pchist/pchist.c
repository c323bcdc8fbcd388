/*
 * The pchist profiler: `-p pchist[:hz=N]`.  It makes the program counter histograms of
 * monitor(3) for programs that do not call it.
 */
#include "options/start.h"

#include <shim/banned.h>

#define FREQUENCY_HZ 250

static uint32_t frequency_hz = FREQUENCY_HZ;

static void take_option(enum option_name name, const struct option_value *value)
{
	(void)name;
	frequency_hz = (uint32_t)value->number;
}

static bool start_pchist(void)
{
	shim_monitor_by_default(frequency_hz);
	return true;
}

BUILTIN(pchist, take_option, start_pchist, .is_early = true,
	.stays = "the program may have its own histograms, which it stops by "
		 "monitor(3)");
