/*
 * The functions that code built with -fsanitize-coverage calls: gcc's trace-pc, and
 * clang's trace-pc-guard with pc-table.  They pass the calls to the room coverage.
 */
#include "edge/edge.h"

#include "coverage/coverage.h"

#include <shim/banned.h>

EDGE void __sanitizer_cov_trace_pc(void);
EDGE void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
EDGE void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
EDGE void __sanitizer_cov_pcs_init(const uintptr_t *start,
				   const uintptr_t *stop);

void __sanitizer_cov_trace_pc(void)
{
	coverage_count_at((uintptr_t)__builtin_return_address(0));
}

/* A guard of 0 has no number. */
void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
	if (*guard)
		coverage_count(*guard);
}

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
	coverage_number(start, stop);
}

void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop)
{
	coverage_place(start, stop);
}
