/*
 * Follows all paths from the instruction that loads a register, as long as the register has
 * this value.  Each use but a call of the value, or a jump to it, may tell its address.
 */
#include "inspect/decode/loads.h"

#include "inspect/decode/instruction.h"

#include <string.h>

#define CHOICES_MAX 64

enum {
	NUMBER_RAX = 0,
	NUMBER_RDX = 2,
	NUMBER_RBX = 3,
	NUMBER_RBP = 5,
	NUMBER_R11 = 11,
	NUMBER_R12 = 12
};

enum step { STEP_GO_ON, STEP_ENDS, STEP_TELLS };

struct walk {
	const struct decode_load *load;
	int number; /* of the register */
	uintptr_t at;
	uintptr_t choices[CHOICES_MAX];
	unsigned choice_count;
	bool may_leave; /* by an exception, or a table of a switch statement */
};

static bool is_inside(const struct walk *walk, uintptr_t address)
{
	return address >= walk->load->start && address < walk->load->end;
}

static bool decode_at(const struct walk *walk, uintptr_t at,
		      struct instruction *instruction)
{
	const struct decode_load *load = walk->load;

	return instruction_decode_copy(instruction, at,
				       load->copy + (at - load->start),
				       load->end - at);
}

static bool is_register(const struct walk *walk, ZydisRegister given)
{
	return given != ZYDIS_REGISTER_NONE &&
	       instruction_register_number(given) == walk->number;
}

static bool is_through_register(const struct walk *walk,
				const struct instruction *instruction)
{
	const ZydisDecodedOperand *operand = &instruction->operands[0];

	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       is_register(walk, operand->reg.value);
}

/* Functions preserve it. */
static bool is_kept(const struct walk *walk)
{
	return walk->number == NUMBER_RBX || walk->number == NUMBER_RBP ||
	       walk->number >= NUMBER_R12;
}

static bool is_zeroing(const struct instruction *instruction)
{
	const ZydisDecodedOperand *operands = instruction->operands;

	return (instruction->head.mnemonic == ZYDIS_MNEMONIC_XOR ||
		instruction->head.mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       operands[0].size >= 32 &&
	       operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       instruction_is_register(&operands[0], operands[1].reg.value);
}

/* A register that is written in part, or sometimes, still tells the address. */
static bool is_overwritten(const ZydisDecodedOperand *operand)
{
	return (operand->actions & ZYDIS_OPERAND_ACTION_WRITE) &&
	       !(operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ) &&
	       operand->size >= 32;
}

static enum step use(const struct walk *walk,
		     const struct instruction *instruction)
{
	enum step step = STEP_GO_ON;

	if (instruction->head.mnemonic == ZYDIS_MNEMONIC_NOP)
		return STEP_GO_ON;
	if (is_zeroing(instruction) && is_through_register(walk, instruction))
		return STEP_ENDS;
	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    (is_register(walk, operand->mem.base) ||
		     is_register(walk, operand->mem.index)))
			return STEP_TELLS;
		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !is_register(walk, operand->reg.value))
			continue;
		if (!is_overwritten(operand))
			return STEP_TELLS;
		step = STEP_ENDS;
	}
	return step;
}

static enum step call(struct walk *walk, const struct instruction *instruction)
{
	walk->may_leave |= walk->load->has_handlers;
	if (!is_through_register(walk, instruction) &&
	    instruction->operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    (is_register(walk, instruction->operands[0].mem.base) ||
	     is_register(walk, instruction->operands[0].mem.index)))
		return STEP_TELLS;
	/* A call at the function's end does not return. */
	if (is_kept(walk))
		return walk->at < walk->load->end ? STEP_GO_ON : STEP_ENDS;
	/* It may be an argument of another function. */
	return is_through_register(walk, instruction) ||
			       walk->number == NUMBER_R11 ?
		       STEP_ENDS :
		       STEP_TELLS;
}

static enum step jump(struct walk *walk, const struct instruction *instruction,
		      bool is_always)
{
	const uintptr_t *slot;
	uintptr_t target;

	if (is_always && is_through_register(walk, instruction))
		return STEP_ENDS;
	instruction_target(instruction, &target, &slot);
	if (is_always && target == 0 && is_kept(walk)) {
		walk->may_leave = true;
		return use(walk, instruction) == STEP_TELLS ? STEP_TELLS :
							      STEP_ENDS;
	}
	if (!is_inside(walk, target))
		return STEP_TELLS;
	if (is_always) {
		walk->at = target;
		return STEP_GO_ON;
	}
	if (walk->choice_count == CHOICES_MAX)
		return STEP_TELLS;
	walk->choices[walk->choice_count++] = target;
	return STEP_GO_ON;
}

static bool was_seen(struct walk *walk, uintptr_t at)
{
	uintptr_t bit = at - walk->load->start;
	unsigned char *byte = &walk->load->seen[bit / 8];
	bool was = *byte >> bit % 8 & 1;

	*byte |= (unsigned char)(1u << bit % 8);
	return was;
}

static enum step take_step(struct walk *walk)
{
	struct instruction instruction;

	if (!is_inside(walk, walk->at))
		return STEP_TELLS;
	if (was_seen(walk, walk->at))
		return STEP_ENDS;
	if (!decode_at(walk, walk->at, &instruction))
		return STEP_TELLS;
	walk->at = instruction_next(&instruction);
	switch (instruction.head.mnemonic) {
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_HLT: return STEP_ENDS;
	default: break;
	}
	switch (instruction.head.meta.category) {
	case ZYDIS_CATEGORY_CALL: return call(walk, &instruction);
	case ZYDIS_CATEGORY_UNCOND_BR: return jump(walk, &instruction, true);
	case ZYDIS_CATEGORY_COND_BR: return jump(walk, &instruction, false);
	case ZYDIS_CATEGORY_RET:
		return walk->number == NUMBER_RAX ||
				       walk->number == NUMBER_RDX ?
			       STEP_TELLS :
			       STEP_ENDS;
	default: return use(walk, &instruction);
	}
}

/* Calls a register, or saves it for the caller. */
static bool is_harmless(const struct instruction *instruction)
{
	return (instruction->head.mnemonic == ZYDIS_MNEMONIC_PUSH ||
		instruction->head.mnemonic == ZYDIS_MNEMONIC_CALL ||
		instruction->head.mnemonic == ZYDIS_MNEMONIC_JMP) &&
	       instruction->operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER;
}

/* Code that the path may reach in another way than by a jump to its address. */
static bool may_tell_elsewhere(struct walk *walk)
{
	struct instruction instruction;

	for (uintptr_t at = walk->load->start; at < walk->load->end;
	     at = instruction_next(&instruction)) {
		if (!decode_at(walk, at, &instruction))
			return true;
		if (!was_seen(walk, at) && !is_harmless(&instruction) &&
		    use(walk, &instruction) == STEP_TELLS)
			return true;
	}
	return false;
}

bool loads_are_called(const struct decode_load *load)
{
	struct walk walk = { .load = load, .at = load->at };
	struct instruction instruction;
	enum step step = STEP_GO_ON;

	memset(load->seen, 0, (load->end - load->start) / 8 + 1);
	if (!is_inside(&walk, load->at) ||
	    !decode_at(&walk, load->at, &instruction) ||
	    instruction.head.mnemonic != ZYDIS_MNEMONIC_MOV ||
	    instruction.operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    instruction.operands[0].size != 64)
		return false;
	walk.number = instruction_register_number(
		instruction.operands[0].reg.value);
	was_seen(&walk, walk.at);
	walk.at = instruction_next(&instruction);
	while (step != STEP_TELLS) {
		step = take_step(&walk);
		if (step == STEP_ENDS && walk.choice_count == 0)
			break;
		if (step == STEP_ENDS)
			walk.at = walk.choices[--walk.choice_count];
	}
	return step == STEP_ENDS &&
	       !(walk.may_leave && is_kept(&walk) && may_tell_elsewhere(&walk));
}
