/* The functions of a model: their names and source locations. */
#ifndef REPORT_MODEL_FUNCTIONS_H
#define REPORT_MODEL_FUNCTIONS_H

struct function;
struct image;
struct model;
struct options;

/* Finds the function of every site. */
void model_find_functions(struct model *model);
const char *object_name(const struct function *function);
/* Its mangled name without the group at its end. */
const char *linker_name(const struct function *function);
void function_line(struct function *function);

/* A key that is equal for images of the same build of a file, and only for
 * those. */
const char *image_key(const struct image *image);
/* The form of the name that --names asks for; if the space on the line decides,
 * the full name. */
const char *shown_name(const struct function *function,
		       const struct options *options);
/* The same for a linker name. */
const char *shown_linker_name(const char *name, const struct options *options);

#endif
