/*
 * Assertions of the engine: claims that hold unless it has a bug.  A build with
 * -Dassertions=true checks them: a claim that fails is logged, and the process ends
 * there.  Other builds have no code for them.
 */
#ifndef PATH_ASSERT_H
#define PATH_ASSERT_H

#ifdef SHIM_ASSERTIONS
#include <shim/record.h>

#define PATH_ASSERT_LINE(line)	      #line
#define PATH_ASSERT_PLACE(file, line) " (" file ":" PATH_ASSERT_LINE(line) ")"
#define PATH_ASSERT(claim) \
	((claim) ? (void)0 : \
		   (shim_record_log( \
			    "assertion failed: " #claim PATH_ASSERT_PLACE( \
				    __FILE__, __LINE__)), \
		    __builtin_trap()))
#else
#define PATH_ASSERT(claim) ((void)(0 && (claim)))
#endif

#endif
