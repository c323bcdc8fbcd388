/*
 * Results that are computed after the leave hook, as the compiler likes: the hook asks
 * for the result of each function, and the program compares it with that of the same
 * function without hooks. results WHAT [ROUNDS], where WHAT is values, elt2, threads,
 * fork, signals or stack.  Each wrong result is one line.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <shim/hooks.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info
#pragma weak shim_profiler_set_enter_leave_function_hooks2
#pragma weak shim_get_function_leave3_info

#define QUIETLY __attribute__((no_instrument_function, noinline))
#ifdef __clang__
#define CALLED __attribute__((noinline))
#else
#define CALLED __attribute__((noinline, noclone))
#endif

typedef unsigned char byte;
typedef float floats __attribute__((vector_size(16)));
typedef int ints __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));
typedef float floats8 __attribute__((vector_size(32)));
typedef int ints8 __attribute__((vector_size(32)));
typedef double doubles4 __attribute__((vector_size(32)));
typedef unsigned __int128 wide;
typedef float _Complex complex_float;
typedef double _Complex complex_double;
typedef long double _Complex complex_long;
struct pair { long a, b; };
struct mixed { double a; int b; };
struct three { long a, b, c; };
struct small { short a; byte b; };

struct in {
	int i, j;
	unsigned u, v;
	long l, m;
	unsigned long k;
	short s;
	byte c;
	float f, g;
	double d, e;
	long double x, y;
	int *p;
	long *q;
	struct three *t;
	floats fs, gs;
	ints is, js;
	doubles ds;
	floats8 fs8;
	ints8 is8;
	doubles4 ds4;
};

/* The functions, and how many bytes of their results count; of @n, in memory. */
#define CASES(CASE)                                                            \
	CASE(int, 0, add, n->i + n->j)                                         \
	CASE(int, 0, polynomial, n->i * n->i * 3 + n->j * 7 - 5)               \
	CASE(unsigned, 0, rotate, n->u << 7 | n->u >> 25)                      \
	CASE(unsigned, 0, rotate_by, n->u << (n->v & 31) | n->u >> (-n->v & 31)) \
	CASE(unsigned, 0, shift, n->u >> (n->v & 31))                          \
	CASE(int, 0, shift_signed, n->i >> (n->v & 31))                        \
	CASE(unsigned long, 0, swap, __builtin_bswap64(n->k))                  \
	CASE(unsigned, 0, swap32, __builtin_bswap32(n->u) + 1)                 \
	CASE(int, 0, less, n->i < n->j)                                        \
	CASE(_Bool, 0, below, n->u <= n->v)                                    \
	CASE(_Bool, 0, equal, n->l == n->m)                                    \
	CASE(_Bool, 0, ordered, n->d < n->e)                                   \
	CASE(_Bool, 0, same, n->f == n->g)                                     \
	CASE(int, 0, least, n->i < n->j ? n->i : n->j)                         \
	CASE(long, 0, choice, n->l > 0 ? n->m : n->l)                          \
	CASE(unsigned, 0, divide, n->u / (n->v | 1))                           \
	CASE(unsigned, 0, rest, n->u % 10)                                     \
	CASE(long, 0, divide_signed, n->l / (n->i | 1))                        \
	CASE(int, 0, by_ten, n->i / 10)                                        \
	CASE(short, 0, narrow, (short)(n->s * n->i))                           \
	CASE(signed char, 0, narrower, (signed char)(n->c + n->i))             \
	CASE(byte, 0, one, (byte)(n->c ^ 0x5a))                                \
	CASE(long, 0, extended, (long)n->s + n->i)                             \
	CASE(int, 0, negative, -n->i)                                          \
	CASE(int, 0, inverse, ~n->i & n->j)                                    \
	CASE(int, 0, absolute, n->i < 0 ? -n->i : n->i)                        \
	CASE(int, 0, bits, __builtin_popcount(n->u))                           \
	CASE(int, 0, zeros, __builtin_ctz(n->u | 256))                         \
	CASE(int, 0, leading, __builtin_clzl(n->k | 256))                      \
	CASE(int, 0, bit, n->k >> (n->v & 63) & 1)                             \
	CASE(int, 0, loaded, n->p[n->c])                                       \
	CASE(long, 0, far, n->q[n->c & 7] + n->t->b)                           \
	CASE(long *, 0, address, n->q + n->i)                                  \
	CASE(long *, 0, member, &n->t->c)                                      \
	CASE(const char *, 0, constant, "constant")                            \
	CASE(long, 0, number, 0x123456789abcdefl)                              \
	CASE(double, 0, fixed, 1.5)                                            \
	CASE(wide, 0, product, (wide)n->k * n->l)                              \
	CASE(wide, 0, sum, ((wide)n->k << 64 | n->l) + n->m)                   \
	CASE(float, 0, fadd, n->f + n->g)                                      \
	CASE(double, 0, fused, n->d * n->e + n->f)                             \
	CASE(float, 0, fused_float, n->f * n->g - n->f)                        \
	CASE(double, 0, quotient, n->d / n->e - n->e)                          \
	CASE(double, 0, root, __builtin_sqrt(n->d * n->d))                     \
	CASE(float, 0, lesser, n->f < n->g ? n->f : n->g)                      \
	CASE(double, 0, of_int, n->i)                                          \
	CASE(double, 0, of_long, n->l + n->d)                                  \
	CASE(float, 0, of_unsigned, n->u)                                      \
	CASE(double, 0, of_wide_unsigned, n->k)                                \
	CASE(int, 0, to_int, (int)n->d)                                        \
	CASE(long, 0, to_long, (long)(n->f * 3))                               \
	CASE(float, 0, to_float, (float)n->d)                                  \
	CASE(double, 0, to_double, n->f)                                       \
	CASE(double, 0, sign, -n->d)                                           \
	CASE(float, 0, magnitude, __builtin_fabsf(n->f))                       \
	CASE(long double, 10, xadd, n->x + n->y)                               \
	CASE(long double, 10, xpolynomial, (n->x * n->y - n->x) / n->y)        \
	CASE(long double, 10, xreverse, 1 - n->x / n->d)                       \
	CASE(long double, 10, xnegative, -n->x)                                \
	CASE(long double, 10, xmagnitude, __builtin_fabsl(n->y))               \
	CASE(long double, 10, xint, n->i)                                      \
	CASE(long double, 10, xlong, n->l + n->x)                              \
	CASE(long double, 10, xfloat, n->f * n->d)                             \
	CASE(long double, 10, xone, 1)                                         \
	CASE(long double, 10, xroot, __builtin_sqrtl(n->x * n->x))             \
	CASE(double, 0, xto_double, (double)(n->x + n->y))                     \
	CASE(complex_float, 0, cfloat, n->f + n->g * 1.0fi)                    \
	CASE(complex_double, 0, cdouble, n->d + n->e * 1.0i)                   \
	CASE(complex_long, 26, clong, n->x + n->y * 1.0i)                      \
	CASE(struct pair, 0, pair, { n->l + 1, n->m - n->l })                  \
	CASE(struct mixed, 12, mixed, { n->d + n->e, n->i + n->j })            \
	CASE(struct three, 0, three, { n->l + 1, n->m, n->l - n->m })          \
	CASE(struct small, 3, small, { n->s, n->c })                           \
	CASE(floats, 0, vfloat, n->fs * n->gs + n->fs)                         \
	CASE(ints, 0, vint, (n->is + n->js) ^ n->is)                           \
	CASE(ints, 0, vshift, (n->is << 3) - (n->js >> 2))                     \
	CASE(ints, 0, vless, n->is < n->js)                                    \
	CASE(ints, 0, vmultiply, n->is * n->js)                                \
	CASE(floats, 0, vconvert, __builtin_convertvector(n->is, floats))      \
	CASE(floats, 0, vsame, n->f - (floats){ 0, 0, 0, 0 })                  \
	CASE(ints, 0, vmake, { n->i, n->j, 0, 4 })                             \
	CASE(doubles, 0, vdouble, n->ds * n->ds - n->ds)                       \
	CASE(doubles, 0, vpair, { n->d, n->e })                                \
	CASE(floats8, 0, wfloat, n->fs8 * n->fs8 + n->fs8)                     \
	CASE(ints8, 0, wint, n->is8 + n->is8)                                  \
	CASE(ints8, 0, wsame, n->i - (ints8){ 0 })                             \
	CASE(doubles4, 0, wdouble, n->ds4 - n->ds4 * n->ds4)                   \
	CASE(doubles4, 0, wmake, { n->d, n->e, 1, 2 })

#define MAKE(type, bytes, name, ...)                                           \
	CALLED type name(const struct in *n)                                   \
	{                                                                      \
		type r = __VA_ARGS__;                                          \
		return r;                                                      \
	}                                                                      \
	QUIETLY static void quiet_##name(const struct in *n, void *to)         \
	{                                                                      \
		type r = __VA_ARGS__;                                          \
		memcpy(to, &r, sizeof(r));                                     \
	}

/* Prototypes, for -Wmissing-prototypes and for calls from elsewhere. */
#define DECLARE(type, bytes, name, ...) type name(const struct in *n);
CASES(DECLARE)
CASES(MAKE)

/* Of the thread: the expected result, and the outcome. */
static __thread const char *current;
static __thread byte expected[64];
static __thread uint32_t expected_size, expected_bytes;
static __thread int given, in_handler;	/* true inside a waiting hook, where no hook is called */
static int right, missing, wrong;

QUIETLY static void look(enum shim_result r, struct shim_argument_range range)
{
	given++;
	/* Another thread is reading debug information, which takes long. */
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		return;
	if (r == SHIM_OK && range.start == 0 &&
	    range.length == expected_size) {
		__atomic_fetch_add(&missing, 1, __ATOMIC_RELAXED);
		if (getenv("VERBOSE"))
			printf("missing: %s\n", current);
	} else if (r == SHIM_OK && range.length == expected_size &&
		   memcmp((void *)range.start, expected, expected_bytes) == 0)
		__atomic_fetch_add(&right, 1, __ATOMIC_RELAXED);
	else if (__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED) < 20)
		printf("wrong: %s: %#x, %u bytes of %u, %#lx not %#lx\n",
		       current, r, range.length, expected_size,
		       r == SHIM_OK && range.start ? *(long *)range.start : 0,
		       *(long *)expected);
}

QUIETLY static void on_enter(union shim_function_or_client function,
			     shim_elt_info info)
{
	(void)function, (void)info;
}

QUIETLY static void on_leave(union shim_function_or_client function,
			     shim_elt_info info)
{
	struct shim_argument_range range = { 1, 1 };
	shim_frame_info frame;
	enum shim_result r;

	if (!current)
		return;
	r = shim_get_function_leave3_info(function.function, info, &frame,
					  &range);
	look(r, range);
}

QUIETLY static void leave2(shim_function function, uintptr_t client,
			   shim_frame_info frame,
			   struct shim_argument_range *result)
{
	(void)function, (void)client, (void)frame;
	if (current && result)
		look(SHIM_OK, *result);
}

static __thread unsigned seed = 1;

QUIETLY static unsigned next(void)
{
	seed = seed * 1103515245u + 12345u;
	return seed >> 8 ^ seed << 12;
}

/* What the pointers of a struct in point at. */
struct pointees {
	int numbers[256];
	long longs[8];
	struct three three;
};

QUIETLY static void fill(struct in *n, struct pointees *to)
{
	byte *at = (byte *)n;

	for (size_t i = 0; i < sizeof(*n); i++)
		at[i] = (byte)next();
	for (int i = 0; i < 256; i++)
		to->numbers[i] = (int)next();
	for (int i = 0; i < 8; i++)
		to->longs[i] = next();
	to->three.b = next();
	n->i &= 0xffff;
	n->l = (int)next();
	n->m = (int)next();
	n->f = (float)(int)next() / 7;
	n->g = (float)(int)next() / 3;
	n->d = (int)next() / 7.0;
	n->e = (int)next() / 3.0;
	n->x = (int)next() / 7.0L;
	n->y = (int)next() / 3.0L;
	for (int i = 0; i < 4; i++) {
		n->fs[i] = (float)next() / 9;
		n->gs[i] = (float)next() / 11;
		n->ds4[i] = next() / 13.0;
	}
	for (int i = 0; i < 8; i++)
		n->fs8[i] = (float)next() / 5;
	n->ds = (doubles){ n->d, n->e };
	n->p = to->numbers;
	n->q = to->longs;
	n->t = &to->three;
}

#define TRY(type, bytes, name, ...)                                            \
	{                                                                      \
		type r;                                                        \
		quiet_##name(&n, expected);                                    \
		expected_size = sizeof(type);                                  \
		expected_bytes = (bytes) ? (bytes) : sizeof(type);             \
		/* Of a complex number: the bytes between its parts. */                     \
		if ((bytes) == 26)                                             \
			memset(expected + 10, 0, 6);                           \
		given = 0;                                                     \
		current = #name;                                               \
		r = name(&n);                                                  \
		current = NULL;                                                \
		if (memcmp(&r, expected, (bytes) == 26 ? 10 : expected_bytes)) \
			printf("%s is not the same twice\n", #name);           \
		if (given != 1 && !(in_handler && given == 0))                 \
			printf("%s was left %d times\n", #name, given);        \
	}

/* All that is read is on the stack: a signal's handler that tries all, too, changes
 * nothing between the two calls that are compared. */
QUIETLY static void try_all(int rounds)
{
	struct pointees to;
	struct in n;

	for (int i = 0; i < rounds; i++) {
		fill(&n, &to);
		CASES(TRY)
	}
}

QUIETLY static void *run_thread(void *rounds)
{
	try_all((int)(long)rounds);
	return NULL;
}

QUIETLY static void run_threads(int rounds)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run_thread,
			       (void *)(long)rounds);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* A handler between a call and its check would confuse the check: it keeps the
 * state. */
QUIETLY static void on_signal(int signal)
{
	const char *before = current;
	uint32_t size = expected_size, bytes = expected_bytes;
	int count = given;
	byte kept[64];

	(void)signal;
	memcpy(kept, expected, sizeof(kept));
	in_handler = 1;
	try_all(1);
	in_handler = 0;
	memcpy(expected, kept, sizeof(kept));
	current = before;
	expected_size = size;
	expected_bytes = bytes;
	given = count;
}

QUIETLY static void run_signals(int rounds)
{
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_handler = on_signal,
				    .sa_flags = SA_RESTART };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	try_all(rounds);
	memset(&timer, 0, sizeof(timer));
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* Some programs have only 4 KiB; printf needs more. */
static byte stack[8192] __attribute__((aligned(4096)));
static ucontext_t outside, inside;

QUIETLY static void try_small(void)
{
	struct in n = { .i = 20, .j = 30, .x = 3 };

	for (int i = 0; i < 2; i++) {
		*(int *)expected = 50;
		expected_size = expected_bytes = 4;
		current = "add";
		add(&n);
		quiet_xnegative(&n, expected);
		expected_size = 16;
		expected_bytes = 10;
		current = "xnegative";
		xnegative(&n);
		current = NULL;
	}
}

QUIETLY static void run_small_stack(void)
{
	mprotect(stack, 4096, PROT_NONE);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack + 4096;
	inside.uc_stack.ss_size = 4096;
	inside.uc_link = &outside;
	makecontext(&inside, try_small, 0);
	swapcontext(&outside, &inside);
}

QUIETLY __attribute__((constructor)) static void start(int count,
							char **arguments)
{
	struct shim_profiler_handle *handle;

	if (!shim_profiler_create)
		abort();
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
					    SHIM_ENABLE_FUNCTION_RETVAL |
					    SHIM_ENABLE_FRAME_INFO);
	if (count > 1 && strcmp(arguments[1], "elt2") == 0) {
		shim_profiler_set_enter_leave_function_hooks2(handle, NULL, leave2,
						     NULL);
		return;
	}
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, on_enter,
						       on_leave, NULL);
}

QUIETLY int main(int count, char **arguments)
{
	const char *what = count > 1 ? arguments[1] : "values";
	int rounds = count > 2 ? atoi(arguments[2]) : 20, status = 0;

	if (strcmp(what, "values") == 0 || strcmp(what, "elt2") == 0)
		try_all(rounds);
	if (strcmp(what, "threads") == 0)
		run_threads(rounds);
	if (strcmp(what, "signals") == 0)
		run_signals(rounds);
	if (strcmp(what, "stack") == 0)
		run_small_stack();
	if (strcmp(what, "fork") == 0) {
		try_all(1);
		fflush(stdout);
		if (fork() != 0)
			wait(&status);
		try_all(rounds);
	}
	printf("right %d, missing %d, wrong %d\n", right, missing, wrong);
	return status != 0;
}
