/*
 * Programs that generate code, as the virtual machines of JavaScript and of Java do.
 */
#ifndef SHIM_GENERATED_H
#define SHIM_GENERATED_H

#include <stdbool.h>

/* Tells V8, if the program has it, where return addresses are.  State lock held, before the
 * first function returns to shim. */
void generated_answer_v8(void);

/* Whether OCaml has compiled the function, or its code calls it like one that it has compiled:
 * the collector of garbage finds their frames by return addresses. */
bool generated_is_ocaml(const char *name);

#endif
