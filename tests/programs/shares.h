/* The work of the functions of shares.c: compute for @ms of processor time. */
#include <time.h>

extern volatile unsigned long sink;

#ifdef CALLS
void called(void);
#define ROUND called()
#else
#define ROUND (void)0
#endif

#define COMPUTE(ms)                                                            \
	do {                                                                   \
		struct timespec t_;                                            \
		long long end_;                                                \
                                                                               \
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t_);                   \
		end_ = t_.tv_sec * 1000000000ll + t_.tv_nsec + (ms)*1000000ll; \
		do {                                                           \
			for (unsigned i_ = 0; i_ < 50000; i_++)                \
				ROUND, sink += i_;                             \
			clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t_);           \
		} while (t_.tv_sec * 1000000000ll + t_.tv_nsec < end_);        \
	} while (0)
