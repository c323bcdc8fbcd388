/*
 * Queries whose answer has no fixed length, with a buffer that grows.
 *
 * A function that fills a buffer stores the length of the whole answer in
 * *total.  So a caller passes the buffer that it has, and calls once more if
 * that was too short.
 *
 * Example: print the path of the program.
 *
 *     #include <shim/info.h>
 *     #include <shim/query.h>
 *     #include <stdio.h>
 *
 *     void print_path(void);
 *     void print_path(void)
 *     {
 *             char *path = NULL;
 *             uint32_t count = 0, total;
 *             enum shim_result r;
 *
 *             SHIM_QUERY_GROW(r, path, count, total,
 *                             shim_process_info(NULL, count, &total, path));
 *             if (r == SHIM_OK)
 *                     puts(path);
 *             free(path);
 *     }
 */
#ifndef SHIM_QUERY_H
#define SHIM_QUERY_H

#include <shim/shim.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * SHIM_QUERY_GROW - repeat a query until the whole answer fits
 *
 * @call is an expression: a query with @buffer, its length @count in elements,
 * and &@total.  @result gets the result of @call.  While the query succeeds and
 * @total is more than @count, @buffer grows to @total elements, @count becomes
 * @total, and @call is evaluated again: once, unless the answer has grown
 * meanwhile.  @buffer is NULL with a @count of 0, or memory of malloc.  A
 * buffer that is used again for the next query makes most queries a single
 * call.
 *
 * @result is SHIM_E_OUTOFMEMORY if @buffer cannot grow; the buffer then holds
 * the part that fits.
 *
 * Contract: that of @call, and only where malloc may be called: in callbacks
 * and init functions, not in hooks.
 */
#define SHIM_QUERY_GROW(result, buffer, count, total, call) \
	do { \
		void *shim_larger_; \
		while (SHIM_SUCCEEDED((result) = (call)) && \
		       (total) > (count)) { \
			shim_larger_ = realloc((buffer), \
					       (size_t)(total) * \
						       sizeof(*(buffer))); \
			if (!shim_larger_) { \
				(result) = SHIM_E_OUTOFMEMORY; \
				break; \
			} \
			(buffer) = (__typeof__(buffer))shim_larger_; \
			(count) = (total); \
		} \
	} while (0)

#ifdef __cplusplus
}
#endif
#endif
