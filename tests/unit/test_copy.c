/*
 * Copied code behaves like the original: functions of this file and their
 * copies run with the same arguments; and all code of libc is copied and
 * decoded again.
 */
#define _GNU_SOURCE
#include "inspect/decode/decode.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <Zydis/Zydis.h>

#define ROOM (1u << 20)

/* --- functions, most in assembly --- */

#define FUNCTIONS \
	F(add, "lea (%rdi,%rsi), %rax") \
	F(data, "mov number(%rip), %rax; add %rdi, number(%rip); " \
		"addq $1, number(%rip); movw $0x1234, 2+number(%rip); " \
		"sub number(%rip), %rax; cmpb $5, number(%rip); sete %al") \
	F(vectors, \
	  "movq %rdi, %xmm0; cvtsi2sd %rsi, %xmm1; " \
	  "addsd real(%rip), %xmm1; pshufd $0x1b, real(%rip), %xmm2; " \
	  "paddq %xmm2, %xmm0; paddq %xmm1, %xmm0; movq %xmm0, %rax") \
	F(short_loop, "xor %eax, %eax; mov $9, %ecx; 1: add %rdi, %rax; " \
		      "dec %ecx; jnz 1b") \
	F(long_jumps, "xor %eax, %eax; test $1, %dil; jne 2f; add $7, %rax; " \
		      ".skip 200, 0x90; 2: cmp %rsi, %rdi; jg 3f; inc %rax; " \
		      "jmp 4f; .skip 150, 0xcc; 3: sub $9, %rax; 4: nop") \
	F(counting, "mov $5, %ecx; xor %eax, %eax; 1: add %rsi, %rax; " \
		    "loop 1b; jrcxz 2f; mov $1, %eax; 2: inc %rax; " \
		    "jecxz 3f; neg %rax; 3: nop") \
	F(flags_stay, "xor %eax, %eax; cmp %rsi, %rdi; line1: setg %al; " \
		      "line2: adc $0, %rax; line3: cmc; adc $0, %rax") \
	F(red_zone, "mov %rdi, -8(%rsp); mov %rsi, -128(%rsp); line4: nop; " \
		    "mov -8(%rsp), %rax; line5: sub -128(%rsp), %rax") \
	F(calls, "push %rbx; mov %rdi, %rbx; call site; add %rbx, %rax; " \
		 "pop %rbx") \
	F(call_register, \
	  "push %rbx; lea site(%rip), %rbx; call *%rbx; pop %rbx") \
	F(call_slot, "push %rbx; call *slot(%rip); pop %rbx") \
	F(call_stack, "lea site(%rip), %rax; push %rax; push $0; " \
		      "call *8(%rsp); add $16, %rsp") \
	F(call_indexed, "lea slot(%rip), %r11; xor %ecx, %ecx; push %rcx; " \
			"call *(%r11,%rcx,8); pop %rcx") \
	F(recursive, "cmp $0, %rdi; jle 1f; push %rdi; sub $1, %rdi; " \
		     "call recursive; pop %rdi; add %rdi, %rax; ret; " \
		     "1: mov %rsi, %rax") \
	F(jump_slot, "jmp *end_slot(%rip); ud2; behind: lea 3(%rdi), %rax") \
	F(table, \
	  "lea 1f(%rip), %r11; and $1, %edi; movslq (%r11,%rdi,4), %rax; " \
	  "add %r11, %rax; notrack jmp *%rax; .balign 4; " \
	  "1: .long 2f-1b, 3f-1b; 2: mov $5, %eax; ret; 3: mov $6, %eax") \
	F(pops, "push %rsi; pushq $-3; popq number(%rip); pop %rax; " \
		"xchg %rax, number(%rip); sub number(%rip), %rax") \
	F(prefixes, ".byte 0x66, 0x66, 0x48; call site; sub $1, %rax") \
	F(strings, \
	  "lea source(%rip), %rsi; lea target(%rip), %rdi; mov $3, %ecx; " \
	  "cld; rep movsq; mov target(%rip), %rax; xor 16+target(%rip), %rax")

#define F(name, code) \
	".globl " #name "\n\t.type " #name ", @function\n" #name ":\n\t" code \
	"\n\tret\n.globl " #name "_end\n" #name "_end:\n"
__asm__(".text\n"
	/* The result is the return address. */
	"site: mov (%rsp), %rax; ret\n" FUNCTIONS
	".data\n.balign 16\nreal: .double 3.5, -2.25\n"
	"slot: .quad site\nend_slot: .quad behind\nnumber: .quad 1000\n"
	"source: .quad 1, 2, 77\ntarget: .quad 0, 0, 0\n.text\n");
#undef F

#define F(name, code) \
	long name(long, long); \
	extern const char name##_end[];
FUNCTIONS
#undef F

extern const char line1[], line2[], line3[], line4[], line5[];
extern long number;

static const struct {
	const char *name;
	long (*call)(long, long);
	const char *end;
} functions[] = {
#define F(name, code) { #name, name, name##_end },
	FUNCTIONS
#undef F
};

#define COUNT (sizeof(functions) / sizeof(*functions))

/* --- copying --- */

static unsigned char marks[5];

static void read_code(const struct decode_copy *copy, uintptr_t address,
		      unsigned char *bytes, unsigned size)
{
	(void)copy;
	memcpy(bytes, (const void *)address, size);
}

static unsigned char *find_mark(const struct decode_copy *copy,
				uintptr_t address, unsigned *count)
{
	const char *lines[] = { line1, line2, line3, line4, line5 };

	(void)copy;
	*count = 1;
	for (unsigned i = 0; i < 5; i++)
		if (address == (uintptr_t)lines[i])
			return &marks[i];
	return NULL;
}

static uintptr_t find_target(const struct decode_copy *copy, uintptr_t address)
{
	(void)copy;
	return address;
}

static unsigned char *map_near(uintptr_t code)
{
	for (uintptr_t away = 1u << 24; away < 1u << 30; away += 1u << 24) {
		void *wanted = (void *)((code & ~4095ul) - away);
		void *memory = mmap(
			wanted, ROOM, PROT_READ | PROT_WRITE | PROT_EXEC,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			0);

		if (memory == wanted)
			return memory;
	}
	return NULL;
}

static size_t copy_code(const void *code, const void *end,
			unsigned char *memory)
{
	static uint16_t places[4096];
	struct decode_copy copy = {
		.code = (uintptr_t)code,
		.end = (uintptr_t)end,
		.to = (uintptr_t)memory,
		.places = places,
		.read = read_code,
		.mark = find_mark,
		.target = find_target,
	};
	size_t size;

	memset(places, 0, sizeof(places));
	size = decode_copy(&copy);
	if (size > 0) {
		copy.memory = memory;
		cr_expect(eq(sz, decode_copy(&copy), size));
	}
	return size;
}

Test(copy, a_copy_does_what_the_code_does)
{
	static const long values[] = { 0, 1, -1, 5, 100, 1l << 40, -77 };
	unsigned char *memory = map_near((uintptr_t)add);

	cr_assert(memory != NULL);
	for (size_t i = 0; i < COUNT; i++) {
		long (*copied)(long, long) = (long (*)(long, long))memory;

		cr_expect(copy_code(functions[i].call, functions[i].end,
				    memory) > 0,
			  "%s", functions[i].name);
		for (unsigned v = 0; v < 49; v++) {
			long a = values[v / 7], b = values[v % 7];
			long wanted, wanted_number, before = number;

			if (functions[i].call == recursive && a > 1000)
				continue;
			wanted = functions[i].call(a, b);
			wanted_number = number;
			number = before;
			cr_expect(eq(long, copied(a, b), wanted),
				  "%s(%ld, %ld)", functions[i].name, a, b);
			cr_expect(eq(long, number, wanted_number), "%s",
				  functions[i].name);
		}
		memory += 4096;
	}
	for (unsigned i = 0; i < 5; i++)
		cr_expect(eq(u8, marks[i], 1), "line %u is marked", i + 1);
}

/* --- a whole library --- */

static int find_libc(struct dl_phdr_info *object, size_t size, void *argument)
{
	struct decode_range *range = argument;

	(void)size;
	if (!strstr(object->dlpi_name, "libc.so"))
		return 0;
	for (unsigned i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_flags & PF_X) {
			range->start = object->dlpi_addr +
				       object->dlpi_phdr[i].p_vaddr;
			range->end = range->start +
				     object->dlpi_phdr[i].p_memsz;
		}
	return 1;
}

struct decoded {
	ZydisDecodedInstruction head;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode_at(uintptr_t at, struct decoded *decoded)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, (const void *)at,
						   15, &decoded->head,
						   decoded->operands));
}

/* Compares addresses and distances as the processor computes them. */
static bool is_same_operand(const struct decoded *code, uintptr_t at,
			    const struct decoded *copy, uintptr_t copied_at,
			    unsigned i)
{
	const ZydisDecodedOperand *a = &code->operands[i];
	const ZydisDecodedOperand *b = &copy->operands[i];
	ZyanU64 first, second;

	if (a->type != b->type)
		return false;
	switch (a->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER: return a->reg.value == b->reg.value;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		if (a->mem.base != b->mem.base ||
		    a->mem.index != b->mem.index ||
		    a->mem.scale != b->mem.scale)
			return false;
		if (a->mem.base != ZYDIS_REGISTER_RIP)
			return a->mem.disp.value == b->mem.disp.value;
		return ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&code->head, a, at,
							     &first)) &&
		       ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(
			       &copy->head, b, copied_at, &second)) &&
		       first == second;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		if (!a->imm.is_relative)
			return a->imm.value.u == b->imm.value.u;
		return at + code->head.length + a->imm.value.u ==
		       copied_at + copy->head.length + b->imm.value.u;
	default: return true;
	}
}

static bool is_same(const struct decoded *code, uintptr_t at,
		    const struct decoded *copy, uintptr_t copied_at)
{
	if (code->head.mnemonic != copy->head.mnemonic ||
	    code->head.operand_width != copy->head.operand_width ||
	    code->head.operand_count != copy->head.operand_count)
		return false;
	for (unsigned i = 0; i < code->head.operand_count; i++)
		if (!is_same_operand(code, at, copy, copied_at, i))
			return false;
	return true;
}

/* Instructions that become several are tested separately. */
static bool becomes_several(const struct decoded *decoded)
{
	switch (decoded->head.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_LOOP:
	case ZYDIS_MNEMONIC_LOOPE:
	case ZYDIS_MNEMONIC_LOOPNE:
	case ZYDIS_MNEMONIC_JRCXZ:
	case ZYDIS_MNEMONIC_JECXZ:
	case ZYDIS_MNEMONIC_XBEGIN: return true;
	default: return false;
	}
}

Test(copy, each_instruction_of_libc_stays_what_it_is, .timeout = 120)
{
	struct decode_range code = { 0, 0 };
	unsigned long same = 0, several = 0, other = 0;
	struct decoded first, second;
	unsigned char *memory;

	dl_iterate_phdr(find_libc, &code);
	memory = map_near(code.start);
	cr_assert(memory != NULL);
	for (uintptr_t at = code.start; at + 32 < code.end;) {
		if (!decode_at(at, &first)) {
			at++;
			continue;
		}
		memset(memory, 0, 256);
		if (becomes_several(&first)) {
			several += copy_code((void *)at, (void *)at, memory) >
				   0;
		} else if (copy_code((void *)at, (void *)at, memory) > 0 &&
			   decode_at((uintptr_t)memory, &second) &&
			   is_same(&first, at, &second, (uintptr_t)memory)) {
			same++;
		} else if (other++ < 5) {
			cr_log_warn("at libc's %#lx", at - code.start);
		}
		at += first.head.length;
	}
	cr_expect(eq(ulong, other, 0));
	cr_expect(gt(ulong, same, 200000));
	cr_expect(gt(ulong, several, 5000));
}
