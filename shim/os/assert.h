/*
 * Assertions: claims that hold unless shim itself has a bug.
 *
 * A build with -Dassertions=true checks them: a claim that fails is printed to standard
 * error with its place, and the process ends there.  Other builds have no code for
 * them; the compiler still checks that the claims compile.
 *
 * The lock of the runtime has an assertion of its own: ASSERT_LOCKED in
 * runtime/state.h.
 */
#ifndef SHIM_ASSERT_H
#define SHIM_ASSERT_H

#ifdef SHIM_ASSERTIONS
__attribute__((cold, noreturn)) void assert_failed(const char *claim,
						   const char *file, int line);
#define SHIM_ASSERT(claim) \
	((claim) ? (void)0 : assert_failed(#claim, __FILE__, __LINE__))
#else
#define SHIM_ASSERT(claim) ((void)(0 && (claim)))
#endif

#endif
