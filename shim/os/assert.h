/*
 * Assertions: claims that hold unless shim itself has a bug.
 *
 * A build with -Dassertions=true checks them: shim prints a claim that fails with its file
 * and line to standard error, and ends the process.  Other builds have no code for the
 * claims, but the compiler still checks their syntax and types.
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
