/*
 * Calls functions of libshim-debuginfo.so.  The library is loaded in a namespace of its
 * own (dlmopen), so it has its own libdw and malloc.  Calls run one at a time, on a
 * stack of shim, with all signals blocked.
 */
#include "inspect/helper.h"

#include "arch.h"
#include "image/image.h"
#include "inspect/isolated_call.h"
#include "os/lookup.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/log.h"
#include "runtime/thread.h"

#include <errno.h>

#include <shim/banned.h>

#define STACK_SIZE	  (1u << 20) /* libdw and demanglers recurse */
#define SIGNAL_STACK_SIZE (64u << 10)
#define WAIT_MAX	  20000	      /* yields; some 0.1 s or more */
#define LIBRARY_SIZE	  (16u << 20) /* with its dependencies */
#define FAULTS_MAX	  8 /* after these, shim stops using the library */
#define FAULTS_OF_TIMEOUT 4 /* a timeout counts as this many */
#define HELPER_FILE_NAME  "libshim-debuginfo.so"

enum helper_state {
	HELPER_NONE,
	HELPER_OPENING,
	HELPER_OPEN,
	HELPER_MISSING, /* or broken by a fork during a call */
};

static uint32_t state;
static int opener, owner; /* tids */
static const struct debuginfo *helper;
static char *stack_top; /* above it is the signal stack */
static unsigned faults;

/* --- ThreadSanitizer --- */

/* Defined if the program has ThreadSanitizer. */
extern void __tsan_init(void) __attribute__((weak));
extern void AnnotateIgnoreWritesBegin(const char *file, int line)
	__attribute__((weak));
extern void AnnotateIgnoreWritesEnd(const char *file, int line)
	__attribute__((weak));

/* The loader allocates a thread's data of the libraries in its first query, and frees them
 * when the stack has another thread.  ThreadSanitizer does not see what orders the two. */
static void ignore_writes(void)
{
	if (__tsan_init && AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd)
		AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static void watch_writes(void)
{
	if (__tsan_init && AnnotateIgnoreWritesBegin && AnnotateIgnoreWritesEnd)
		AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}

/* --- opening --- */

static bool find_path(char *path, size_t size)
{
	const struct image_entry *self;
	struct text text;
	bool found;

	image_pin();
	self = image_find((uintptr_t)&find_path);
	found = self != NULL;
	if (found) {
		text_init(&text, path, size);
		text_add_part(&text, self->path,
			      (size_t)(text_base(self->path) - self->path));
		text_add(&text, HELPER_FILE_NAME);
		found = !text.cut && path[0] == '/';
	}
	image_unpin();
	return found;
}

/* The loader does not report whether it failed for lack of memory. */
static bool has_memory(void)
{
	void *memory;

	if (sys_map(LIBRARY_SIZE, &memory) < 0)
		return false;
	sys_unmap(memory, LIBRARY_SIZE);
	return true;
}

static int open_helper(void *unused)
{
	static char path[IMAGE_PATH_SIZE + sizeof(HELPER_FILE_NAME)];
	const struct debuginfo *found = NULL;
	void *library = NULL;

	(void)unused;
	if (!has_memory())
		return -ENOMEM;
	if (find_path(path, sizeof(path)))
		library = lookup_open_ours(path);
	if (!library && !has_memory())
		return -ENOMEM;
	if (library)
		found = lookup_in(library, DEBUGINFO_SYMBOL);
	if (!found || found->version != DEBUGINFO_VERSION) {
		log_line(
			"%s cannot be used: no lines, no template arguments, no "
			"arguments",
			path[0] ? path : HELPER_FILE_NAME);
		return -ENOENT;
	}
	found->start();
	helper = found;
	return 0;
}

static bool make_stack(void)
{
	void *memory;

	if (stack_top)
		return true;
	if (sys_map(STACK_SIZE + SIGNAL_STACK_SIZE, &memory) < 0)
		return false;
	/* A guard page below the stack. */
	sys_protect(memory, 4096, 0);
	stack_top = (char *)memory + STACK_SIZE;
	return true;
}

static void set_state(enum helper_state next)
{
	__atomic_store_n(&state, next, __ATOMIC_RELEASE);
}

/* Without memory, the next query tries again. */
static enum helper_state open_now(int self)
{
	bool before = thread_ours_begins();
	enum helper_state next = HELPER_MISSING;
	int r;

	__atomic_store_n(&opener, self, __ATOMIC_RELEASE);
	/* Until the libraries are known as shim's, no thread may patch them. */
	image_closing();
	r = make_stack() ? arch_call_on_stack(open_helper, NULL, stack_top) :
			   -ENOMEM;
	image_closed(false);
	/* Reads this once here, so that fork children need not do it. */
	if (r == 0)
		image_look_again();
	if (r == 0 || r == -ENOMEM)
		next = r == 0 ? HELPER_OPEN : HELPER_NONE;
	__atomic_store_n(&opener, 0, __ATOMIC_RELEASE);
	set_state(next);
	thread_ours_ends(before);
	return next;
}

/* Whether the owner of the lock has ended, so that it will never be free.  A thread may also
 * end after it has freed the lock. */
static bool has_ended(int tid, const int *lock)
{
	return !sys_is_alive(sys_getpid(), tid) &&
	       __atomic_load_n(lock, __ATOMIC_ACQUIRE) == tid;
}

/*
 * The opener may wait for the loader's lock, whose owner may be in a constructor whose
 * hook makes a query.  So other threads wait only for a limited time.
 */
static enum shim_result open_once(int self)
{
	uint32_t now = HELPER_NONE;

	if (__atomic_compare_exchange_n(&state, &now, HELPER_OPENING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) &&
	    open_now(self) == HELPER_NONE)
		return SHIM_E_OUTOFMEMORY;
	for (unsigned i = 0; i < WAIT_MAX; i++) {
		int tid = __atomic_load_n(&opener, __ATOMIC_ACQUIRE);

		now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
		if (now == HELPER_OPEN)
			return SHIM_OK;
		if (now == HELPER_MISSING)
			return SHIM_E_FUNCTION_NOT_IL;
		if (now == HELPER_NONE)
			return SHIM_E_OUTOFMEMORY;
		/* The loader has called a function with a mark. */
		if (tid == self)
			break;
		if (tid && has_ended(tid, &opener))
			set_state(HELPER_MISSING);
		sys_yield();
	}
	return SHIM_E_NOT_YET_AVAILABLE;
}

bool helper_is_open(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == HELPER_OPEN;
}

void helper_prepare(void)
{
	uint64_t signals;
	int before = errno;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != HELPER_NONE ||
	    sys_is_forbidden() || sys_block_signals(&signals) < 0)
		return;
	open_once(sys_gettid());
	errno = before;
	sys_restore_signals(signals);
}

void helper_thread_begins(void)
{
	int error = errno;
	bool before;

	/* ThreadSanitizer's malloc crashes before its own start function has run in the
	 * thread. */
	if (!helper_is_open() || __tsan_init)
		return;
	before = thread_ours_begins();
	helper->begin_thread();
	thread_ours_ends(before);
	errno = error;
}

/* --- queries --- */

static enum shim_result take_lock(int self)
{
	for (unsigned i = 0; i < WAIT_MAX; i++) {
		int holder = 0;

		if (__atomic_compare_exchange_n(&owner, &holder, self, false,
						__ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return SHIM_OK;
		if (holder == self)
			return SHIM_E_NOT_YET_AVAILABLE;
		if (has_ended(holder, &owner)) {
			/* This is a fork child, in which the thread that held the lock
			 * does not exist. */
			set_state(HELPER_MISSING);
			return SHIM_E_FUNCTION_NOT_IL;
		}
		sys_yield();
	}
	return SHIM_E_NOT_YET_AVAILABLE;
}

struct job {
	enum helper_verb verb;
	const struct debuginfo_question *question;
	const char *name;
	struct debuginfo_answer answer;
};

static int demangle(struct job *job)
{
	const char *name = helper->demangle(job->name);

	if (!name)
		return -ENOENT;
	job->answer.data = name;
	job->answer.count = text_length(name) + 1;
	return 0;
}

static int run_query(void *argument)
{
	struct job *job = argument;

	switch (job->verb) {
	case HELPER_LINES: return helper->lines(job->question, &job->answer);
	case HELPER_FILE: return helper->file(job->question, &job->answer);
	case HELPER_TEMPLATE_ARGUMENTS:
		return helper->template_arguments(job->question, &job->answer);
	case HELPER_PROTOTYPE:
		return helper->prototype(job->question, &job->answer);
	case HELPER_CALLSITE:
		return helper->callsite(job->question, &job->answer);
	case HELPER_CALLED: return helper->called(job->question, &job->answer);
	case HELPER_SIGNATURE:
		return helper->signature(job->question, &job->answer);
	case HELPER_LOCALS: return helper->locals(job->question, &job->answer);
	case HELPER_LINETABLE:
		return helper->linetable(job->question, &job->answer);
	case HELPER_OPEN_IMAGE:
		return helper->open(job->question, &job->answer);
	case HELPER_DEMANGLE: return demangle(job);
	}
	return -EINVAL;
}

static void log_refusal(int error)
{
	static bool noted;

	if (!noted)
		log_error(
			"no process to read debug information in: no lines, no "
			"arguments%s",
			"", error);
	noted = true;
}

/* Debug information may be damaged, and libdw may crash on it, so the query runs in an
 * isolated call.  That call shares the thread-local storage of the calling thread.
 * shim marks the thread, so that the call raises no events. */
static int run_query_isolated(void *job)
{
	bool before = thread_ours_begins();
	int result = 0, r = isolated_call(run_query, job, stack_top,
					  SIGNAL_STACK_SIZE, &result);

	thread_ours_ends(before);
	if (r < 0 && r != -EFAULT && r != -ETIME)
		log_refusal(r);
	return r < 0 ? r : result;
}

/* Notes that a query crashed or timed out. */
static void count_fault(const struct job *job, int error)
{
	const char *about = job->question ? job->question->path : job->name;

	log_line(
		error == -ETIME ?
			"debug information takes too long to read, it may be "
			"damaged: no lines, no arguments: %s" :
			"debug information is damaged: no lines, no arguments: "
			"%s",
		about);
	helper->abandon(job->question ? job->question->image : 0);
	faults += error == -ETIME ? FAULTS_OF_TIMEOUT : 1;
	if (faults >= FAULTS_MAX)
		set_state(HELPER_MISSING);
}

static enum shim_result result_of(const struct job *job, int r)
{
	switch (r) {
	case 0: return SHIM_OK;
	case -ENOMEM: return SHIM_E_OUTOFMEMORY;
	case -EFAULT:
	case -ETIME: count_fault(job, r); break;
	case -EAGAIN: return SHIM_E_NOT_YET_AVAILABLE;
	}
	return SHIM_E_FUNCTION_NOT_IL;
}

static enum shim_result
query(struct job *job,
      void (*take)(const struct debuginfo_answer *answer, void *argument),
      void *argument)
{
	int self = sys_gettid(), r;
	enum shim_result result = open_once(self);

	if (result == SHIM_OK)
		result = take_lock(self);
	if (result != SHIM_OK)
		return result;
	r = arch_call_on_stack(run_query_isolated, job, stack_top);
	if (r == 0)
		take(&job->answer, argument);
	result = result_of(job, r);
	if (job->answer.trouble && job->question)
		log_line("no debug information, %s: no lines, no arguments: %s",
			 job->answer.trouble, job->question->path);
	__atomic_store_n(&owner, 0, __ATOMIC_RELEASE);
	return result;
}

enum shim_result
helper_ask(enum helper_verb verb, const struct debuginfo_question *question,
	   const char *name,
	   void (*take)(const struct debuginfo_answer *answer, void *argument),
	   void *argument)
{
	struct job job = { .verb = verb, .question = question, .name = name };
	enum shim_result result;
	uint64_t signals;
	int before = errno;

	/* A handler of the program must not leave this function by longjmp, or make a
	 * query on the stack that is in use. */
	if (sys_is_forbidden())
		return SHIM_E_FUNCTION_NOT_IL;
	if (sys_block_signals(&signals) < 0)
		return SHIM_E_NOT_YET_AVAILABLE;
	ignore_writes();
	result = query(&job, take, argument);
	watch_writes();
	errno = before;
	sys_restore_signals(signals);
	return result;
}
