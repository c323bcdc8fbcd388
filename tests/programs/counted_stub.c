/* Stubs of the functions that -fsanitize-coverage calls, for programs that nothing else
 * provides with them. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc_guard(unsigned *guard);
void __sanitizer_cov_trace_pc_guard_init(unsigned *start, unsigned *stop);
void __sanitizer_cov_pcs_init(const void *start, const void *stop);

void __sanitizer_cov_trace_pc(void)
{
}

void __sanitizer_cov_trace_pc_guard(unsigned *guard)
{
	(void)guard;
}

void __sanitizer_cov_trace_pc_guard_init(unsigned *start, unsigned *stop)
{
	(void)start, (void)stop;
}

void __sanitizer_cov_pcs_init(const void *start, const void *stop)
{
	(void)start, (void)stop;
}
