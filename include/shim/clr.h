/*
 * Constants of the CLR that shim accepts but never acts on.
 *
 * A profiler that is ported from ICorProfiler compiles with these names.  shim
 * stores the event mask bits below and raises no event for them.  No function
 * of shim returns the results below; shim_result_name and shim_result_text know
 * them, because a module may return any of them from its init function.
 *
 * Example:
 *
 *     #include <shim/clr.h>
 *     #include <shim/hooks.h>
 *
 *     enum shim_result set_mask(struct shim_profiler_handle *handle);
 *     enum shim_result set_mask(struct shim_profiler_handle *handle)
 *     {
 *             return shim_profiler_set_event_mask(
 *                     handle, SHIM_MONITOR_THREADS | SHIM_MONITOR_GC);
 *     }
 */
#ifndef SHIM_CLR_H
#define SHIM_CLR_H

/* Event mask, low word.  CLR: COR_PRF_MONITOR. */
#define SHIM_MONITOR_FUNCTION_UNLOADS	 0x1u
#define SHIM_MONITOR_CLASS_LOADS	 0x2u
#define SHIM_MONITOR_ASSEMBLY_LOADS	 0x8u
#define SHIM_MONITOR_JIT_COMPILATION	 0x20u
#define SHIM_MONITOR_GC			 0x80u
#define SHIM_MONITOR_REMOTING		 0x400u
#define SHIM_MONITOR_CODE_TRANSITIONS	 0x800u
#define SHIM_MONITOR_CCW		 0x2000u
#define SHIM_MONITOR_REMOTING_COOKIE	 0x4400u
#define SHIM_MONITOR_REMOTING_ASYNC	 0x8400u
#define SHIM_MONITOR_SUSPENDS		 0x10000u
#define SHIM_MONITOR_CACHE_SEARCHES	 0x20000u
#define SHIM_ENABLE_REJIT		 0x40000u
#define SHIM_ENABLE_INPROC_DEBUGGING	 0x80000u
#define SHIM_ENABLE_JIT_MAPS		 0x100000u
#define SHIM_DISABLE_INLINING		 0x200000u
#define SHIM_DISABLE_OPTIMIZATIONS	 0x400000u
#define SHIM_ENABLE_OBJECT_ALLOCATED	 0x800000u
#define SHIM_MONITOR_CLR_EXCEPTIONS	 0x1000000u
#define SHIM_USE_PROFILE_IMAGES		 0x20000000u
#define SHIM_DISABLE_TRANSPARENCY_CHECKS 0x40000000u
#define SHIM_DISABLE_ALL_NGEN_IMAGES	 0x80000000u

/* Event mask, high word.  CLR: COR_PRF_HIGH_MONITOR. */
#define SHIM_HIGH_ADD_ASSEMBLY_REFERENCES    0x1u
#define SHIM_HIGH_IN_MEMORY_SYMBOLS_UPDATED  0x2u
#define SHIM_HIGH_DYNAMIC_FUNCTION_UNLOADS   0x4u
#define SHIM_HIGH_DISABLE_TIERED_COMPILATION 0x8u
#define SHIM_HIGH_BASIC_GC		     0x10u
#define SHIM_HIGH_GC_MOVED_OBJECTS	     0x20u
#define SHIM_HIGH_LARGEOBJECT_ALLOCATED	     0x40u
#define SHIM_HIGH_EVENT_PIPE		     0x80u
#define SHIM_HIGH_PINNEDOBJECT_ALLOCATED     0x100u

/* Results: DEFINE(name, value, text). */
#define SHIM_CLR_RESULTS(DEFINE) \
	DEFINE(SHIM_E_FUNCTION_NOT_COMPILED, 0x80131350, \
	       "the function has no code") \
	DEFINE(SHIM_E_FUNCTION_IS_PARAMETERIZED, 0x8013135d, \
	       "the name matches several instances") \
	DEFINE(SHIM_E_LITERALS_HAVE_NO_ADDRESS, 0x80131362, \
	       "the constant has no storage") \
	DEFINE(SHIM_E_ASYNCHRONOUS_UNSAFE, 0x80131364, \
	       "not safe at this moment: a lock is held") \
	DEFINE(SHIM_E_CLASSID_IS_ARRAY, 0x80131365, "the type is an array") \
	DEFINE(SHIM_E_CLASSID_IS_COMPOSITE, 0x80131366, \
	       "the type is composite") \
	DEFINE(SHIM_E_PROFILER_NOT_ATTACHABLE, 0x80131368, \
	       "the module cannot be attached") \
	DEFINE(SHIM_E_PROFILER_ALREADY_ACTIVE, 0x8013136a, \
	       "a profiler is active already") \
	DEFINE(SHIM_E_CALLBACK3_REQUIRED, 0x8013136e, \
	       "the module lacks a callback that this needs") \
	DEFINE(SHIM_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT, 0x80131370, \
	       "cannot be undone") \
	DEFINE(SHIM_E_RUNTIME_UNINITIALIZED, 0x80131371, \
	       "too early: shim has not started") \
	DEFINE(SHIM_E_IMMUTABLE_FLAGS_SET, 0x80131372, \
	       "flags are set that cannot be cleared") \
	DEFINE(SHIM_E_MODULE_IS_DYNAMIC, 0x8013137a, \
	       "the image is generated code") \
	DEFINE(SHIM_E_REJIT_NOT_ENABLED, 0x8013137c, \
	       "patching was not enabled at the start") \
	DEFINE(SHIM_E_FUNCTION_IS_COLLECTIBLE, 0x8013137e, \
	       "the code may be unloaded") \
	DEFINE(SHIM_E_RUNTIME_SUSPEND_REQUIRED, 0x80131381, \
	       "threads must be suspended first") \
	DEFINE(SHIM_E_SUSPENSION_IN_PROGRESS, 0x80131388, \
	       "threads are suspended already") \
	DEFINE(SHIM_E_NOT_GC_OBJECT, 0x80131389, "not a live block of memory")

enum shim_clr_result {
#define SHIM_CLR_DEFINE_RESULT(name, value, text) name = (int)value,
	SHIM_CLR_RESULTS(SHIM_CLR_DEFINE_RESULT)
#undef SHIM_CLR_DEFINE_RESULT
};

#endif
