/*
 * The words every shim header uses: result codes, identities, contracts.
 *
 * Each declaration ends with its contract:
 *
 *     SHIM_INIT    only while profilers are being set up: from a module's
 *                  init function, or before the first instrumented call
 *     SHIM_SYNC    inside a callback or slow hook, on its thread; may lock
 *     SHIM_ASYNC   anywhere, also in a signal handler and in a fast hook:
 *                  takes no lock, allocates nothing, leaves errno alone
 */
#ifndef SHIM_SHIM_H
#define SHIM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__clang__)
#define SHIM_INIT  __attribute__((annotate("shim:init")))
#define SHIM_SYNC  __attribute__((annotate("shim:sync")))
#define SHIM_ASYNC __attribute__((annotate("shim:async")))
#else
#define SHIM_INIT
#define SHIM_SYNC
#define SHIM_ASYNC
#endif

#define SHIM_API __attribute__((visibility("default")))

/* The values are the CLR's (api.md, Appendix A). */
enum shim_result {
	SHIM_OK = 0,
	SHIM_E_FAIL = (int)0x80004005,
	SHIM_E_ARGUMENT = (int)0x80070057,
	SHIM_E_MEMORY = (int)0x8007000e,
	SHIM_E_TOO_LATE = (int)0x80131356, /* CORPROF_E_CALL_ONLY_FROM_INIT */
	SHIM_E_IN_USE = (int)0x80131370,
};

/*
 * A function: the address of its first instruction, as the compiler passes it
 * to the hooks.  An address may be used again after dlclose; the recording
 * tells the two apart by their generation (<shim/format.h>).  Row E-38.
 */
typedef uintptr_t shim_function;

#ifdef __cplusplus
}
#endif
#endif
