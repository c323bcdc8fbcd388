/*
 * Follows all paths from the beginning of a function, with the set of registers that still
 * have their values from the entry.
 */
#include "inspect/decode/uses.h"

#include "inspect/decode/instruction.h"

#define STEPS_MAX   600
#define CHOICES_MAX 24
#define CODE_MAX    4096 /* instructions of a function */

struct way {
	uintptr_t at;
	uint32_t kept; /* registers that are not written yet */
};

struct walk {
	uintptr_t start, end; /* of the code that is followed */
	struct way way;
	struct way choices[CHOICES_MAX];
	unsigned choice_count;
	uint32_t used;
};

static uint32_t bit_of(ZydisRegister given)
{
	int number = given == ZYDIS_REGISTER_NONE ?
			     -1 :
			     instruction_register_number(given);

	return number >= 0 ? 1u << number : 0;
}

/* Instructions that write a register, and name it as an operand without a use of its
 * value. */
static bool ignores_values(const struct instruction *instruction)
{
	const ZydisDecodedOperand *operands = instruction->operands;
	unsigned count = instruction->head.operand_count_visible;

	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_SBB:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_XORPD:
	case ZYDIS_MNEMONIC_PSUBD:
	case ZYDIS_MNEMONIC_PCMPEQB:
	case ZYDIS_MNEMONIC_PCMPEQD:
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_VXORPD:
	case ZYDIS_MNEMONIC_VPCMPEQD:
		return count >= 2 &&
		       operands[count - 1].type ==
			       ZYDIS_OPERAND_TYPE_REGISTER &&
		       operands[count - 2].type ==
			       ZYDIS_OPERAND_TYPE_REGISTER &&
		       operands[count - 1].reg.value ==
			       operands[count - 2].reg.value;
	/* or $-1, and $0 */
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_AND:
		return operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		       (operands[1].imm.value.s == 0 ||
			operands[1].imm.value.s == -1);
	default: return false;
	}
}

/* Scalar instructions that keep the upper part of the register that they write.  (cltq
 * converts, too, but a register that it does not name.) */
static bool keeps_upper(const struct instruction *instruction)
{
	if (instruction->head.operand_count_visible == 0)
		return false;
	switch (instruction->head.meta.category) {
	case ZYDIS_CATEGORY_CONVERT: return true;
	default: break;
	}
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_SQRTSD:
	case ZYDIS_MNEMONIC_SQRTSS:
	case ZYDIS_MNEMONIC_ROUNDSD:
	case ZYDIS_MNEMONIC_ROUNDSS:
	case ZYDIS_MNEMONIC_RCPSS:
	case ZYDIS_MNEMONIC_RSQRTSS:
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_VSQRTSD:
	case ZYDIS_MNEMONIC_VSQRTSS:
	case ZYDIS_MNEMONIC_VROUNDSD:
	case ZYDIS_MNEMONIC_VROUNDSS: return true;
	default: return false;
	}
}

/* In AVX, the operand in the middle has the upper part. */
static bool is_use(const struct instruction *instruction, unsigned i)
{
	const ZydisDecodedOperand *operands = instruction->operands;
	unsigned last = instruction->head.operand_count_visible - 1u;

	if (!(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ))
		return false;
	if (!keeps_upper(instruction))
		return true;
	/* A mode of rounding follows the source. */
	if (operands[last].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		last--;
	return i > 0 && i == last;
}

static uint32_t registers_read(const struct instruction *instruction)
{
	uint32_t set = 0;

	/* A compiler may push any register to move the stack pointer. */
	if (instruction->head.mnemonic == ZYDIS_MNEMONIC_PUSH ||
	    instruction->head.mnemonic == ZYDIS_MNEMONIC_NOP ||
	    ignores_values(instruction))
		return 0;
	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
			set |= bit_of(operand->mem.base) |
			       bit_of(operand->mem.index);
		else if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			 is_use(instruction, i))
			set |= bit_of(operand->reg.value);
	}
	return set;
}

static uint32_t registers_written(const struct instruction *instruction)
{
	uint32_t set = 0;

	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			set |= bit_of(operand->reg.value);
	}
	return set;
}

static bool is_inside(const struct walk *walk, uintptr_t address)
{
	return address >= walk->start && address < walk->end;
}

/* False if the path ends. */
static bool take_step(struct walk *walk)
{
	struct way *way = &walk->way;
	struct instruction instruction;
	uintptr_t target = 0;
	const uintptr_t *slot;
	unsigned category;

	if (way->kept == 0 || !instruction_decode(&instruction, way->at))
		return false;
	walk->used |= way->kept & registers_read(&instruction);
	way->kept &= ~registers_written(&instruction);
	way->at = instruction_next(&instruction);
	category = instruction.head.meta.category;
	if (category == ZYDIS_CATEGORY_UNCOND_BR ||
	    category == ZYDIS_CATEGORY_COND_BR)
		instruction_target(&instruction, &target, &slot);
	if (category == ZYDIS_CATEGORY_COND_BR && is_inside(walk, target) &&
	    walk->choice_count < CHOICES_MAX)
		walk->choices[walk->choice_count++] = (struct way){ target,
								    way->kept };
	if (category == ZYDIS_CATEGORY_UNCOND_BR) {
		way->at = target;
		return is_inside(walk, target);
	}
	return category != ZYDIS_CATEGORY_CALL &&
	       category != ZYDIS_CATEGORY_RET &&
	       category != ZYDIS_CATEGORY_SYSCALL &&
	       category != ZYDIS_CATEGORY_INTERRUPT;
}

static uint32_t follow(struct walk *walk)
{
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		if (take_step(walk))
			continue;
		if (walk->choice_count == 0)
			break;
		walk->way = walk->choices[--walk->choice_count];
	}
	return walk->used;
}

uint32_t uses_at_entry(const struct decode_location *location)
{
	struct walk walk = {
		.start = location->function,
		.end = location->end,
		.way = { location->entry, UINT32_MAX },
	};

	return follow(&walk);
}

/* rdi, rsi, rdx, rcx, r8, r9, xmm0 to xmm7 */
#define ARGUMENTS \
	(1u << 7 | 1u << 6 | 1u << 2 | 1u << 1 | 3u << 8 | 0xffu << 16)

/* The mark is a call, or the jump in its place, which may be a byte shorter. */
bool uses_keep_arguments(const struct decode_location *location)
{
	struct instruction instruction;
	uintptr_t at = location->function;

	for (; at < location->hook; at = instruction_next(&instruction)) {
		if (!instruction_decode(&instruction, at))
			return false;
		switch (instruction.head.meta.category) {
		case ZYDIS_CATEGORY_CALL:
		case ZYDIS_CATEGORY_UNCOND_BR:
			return location->hook -
				       instruction_next(&instruction) <=
			       1;
		case ZYDIS_CATEGORY_COND_BR: return false;
		default: break;
		}
		if (registers_written(&instruction) & ARGUMENTS)
			return false;
	}
	return false;
}

bool uses_after_call(uintptr_t site, unsigned number)
{
	struct walk walk = {
		.end = UINTPTR_MAX,
		.way = { site, 1u << number },
	};

	return follow(&walk) != 0;
}

uintptr_t uses_next(const struct decode_location *location,
		    const struct instruction *instruction)
{
	uintptr_t next = instruction_next(instruction), target;
	const uintptr_t *slot;

	if (instruction->at >= location->function &&
	    instruction->at < location->end)
		return next;
	if (instruction->head.meta.category != ZYDIS_CATEGORY_UNCOND_BR)
		return next;
	instruction_target(instruction, &target, &slot);
	return target >= location->function && target < location->end ? target :
									0;
}

bool uses_write(const struct decode_location *location, unsigned number)
{
	struct instruction instruction;
	uintptr_t at = location->entry;

	for (unsigned i = 0; i < CODE_MAX && at && at != location->end; i++) {
		if (!instruction_decode(&instruction, at))
			return false;
		if (registers_written(&instruction) & 1u << number)
			return true;
		at = uses_next(location, &instruction);
	}
	return false;
}
