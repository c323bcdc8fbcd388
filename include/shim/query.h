/*
 * Questions whose answer has no fixed length, with a buffer that grows.
 *
 * A function that fills a buffer says how many elements there are altogether.
 * So a caller asks with what it has, and once more if that was too little.
 * Row C-17.
 */
#ifndef SHIM_QUERY_H
#define SHIM_QUERY_H

#include <shim/shim.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * SHIM_QUERY_GROW - asks until the whole answer fits
 *
 *	char *name = NULL;
 *	uint32_t count = 0, total;
 *	enum shim_result r;
 *
 *	SHIM_QUERY_GROW(r, name, count, total,
 *			shim_function_name(function, count, &total, name));
 *	if (r == SHIM_OK)
 *		puts(name);
 *	free(name);
 *
 * @call is an expression that asks with @buffer, its @count of elements and
 * &@total; @result gets what it returns.  While it succeeds and @total is more
 * than @count, @buffer grows to @total elements, @count becomes @total, and @call
 * is evaluated again: once, unless the answer itself has grown meanwhile.  @buffer
 * is NULL with a @count of 0, or memory of malloc; used for the next question it
 * makes most of them a single pass.
 *
 * @result is SHIM_E_OUTOFMEMORY if @buffer cannot grow: it then holds what fits.
 *
 * Contract: that of @call, and only where malloc may be called: in callbacks and
 * init functions, not in hooks.
 */
#define SHIM_QUERY_GROW(result, buffer, count, total, call)                    \
	do {                                                                   \
		void *shim_larger_;                                            \
		while (SHIM_SUCCEEDED((result) = (call)) &&                    \
		       (total) > (count)) {                                    \
			shim_larger_ = realloc(                                \
				(buffer), (size_t)(total) * sizeof(*(buffer))); \
			if (!shim_larger_) {                                   \
				(result) = SHIM_E_OUTOFMEMORY;                 \
				break;                                         \
			}                                                      \
			(buffer) = (__typeof__(buffer))shim_larger_;           \
			(count) = (total);                                     \
		}                                                              \
	} while (0)

#ifdef __cplusplus
}
#endif
#endif
