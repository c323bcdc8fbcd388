/* Groups the calls of a function by an argument: calltree:by=FUNCTION/ARGUMENT. */
#ifndef CALLTREE_GROUPS_H
#define CALLTREE_GROUPS_H

#include "options/options.h"

/* Take the options by=FUNCTION/ARGUMENT and by-limit=N. */
void groups_add(const struct option_value *value);
void groups_limit(uint32_t groups);

#endif
