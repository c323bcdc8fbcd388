/* Binary search in sorted arrays. */
#ifndef REPORT_BASE_SEARCH_H
#define REPORT_BASE_SEARCH_H

/*
 * FIRST_NOT - the first @i of 0 to @count - 1 for which @is_before is false;
 * otherwise @count
 *
 * @is_before is an expression of @i that is true up to some element and false
 * from there on.  It is evaluated log2(@count) times.
 */
#define FIRST_NOT(i, count, is_before) \
	({ \
		__typeof__((count) + 0u) low_ = 0, high_ = (count); \
		while (low_ < high_) { \
			__typeof__(low_) i = low_ + (high_ - low_) / 2; \
			if (is_before) \
				low_ = i + 1; \
			else \
				high_ = i; \
		} \
		low_; \
	})

#endif
