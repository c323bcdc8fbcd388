/*
 * Programs that are executed without shim, which the recording tells of: those whose
 * environment preloads nothing, those that run with the rights of another user, those that
 * cannot load it, and those that could not record: shim there would tell its reason on
 * standard error.
 */
#include "edge/edge.h"

#include "edge/executed.h"
#include "os/sys.h"
#include "runtime/config.h"
#include "runtime/log.h"
#include "runtime/record.h"
#include "runtime/state.h"

#include <sys/stat.h>

#include <shim/banned.h>

/* Why a program is left out. */
enum reason {
	ENVIRONMENT,
	RIGHTS,
	STATIC,
	FOREIGN,
	ABSENT,
	OUT_OF_REACH,
	REASONS
};

static const char *const texts[REASONS] = {
	[ENVIRONMENT] = "its environment has no LD_PRELOAD with shim",
	[RIGHTS] = "it runs with the rights of another user",
	[STATIC] = "it is statically linked",
	[FOREIGN] = "it is built for another kind of machine",
	[ABSENT] = "it cannot open shim's library from there",
	[OUT_OF_REACH] = "it cannot write to the recording from there",
};

/* Set if this process has shim by LD_PRELOAD, so that others were to have it, too. */
static bool is_preloaded;
/* Once a process: a shell may execute thousands.  A vfork child sets its parent's. */
static bool is_told[REASONS];

void edge_left_out_resolve(void)
{
	is_preloaded = executed_names_shim(config_variable("LD_PRELOAD"));
}

static bool gets_other_rights(const struct sys_status *status)
{
	unsigned user;

	return status->mode & S_ISUID && sys_user(&user) == 0 &&
	       status->user != user;
}

static enum reason reason_of(const struct executed *executed,
			     char *const environment[], bool has_shim)
{
	if (executed->kind == EXECUTED_FOREIGN)
		return FOREIGN;
	if (executed->kind == EXECUTED_STATIC)
		return STATIC;
	if (!has_shim)
		return ENVIRONMENT;
	if (gets_other_rights(&executed->status))
		return RIGHTS;
	if (!executed_opens_shim(environment))
		return ABSENT;
	return record_is_out_of_reach() ? OUT_OF_REACH : REASONS;
}

bool edge_leave_out(int directory, const char *name, char *const environment[])
{
	struct executed executed;
	enum reason reason;
	bool has_shim;

	if (!name || !is_preloaded)
		return false;
	has_shim = executed_preloads_shim(environment);
	if ((!has_shim &&
	     __atomic_load_n(&is_told[ENVIRONMENT], __ATOMIC_RELAXED)) ||
	    !executed_find(directory, name, &executed))
		return false;
	reason = reason_of(&executed, environment, has_shim);
	if (state_get() == STATE_RUNNING && reason < REASONS &&
	    !__atomic_exchange_n(&is_told[reason], true, __ATOMIC_RELAXED))
		log_line("an executed program is not recorded: %s: %s",
			 texts[reason], name);
	/* The dynamic linker or shim would tell the user about these. */
	return has_shim && reason >= FOREIGN && reason < REASONS;
}
