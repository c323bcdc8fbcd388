/* The functions of a model: their names and places. */
#ifndef REPORT_MODEL_FUNCTIONS_H
#define REPORT_MODEL_FUNCTIONS_H

struct function;
struct image;
struct model;
struct options;

/* Gives every site its function. */
void model_find_functions(struct model *model);
const char *object_name(const struct function *function);
/* Its mangled name without the group that is behind it. */
const char *linker_name(const struct function *function);
void function_line(struct function *function);

/* Equal for images of the same build of a file, and of no others. */
const char *image_key(const struct image *image);
/* As --names asks for it; the full name where a line decides. */
const char *shown_name(const struct function *function,
		       const struct options *options);
/* The same of a name that a file has for the linker. */
const char *shown_linker_name(const char *name, const struct options *options);

#endif
