/*
 * Programs that generate code, as the virtual machines of JavaScript and of Java do.
 */
#ifndef SHIM_GENERATED_H
#define SHIM_GENERATED_H

#include <stdbool.h>

/* Tells V8, if the program has it, where return addresses are.  State lock held, before the
 * first function returns to shim. */
void generated_answer_v8(void);

/* Whether the library is one that reads return addresses, and asks nobody: Java's. */
bool generated_walks_by_slots(const char *path);

/* Whether the function is one of OCaml's code, whose frames the collector of garbage finds by
 * return addresses, or of what that code calls as its own. */
bool generated_is_ocaml(const char *name);

#endif
