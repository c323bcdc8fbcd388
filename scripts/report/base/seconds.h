/* Clocks, in seconds and in nanoseconds. */
#ifndef REPORT_BASE_SECONDS_H
#define REPORT_BASE_SECONDS_H

#include <stdint.h>
#include <time.h>

uint64_t ns_of(clockid_t clock);
double seconds_of(clockid_t clock);

#endif
