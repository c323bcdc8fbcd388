/* What code does with a function's address that it has loaded from a GOT slot. */
#ifndef SHIM_DECODE_LOADS_H
#define SHIM_DECODE_LOADS_H

#include "inspect/decode/decode.h"

/* See struct decode. */
bool loads_are_called(const struct decode_load *load);

#endif
