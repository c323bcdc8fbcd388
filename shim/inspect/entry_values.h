/*
 * Arguments at the beginning of a function, where the calling convention puts them.
 */
#ifndef SHIM_ENTRY_VALUES_H
#define SHIM_ENTRY_VALUES_H

#include "inspect/recipe.h"

/* Fills the places of the recipe's parts; @result: of the function's values. */
void entry_values_locate(struct recipe *recipe,
			 const struct prototype_value *result);

#endif
