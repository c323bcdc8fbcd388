/*
 * Finds the straight code before a call, into which no jump leads.
 *
 * Landing pads of exceptions need no check: compilers put them into separate blocks,
 * which code reaches only by the unwinder.
 */
#include "inspect/decode/straight.h"

#include "inspect/decode/instruction.h"

#include <string.h>

#define CODE_MAX   (1u << 19) /* bytes of a caller that are decoded */
#define RANGES_MAX 16
#define BP	   5

/*
 * The caller that was decoded last: one query after another often concerns the same
 * large function.  @begins has a bit for each byte of its code to which a jump or a
 * return may lead.
 */
static struct {
	struct decode_range ranges[RANGES_MAX];
	uint32_t range_count, age;
	bool is_understood, has_frame_pointer;
	uint64_t begins[CODE_MAX / 64];
} caller;

static bool is_known(const struct decode_passed *passed)
{
	return caller.range_count == passed->range_count &&
	       caller.age == passed->age &&
	       memcmp(caller.ranges, passed->ranges,
		      passed->range_count * sizeof(*passed->ranges)) == 0;
}

/* The index of the byte in all of the code, or CODE_MAX. */
static size_t place_in_code(uintptr_t at)
{
	size_t before = 0;

	for (uint32_t i = 0; i < caller.range_count; i++) {
		const struct decode_range *range = &caller.ranges[i];

		if (at >= range->start && at < range->end)
			return before + (at - range->start);
		before += range->end - range->start;
	}
	return CODE_MAX;
}

static void mark_begin(uintptr_t at)
{
	size_t place = place_in_code(at);

	if (place < CODE_MAX)
		caller.begins[place / 64] |= 1ull << place % 64;
}

/* Whether the program reaches the next instruction only by a jump or a return. */
static bool ends_run(const struct instruction *instruction)
{
	switch (instruction->head.meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_INTERRUPT: return true;
	default: return false;
	}
}

/* How the caller sets its frame pointer.  The frame pointer is usable if the stack
 * pointer is written to it, and nothing else. */
struct frame_pointer {
	uint32_t writes;
	bool is_set;
};

static void note_frame_pointer(struct frame_pointer *pointer,
			       const struct instruction *instruction)
{
	const ZydisDecodedOperand *operands = instruction->operands;

	if (instruction->head.mnemonic == ZYDIS_MNEMONIC_POP ||
	    instruction->head.mnemonic == ZYDIS_MNEMONIC_LEAVE)
		return;
	for (unsigned i = 0; i < instruction->head.operand_count; i++)
		if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    instruction_register_number(operands[i].reg.value) == BP)
			pointer->writes++;
	pointer->is_set |= instruction->head.mnemonic == ZYDIS_MNEMONIC_MOV &&
			   instruction_is_register(&operands[0],
						   ZYDIS_REGISTER_RBP) &&
			   instruction_is_register(&operands[1],
						   ZYDIS_REGISTER_RSP);
}

/* False if the instruction may jump to any address. */
static bool mark_target(const struct instruction *instruction)
{
	ZydisInstructionCategory category = instruction->head.meta.category;
	const uintptr_t *slot;
	uintptr_t target;

	if (ends_run(instruction))
		mark_begin(instruction_next(instruction));
	if (category != ZYDIS_CATEGORY_UNCOND_BR &&
	    category != ZYDIS_CATEGORY_COND_BR)
		return true;
	instruction_target(instruction, &target, &slot);
	mark_begin(target);
	return target || slot;
}

static bool read_range(const struct decode_range *range,
		       struct frame_pointer *pointer)
{
	struct instruction instruction;

	mark_begin(range->start);
	for (uintptr_t at = range->start; at < range->end;
	     at = instruction_next(&instruction)) {
		if (!instruction_decode(&instruction, at) ||
		    !mark_target(&instruction))
			return false;
		note_frame_pointer(pointer, &instruction);
	}
	return true;
}

static void read_caller(const struct decode_passed *passed)
{
	struct frame_pointer pointer = { .writes = 0 };
	size_t size = 0;

	memset(&caller, 0, sizeof(caller));
	caller.range_count = passed->range_count;
	caller.age = passed->age;
	memcpy(caller.ranges, passed->ranges,
	       passed->range_count * sizeof(*passed->ranges));
	for (uint32_t i = 0; i < caller.range_count; i++)
		size += caller.ranges[i].end - caller.ranges[i].start;
	caller.is_understood = size <= CODE_MAX;
	for (uint32_t i = 0; i < caller.range_count && caller.is_understood;
	     i++)
		caller.is_understood = read_range(&caller.ranges[i], &pointer);
	caller.has_frame_pointer = pointer.is_set && pointer.writes == 1;
}

/* The last address before the site to which a jump or return may lead; 0 if none. */
static uintptr_t find_begin(uintptr_t site)
{
	size_t place = place_in_code(site - 1), last = place;

	if (place == CODE_MAX)
		return 0;
	while (!(caller.begins[place / 64] & 1ull << place % 64))
		if (place-- == 0)
			return 0;
	return site - 1 - (last - place);
}

bool straight_find(const struct decode_passed *passed,
		   struct straight_code *code)
{
	if (passed->range_count > RANGES_MAX)
		return false;
	if (!is_known(passed))
		read_caller(passed);
	code->begin = caller.is_understood ? find_begin(passed->site) : 0;
	code->has_frame_pointer = caller.has_frame_pointer;
	return code->begin != 0;
}
