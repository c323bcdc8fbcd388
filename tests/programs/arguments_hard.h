/*
 * Functions with unusual prologues or calls, for tests/whole/hardness.py; it is
 * included after arguments.h.
 */
#ifndef ARGUMENTS_HARD_H
#define ARGUMENTS_HARD_H

#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#define BEGIN(number) printf("passed %d", upcoming = HARD_FIRST + (number))
#define SAY(value) print_bytes(&(value), sizeof(value))
/* Runs @call while the hooks are active. */
#define CALL(call) \
	do { \
		printf("\n"); \
		current = upcoming; \
		call; \
		current = 0; \
	} while (0)

#ifdef __cplusplus
typedef bool truth;
#else
typedef _Bool truth;
#endif

static int upcoming;
static void *volatile kept;

/* Before the first inquiry, replaces or removes the file of this program or library. */
QUIETLY __attribute__((constructor)) static void change_files(void)
{
	const char *file = getenv("HARD_FILE"), *other = getenv("HARD_OTHER");

	if (file && other)
		rename(other, file);
	else if (file)
		unlink(file);
}

QUIETLY static void keep(void *memory)
{
	kept = memory;
}

struct two {
	long a;
	double b;
};

struct three {
	long a, b, c;
};

CALLED static double variadic(int a, double b, const char *c, ...)
{
	double sum = a + b + (c != NULL);
	va_list list;

	va_start(list, c);
	sum += va_arg(list, int) + va_arg(list, double);
	va_end(list);
	return sum;
}

CALLED static long variable_array(int n, long a, double b, long c)
{
	volatile char room[n];

	room[n - 1] = (char)a;
	keep((void *)room);
	return room[n - 1] + (long)b + c + n;
}

CALLED static long on_stack_too(size_t n, double a, struct two b, long c,
				long d, long e, long f, struct three g, long h)
{
	char *room = (char *)alloca(n);

	memset(room, 1, n);
	keep(room);
	return room[n - 1] + (long)a + b.a + c + d + e + f + g.b + h;
}

CALLED static long realigned(long a, double b, struct two c, long d, long e,
			     long f, long g, struct three h)
{
	volatile char room[64] __attribute__((aligned(64)));

	room[a & 63] = (char)a;
	keep((void *)room);
	return room[b > 0] + c.a + d + e + f + g + h.c;
}

CALLED static long realigned_and_variable(long a, double b, long c, long d,
					  long e, long f, long g, long h)
{
	volatile char room[64] __attribute__((aligned(64))), more[(a & 7) + 1];

	room[a & 63] = (char)a;
	more[a & 7] = 1;
	keep((void *)room);
	keep((void *)more);
	return room[b > 0] + more[0] + c + d + e + f + g + h;
}

CALLED static long large_frame(long a, double b, int c, struct three d)
{
	volatile char room[100000];

	room[a & 1023] = (char)c;
	keep((void *)room);
	return room[b > 0] + d.a;
}

__attribute__((cold, noinline)) static long in_trouble(long a, double b)
{
	sink[5] = (unsigned char)a;
	return (long)b;
}

CALLED static long has_cold_part(long a, double b, long c, long d, long e)
{
	if (__builtin_expect(sink[6] == 77, 0)) {
		sink[7] = (unsigned char)in_trouble(c, b);
		sink[8] = (unsigned char)in_trouble(d, (double)e);
		return in_trouble(a, b) + sink[9];
	}
	return a + c;
}

/* Compilers make a copy with fewer parameters. */
__attribute__((noinline)) static long copied(long a, int always, double unused,
					     struct three *pointed, short b)
{
	return a * always + pointed->b + b + sink[10];
}

__attribute__((noinline)) static long jumping(long a, double b, long c)
{
	jmp_buf here;
	volatile long sum = a + (long)b;

	if (setjmp(here) == 0)
		longjmp(here, 1);
	return sum + c;
}

#ifdef __x86_64__
__attribute__((ms_abi, noinline)) static long
other_convention(long a, double b, long c, long d, long e)
{
	return a + (long)b + c + d + e + sink[11];
}
#endif

CALLED static struct three returns_more(struct three a, long b, double c)
{
	a.a += b + (long)c;
	return a;
}

CALLED static float narrow(unsigned char a, short b, truth c, float d)
{
	return a + b + c + d;
}

#ifndef __cplusplus
struct nothing {
};

CALLED static long passes_nothing(struct nothing a, long b, double c)
{
	keep(&a);
	return b + (long)c;
}

CALLED static long old_style(a, b, c)
long a;
float b;
char c;
{
	return a + (long)b + c;
}
#endif

QUIETLY static void run_common(void)
{
	int a = 1001, n = 33;
	double b = 12.25;
	const char *c = "text";
	long d = 0x1122334455667788, e = -5, f = 66, g = 77, h = 88;
	struct two two = { 91, 92.5 };
	struct three three = { 101, 102, 103 };
	size_t size = 40;
	struct three *pointer = &three;
	unsigned char byte = 200;
	short small = -300;
	truth yes = 1;
	float single = 2.5f;
	int five = 5;

	BEGIN(0), SAY(a), SAY(b), SAY(c);
	CALL(variadic(a, b, c, 7, 8.5));
	BEGIN(1), SAY(n), SAY(d), SAY(b), SAY(e);
	CALL(variable_array(n, d, b, e));
	BEGIN(2), SAY(size), SAY(b), SAY(two), SAY(d), SAY(e), SAY(f), SAY(g),
		SAY(three), SAY(h);
	CALL(on_stack_too(size, b, two, d, e, f, g, three, h));
	BEGIN(3), SAY(d), SAY(b), SAY(two), SAY(e), SAY(f), SAY(g), SAY(h),
		SAY(three);
	CALL(realigned(d, b, two, e, f, g, h, three));
	BEGIN(4), SAY(d), SAY(b), SAY(e), SAY(f), SAY(g), SAY(h), SAY(f),
		SAY(g);
	CALL(realigned_and_variable(d, b, e, f, g, h, f, g));
	BEGIN(5), SAY(d), SAY(b), SAY(n), SAY(three);
	CALL(large_frame(d, b, n, three));
	BEGIN(6), SAY(d), SAY(b), SAY(e), SAY(f), SAY(g);
	CALL(has_cold_part(d, b, e, f, g));
	BEGIN(7), SAY(d), SAY(five), SAY(b), SAY(pointer), SAY(small);
	CALL(copied(d, 5, 12.25, pointer, small));
	BEGIN(8), SAY(d), SAY(b), SAY(e);
	CALL(jumping(d, b, e));
#ifdef __x86_64__
	BEGIN(9), SAY(d), SAY(b), SAY(e), SAY(f), SAY(g);
	CALL(other_convention(d, b, e, f, g));
#endif
	BEGIN(10), SAY(three), SAY(d), SAY(b);
	CALL(returns_more(three, d, b));
	BEGIN(11), SAY(byte), SAY(small), SAY(yes), SAY(single);
	CALL(narrow(byte, small, yes, single));
#ifndef __cplusplus
	{
		struct nothing nothing;
		char letter = 'x';

		BEGIN(12), SAY(nothing), SAY(d), SAY(b);
		CALL(passes_nothing(nothing, d, b));
		BEGIN(13), SAY(d), SAY(single), SAY(letter);
		CALL(old_style(d, single, letter));
	}
#endif
}

#if !defined(__cplusplus) && !defined(__clang__)
QUIETLY static void run_nested(void)
{
	long d = 0x1122334455667788, e = -5, outer = 3;
	double b = 12.25;

	CALLED long nested(long a, double x, long y)
	{
		outer++;
		return a + (long)x + y + outer;
	}

	BEGIN(14), SAY(d), SAY(b), SAY(e);
	CALL(nested(d, b, e));
}
#else
#define run_nested() (void)0
#endif

#ifdef __cplusplus

struct Left {
	long l;
	Q Left() : l(1)
	{
	}
	CALLED virtual long left(long a, double b)
	{
		return a + (long)b + l;
	}
};

struct Right {
	long r;
	Q Right() : r(2)
	{
	}
	CALLED virtual long right(long a, double b)
	{
		return a + (long)b + r;
	}
};

struct Both : Left, Right {
	long b;
	Q Both() : b(3)
	{
	}
	CALLED long left(long x, double y) override
	{
		return x + (long)y + b;
	}
	CALLED long right(long x, double y) override
	{
		return x - (long)y + b;
	}
};

struct Shared : virtual Right {
	long s;
	Q Shared() : s(4)
	{
	}
	CALLED long right(long x, double y) override
	{
		return x * (long)y + s;
	}
};

/* The constructors print their own values. */
struct Made {
	long m;
	double n;
	CALLED Made(long a, double b) : m(a), n(b)
	{
		sink[12]++;
	}
	CALLED ~Made()
	{
		sink[13] = (unsigned char)m;
	}
};

struct MadeFrom : Made {
	struct three t;
	CALLED MadeFrom(long a, double b, struct three c) : Made(b > 0, b), t(c)
	{
		t.a = a;
	}
};

struct MadeVirtually : virtual Right {
	long v;
	CALLED MadeVirtually(long a, double b) : v(a + (long)b)
	{
	}
};

struct Final : MadeVirtually {
	Q Final(long a, double b) : MadeVirtually(a, b)
	{
	}
};

struct Called {
	CALLED static long of_class(long a, double b)
	{
		return a + (long)b;
	}
	CALLED long operator()(long a, double b) const &
	{
		return a - (long)b;
	}
	template <typename T> CALLED long of_type(T a, const T &b)
	{
		return (long)a + (long)b;
	}
};

/* clang's debug information may omit unused objects. */
struct Kept {
	long k;
	Q Kept(long from) : k(from)
	{
	}
	Q Kept(const Kept &other) : k(other.k)
	{
	}
	Q ~Kept()
	{
		sink[14]++;
	}
};

template <typename T> struct Box {
	T inside;
	long more[2];
};

CALLED static long unused(Kept, long b)
{
	return b + 1;
}

CALLED static long unused_before(long, Kept unused, Kept, double b, long c)
{
	return (long)b + c;
}

CALLED static long unused_behind(long a, double b, long, Kept)
{
	return a + (long)b;
}

CALLED static long unused_box(struct two, long, Box<void (*)(int)>, Kept,
			       double d)
{
	return (long)d;
}

template <typename T> CALLED static void (*unused_type(T, long b, Kept))(int)
{
	sink[14] = (unsigned char)b;
	return NULL;
}

namespace {
struct Hidden {
	long h;
	CALLED long method(Kept, long b, double, Kept, double c)
	{
		return h + b + (long)c;
	}
	CALLED static long of_class(double, Kept, long c)
	{
		return c;
	}
};
}

struct MadeUnused : virtual Right {
	long v;
	CALLED MadeUnused(Kept, double b, Kept, Kept, long d) : v(d + (long)b)
	{
	}
};

struct FinalUnused : MadeUnused {
	Q FinalUnused(const Kept &a, double b, long d) : MadeUnused(a, b, a, a, d)
	{
	}
};

/* Objects are made in this memory, so their address is known before. */
static Both both;
static Shared shared;
static char memory[6][128] __attribute__((aligned(16)));

QUIETLY inline void *operator new(size_t, char *at)
{
	return at;
}

QUIETLY static void run_unused(void)
{
	long d = 0x1122334455667788, e = -5;
	double b = 12.25, f = -0.5;
	struct two two = { 77, 3.5 };
	Kept kept(d + 1);
	Box<void (*)(int)> box = { NULL, { 5, 6 } };
	Hidden hidden = { 3 }, *self = &hidden;
	void *at[2] = { memory[3], memory[5] };

	BEGIN(31), SAY(kept), SAY(e);
	CALL(unused(kept, e));
	BEGIN(32), SAY(d), SAY(kept), SAY(kept), SAY(f), SAY(e);
	CALL(unused_before(d, kept, kept, f, e));
	BEGIN(33), SAY(e), SAY(b), SAY(d), SAY(kept);
	CALL(unused_behind(e, b, d, kept));
	BEGIN(34), SAY(two), SAY(d), SAY(box), SAY(kept), SAY(f);
	CALL(unused_box(two, d, box, kept, f));
	BEGIN(35), SAY(d), SAY(e), SAY(kept);
	CALL(unused_type(d, e, kept));
	BEGIN(36), SAY(self), SAY(kept), SAY(e), SAY(b), SAY(kept), SAY(f);
	CALL(self->method(kept, e, b, kept, f));
	BEGIN(37), SAY(b), SAY(kept), SAY(e);
	CALL(Hidden::of_class(b, kept, e));
	BEGIN(38), SAY(at[0]), SAY(kept), SAY(b), SAY(kept), SAY(kept), SAY(e);
	CALL(new (memory[3]) MadeUnused(kept, b, kept, kept, e));
	BEGIN(39), SAY(at[1]), SAY(kept), SAY(f), SAY(kept), SAY(kept), SAY(d);
	CALL(new (memory[5]) FinalUnused(kept, f, d));
}

QUIETLY static void run_classes(void)
{
	long d = 0x1122334455667788;
	double b = 12.25;
	struct three three = { 101, 102, 103 };
	Left *volatile left = &both;
	Right *volatile right = &both, *volatile virtually = &shared;
	Both *is_both = &both;
	Shared *is_shared = &shared;
	void *at[5] = { memory[0], memory[1], memory[2], memory[3], memory[4] };
	Called called, *self = &called;
	long other = 5, *address = &other;
	long captured = d;

	BEGIN(20), SAY(is_both), SAY(d), SAY(b);
	CALL(left->left(d, b));
	BEGIN(21), SAY(is_both), SAY(d), SAY(b);
	CALL(right->right(d, b));
	BEGIN(22), SAY(is_shared), SAY(d), SAY(b);
	CALL(virtually->right(d, b));
	BEGIN(23), SAY(at[0]), SAY(d), SAY(b);
	CALL(new (memory[0]) Made(d, b));
	BEGIN(24), SAY(at[0]);
	CALL(((Made *)at[0])->~Made());
	BEGIN(25), SAY(at[1]), SAY(d), SAY(b);
	CALL(new (memory[1]) MadeVirtually(d, b));
	BEGIN(26), SAY(at[2]), SAY(d), SAY(b);
	CALL(new (memory[2]) Final(d, b));
	BEGIN(27), SAY(d), SAY(b);
	CALL(Called::of_class(d, b));
	BEGIN(28), SAY(self), SAY(d), SAY(b);
	CALL(called(d, b));
	BEGIN(29), SAY(self), SAY(d), SAY(address);
	CALL(called.of_type<long>(d, other));

	auto lambda = [captured](long a, double x) __attribute__((noinline))
	{
		return captured + a + (long)x;
	};
	auto *closure = &lambda;

	BEGIN(30), SAY(closure), SAY(d), SAY(b);
	CALL(lambda(d, b));
	run_unused();
	upcoming = 0;
	keep(&three);
}
#else
#define run_classes() (void)0
#endif

QUIETLY static void run_hard(void)
{
	run_common();
	run_nested();
	run_classes();
}

#endif
