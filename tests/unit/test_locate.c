/*
 * The places of parameters after unusual, handwritten prologues.  The test runs
 * each prologue; every value that is found must be the argument that was
 * passed.
 *
 * probe() sets all argument registers and two words on the stack, and calls a
 * function.  The hook that this function calls saves all registers and returns
 * to probe().
 */
#include "inspect/decode/decode.h"
#include "inspect/decode/instruction.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>
#include <string.h>

#define INTEGERS 6
#define VECTORS	 8
#define WORDS	 2
#define COUNT	 (1 + INTEGERS + VECTORS + WORDS)

/* The assembly below uses these offsets. */
struct state {
	uint64_t registers[16]; /* by register number */
	uint64_t vectors[16][2];
	uint64_t hook;		   /* where its call returns to */
	uint64_t sp;		   /* probe's */
	unsigned char stack[4096]; /* the stack above the hook's frame */
};

extern struct state state;
struct state state;

void probe(uintptr_t function);
void note(void);

__attribute__((used)) void note(void)
{
	size_t size = state.sp - state.registers[4];

	if (size > sizeof(state.stack))
		size = sizeof(state.stack);
	memcpy(state.stack, (void *)state.registers[4], size);
}

/* The argument with the hexadecimal digit @n: each byte has it, and its own place. */
#define BYTES(n) "0x" #n "7" #n "6" #n "5" #n "4" #n "3" #n "2" #n "1" #n "0"
/* The upper half is the complement. */
#define SET_VECTOR(n, number) \
	"movabs $" BYTES( \
		n) ", %rbx; movq %rbx, %xmm" #number "; not %rbx\n\t" \
		   "movq %rbx, %xmm15; punpcklqdq %xmm15, %xmm" #number "\n\t"
/* The caller's callee-saved registers. */
#define KEPT(n) "0x888177816681558" #n
#define KEPT_0	0x8881778166815580

__asm__(".text\n"
	"probe:\n\t"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rsp, 392+state(%rip)\n\t"
	"sub $64, %rsp\n\t" /* room where Microsoft's convention has it */
	"movabs $" BYTES(
		f) ", %rbx; push %rbx\n\t"
		   "movabs $" BYTES(
			   e) ", %rbx; push %rbx\n\t"
			      "movabs $" BYTES(0) ", %rdi; movabs $" BYTES(
				      1) ", %rsi\n\t"
					 "movabs $" BYTES(2) ", %rdx; movabs $" BYTES(
						 3) ", %rcx\n\t"
						    "movabs $" BYTES(4) ", %r8; movabs $" BYTES(5) ", %r9\n\t" SET_VECTOR(
							    6,
							    0) SET_VECTOR(7,
									  1) SET_VECTOR(8,
											2)
							    SET_VECTOR(9, 3) SET_VECTOR(a, 4) SET_VECTOR(
								    b,
								    5) SET_VECTOR(c,
										  6)
								    SET_VECTOR(d, 7) "movabs $" KEPT(0) ", %rbx; movabs $" KEPT(
									    1) ", %rbp\n\t"
									       "movabs $" KEPT(2) ", %r12; movabs $" KEPT(
										       3) ", %r13\n\t"
											  "movabs $" KEPT(4) ", %r14; movabs $" KEPT(
												  5) ", %r15\n\t"
												     "call *%rax\n\t"
												     "ud2\n"
												     "hook:\n\t"
												     "mov %rax, state(%rip); mov %rcx, 8+state(%rip)\n\t"
												     "mov %rdx, 16+state(%rip); mov %rbx, 24+state(%rip)\n\t"
												     "mov %rbp, 40+state(%rip)\n\t"
												     "mov %rsi, 48+state(%rip); mov %rdi, 56+state(%rip)\n\t"
												     "mov %r8, 64+state(%rip); mov %r9, 72+state(%rip)\n\t"
												     "mov %r12, 96+state(%rip); mov %r13, 104+state(%rip)\n\t"
												     "mov %r14, 112+state(%rip); mov %r15, 120+state(%rip)\n\t"
												     "movups %xmm0, 128+state(%rip); movups %xmm1, 144+state(%rip)\n\t"
												     "movups %xmm2, 160+state(%rip); movups %xmm3, 176+state(%rip)\n\t"
												     "movups %xmm4, 192+state(%rip); movups %xmm5, 208+state(%rip)\n\t"
												     "movups %xmm6, 224+state(%rip); movups %xmm7, 240+state(%rip)\n\t"
												     "popq 384+state(%rip)\n\t"
												     "mov %rsp, 32+state(%rip)\n\t"
												     "and $-16, %rsp\n\t"
												     "call note\n\t"
												     "mov 392+state(%rip), %rsp\n\t"
												     "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n\t"
												     "ret\n");

/* Nothing aligns the stack for the hook's call, so the hook uses no vectors on
 * the stack. */
#define B(name, size, code, behind, lost, kept) \
	"\n" #name ":\n\t" code "\n\t" \
	"mov $0, %edi; mov $0, %esi\n\t" \
	"call hook\n" #name "_called:\n\tud2; " behind "\n" #name "_end:\n"
#define P(name, size, code, lost, kept) B(name, size, code, "", lost, kept)
__asm__(".text\n"
#include "locate_prologues.def"
);
#undef B

#define B(name, size, code, behind, lost, kept) \
	extern const char name[], name##_called[], name##_end[];
#include "locate_prologues.def"
#undef B

static const struct {
	const char *name, *at, *hook, *end, *lost, *kept;
	uint32_t size;
} prologues[] = {
#define B(name, size, code, behind, lost, kept) \
	{ #name, name, name##_called, name##_end, lost, kept, size },
#include "locate_prologues.def"
#undef B
#undef P
};

static const char letters[] = "dSDC8901234567ab", kept_letters[] = "BPwxyz";
/* decode_place's numbers for them. */
static const uint8_t entries[] = { 8,  7,  3,  2,  9,  10, 17, 18,
				   19, 20, 21, 22, 23, 24, 0,  0 },
		     kept_entries[] = { 4, 6, 13, 14, 15, 16 };

static void read_stack(uintptr_t address, uint64_t *value)
{
	size_t at = address - state.registers[4];

	cr_assert(at <= sizeof(state.stack) - 8);
	memcpy(value, state.stack + at, 8);
}

static bool is_available(const struct decode_frame *frame,
			 const struct decode_place *place)
{
	return place->where == DECODE_ON_STACK ? frame->is_known : place->where;
}

static uint64_t value_at(const struct decode_frame *frame,
			 const struct decode_place *place)
{
	uintptr_t base = state.registers[frame->number] +
			 (uintptr_t)frame->offset;
	uint64_t value = 0;

	switch (place->where) {
	case DECODE_IN_REGISTER: return state.registers[place->number];
	case DECODE_IN_VECTOR:
		memcpy(&value,
		       (char *)state.vectors[place->number] + place->offset, 8);
		break;
	case DECODE_ON_STACK:
		read_stack(base + (uintptr_t)place->offset, &value);
		break;
	case DECODE_ABOVE_SP:
		read_stack(state.registers[4] + (uintptr_t)place->offset,
			   &value);
		break;
	}
	return value;
}

/* Values of this size; 16: in vectors only. */
static void prepare(struct prototype_value *values, uint32_t size)
{
	memset(values, 0, COUNT * sizeof(*values));
	values[0].kind = PROTOTYPE_NOTHING;
	for (int i = 1; i < COUNT; i++) {
		bool is_vector = i > INTEGERS && i <= INTEGERS + VECTORS;
		uint8_t class = is_vector ? PROTOTYPE_SSE : PROTOTYPE_INTEGER;

		values[i].kind = PROTOTYPE_REGISTERS;
		values[i].size = size <= 8 || is_vector ? size : 8;
		values[i].classes[0] = class;
		if (values[i].size == 16) {
			values[i].classes[1] = class;
			values[i].is_whole = 1;
		}
	}
}

static uint64_t passed(int i)
{
	return 0x0706050403020100 + 0x1010101010101010 * (uint64_t)(i - 1);
}

static void check_value(size_t n, const struct decode_frame *frame,
			const struct decode_place *place, char letter,
			uint64_t expected, uint32_t size, bool is_whole_row)
{
	bool is_found = is_available(frame, place);
	unsigned unknown = 8 * (8 - size);

	if (is_found && state.hook)
		cr_expect(eq(u64, value_at(frame, place) << unknown,
			     expected << unknown),
			  "%s: %c, %u", prologues[n].name, letter, size);
	if (is_whole_row && strchr(prologues[n].lost, letter))
		cr_expect(not(is_found), "%s: %c is lost", prologues[n].name,
			  letter);
	if (is_whole_row && strchr(prologues[n].kept, letter))
		cr_expect(is_found, "%s: %c is there", prologues[n].name,
			  letter);
}

static void check(size_t n, const struct decode_frame *frame,
		  const struct decode_places *places, uint32_t size)
{
	bool is_row = size == prologues[n].size;

	for (int i = 1; i < COUNT; i++) {
		const struct decode_place *parts = places[i].eightbytes;
		bool is_vector = i > INTEGERS && i <= INTEGERS + VECTORS;

		check_value(n, frame, &parts[0], letters[i - 1], passed(i),
			    size < 8 ? size : 8, is_row);
		if (size == 16 && is_vector)
			check_value(n, frame, &parts[1], letters[i - 1],
				    ~passed(i), 8, is_row);
		if (parts[0].where)
			cr_expect(eq(u8, parts[0].entry, entries[i - 1]));
	}
	for (int i = 0; i < 6; i++) {
		check_value(n, frame, &frame->kept[i], kept_letters[i],
			    KEPT_0 + (uint64_t)i, 8, is_row);
		if (frame->kept[i].where)
			cr_expect(
				eq(u8, frame->kept[i].entry, kept_entries[i]));
	}
}

static bool can_run(const char *name)
{
	if (strncmp(name, "avx512_", 7) == 0)
		return __builtin_cpu_supports("avx512vl");
	return strncmp(name, "avx_", 4) != 0 || __builtin_cpu_supports("avx");
}

Test(locate, no_prologue_makes_a_value_wrong)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 5, 7, 8, 16 };
	static struct prototype_value values[COUNT];
	static struct decode_places places[COUNT];
	static struct decode_frame frame;

	for (size_t n = 0; n < sizeof(prologues) / sizeof(prologues[0]); n++) {
		struct decode_location location = {
			.function = (uintptr_t)prologues[n].at,
			.end = (uintptr_t)prologues[n].end,
			.hook = (uintptr_t)prologues[n].hook,
			.values = values,
			.count = COUNT,
		};

		memset(&state, 0, sizeof(state));
		if (can_run(prologues[n].name)) {
			probe(location.function);
			cr_assert(eq(u64, state.hook, location.hook));
		}
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			prepare(values, sizes[i]);
			decode_arguments(&location, &frame, places);
			check(n, &frame, places, sizes[i]);
		}
	}
}

/* The code of a prologue, as that of a function whose values may be unused. */
static void read_prologue(const char *name, struct decode_places *places)
{
	static struct prototype_value values[COUNT];
	static struct decode_frame frame;
	struct decode_location location = { .values = values, .count = COUNT };

	prepare(values, 8);
	for (size_t n = 0; n < sizeof(prologues) / sizeof(prologues[0]); n++) {
		if (strcmp(prologues[n].name, name) != 0)
			continue;
		location.function = (uintptr_t)prologues[n].at;
		location.end = (uintptr_t)prologues[n].end;
		location.hook = (uintptr_t)prologues[n].hook;
	}
	for (int i = 1; i < COUNT; i++)
		values[i].is_optional = 1;
	decode_arguments(&location, &frame, places);
}

Test(locate, a_value_that_is_copied_is_used)
{
	static struct decode_places places[COUNT];

	read_prologue("nothing", places);
	for (int i = 3; i <= INTEGERS + VECTORS; i++)
		cr_expect(places[i].eightbytes[0].is_unused, "%d", i);
	read_prologue("copied_all", places);
	for (int i = 1; i <= INTEGERS; i++)
		cr_expect(not(places[i].eightbytes[0].is_unused), "%d", i);
	read_prologue("stored_byte", places);
	cr_expect(not(places[3].eightbytes[0].is_unused));
	cr_expect(places[4].eightbytes[0].is_unused);
	read_prologue("stored_half", places);
	cr_expect(places[4].eightbytes[0].is_unused);
	cr_expect(not(places[3].eightbytes[0].is_unused));
}

/* A profiler may ask after a call. */
Test(locate, registers_that_calls_keep_are_preferred_then_memory)
{
	static struct decode_places places[COUNT];

	read_prologue("pushed_both", places);
	cr_expect(eq(int, places[3].eightbytes[0].where, DECODE_IN_REGISTER));
	cr_expect(eq(int, places[3].eightbytes[0].number, 3));
	cr_expect(eq(int, places[4].eightbytes[0].where, DECODE_ABOVE_SP));
	cr_expect(eq(int, places[4].eightbytes[0].offset, 8));
	cr_expect(eq(int, places[5].eightbytes[0].where, DECODE_IN_REGISTER));
	cr_expect(eq(int, places[5].eightbytes[0].number, 8));
}

static void expect_reason(const char *name, enum shim_unavailable reason,
			  int first, int last)
{
	static struct decode_places places[COUNT];

	read_prologue(name, places);
	for (int i = first; i <= last; i++)
		cr_expect(eq(int, places[i].reason, (int)reason), "%s: %d",
			  name, i);
}

Test(locate, what_is_lost_has_a_reason)
{
	struct decode_location location = {
		.function = (uintptr_t)nothing,
		.end = (uintptr_t)nothing_end,
		.hook = (uintptr_t)nothing,
		.count = 3,
	};
	static struct prototype_value values[3];
	static struct decode_places places[3];
	static struct decode_frame frame;

	expect_reason("too_long", SHIM_UNAVAILABLE_CODE, 1, COUNT - 1);
	expect_reason("home_of_rcx", SHIM_UNAVAILABLE_CODE, 1, COUNT - 1);
	expect_reason("lower_half", SHIM_UNAVAILABLE_OPTIMIZED_OUT, 1, 1);
	expect_reason("wrote_an_argument", SHIM_UNAVAILABLE_CLOBBERED,
		      INTEGERS + VECTORS + 1, COUNT - 1);
	expect_reason("frame_in_a_lost_register", SHIM_UNAVAILABLE_CODE,
		      INTEGERS + VECTORS + 1, COUNT - 1);
	location.values = values;
	decode_arguments(&location, &frame, places);
	cr_expect(eq(int, places[2].reason, SHIM_UNAVAILABLE_INLINED));
	location.hook = location.end;
	decode_arguments(&location, &frame, places);
	cr_expect(eq(int, places[1].reason, SHIM_UNAVAILABLE_CODE));
	location.hook = location.end + 1;
	decode_arguments(&location, &frame, places);
	cr_expect(eq(int, places[1].reason, SHIM_UNAVAILABLE_INLINED));
	location.hook = location.function + 2;
	decode_arguments(&location, &frame, places);
	cr_expect(eq(int, places[1].reason, SHIM_UNAVAILABLE_CODE));
}

/* --- the calling convention, at a mark whose callers pass everything --- */

static const struct {
	char letter;
	struct prototype_value value;
} kinds[] = {
#define IN(a, b) \
	.kind = PROTOTYPE_REGISTERS, .classes = { PROTOTYPE_##a, PROTOTYPE_##b }
	{ 'i', { .size = 8, IN(INTEGER, NO_CLASS) } },
	{ 'p', { .size = 16, IN(INTEGER, INTEGER) } },
	{ 's', { .size = 8, IN(SSE, NO_CLASS) } },
	{ 't', { .size = 16, IN(SSE, SSE) } },
	{ 'm', { .size = 16, IN(INTEGER, SSE) } },
	{ 'n', { .size = 12, IN(SSE, INTEGER) } },
	{ 'w', { .size = 16, IN(SSE, SSE), .is_whole = 1, .is_aligned = 1 } },
	{ 'S', { .size = 16, IN(INTEGER, INTEGER), .is_split = 1 } },
	{ 'O',
	  { .size = 16, IN(INTEGER, INTEGER), .is_odd = 1, .is_aligned = 1 } },
#undef IN
	{ 'M', { .size = 20, .kind = PROTOTYPE_MEMORY } },
	{ 'A', { .size = 32, .kind = PROTOTYPE_MEMORY, .is_aligned = 1 } },
	{ 'Q', { .size = 32, .kind = PROTOTYPE_MEMORY, .is_odd = 1 } },
	{ 'L', { .size = 16, .kind = PROTOTYPE_X87 } },
	{ 'R', { .size = 40, .kind = PROTOTYPE_REFERENCE } },
	{ 'N', { .kind = PROTOTYPE_NOTHING } },
	{ 'U', { .size = 8, .kind = PROTOTYPE_UNKNOWN } },
	{ 'V', { .size = 32, .kind = PROTOTYPE_UNKNOWN, .is_vector = 1 } },
};

/* The result, the parameters, and where these are: i0 to i5 and v0 to v7 in registers,
 * a number on the stack, ? unknown; + between eightbytes. */
static const struct {
	const char *values, *places;
} conventions[] = {
	{ "N", "" },
	{ "Ni", " i0" },
	{ "Niiiiiiii", " i0 i1 i2 i3 i4 i5 0 8" },
	{ "Miiiiii", " i1 i2 i3 i4 i5 0" },
	{ "Riiiiii", " i1 i2 i3 i4 i5 0" },
	{ "piiiiii", " i0 i1 i2 i3 i4 i5" },
	{ "Ui", " ?" },
	{ "Vi", " ?" },
	{ "Nsssssssss", " v0 v1 v2 v3 v4 v5 v6 v7 0" },
	{ "Nisisis", " i0 v0 i1 v1 i2 v2" },
	{ "Nppp", " i0+i1 i2+i3 i4+i5" },
	{ "Nipppi", " i0 i1+i2 i3+i4 0 i5" },
	{ "Nppppi", " i0+i1 i2+i3 i4+i5 0 16" },
	{ "Nttttt", " v0+v1 v2+v3 v4+v5 v6+v7 0" },
	{ "Nstttts", " v0 v1+v2 v3+v4 v5+v6 0 v7" },
	{ "Nmnmn", " i0+v0 v1+i1 i2+v2 v3+i3" },
	{ "Niiiiiimis", " i0 i1 i2 i3 i4 i5 0 16 v0" },
	{ "Nssssssssmi", " v0 v1 v2 v3 v4 v5 v6 v7 0 i0" },
	{ "Nww", " v0+v0:8 v1+v1:8" },
	{ "Nwwwwwwwws",
	  " v0+v0:8 v1+v1:8 v2+v2:8 v3+v3:8 v4+v4:8 v5+v5:8 v6+v6:8 v7+v7:8 0" },
	{ "NwwwwwwwwMw",
	  " v0+v0:8 v1+v1:8 v2+v2:8 v3+v3:8 v4+v4:8 v5+v5:8 v6+v6:8 v7+v7:8 0 32" },
	{ "NMiMi", " 0 i0 24 i1" },
	{ "NMA", " 0 32" },
	{ "NAM", " 0 32" },
	{ "NML", " 0 32" },
	{ "NMMMMMMMMMMMA", " 0 24 48 72 96 120 144 168 192 216 240 272" },
	{ "NLiL", " 0 i0 16" },
	{ "NRi", " i0 i1" },
	{ "NiiiiiiRi", " i0 i1 i2 i3 i4 i5 0 8" },
	{ "NNiN", " ? i0 ?" },
	{ "NiUi", " i0 ? ?" },
	{ "NiQiM", " i0 ? i1 ?" },
	{ "NSSSS", " i0+i1 i2+i3 i4+i5 0+8" },
	{ "NiSSS", " i0 i1+i2 i3+i4 i5+0" },
	{ "NiSSSi", " i0 i1+i2 i3+i4 i5+0 8" },
	{ "NOOOiO", " i0+i1 i2+i3 i4+i5 0 ?" },
	{ "NiOOOi", " i0 i1+i2 i3+i4 ? ?" },
	{ "NVsiM", " ? ? i0 ?" },
	{ "NVmi", " ? ? ?" },
	{ "NssssssssVi", " v0 v1 v2 v3 v4 v5 v6 v7 ? i0" },
	{ "NssssssssVM", " v0 v1 v2 v3 v4 v5 v6 v7 ? ?" },
};

static uint32_t read_values(const char *letters_of,
			    struct prototype_value *values)
{
	uint32_t count = 0;

	for (; *letters_of; letters_of++)
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (kinds[i].letter == *letters_of)
				values[count++] = kinds[i].value;
	return count;
}

static void print_place(const struct decode_place *place, char *text)
{
	text += strlen(text);
	if (place->where == DECODE_ABOVE_ENTRY)
		sprintf(text, "%d", place->offset);
	else if (place->where != DECODE_AT_ENTRY)
		strcpy(text, "?");
	else if (place->number >= DECODE_ENTRY_VECTOR)
		sprintf(text, place->offset ? "v%d:%d" : "v%d",
			place->number - DECODE_ENTRY_VECTOR, place->offset);
	else
		sprintf(text, "i%d", place->number);
}

static uint8_t entry_of(const struct decode_place *place)
{
	return place->number < DECODE_ENTRY_VECTOR ?
		       entries[place->number] :
		       (uint8_t)(place->number + 1);
}

Test(locate, each_value_is_where_the_convention_puts_it)
{
	for (size_t n = 0; n < sizeof(conventions) / sizeof(conventions[0]);
	     n++) {
		static struct prototype_value values[COUNT];
		static struct decode_places places[COUNT];
		static struct decode_frame frame;
		struct decode_location location = {
			.function = 0x1000,
			.entry = 0x1005,
			.hook = 0x1005,
			.is_complete = true,
			.values = values,
			.count = read_values(conventions[n].values, values),
		};
		char text[256] = "";

		decode_arguments(&location, &frame, places);
		for (uint32_t i = 1; i < location.count; i++) {
			const struct decode_place *parts = places[i].eightbytes;

			strcat(text, " ");
			print_place(&parts[0], text);
			if (parts[1].where)
				print_place(&parts[1], strcat(text, "+"));
			cr_expect(not(parts[0].is_unused));
			if (values[i].kind == PROTOTYPE_MEMORY)
				cr_expect(places[i].in_memory);
			for (int k = 0; k < 2; k++)
				if (parts[k].where == DECODE_AT_ENTRY)
					cr_expect(eq(u8, parts[k].entry,
						     entry_of(&parts[k])));
		}
		cr_expect(eq(str, text, (char *)conventions[n].places), "%s",
			  conventions[n].values);
	}
}

/* Vectors of 32 bytes: the caller's are in one register. */
Test(locate, a_wide_vector_is_found_in_memory)
{
	static struct prototype_value values[4];
	static struct decode_places places[4];
	static struct decode_frame frame;
	struct decode_location location = {
		.function = (uintptr_t)avx_wide,
		.end = (uintptr_t)avx_wide_end,
		.hook = (uintptr_t)avx_wide_called,
		.values = values,
		.count = read_values("NVVV", values),
	};

	decode_arguments(&location, &frame, places);
	cr_expect(eq(int, places[1].eightbytes[0].where, DECODE_NOWHERE));
	cr_expect(eq(int, places[1].reason, SHIM_UNAVAILABLE_OPTIMIZED_OUT));
	cr_expect(eq(int, places[2].eightbytes[0].where, DECODE_ABOVE_SP));
	cr_expect(eq(int, places[2].eightbytes[0].offset, 32));
	cr_expect(places[2].in_memory);
	cr_expect(eq(int, places[3].eightbytes[0].where, DECODE_NOWHERE));
	location.function = location.hook - 5;
	decode_arguments(&location, &frame, places);
	cr_expect(eq(int, places[2].reason, SHIM_UNAVAILABLE_NOT_UNDERSTOOD));
}

/* --- what code behind a mark uses --- */

#define M(name, code, values, places) \
	"\nmark_" #name ":\n\t" code "\nmark_" #name "_end:\n"
__asm__(".text\n"
#include "locate_marks.def"
	"marks_end: ret\n");
#undef M

#define M(name, code, values, places) \
	extern const char mark_##name[], mark_##name##_end[];
#include "locate_marks.def"
#undef M

static const struct {
	const char *name, *at, *end, *values, *places;
} marks[] = {
#define M(name, code, values, places) \
	{ #name, mark_##name, mark_##name##_end, values, places },
#include "locate_marks.def"
#undef M
};

static void print_used(const struct decode_place *place, char *text)
{
	print_place(place, text);
	if (place->is_unused)
		strcat(text, "!");
}

/* The text of the places.  All callers of the function are known or unknown. */
static const char *places_at(const struct decode_location *location,
			     const char *values_of, bool is_local)
{
	static struct prototype_value values[COUNT];
	static struct decode_places places[COUNT];
	static struct decode_frame frame;
	static char text[256];
	struct decode_location whole = *location;

	whole.values = values;
	whole.count = read_values(values_of, values);
	for (uint32_t i = 1; i < whole.count; i++)
		values[i].is_local = is_local;
	decode_arguments(&whole, &frame, places);
	text[0] = '\0';
	for (uint32_t i = 1; i < whole.count; i++) {
		strcat(text, " ");
		print_used(&places[i].eightbytes[0], text);
		if (places[i].eightbytes[1].where)
			print_used(&places[i].eightbytes[1], strcat(text, "+"));
	}
	return text;
}

static void remove_marks(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (*text != '!')
			*to++ = *text;
	*to = '\0';
}

Test(locate, code_behind_a_mark_shows_what_is_used)
{
	for (size_t n = 0; n < sizeof(marks) / sizeof(marks[0]); n++) {
		struct decode_location location = {
			.function = (uintptr_t)marks[n].at,
			.entry = (uintptr_t)marks[n].at,
			.hook = (uintptr_t)marks[n].at,
			.end = (uintptr_t)marks[n].end,
		};
		char all[256];

		cr_expect(
			eq(str,
			   (char *)places_at(&location, marks[n].values, true),
			   (char *)marks[n].places),
			"%s", marks[n].name);
		strcpy(all, marks[n].places);
		remove_marks(all);
		cr_expect(
			eq(str,
			   (char *)places_at(&location, marks[n].values, false),
			   all),
			"%s, called by others", marks[n].name);
	}
}

/* --- slots --- */

__asm__(".text\n"
	"through_slot: jmp *slot(%rip)\n"
	"through_mark: endbr64; jmp *slot(%rip)\n"
	"through_two_marks: endbr64; endbr64; jmp *slot(%rip)\n"
	"through_other_code: nop; jmp *slot(%rip)\n"
	"through_nothing: jmp marks_end\n"
	"through_register: jmp *%rax\n"
	".data\nslot: .quad 0\n.text\n");

extern const char through_slot[], through_mark[], through_two_marks[],
	through_other_code[], through_nothing[], through_register[];
extern const uintptr_t slot;

static void expect_slot(const char *code, const uintptr_t *expected)
{
	const uintptr_t *found = instruction_slot_behind((uintptr_t)code);

	cr_expect(eq(ptr, (void *)found, (void *)expected));
}

Test(locate, the_slot_behind_a_stub_is_found)
{
	expect_slot(through_slot, &slot);
	expect_slot(through_mark, &slot);
	expect_slot(through_two_marks, NULL);
	expect_slot(through_other_code, NULL);
	expect_slot(through_nothing, NULL);
	expect_slot(through_register, NULL);
}

/* The slot of a stub has a relocation of one table, that of an address one of the
 * other. */
Test(locate, a_slot_has_the_name_of_its_relocation)
{
	const uintptr_t *of_stub, *of_address;
	uintptr_t stub;

	__asm__("lea l64a@PLT(%%rip), %0" : "=r"(stub));
	__asm__("lea a64l@GOTPCREL(%%rip), %0" : "=r"(of_address));
	of_stub = instruction_slot_behind(stub);
	cr_assert(of_stub != NULL);
	cr_expect(instruction_is_slot_of(of_stub, "l64a"));
	cr_expect(not(instruction_is_slot_of(of_stub, "a64l")));
	cr_expect(instruction_is_slot_of(of_address, "a64l"));
	cr_expect(not(instruction_is_slot_of(of_address, "l64a")));
	cr_expect(not(instruction_is_slot_of(of_address + 1024, "a64l")));
	cr_expect(not(instruction_is_slot_of(&stub, "l64a")));
}
