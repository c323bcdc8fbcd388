/*
 * Calls whose values are recorded as bytes, and calls whose values are recorded as
 * text, at the border between the two.
 */
#define APART __attribute__((noinline))
#define USE(value) __asm__ volatile("" : : "r"(&(value)) : "memory")

#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wpedantic"

#define TAKES(name, type)              \
	APART void name(type value);   \
	APART void name(type value)    \
	{                              \
		USE(value);            \
	}

struct largest {
	char bytes_of_largest[64];
};

struct too_large {
	char bytes_of_too_large[65];
};

struct byte {
	char only;
};

struct middle {
	short first[17];
};

enum crowd {
#define ONE(n)	     EVERYBODY_HAS_A_LONG_NAME_##n,
#define TEN(n)	     ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) \
		     ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n)   TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) \
		     TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
	HUNDRED(1) HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5)
};

/* Their bytes are text, so that a test can search the file for them. */
TAKES(largest, struct largest)
TAKES(too_large, struct too_large)
TAKES(middle, struct middle)
TAKES(crowd, enum crowd)
TAKES(to_signed, signed char *)
TAKES(to_unsigned, unsigned char *)
TAKES(to_short, short *)
TAKES(to_truth, _Bool *)
TAKES(to_byte, struct byte *)

APART void dozen(int a, int b, int c, int d, int e, int f, int g, int h, int i,
		 int j, int k, int l);
APART void dozen(int a, int b, int c, int d, int e, int f, int g, int h, int i,
		 int j, int k, int l)
{
	int sum = a + b + c + d + e + f + g + h + i + j + k + l;

	USE(sum);
}

/* It has no name in the declaration, either. */
APART void unnamed(int, int named);
APART void unnamed(int, int named)
{
	USE(named);
}

/* A record has room for 242 bytes of values.  Each value takes one or two more bytes
 * that say how it is recorded; one byte is left to say that there are no more
 * values. */
struct sixty {
	char sixty[60];
};

#define SIXTIES struct sixty a, struct sixty b, struct sixty c
#define ENDS_WITH(name, size, ...)                                    \
	struct name##_last {                                          \
		char name##_last[size];                               \
	};                                                            \
	APART void name(SIXTIES, struct name##_last d, ##__VA_ARGS__); \
	APART void name(SIXTIES, struct name##_last d, ##__VA_ARGS__) \
	{                                                             \
		USE(a);                                               \
		USE(b);                                               \
		USE(c);                                               \
		USE(d);                                               \
	}

ENDS_WITH(fits, 58)
ENDS_WITH(fits_not, 59)
ENDS_WITH(fits_as_cut, 40, const char *e, int f)
ENDS_WITH(fits_as_whole, 48, const char *e)
ENDS_WITH(fits_as_none, 48, const char *e)

int main(void)
{
	signed char some[] = "signed text";
	unsigned char other[] = "unsigned text";
	short number = 7;
	_Bool truth = 1;
	struct byte byte = { 'x' };
	struct sixty sixty = { "sixty" };

	largest((struct largest){ "l" });
	middle((struct middle){ { 7 } });
	crowd(EVERYBODY_HAS_A_LONG_NAME_599);
	to_signed(some);
	to_unsigned(other);
	to_short(&number);
	to_truth(&truth);
	to_byte(&byte);
	dozen(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
	unnamed(1, 2);
	fits(sixty, sixty, sixty, (struct fits_last){ "d" });
	fits_not(sixty, sixty, sixty, (struct fits_not_last){ "d" });
	fits_as_cut(sixty, sixty, sixty, (struct fits_as_cut_last){ "d" },
		    "xxxxxxxxxxxxxx\303\251 and more", 1);
	fits_as_whole(sixty, sixty, sixty, (struct fits_as_whole_last){ "d" },
		      "short");
	fits_as_none(sixty, sixty, sixty, (struct fits_as_none_last){ "d" },
		     "not so short");
	too_large((struct too_large){ "t" });
	return 0;
}
