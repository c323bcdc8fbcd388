/*
 * The expressions of unwind tables.
 */
#define _GNU_SOURCE
#include "unwind_stubs.h"

TestSuite(expressions, .init = make_rules);

static bool compute(const char *bytes, size_t size, uintptr_t *result)
{
	struct unwind walk = frame();
	struct tables tables = { 0 };
	struct rule rule = { HOW_EXPRESSION_IS, (uint32_t)size,
			     (int64_t)(uintptr_t)bytes };
	uintptr_t first = 100;

	walk.known |= 1u << RAX;
	return evaluate_expression(&walk, &tables, &rule, &first, result);
}

#define IS(bytes, expected) \
	do { \
		uintptr_t value_; \
\
		cr_assert(compute(bytes, sizeof(bytes) - 1, &value_)); \
		cr_assert(eq(ulong, value_, (uintptr_t)(expected))); \
	} while (0)

#define FAILS(bytes) \
	do { \
		uintptr_t value_; \
\
		cr_assert(not(compute(bytes, sizeof(bytes) - 1, &value_))); \
	} while (0)

Test(expressions, they_have_numbers_and_registers)
{
	IS("", 100);
	IS("\x30", 0);
	IS("\x4f", 31);
	IS("\x08\xf0", 0xf0);
	IS("\x09\xf0", -16);
	IS("\x0a\x34\xf2", 0xf234);
	IS("\x0b\x34\xf2", (int16_t)0xf234);
	IS("\x10\x7f", 0x7f);
	IS("\x11\x7f", -1);
	IS("\x76\x04", 0x600000 + RBP + 4);
	IS("\x73\x7c", 0x600000 + RBX - 4);
	IS("\x80\x00", IP);
	IS("\x70\x01", 0x600001);
	FAILS("\x71\x00"); /* rdx is unknown */
	FAILS("\x81\x00"); /* there is no such register */
	FAILS("\x8f\x00");
	FAILS("\x08");
	FAILS("\x0a\x01");
	FAILS("\x2f");
	FAILS("\x50");
	FAILS("\x90");
	FAILS("\x2e\x2e");
}

Test(expressions, they_compute)
{
	IS("\x3f\x1a", 100 & 15);
	IS("\x3f\x1c", 85);
	IS("\x3f\x21", 100 | 15);
	IS("\x3f\x22", 115);
	IS("\x3f\x27", 100 ^ 15);
	IS("\x33\x24", 800);
	IS("\x33\x25", 12);
	IS("\x08\x3f\x24", 0);
	IS("\x31\x08\x3f\x24", 1ull << 63);
	IS("\x31\x08\x40\x24", 0);
	IS("\x09\xff\x08\x3f\x25", 1);
	IS("\x09\xff\x08\x40\x25", 0);
	IS("\x23\x05", 105);
	IS("\x96", 100);
	IS("\x77\x00\x06", 0x500000 + 8);
	IS("\x77\x08\x06", 0x500000 + 9);
	FAILS("\x06"); /* at 100 */
	FAILS("\x22");
	FAILS("\x26\x31");
}

Test(expressions, they_compare_signed_numbers)
{
	static const int8_t numbers[] = { -2, -1, 0, 1 };

	for (unsigned i = 0; i < 4; i++)
		for (unsigned j = 0; j < 4; j++) {
			int8_t a = numbers[i], b = numbers[j];
			char code[5] = { 0x09, a, 0x09, b };
			const struct {
				char op;
				bool is_true;
			} all[] = { { 0x29, a == b },
				    { 0x2a, a >= b },
				    { 0x2b, a > b },
				    { 0x2c, a <= b },
				    { 0x2d, a < b } };

			for (unsigned k = 0; k < 5; k++) {
				uintptr_t value;

				code[4] = all[k].op;
				cr_assert(compute(code, 5, &value));
				cr_assert(eq(ulong, value, all[k].is_true));
			}
		}
}

/* The stack has 16 places, of which the frame's address takes the first. */
Test(expressions, they_have_a_small_stack)
{
	char code[32];
	uintptr_t value;
	struct rule none = { HOW_EXPRESSION_IS, 0, (int64_t)(uintptr_t)code };
	struct rule add = { HOW_EXPRESSION_IS, 2, (int64_t)(uintptr_t)code };
	struct unwind walk = frame();
	struct tables tables = { 0 };

	memset(code, 0x31, sizeof(code));
	cr_assert(compute(code, DEPTH - 1, &value));
	cr_assert(not(compute(code, DEPTH, &value)));
	cr_assert(
		not(evaluate_expression(&walk, &tables, &none, NULL, &value)));
	/* Nothing to add to, to read at, or to add up. */
	memcpy(code, "\x23\x01", 2);
	cr_assert(not(evaluate_expression(&walk, &tables, &add, NULL, &value)));
	memcpy(code, "\x06\x96", 2);
	cr_assert(not(evaluate_expression(&walk, &tables, &add, NULL, &value)));
	memcpy(code, "\x31\x22", 2);
	cr_assert(not(evaluate_expression(&walk, &tables, &add, NULL, &value)));
	memcpy(code, "\x31\x96", 2);
	cr_assert(evaluate_expression(&walk, &tables, &add, NULL, &value));
	cr_assert(eq(ulong, value, 1));
}
