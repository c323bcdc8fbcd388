/*
 * Finds the values that a caller passes by decoding its code.
 */
#ifndef SHIM_DECODE_PASSED_H
#define SHIM_DECODE_PASSED_H

#include "inspect/decode/decode.h"

/* One call at a time. */
bool passed_find(struct decode_passed *passed);

#endif
