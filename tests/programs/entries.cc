/*
 * What must not change while functions return to shim first (shim/sources/returns.h): results
 * of all kinds, exceptions, jumps, signals, coroutines, threads and their ends, forks, tail
 * calls, deep recursion, and the program's own backtrace.  Prints the same in every run.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <setjmp.h>
#include <signal.h>
#include <pthread.h>
#include <ucontext.h>
#include <execinfo.h>
#include <unistd.h>
#include <sys/wait.h>
#include <complex>
#include <cstdarg>
#define N   __attribute__((noinline))
#define BAR __asm__ volatile("" ::: "memory")
struct Big {
	long a[9];
};
struct Pair {
	double a;
	long b;
};
N int f_int(int x)
{
	BAR;
	return x + 1;
}
N __int128 f_i128(__int128 x)
{
	BAR;
	return x * 3;
}
N float f_float(float x)
{
	BAR;
	return x * 1.5f;
}
N double f_double(double x)
{
	BAR;
	return x * 1.5;
}
N long double f_ld(long double x)
{
	BAR;
	return x * 1.5L;
}
N std::complex<double> f_cplx(std::complex<double> x)
{
	BAR;
	return x * 2.0;
}
N _Complex long double f_cld(_Complex long double x)
{
	BAR;
	return x * 2.0L;
}
N Big f_big(long x)
{
	Big b;
	for (int i = 0; i < 9; i++)
		b.a[i] = x + i;
	BAR;
	return b;
}
N Pair f_pair(double a, long b)
{
	BAR;
	return { a * 2, b * 2 };
}
N double f_many(int a, int b, int c, int d, int e, int f, int g, double h,
		double i, double j, double k, double l, double m, double n,
		double o, double p)
{
	BAR;
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h + i * 2 +
	       j * 3 + k * 4 + l * 5 + m * 6 + n * 7 + o * 8 + p * 9;
}
N int f_var(const char *fmt, ...)
{
	char b[200];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(b, 200, fmt, ap);
	va_end(ap);
	puts(b);
	return (int)strlen(b);
}
typedef int v8 __attribute__((vector_size(32)));
__attribute__((target("avx2"))) N v8 f_v8(v8 a, v8 b)
{
	BAR;
	return a + b;
}
__attribute__((target("avx2"))) N void use_v8()
{
	v8 a = { 1, 2, 3, 4, 5, 6, 7, 8 };
	v8 r = f_v8(a, a);
	printf("v8 %d %d\n", r[0], r[7]);
}
struct D {
	const char *n;
	D(const char *x) : n(x)
	{
	}
	N ~D()
	{
		BAR;
		printf("~%s\n", n);
	}
};
N void thrower(int n)
{
	D d("thrower");
	if (n == 0)
		throw std::runtime_error("boo");
	thrower(n - 1);
	BAR;
}
N int catcher(int n)
{
	try {
		D d("catcher");
		thrower(n);
	} catch (std::exception &e) {
		printf("caught %s\n", e.what());
		return f_int(n);
	}
	return 0;
}
N void rethrower()
{
	try {
		thrower(2);
	} catch (...) {
		f_int(3);
		throw;
	}
}
N int catch2()
{
	try {
		rethrower();
	} catch (std::runtime_error &e) {
		return f_int(9);
	}
	return 1;
}
jmp_buf jb;
sigjmp_buf sjb;
N void jumper(int n)
{
	if (n == 0)
		longjmp(jb, 7);
	jumper(n - 1);
	BAR;
}
N int jumped()
{
	int r = setjmp(jb);
	if (r == 0) {
		jumper(5);
	}
	return f_int(r);
}
N void handler_inner(int s)
{
	f_int(s);
}
N void handler(int s)
{
	handler_inner(s);
	BAR;
}
N void handler_jump(int s)
{
	handler_inner(s);
	siglongjmp(sjb, 3);
}
N int signals()
{
	struct sigaction sa;
	memset(&sa, 0, sizeof sa);
	sa.sa_handler = handler;
	sa.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &sa, 0);
	raise(SIGUSR1);
	f_int(1);
	static char st[65536];
	stack_t ss;
	memset(&ss, 0, sizeof ss);
	ss.ss_sp = st;
	ss.ss_size = sizeof st;
	sigaltstack(&ss, 0);
	raise(SIGUSR1);
	f_int(2);
	sa.sa_handler = handler_jump;
	sigaction(SIGUSR2, &sa, 0);
	int r = sigsetjmp(sjb, 1);
	if (!r)
		raise(SIGUSR2);
	return f_int(r);
}
ucontext_t cm, c1, c2;
char s1[65536], s2[65536];
N void co_step(int i, ucontext_t *me, ucontext_t *other)
{
	f_int(i);
	swapcontext(me, other);
	BAR;
}
void co1()
{
	for (int i = 0; i < 3; i++)
		co_step(i, &c1, &c2);
}
void co2()
{
	for (int i = 0; i < 3; i++)
		co_step(i + 10, &c2, &c1);
}
N void coroutines()
{
	getcontext(&c1);
	c1.uc_stack.ss_sp = s1;
	c1.uc_stack.ss_size = sizeof s1;
	c1.uc_link = &cm;
	makecontext(&c1, co1, 0);
	getcontext(&c2);
	c2.uc_stack.ss_sp = s2;
	c2.uc_stack.ss_size = sizeof s2;
	c2.uc_link = &cm;
	makecontext(&c2, co2, 0);
	swapcontext(&cm, &c1);
	f_int(77);
}
N int deep(int n)
{
	return n == 0 ? 0 : deep(n - 1) + 1;
}
void *thread_body(void *p)
{
	long n = (long)p;
	long s = 0;
	for (int i = 0; i < n; i++)
		s += f_int(i);
	return (void *)s;
}
N void texit_inner()
{
	D d("texit");
	pthread_exit((void *)5);
}
void *thread_exit(void *)
{
	texit_inner();
	return 0;
}
N void blocker()
{
	for (;;)
		pause();
}
void *thread_cancel(void *)
{
	D d("cancel");
	blocker();
	return 0;
}
N void threads()
{
	pthread_t t[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, thread_body, (void *)(long)(i * 10));
	long s = 0;
	for (int i = 0; i < 4; i++) {
		void *r;
		pthread_join(t[i], &r);
		s += (long)r;
	}
	printf("threads %ld\n", s);
	void *r;
	pthread_create(&t[0], 0, thread_exit, 0);
	pthread_join(t[0], &r);
	printf("exit %ld\n", (long)r);
	pthread_create(&t[0], 0, thread_cancel, 0);
	pthread_cancel(t[0]);
	pthread_join(t[0], &r);
	printf("cancel %d\n", r == PTHREAD_CANCELED);
}
N int back2()
{
	void *b[30];
	int n = backtrace(b, 30);
	char **s = backtrace_symbols(b, n);
	int k = 0;
	for (int i = 0; i < n; i++) {
		char *p = strchr(s[i], '(');
		char *q = p ? strchr(p, '+') : NULL;
		if (strstr(s[i], "libshim.so"))
			puts("shim");
		if (!q)
			continue;
		*q = 0;
		if (strstr(p, "back") || strstr(p, "main")) {
			puts(p);
			k++;
		}
	}
	free(s);
	return k;
}
N int back1()
{
	int r = back2();
	BAR;
	return r;
}
N int forks()
{
	pid_t p = fork();
	if (p == 0) {
		f_int(1);
		_exit(f_int(41));
	}
	int st;
	waitpid(p, &st, 0);
	f_int(2);
	p = vfork();
	if (p == 0)
		_exit(3);
	int st2;
	waitpid(p, &st2, 0);
	return WEXITSTATUS(st) * 100 + WEXITSTATUS(st2);
}
N int tail3(int x)
{
	BAR;
	return x;
}
N int tail2(int x)
{
	BAR;
	return tail3(x + 1);
}
N int tail1(int x)
{
	BAR;
	return tail2(x + 1);
}
N int qcmp(const void *a, const void *b)
{
	return *(int *)a - *(int *)b;
}
N void sorts()
{
	int v[50];
	for (int i = 0; i < 50; i++)
		v[i] = (i * 37) % 50;
	qsort(v, 50, sizeof(int), qcmp);
	printf("sorted %d %d\n", v[0], v[49]);
}
struct V {
	virtual ~V()
	{
	}
	virtual int m(int x)
	{
		BAR;
		return x;
	}
};
struct W : V {
	N int m(int x) override
	{
		BAR;
		return V::m(x) + 1;
	}
};
N int cur()
{
	int u = std::uncaught_exceptions();
	return u;
}
int main()
{
	printf("%d %lld\n", f_int(3),
	       (long long)f_i128(((__int128)1 << 40) + 5));
	printf("%g %g %Lg\n", f_float(2), f_double(3), f_ld(4));
	auto c = f_cplx({ 1, 2 });
	printf("%g %g\n", c.real(), c.imag());
	_Complex long double z = f_cld(3.0L + 1.0iL);
	printf("%Lg %Lg\n", __real__ z, __imag__ z);
	Big b = f_big(5);
	printf("%ld %ld\n", b.a[0], b.a[8]);
	Pair p = f_pair(1.5, 4);
	printf("%g %ld\n", p.a, p.b);
	printf("%g\n",
	       f_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16));
	printf("%d\n", f_var("%d %g %s", 5, 2.5, "x"));
	if (__builtin_cpu_supports("avx2"))
		use_v8();
	printf("%d\n", catcher(3));
	printf("%d\n", catch2());
	printf("%d\n", jumped());
	printf("%d\n", signals());
	coroutines();
	printf("deep %d\n", deep(50000));
	threads();
	printf("%d\n", back1());
	fflush(stdout);
	printf("%d\n", forks());
	printf("%d\n", tail1(1));
	sorts();
	W w;
	V *v = &w;
	printf("%d\n", v->m(3));
	printf("%d\n", cur());
	return 0;
}
