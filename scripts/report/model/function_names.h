/* Names of functions, see function_names.c. */
#ifndef REPORT_MODEL_FUNCTION_NAMES_H
#define REPORT_MODEL_FUNCTION_NAMES_H

struct model;

/* Gives each function its names and its object.  From then on objects stay in place. */
void function_names_find(struct model *model);

#endif
