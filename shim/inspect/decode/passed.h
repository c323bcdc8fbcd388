/* Finds the values that a caller passes, by decoding the caller's code. */
#ifndef SHIM_DECODE_PASSED_H
#define SHIM_DECODE_PASSED_H

#include "inspect/decode/decode.h"

/* Only one call may run at a time. */
bool passed_find(struct decode_passed *passed);

#endif
