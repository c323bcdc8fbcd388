/* 300 functions that do nothing but write sink. */
#ifndef HUNDREDS_H
#define HUNDREDS_H

#define TEN(X, n) \
	X(n##0) \
	X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) X(n##8) X(n##9)
#define HUNDRED(X, n) \
	TEN(X, n##0) \
	TEN(X, n##1) \
	TEN(X, n##2) \
	TEN(X, n##3) TEN(X, n##4) TEN(X, n##5) TEN(X, n##6) TEN(X, n##7) \
		TEN(X, n##8) TEN(X, n##9)

static volatile int sink;

#define FUNCTION(n) \
	__attribute__((noinline)) void once_##n(void) \
	{ \
		sink = 1##n; \
	}
#define CALL(n) once_##n();

HUNDRED(FUNCTION, 1)
HUNDRED(FUNCTION, 2)
HUNDRED(FUNCTION, 3)

#endif
