/*
 * C++ exceptions: throws, catches, and the frames they unwind.
 *
 * The wrappers of the C++ library's functions are stubs (arch/.../edge.S) that jump to
 * the library's functions, so that an unwinder finds no frame of shim.  An object may
 * have a C++ library that only this object can see.  Then shim finds no definition
 * after its own, and begins the search at the calling object, as the dynamic linker
 * would without shim.
 *
 * The unwinder calls the personality routine for every frame.  When the routine reports
 * a landing pad in a frame, all deeper frames have ended.  _Unwind_GetCFA then returns
 * the stack pointer that the frame had at its call.  C++ and C have the routines that are
 * wrapped here; those of other languages call _Unwind_SetIP, as all do.
 */
#define _GNU_SOURCE
#include "edge/edge.h"

#include "arch.h"
#include "dispatch/frame_exits.h"
#include "dispatch/plan.h"
#include "image/image.h"
#include "inspect/info.h"
#include "os/lookup.h"
#include "runtime/contract.h"
#include "runtime/events.h"
#include "runtime/landings.h"
#include "runtime/log.h"
#include "unwind/eh_frame.h"
#include "unwind/lsda.h"
#include "unwind/unwind.h"

#include <shim/cpu.h>
#include <unwind.h>

#include <shim/banned.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* --- the real functions --- */

struct function {
	const char *name;
	const char *library;
	void *real; /* the definition after shim's, or NULL */
};

/* A definition that shim has found for a caller.  Valid until the program closes a
 * library. */
struct cached_definition {
	uint32_t is_busy;
	uint32_t closes;
	const struct function *function;
	const void *caller;
	void *real;
};

static struct cached_definition cached_definitions[256];

static struct cached_definition *entry_of(const struct function *function,
					  const void *caller)
{
	uintptr_t hash = ((uintptr_t)caller >> 1) ^ ((uintptr_t)function >> 3);

	return &cached_definitions[(hash ^ hash >> 8) % 256];
}

static bool lock_entry(struct cached_definition *place)
{
	return __atomic_exchange_n(&place->is_busy, 1, __ATOMIC_ACQUIRE) == 0;
}

static void unlock_entry(struct cached_definition *place)
{
	__atomic_store_n(&place->is_busy, 0, __ATOMIC_RELEASE);
}

static void *load_cached(const struct function *function, const void *caller)
{
	struct cached_definition *place = entry_of(function, caller);
	void *real = NULL;

	if (!lock_entry(place))
		return NULL;
	if (place->function == function && place->caller == caller &&
	    place->closes == edge_closes())
		real = place->real;
	unlock_entry(place);
	return real;
}

static void store_cached(const struct function *function, const void *caller,
			 void *real, uint32_t closes)
{
	struct cached_definition *place = entry_of(function, caller);

	if (!lock_entry(place))
		return;
	place->function = function;
	place->caller = caller;
	place->real = real;
	place->closes = closes;
	unlock_entry(place);
}

static void *find_from(const struct function *function, const void *caller)
{
	uint32_t closes = edge_closes();
	void *real = load_cached(function, caller);

	if (real)
		return real;
	if (caller)
		real = lookup_near(caller, function->name);
	if (!real)
		real = lookup_beside(function->library, function->name);
	if (real)
		store_cached(function, caller, real, closes);
	return real;
}

static void *find_definition(struct function *function, const void *caller)
{
	if (!function->real)
		function->real = lookup_real(function->name);
	return function->real ? function->real : find_from(function, caller);
}

static _Noreturn void end_program(void)
{
	log_line("%s", "the program throws an exception, but shim finds no C++ "
		       "library: the program ends");
	log_end_program();
}

static void *find_or_end(struct function *function, const void *caller)
{
	void *real = find_definition(function, caller);

	return real ? real : (void *)end_program;
}

/* Whether exceptions raise events.  An exception that a profiler throws in a callback
 * does not. */
static bool raises_events(void)
{
	return state_get() == STATE_RUNNING &&
	       !(thread_current && thread_current->guard);
}

/* --- throwing and catching --- */

#define GNU   0x474e5543432b2b00ull /* "GNUCC++" */
#define CLANG 0x434c4e47432b2b00ull /* "CLNGC++" */

/* The offset of the unwinder's header, which is the end of the C++ library's header. */
#define GNU_HEADER   80
#define CLANG_HEADER 96

/* The thrown object, which follows the header; for std::rethrow_exception, the object
 * of the original exception; NULL for exceptions of other languages. */
static const void *object_of(const struct _Unwind_Exception *exception)
{
	uint64_t class = exception->exception_class;

	if (class == GNU || class == CLANG)
		return exception + 1;
	if (class == (GNU | 1))
		return *(void **)((uintptr_t)exception - GNU_HEADER);
	return NULL;
}

/* The object of the exception with the C++ library's header at @header. */
static const void *object_at(uintptr_t header)
{
	const struct _Unwind_Exception *gnu = (void *)(header + GNU_HEADER);
	const struct _Unwind_Exception *clang = (void *)(header + CLANG_HEADER);

	if ((gnu->exception_class & ~1ull) == GNU)
		return object_of(gnu);
	if (clang->exception_class == CLANG)
		return object_of(clang);
	return NULL;
}

static struct function throw_function = { "__cxa_throw", "libstdc++.so.6",
					  NULL };
static struct function rethrow_function = { "__cxa_rethrow", "libstdc++.so.6",
					    NULL };
static struct function begin_function = { "__cxa_begin_catch", "libstdc++.so.6",
					  NULL };
static struct function end_function = { "__cxa_end_catch", "libstdc++.so.6",
					NULL };
static struct function globals_function = { "__cxa_get_globals",
					    "libstdc++.so.6", NULL };
static struct function type_function = { "__cxa_current_exception_type",
					 "libstdc++.so.6", NULL };

/* The stubs call these functions, and jump to the function that they return. */
HIDDEN void *edge_throws(const void *object, const void *type, void *destructor,
			 const void *caller);
HIDDEN void *edge_rethrows(long a, long b, long c, const void *caller);
HIDDEN void *edge_catches(const struct _Unwind_Exception *exception, long b,
			  long c, const void *caller);
HIDDEN void *edge_caught(long a, long b, long c, const void *caller);

void *edge_throws(const void *object, const void *type, void *destructor,
		  const void *caller)
{
	(void)destructor;
	if (raises_events())
		RAISE(exception_throw, object, type);
	return find_or_end(&throw_function, caller);
}

static void raise_rethrow(const void *caller)
{
	void **(*globals)(void) = (void **(*)(void))find_definition(
		&globals_function, caller);
	const void *(*type)(void) = (const void *(*)(void))find_definition(
		&type_function, caller);
	uintptr_t caught = globals ? (uintptr_t)*globals() : 0;

	RAISE(exception_throw, caught ? object_at(caught) : NULL,
	      type ? type() : NULL);
}

void *edge_rethrows(long a, long b, long c, const void *caller)
{
	(void)a, (void)b, (void)c;
	if (raises_events() && events_counts.exception_throw > 0)
		raise_rethrow(caller);
	return find_or_end(&rethrow_function, caller);
}

void *edge_catches(const struct _Unwind_Exception *exception, long b, long c,
		   const void *caller)
{
	(void)b, (void)c;
	frame_exits_caught(SHIM_CALLER_SP);
	if (landings_count > 0)
		landings_caught(SHIM_CALLER_SP);
	if (raises_events())
		RAISE(exception_catcher_enter, object_of(exception));
	return find_or_end(&begin_function, caller);
}

void *edge_caught(long a, long b, long c, const void *caller)
{
	(void)a, (void)b, (void)c;
	if (raises_events())
		RAISE(exception_catcher_leave);
	return find_or_end(&end_function, caller);
}

/* --- clauses --- */

static bool clauses_enabled;

enum shim_result
shim_profiler_enable_clauses(struct shim_profiler_handle *handle)
{
	ENTRY_INIT_OF(handle);
	__atomic_store_n(&clauses_enabled, true, __ATOMIC_RELEASE);
	return SHIM_OK;
}

/* Functions of the program's unwinder. */
typedef _Unwind_Word (*get_word)(struct _Unwind_Context *);
typedef void (*set_word)(struct _Unwind_Context *, _Unwind_Ptr);
static struct function cfa = { "_Unwind_GetCFA", "libgcc_s.so.1", NULL };
static get_word get_cfa;
static _Unwind_Ptr (*get_ip)(struct _Unwind_Context *);
static _Unwind_Word (*get_gr)(struct _Unwind_Context *, int);
static _Unwind_Ptr (*get_start)(struct _Unwind_Context *);
static void *(*get_table)(struct _Unwind_Context *);

static void *find_unwinder(const char *name)
{
	void *real = lookup_first(name);

	return real ? real : lookup_beside("libgcc_s.so.1", name);
}

/* Finds the unwinder's function that calls from @caller would reach without @ours.  The
 * unwinder may have been loaded later than shim, and shim may be the caller. */
static void *find_behind(void *ours, struct function *function,
			 const void *caller)
{
	void *real = find_definition(
		function, image_is_ours((uintptr_t)caller) ? NULL : caller);

	return real != ours ? real :
			      lookup_beside(function->library, function->name);
}

static void *find_get_cfa(void)
{
	void *first = find_unwinder("_Unwind_GetCFA");

	return first != (void *)_Unwind_GetCFA ?
		       first :
		       find_behind(first, &cfa, (void *)get_ip);
}

static void resolve_unwinder(void)
{
	get_ip = (_Unwind_Ptr(*)(struct _Unwind_Context *))find_unwinder(
		"_Unwind_GetIP");
	get_gr = (_Unwind_Word(*)(struct _Unwind_Context *, int))find_unwinder(
		"_Unwind_GetGR");
	get_start = (_Unwind_Ptr(*)(struct _Unwind_Context *))find_unwinder(
		"_Unwind_GetRegionStart");
	get_table = (void *(*)(struct _Unwind_Context *))find_unwinder(
		"_Unwind_GetLanguageSpecificData");
	get_cfa = (get_word)find_get_cfa();
}

static struct lsda find_table(uintptr_t table, uintptr_t start)
{
	uintptr_t end = table ? eh_frame_segment_end(table) : 0;

	return (struct lsda){ end ? (const uint8_t *)table : NULL,
			      (const uint8_t *)end, start };
}

/* The personality routine has set the landing pad and the filter in @context. */
static void raise_clause(_Unwind_Action actions, const void *object,
			 struct _Unwind_Context *context)
{
	enum shim_clause type = actions & _UA_HANDLER_FRAME ?
					SHIM_CLAUSE_CATCH :
					SHIM_CLAUSE_FINALLY;
	uintptr_t start, whole, address = 0;
	struct lsda table;
	int64_t filter;
	int number;

	if (!get_ip || !get_gr || !get_start || !get_table)
		return;
	start = get_start(context);
	filter = (int64_t)get_gr(context, __builtin_eh_return_data_regno(1));
	table = find_table((uintptr_t)get_table(context), start);
	number = lsda_number(&table, get_ip(context), (int32_t)filter);
	/* A part that the compiler has split off a function has its own table. */
	whole = start ? info_whole(start) : 0;
	if (whole != start && unwind_code(whole, &address) == whole &&
	    number >= 0) {
		table = find_table(address, whole);
		number += lsda_count(&table);
	}
	RAISE(exception_clause, whole, number < 0 ? 0 : (uint32_t)number, type,
	      object);
}

/* --- unwinding --- */

/* The size of a frame, in bytes, if the unwind tables do not have it. */
#define FRAME_SIZE_MAX 65536

typedef _Unwind_Reason_Code (*personality)(int version, _Unwind_Action actions,
					   _Unwind_Exception_Class class,
					   struct _Unwind_Exception *exception,
					   struct _Unwind_Context *context);

static struct function cxx_personality = { "__gxx_personality_v0",
					   "libstdc++.so.6", NULL };
static struct function c = { "__gcc_personality_v0", "libgcc_s.so.1", NULL };
static struct function set_ip = { "_Unwind_SetIP", "libgcc_s.so.1", NULL };
/* The thread runs one of the first two. */
static __thread bool runs_personality;

static uintptr_t get_register(void *context, int number)
{
	return get_gr(context, number);
}

/* The upper end of the frame whose landing pad is about to run. */
static uintptr_t find_end(struct _Unwind_Context *context, uintptr_t sp)
{
	uintptr_t end = 0;

	if (get_gr && get_ip)
		end = unwind_end(get_ip(context), sp, get_register, context);
	return end > sp ? end : sp + FRAME_SIZE_MAX;
}

/*
 * Whether the unwinder found the frame behind that of arch_returned.  For a call of a
 * function whose end is recorded, its _Unwind_GetCFA returns the beginning of the frame of
 * arch_returned, which is a word above the stack pointer that the caller had at the call:
 * no compiler's frame has a call there.
 */
static bool is_behind_returned(uintptr_t beginning)
{
#ifdef ARCH_HAS_RETURNS
	return beginning % 16 == 8 &&
	       ((const uintptr_t *)beginning)[-2] == (uintptr_t)arch_returned;
#else
	(void)beginning;
	return false;
#endif
}

/* The stack pointer that the frame had at its call. */
static uintptr_t find_sp(struct _Unwind_Context *context)
{
	uintptr_t sp = get_cfa(context);

	return is_behind_returned(sp) ? sp - sizeof(uintptr_t) : sp;
}

static void begin_landing_pad(_Unwind_Action actions,
			      const struct _Unwind_Exception *exception,
			      struct _Unwind_Context *context)
{
	const void *object = actions & _UA_FORCE_UNWIND ? NULL :
							  object_of(exception);
	uintptr_t sp;

	if (!get_cfa)
		return;
	sp = find_sp(context);
	guard_unwound(sp);
	frame_exits_unwound(sp, object, true);
	if (plan_landed())
		landings_begin(sp, find_end(context, sp));
	RAISE(frames_unwound, sp);
	if (__atomic_load_n(&clauses_enabled, __ATOMIC_ACQUIRE) &&
	    raises_events() && events_counts.exception_clause > 0)
		raise_clause(actions, object, context);
}

/* Whether both addresses are in the same image. */
static bool are_together(const void *a, const void *b)
{
	const struct image_entry *image;
	bool are;

	image_pin();
	image = image_find((uintptr_t)a);
	are = image && (uintptr_t)b >= image->start &&
	      (uintptr_t)b < image->end;
	image_unpin();
	return are;
}

/*
 * Personality routines may take the result for the stack pointer, as LuaJIT's does, which
 * has its data there.  The unwinder itself calls this, too, to tell frames apart: for that,
 * no two may begin at the same word.
 */
EDGE _Unwind_Word _Unwind_GetCFA(struct _Unwind_Context *context)
{
	const void *caller = __builtin_return_address(0);
	get_word real = (get_word)find_behind((void *)_Unwind_GetCFA, &cfa,
					      caller);
	uintptr_t sp = real ? real(context) : 0;

	if (is_behind_returned(sp) && !are_together((void *)real, caller))
		sp -= sizeof(uintptr_t);
	return sp;
}

/*
 * Personality routines of other languages have other names: LuaJIT's, Ada's, D's.  Each
 * calls this for the frame in which the program goes on.  All deeper frames have ended, but
 * those of the routine itself: if it is recorded, it returns later.
 */
EDGE void _Unwind_SetIP(struct _Unwind_Context *context, _Unwind_Ptr ip)
{
	const void *caller = __builtin_return_address(0);
	set_word real = (set_word)find_behind((void *)_Unwind_SetIP, &set_ip,
					      caller);
	uintptr_t sp;

	if (!get_cfa)
		resolve_unwinder();
	if (get_cfa && !runs_personality && raises_events()) {
		sp = find_sp(context);
		frame_exits_unwound(sp, NULL, false);
		RAISE(frames_unwound, sp);
	}
	if (real)
		real(context, ip);
}

/*
 * Whether the exception has left a hook.  The search for a handler then fails, so that the
 * thrower calls std::terminate.  Hooks of shim throw nothing.
 */
static bool has_left_hook(struct _Unwind_Context *handler)
{
	if (!plan_watches_images() || !get_ip || !get_cfa ||
	    !edge_runs_hook(get_ip(handler), get_cfa(handler)))
		return false;
	log_line("%s",
		 "a profiler's hook threw an exception: the program ends");
	return true;
}

static _Unwind_Reason_Code run_personality(struct function *function,
					   int version, _Unwind_Action actions,
					   _Unwind_Exception_Class class,
					   struct _Unwind_Exception *exception,
					   struct _Unwind_Context *context)
{
	_Unwind_Reason_Code result;
	personality real;

	if (!get_cfa)
		resolve_unwinder();
	real = (personality)find_definition(
		function, get_ip ? (void *)get_ip(context) : NULL);
	if (!real)
		return _URC_FATAL_PHASE1_ERROR;
	/* A forced unwind ends the thread. */
	if ((actions & _UA_FORCE_UNWIND) && (actions & _UA_CLEANUP_PHASE))
		edge_thread_unwinds();
	runs_personality = true;
	result = real(version, actions, class, exception, context);
	runs_personality = false;
	if ((actions & _UA_SEARCH_PHASE) && result == _URC_HANDLER_FOUND &&
	    has_left_hook(context))
		return _URC_FATAL_PHASE1_ERROR;
	if ((actions & _UA_CLEANUP_PHASE) && result == _URC_INSTALL_CONTEXT)
		begin_landing_pad(actions, exception, context);
	return result;
}

EDGE _Unwind_Reason_Code __gxx_personality_v0(
	int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	struct _Unwind_Exception *exception, struct _Unwind_Context *context);
EDGE _Unwind_Reason_Code __gcc_personality_v0(
	int version, _Unwind_Action actions, _Unwind_Exception_Class class,
	struct _Unwind_Exception *exception, struct _Unwind_Context *context);

_Unwind_Reason_Code __gxx_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context)
{
	return run_personality(&cxx_personality, version, actions, class,
			       exception, context);
}

_Unwind_Reason_Code __gcc_personality_v0(int version, _Unwind_Action actions,
					 _Unwind_Exception_Class class,
					 struct _Unwind_Exception *exception,
					 struct _Unwind_Context *context)
{
	return run_personality(&c, version, actions, class, exception, context);
}
