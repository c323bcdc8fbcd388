/*
 * What marks of the compiler would call.  marks.c finds none on this processor.
 */
#include <shim/banned.h>

void sources_nothing(void);
void shim_sled_entry0(void);
void shim_sled_entry4(void);
void sources_uncounted0(void);
void sources_uncounted4(void);
void sources_sled_tailcall(void);
void sources_sled_condition(void);
void sources_direct_condition(void);
void sources_direct_enter(void);
void shim_sled_leave(void);
void sources_direct_tailcall(void);
void sources_plan_enter(void);
void sources_plan_leave(void);
void sources_plan_tailcall(void);
void sources_choose_enter(void);
void sources_choose_leave(void);
void sources_choose_tailcall(void);

#define NEVER_CALLED(name) \
	void name(void) \
	{ \
	}

NEVER_CALLED(sources_nothing)
NEVER_CALLED(shim_sled_entry0)
NEVER_CALLED(shim_sled_entry4)
NEVER_CALLED(sources_uncounted0)
NEVER_CALLED(sources_uncounted4)
NEVER_CALLED(sources_sled_tailcall)
NEVER_CALLED(sources_sled_condition)
NEVER_CALLED(sources_direct_condition)
NEVER_CALLED(sources_direct_enter)
NEVER_CALLED(shim_sled_leave)
NEVER_CALLED(sources_direct_tailcall)
NEVER_CALLED(sources_plan_enter)
NEVER_CALLED(sources_plan_leave)
NEVER_CALLED(sources_plan_tailcall)
NEVER_CALLED(sources_choose_enter)
NEVER_CALLED(sources_choose_leave)
NEVER_CALLED(sources_choose_tailcall)
