/*
 * Results found from handwritten code after leave hooks (result_rows.def, and each
 * instruction of operations.def).  The test runs each piece of code: at the hook it
 * computes the result by a recipe, then the code computes it.
 */
#include "inspect/decode/decode.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

/* The assembly below uses these offsets. */
struct state {
	uint64_t kept[16];   /* at the hook, by register number */
	uint64_t hook;	     /* where the hook returns */
	uint64_t sp;	     /* the test's own */
	uint64_t rax, rdx;   /* after the code */
	uint64_t vectors[8]; /* ymm0, ymm1 */
	unsigned char x87[108];
	uint32_t has_avx;
};

extern struct state state;
struct state state;

/* For rbx, rbp, r12, r14 and r15; r13 is the address of @numbers. */
extern uint64_t inputs[5];
uint64_t inputs[5];

extern unsigned char numbers[256];
_Alignas(64) unsigned char numbers[256];

void run_row(const void *code);
bool check_hook(void);

__asm__(".text\n"
	"run_row:\n\t"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n\t"
	"sub $8, %rsp; mov %rsp, 136+state(%rip)\n\t"
	"mov inputs(%rip), %rbx; mov 8+inputs(%rip), %rbp\n\t"
	"mov 16+inputs(%rip), %r12; lea numbers(%rip), %r13\n\t"
	"mov 24+inputs(%rip), %r14; mov 32+inputs(%rip), %r15\n\t"
	"call *%rdi\n\t"
	"mov %rax, 144+state(%rip); mov %rdx, 152+state(%rip)\n\t"
	"movups %xmm0, 160+state(%rip); movups %xmm1, 192+state(%rip)\n\t"
	"cmpl $0, 332+state(%rip); je 1f\n\t"
	"vmovups %ymm0, 160+state(%rip); vmovups %ymm1, 192+state(%rip)\n\t"
	"vzeroupper\n"
	"1:\tfnsave 224+state(%rip)\n"
	"left:\tmov 136+state(%rip), %rsp; add $8, %rsp\n\t"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"

	/* Afterwards, only callee-saved registers have what they had. */
	"hook:\n\t"
	"mov %rbx, 24+state(%rip); mov %rbp, 40+state(%rip)\n\t"
	"mov %r12, 96+state(%rip); mov %r13, 104+state(%rip)\n\t"
	"mov %r14, 112+state(%rip); mov %r15, 120+state(%rip)\n\t"
	"lea 8(%rsp), %rax; mov %rax, 32+state(%rip)\n\t"
	"mov (%rsp), %rax; mov %rax, 128+state(%rip)\n\t"
	"push %rbx; mov %rsp, %rbx; and $-16, %rsp\n\t"
	"call check_hook\n\t"
	"mov %rbx, %rsp; pop %rbx; test %al, %al; je left\n\t"
	"movabs $0x6162636465666768, %rax\n\t"
	"mov %rax, %rcx; mov %rax, %rdx; mov %rax, %rsi; mov %rax, %rdi\n\t"
	"mov %rax, %r8; mov %rax, %r9; mov %rax, %r10; mov %rax, %r11\n\t"
	"pcmpeqd %xmm0, %xmm0; pcmpeqd %xmm1, %xmm1; pcmpeqd %xmm2, %xmm2\n\t"
	"ret\n");

/*
 * Kinds of results: b, w, d and q are integers of 1 to 8 bytes, p two of 8 bytes in rax
 * and rdx; f and s numbers of 4 and 8 bytes in xmm0, z two of 8 bytes in xmm0 and xmm1; m
 * is in rax and xmm0, n in xmm0 and rax; x are 16 bytes in xmm0; y are 32 bytes, in an
 * unknown way; l is a long double, c two of them; a is an object at the address in rax.
 */
struct row {
	const char *name, *code, *end;
	uint64_t kind;
	uint64_t reason; /* why there is no result, or 0 */
};

extern const struct row __start_result_rows[], __stop_result_rows[];
extern const struct row __start_newer_rows[], __stop_newer_rows[];

#define ROW_OF(section, name, kind, reason, code) \
	"\n.pushsection " section ", \"aw\"; .quad 103f, 101f, 102f, '" kind \
	"', " reason "; .popsection\n" \
	".pushsection .rodata; 103: .asciz \"" name "\"; .popsection\n" \
	"101: sub $40, %rsp; call hook\n\t" code \
	"\n\tadd $40, %rsp; ret\n102:\n"

/* The result is available. */
#define ROW(name, kind, code) ROW_OF("result_rows", name, kind, "0", code)
/* The same, on processors with AVX2, BMI and FMA. */
#define NEWER(name, kind, code) ROW_OF("newer_rows", name, kind, "0", code)
/* The result is unavailable for this reason (enum shim_unavailable). */
#define NOT_UNDERSTOOD "3"
#define INLINED	       "6"
#define NOT_RETURNED   "7"
#define CODE	       "8"
#define REFUSED(name, kind, reason, code) \
	ROW_OF("result_rows", name, kind, reason, code)
#define OF_SEGMENT(kind, before, code) REFUSED(code, kind, CODE, before code)
_Static_assert(SHIM_UNAVAILABLE_INLINED == 6 && SHIM_UNAVAILABLE_CODE == 8, "");

/* --- each instruction of operations.def --- */

#define FLAGS_SET "cmp %r15, %r14\n\t"
/* Four of the flags that the instruction defines: processors differ in the others. */
#define FLAGS(a, b, c, d) \
	"\n\tmov $0, %edx; set" a " %dl; set" b " %dh; bswap %edx; set" c \
	" %dl; set" d " %dh"
#define FLAGS_TO_DX FLAGS("s", "o", "c", "z")
#define INTEGERS    "mov %rbx, %rax; mov %r12, %rcx; " FLAGS_SET
#define INTEGER_WITH(name, operands, flags) \
	ROW(name " " operands, "p", INTEGERS name " " operands flags)
#define ONE_INTEGER(name, operands) INTEGER_WITH(name, operands, FLAGS_TO_DX)
#define NEWER_INTEGER(name, operands) \
	NEWER(name " " operands, "p", INTEGERS name " " operands FLAGS_TO_DX)

#define VECTORS \
	"movups (%r13), %xmm0; movups 32(%r13), %xmm1; movups 64(%r13), %xmm2\n\t"
#define WIDE_VECTORS \
	"vmovups (%r13), %ymm0; vmovups 32(%r13), %ymm1; vmovups 64(%r13), %ymm2\n\t"
#define ONE_VECTOR(kind, name, operands) \
	ROW(name " " operands, kind, VECTORS name " " operands)
#define NEWER_VECTOR(kind, name, operands) \
	NEWER(name " " operands, kind, WIDE_VECTORS name " " operands)

#define INTEGER(NAME, name) \
	ONE_INTEGER(#name, "%cl, %al") \
	ONE_INTEGER(#name, "%cx, %ax") \
	ONE_INTEGER(#name, "%ecx, %eax") \
	ONE_INTEGER(#name, "%rcx, %rax") \
	ONE_INTEGER(#name, "%ah, %cl") \
	ONE_INTEGER(#name, "%cl, %ah") \
	ONE_INTEGER(#name "w", "$0x1234, %ax") \
	ONE_INTEGER(#name "q", "$-5, %rax")
#define INTEGER_UNARY(NAME, name) \
	ONE_INTEGER(#name, "%al") \
	ONE_INTEGER(#name, "%ah") \
	ONE_INTEGER(#name, "%ax") \
	ONE_INTEGER(#name, "%eax") \
	ONE_INTEGER(#name, "%rax")
#define INTEGER_SHIFT(NAME, name) \
	ONE_INTEGER(#name, "%cl, %al") \
	ONE_INTEGER(#name, "%cl, %ax") \
	ONE_INTEGER(#name, "%cl, %eax") \
	ONE_INTEGER(#name, "%cl, %rax") \
	ONE_INTEGER(#name, "$32, %eax") \
	INTEGER_WITH(#name, "$3, %rax", FLAGS("s", "s", "c", "z")) \
	ONE_INTEGER(#name, "%eax")
#define FLAGS_IMUL   FLAGS("c", "o", "c", "o")
#define FLAGS_BSF    FLAGS("z", "z", "z", "z")
#define FLAGS_BSR    FLAGS_BSF
#define FLAGS_TZCNT  FLAGS("c", "z", "c", "z")
#define FLAGS_LZCNT  FLAGS_TZCNT
#define FLAGS_POPCNT FLAGS_TO_DX
#define FLAGS_BT     FLAGS("c", "c", "c", "c")
#define FLAGS_BTS    FLAGS_BT
#define FLAGS_BTR    FLAGS_BT
#define FLAGS_BTC    FLAGS_BT
#define INTEGER_WIDE(NAME, name) \
	INTEGER_WITH(#name, "%cx, %ax", FLAGS_##NAME) \
	INTEGER_WITH(#name, "%ecx, %eax", FLAGS_##NAME) \
	INTEGER_WITH(#name, "%rcx, %rax", FLAGS_##NAME)
#define INTEGER_SWAP(NAME, name) \
	ONE_INTEGER(#name, "%eax") \
	ONE_INTEGER(#name, "%rax")
#define INTEGER_LAST(NAME, name) \
	NEWER_INTEGER(#name, "%ecx, %eax, %eax") \
	NEWER_INTEGER(#name, "%rbx, %r12, %rax")
#define INTEGER_COUNT(NAME, name) INTEGER_LAST(NAME, name)
#define INTEGER_ONLY(NAME, name) \
	NEWER_INTEGER(#name, "%ecx, %eax") \
	NEWER_INTEGER(#name, "%rcx, %rax")
#define INTEGER_PAIR(NAME, name)

#define SCALAR(NAME, name, size) \
	ONE_VECTOR("x", #name, "%xmm1, %xmm0") \
	ONE_VECTOR("x", #name, "40(%r13), %xmm0") \
	ONE_VECTOR("s", #name, "%xmm1, %xmm0") \
	NEWER_VECTOR("x", "v" #name, "%xmm1, %xmm2, %xmm0")
#define SCALAR_UNARY(NAME, name, size) SCALAR(NAME, name, size)
#define FROM_INTEGER(NAME, name, size) \
	ONE_VECTOR("x", #name "l", "%ebx, %xmm0") \
	ONE_VECTOR("x", #name "q", "%rbx, %xmm0") \
	ONE_VECTOR("x", #name "q", "24(%r13), %xmm0") \
	NEWER_VECTOR("x", "v" #name "l", "%ebx, %xmm1, %xmm0")
#define TO_INTEGER(NAME, name, size) \
	ONE_VECTOR("d", #name, "%xmm1, %eax") \
	ONE_VECTOR("q", #name, "%xmm1, %rax")
#define COMPARE(NAME, name, size) \
	ROW(#name, "d", \
	    VECTORS #name " %xmm1, %xmm0" FLAGS_TO_DX "; mov %edx, %eax") \
	ROW(#name " memory", "d", \
	    VECTORS #name " 64(%r13), %xmm0" FLAGS_TO_DX "; mov %edx, %eax")
#define PACKED(NAME, name) \
	ONE_VECTOR("x", #name, "%xmm1, %xmm0") \
	ONE_VECTOR("x", #name, "48(%r13), %xmm0") \
	NEWER_VECTOR("x", "v" #name, "%xmm1, %xmm2, %xmm0") \
	NEWER_VECTOR("y", "v" #name, "%ymm1, %ymm2, %ymm0") \
	NEWER_VECTOR("y", "v" #name, "96(%r13), %ymm2, %ymm0")
#define PACKED_SHIFT(NAME, name) \
	ROW(#name, "x", VECTORS "movd %r12d, %xmm1; " #name " %xmm1, %xmm0") \
	ROW(#name " immediate", "x", VECTORS #name " $3, %xmm0") \
	NEWER(#name " wide", "y", \
	      WIDE_VECTORS "vmovd %r12d, %xmm1; v" #name \
			   " %xmm1, %ymm2, %ymm0")
#define PACKED_UNARY(NAME, name) \
	ONE_VECTOR("x", #name, "%xmm1, %xmm0") \
	ONE_VECTOR("x", #name, "48(%r13), %xmm0") \
	NEWER_VECTOR("y", "v" #name, "%ymm1, %ymm0")
#define NARROW(NAME, name) \
	ONE_VECTOR("x", #name, "%xmm1, %xmm0") \
	NEWER_VECTOR("x", "v" #name, "%xmm1, %xmm2, %xmm0")
#define NARROW_UNARY(NAME, name) ONE_VECTOR("x", #name, "%xmm1, %xmm0")
#define FUSED(NAME, name, size)	 NEWER_VECTOR("x", #name, "%xmm2, %xmm1, %xmm0")
#define FUSED_PACKED(NAME, name) \
	NEWER_VECTOR("x", #name, "%xmm2, %xmm1, %xmm0") \
	NEWER_VECTOR("y", #name, "%ymm2, %ymm1, %ymm0") \
	NEWER_VECTOR("y", #name, "96(%r13), %ymm1, %ymm0")

#define LONGS "fldl 128(%r13); fldl 136(%r13); "
#define LONG_DOUBLE(NAME, name) \
	ROW(#name, "l", LONGS #name " %st(1), %st; fstp %st(1)") \
	ROW(#name " to the second", "l", \
	    LONGS #name " %st, %st(1); fstp %st(0)") \
	ROW(#name " and pop", "l", LONGS #name "p %st, %st(1)") \
	ROW(#name " a float", "l", "fldl 128(%r13); " #name "s 144(%r13)") \
	ROW(#name " a double", "l", "fldl 128(%r13); " #name "l 136(%r13)")
#define LONG_DOUBLE_UNARY(NAME, name) \
	ROW(#name, "l", "fldl 128(%r13); " #name) \
	ROW(#name " of two", "c", LONGS #name)

__asm__(".text\n"
	"far_target: ret"
#include "inspect/decode/operations.def"
#include "result_rows.def"
);

/* --- the test --- */

static const struct {
	char kind;
	struct prototype_value value;
} kinds[] = {
#define OF(letter, bytes, ...) \
	{ \
		letter, \
		{ \
			.size = bytes, .kind = PROTOTYPE_REGISTERS, \
			.classes = { \
				__VA_ARGS__ \
			} \
		} \
	}
	OF('b', 1, PROTOTYPE_INTEGER),
	OF('w', 2, PROTOTYPE_INTEGER),
	OF('d', 4, PROTOTYPE_INTEGER),
	OF('q', 8, PROTOTYPE_INTEGER),
	OF('p', 16, PROTOTYPE_INTEGER, PROTOTYPE_INTEGER),
	OF('f', 4, PROTOTYPE_SSE),
	OF('s', 8, PROTOTYPE_SSE),
	OF('z', 16, PROTOTYPE_SSE, PROTOTYPE_SSE),
	OF('m', 16, PROTOTYPE_INTEGER, PROTOTYPE_SSE),
	OF('n', 16, PROTOTYPE_SSE, PROTOTYPE_INTEGER),
#undef OF
	{ 'x',
	  { .size = 16,
	    .kind = PROTOTYPE_REGISTERS,
	    .is_whole = 1,
	    .classes = { PROTOTYPE_SSE, PROTOTYPE_SSE } } },
	{ 'y', { .size = 32, .kind = PROTOTYPE_UNKNOWN, .is_wide = 1 } },
	{ 'l', { .size = 16, .kind = PROTOTYPE_X87 } },
	{ 'c', { .size = 32, .kind = PROTOTYPE_X87 } },
	{ 'a', { .size = 24, .kind = PROTOTYPE_MEMORY } },
};

static const struct row *row;
static _Alignas(struct decode_recipe) unsigned char memory
	[sizeof(struct decode_recipe) + 400 * sizeof(struct operation)];
static struct decode_recipe *const recipe = (void *)memory;
static struct decode_machine machine;
static enum shim_unavailable reason;
static unsigned char found[32];

static const struct prototype_value *value_of_row(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (kinds[i].kind == (char)row->kind)
			return &kinds[i].value;
	cr_assert(false, "%s: an unknown kind", row->name);
	return NULL;
}

/* The machine does not use what the hook may have changed. */
static void fill_machine(void)
{
	memset(&machine, 0xa5, sizeof(machine));
	memcpy(&machine.registers[REGISTER_KEPT], state.kept,
	       sizeof(state.kept));
}

static void read_number(const void *address, size_t size, uint64_t *number)
{
	*number = 0;
	memcpy(number, address, size);
}

/* The simple form of a recipe is what the whole recipe computes. */
static void check_simple(uintptr_t site)
{
	const struct decode_simple *simple = &recipe->simple;
	uint64_t base, at;

	if (!simple->is_simple)
		return;
	/* Registers behind the last one could be zeros here. */
	cr_assert(lt(uint, simple->number, 16), "%s", row->name);
	cr_assert(lt(uint, simple->return_number, 16), "%s", row->name);
	base = simple->number ? state.kept[simple->number] : 0;
	read_number((const void *)(state.kept[simple->return_number] +
				   (uintptr_t)simple->return_offset),
		    8, &at);
	cr_expect(eq(u64, at, site), "%s: its return address", row->name);
	base += (uint64_t)simple->offset;
	if (simple->is_loaded)
		read_number((const void *)base, simple->size, &base);
	if (recipe->is_address)
		cr_expect(eq(u64, base, machine.registers[0]), "%s: simple",
			  row->name);
	else
		cr_expect(zero(int, memcmp(&base, found, recipe->result_size)),
			  "%s: simple", row->name);
}

/* At the hook: whether the code goes on. */
__attribute__((used)) bool check_hook(void)
{
	const struct prototype_value *value = value_of_row();
	struct decode_range range = { (uintptr_t)row->code,
				      (uintptr_t)row->end };
	struct decode_leaving leaving = { .function = range.start,
					  .hook = state.hook,
					  .value = value,
					  .ranges = &range,
					  .range_count = 1 };
	uint64_t site;
	uintptr_t start = 1;

	read_number((const void *)(state.kept[4] + 40), 8, &site);
	cr_assert(decode_result(&leaving, recipe, sizeof(memory)));
	fill_machine();
	reason = recipe->reason;
	if (reason == SHIM_AVAILABLE)
		reason = decode_run(recipe, &machine, site, &start);
	if (reason != SHIM_AVAILABLE)
		return row->reason == 0;
	memcpy(found, (const void *)start, value->size);
	check_simple(site);
	/* A place of its size is enough, a smaller one is not. */
	if (recipe->count > 0) {
		uint32_t size = recipe->size;

		cr_expect(decode_result(&leaving, recipe, size));
		cr_expect(not(decode_result(&leaving, recipe, size - 1)));
	}
	return row->reason == 0;
}

/* What the code has left where results are. */
static void take_real(const struct prototype_value *value, unsigned char *real)
{
	const uint64_t integers[] = { state.rax, state.rdx };
	unsigned integer = 0, vector = 0;

	switch ((char)row->kind) {
	case 'x': memcpy(real, state.vectors, 16); return;
	case 'l':
	case 'c':
		memcpy(real, state.x87 + 28, 10);
		memcpy(real + 16, state.x87 + 38, 10);
		return;
	case 'a': memcpy(real, (const void *)state.rax, value->size); return;
	case 'y':
		if (recipe->is_address)
			memcpy(real, (const void *)state.rax, value->size);
		else if (recipe->is_whole)
			memcpy(real, state.vectors, 32);
		else if (recipe->long_count) {
			memcpy(real, state.x87 + 28, 10);
			memcpy(real + 16, state.x87 + 38, 10);
		} else {
			memcpy(real, state.vectors, 16);
			memcpy(real + 16, state.vectors + 4, 16);
		}
		return;
	default: break;
	}
	for (unsigned i = 0; i < 2 && value->classes[i]; i++)
		memcpy(real + i * 8,
		       value->classes[i] == PROTOTYPE_INTEGER ?
			       &integers[integer++] :
			       &state.vectors[vector++ * 4],
		       8);
}

static void run(const struct row *of, unsigned round)
{
	unsigned char real[32] = { 0 };
	const struct prototype_value *value;

	row = of;
	value = value_of_row();
	memset(found, 0, sizeof(found));
	run_row(row->code);
	cr_expect(eq(u64, reason, row->reason), "%s, round %u: the reason",
		  row->name, round);
	if (reason || row->reason)
		return;
	take_real(value, real);
	for (uint32_t i = 0; i < value->size; i++)
		cr_expect(eq(u8, found[i], real[i]), "%s, round %u: byte %u",
			  row->name, round, i);
}

/* Doubles, floats and integers that are near each other, and bytes without order. */
static void set_inputs(unsigned round)
{
	static const uint64_t given[][5] = {
		{ 1, 2, 3, 4, 5 },
		{ 5, -1ull, -7ull, 3, 9 },
		{ 0x8182838485868788, 0x8000000000000000, 0x1e2d3c4b5a697887, 7,
		  7 },
		{ 0x7fffffffffffffff, 0, 0x8000000080008021, -1ull, 1 },
		{ 0, 0x80000000, 65, 0x7fffffff, 0x80000000 },
		{ 0xfedcba9876543210, 0x123456789abcdef, 0x40, 1, -1ull },
	};
	static const double doubles[] = { 1.5, -2.25, 3e5, 7, -0.125, 1e9 };
	static const float floats[] = { 2.5f, -1, 100.75f, 3e6f, -0.5f, 8 };
	uint64_t random = round + 1;

	memcpy(inputs, given[round], sizeof(inputs));
	for (unsigned i = 0; i < sizeof(numbers); i++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		numbers[i] = (unsigned char)(random >> 33);
	}
	for (unsigned i = 0; i < sizeof(numbers) / 8 && round % 3 > 0; i++)
		if (round % 3 == 1)
			memcpy(&numbers[i * 8], &doubles[(i + round) % 6], 8);
		else
			for (unsigned j = 0; j < 2; j++)
				memcpy(&numbers[i * 8 + j * 4],
				       &floats[(i * 2 + j + round) % 6], 4);
}

static void run_all(const struct row *from, const struct row *to)
{
	state.has_avx = __builtin_cpu_supports("avx") != 0;
	for (unsigned round = 0; round < 6; round++) {
		set_inputs(round);
		for (const struct row *of = from; of < to; of++)
			run(of, round);
	}
}

Test(result, a_recipe_computes_what_the_code_computes)
{
	run_all(__start_result_rows, __stop_result_rows);
}

Test(result, a_recipe_computes_what_code_for_newer_processors_computes)
{
	if (!__builtin_cpu_supports("avx2") ||
	    !__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("fma"))
		cr_skip_test("needs AVX2, BMI and FMA");
	run_all(__start_newer_rows, __stop_newer_rows);
}
