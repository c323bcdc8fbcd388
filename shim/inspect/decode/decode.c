/*
 * Finds what the code does after a leave hook, for x86-64.  Zydis decodes the
 * instructions.
 *
 * It follows the code from the hook to the end of the function, which is a few
 * instructions away: the code restores registers and the stack pointer, then comes a
 * `ret`, or a `jmp` with the return address on top of the stack.  At a branch (the
 * stack protector, a cleanup that all ends share) it follows both paths.
 */
#include "inspect/decode/decode.h"
#include "inspect/decode/instruction.h"
#include "inspect/decode/loads.h"
#include "inspect/decode/passed.h"
#include "inspect/decode/uses.h"

#include <string.h>

#define STEPS_MAX   96 /* of all paths; the longest path seen took 24 */
#define CHOICES_MAX 4

/* --- PLT and GOT --- */

/* The target of a slot.  A slot that is not bound yet leads to `push number; jmp` in
 * the PLT. */
static uintptr_t bound(const uintptr_t *slot)
{
	uintptr_t value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	const uint8_t *code = (const uint8_t *)value;

	if (memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		code += 4;
	return code[0] == 0x68 ? 0 : value;
}

/* --- following --- */

struct way {
	uintptr_t at;
	uintptr_t sp;
	bool knows_sp;
};

struct unwind {
	const struct decode_question *question;
	struct decode_answer *answer;
	struct way way;
	struct way choices[CHOICES_MAX];
	unsigned choice_count, steps;
	bool has_ended;	 /* the current path */
	bool is_partial; /* some paths were not followed */
};

static void lower(struct way *way, const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *from = &instruction->operands[1];

	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH: way->sp -= 8; return;
	case ZYDIS_MNEMONIC_POP: way->sp += 8; return;
	case ZYDIS_MNEMONIC_LEAVE: way->knows_sp = false; return;
	default: break;
	}
	if (!instruction_is_register(to, ZYDIS_REGISTER_RSP) ||
	    !(to->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
		return;
	if (instruction->head.mnemonic == ZYDIS_MNEMONIC_ADD &&
	    from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		way->sp += (uintptr_t)from->imm.value.s;
	else if (instruction->head.mnemonic == ZYDIS_MNEMONIC_SUB &&
		 from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		way->sp -= (uintptr_t)from->imm.value.s;
	else if (instruction->head.mnemonic == ZYDIS_MNEMONIC_LEA &&
		 from->mem.base == ZYDIS_REGISTER_RSP &&
		 from->mem.index == ZYDIS_REGISTER_NONE)
		way->sp += (uintptr_t)from->mem.disp.value;
	else
		way->knows_sp = false;
}

/* Without optimization, both ends of a function share one call of the hook.  With it, a
 * return and a tail call may: both end the function, and which it will be is unknown. */
static enum decode_end either(enum decode_end one, enum decode_end other)
{
	if (one == DECODE_UNKNOWN || one == other)
		return other;
	if (one == DECODE_DEPENDS || one == DECODE_UNWIND ||
	    other == DECODE_UNWIND)
		return DECODE_DEPENDS;
	return DECODE_RETURN;
}

static void end_at(struct unwind *walk, enum decode_end how, uintptr_t target,
		   const uintptr_t *slot)
{
	struct decode_answer *answer = walk->answer;
	bool is_first = answer->end == DECODE_UNKNOWN;

	walk->has_ended = true;
	answer->end = either(answer->end, how);
	/* What different paths call is unknown. */
	if (answer->end != DECODE_TAIL_CALL ||
	    (!is_first && (answer->target != target || answer->slot != slot))) {
		target = 0;
		slot = NULL;
	}
	answer->target = target;
	answer->slot = slot;
}

static void end_path(struct unwind *walk, enum decode_end how)
{
	end_at(walk, how, 0, NULL);
}

/* Whether a jump leaves the function.  Without a known stack pointer: a jump to before
 * the function, or to more than 4096 bytes after the hook. */
static bool is_tail_call(const struct unwind *walk, uintptr_t target)
{
	if (walk->way.knows_sp)
		return *(const uintptr_t *)walk->way.sp == walk->question->site;
	return target != 0 && (target < walk->question->function ||
			       target > walk->question->code + 4096);
}

static void follow_jump(struct unwind *walk, const struct instruction *branch)
{
	uintptr_t target;
	const uintptr_t *slot;

	instruction_target(branch, &target, &slot);
	if (!is_tail_call(walk, target)) {
		if (target)
			walk->way.at = target;
		else
			walk->steps = STEPS_MAX; /* a jump table */
		return;
	}
	/* Several paths may share one `ret`. */
	if (target) {
		struct instruction first;

		if (target > walk->question->function &&
		    target < walk->question->code + 4096 &&
		    instruction_decode(&first, target) &&
		    first.head.mnemonic == ZYDIS_MNEMONIC_RET) {
			end_path(walk, DECODE_RETURN);
			return;
		}
		slot = instruction_slot_behind(target);
	}
	/* This hook belongs to an inlined function.  The outer function ends with its
	 * own hook. */
	if (slot && instruction_is_slot_of(slot, "__cyg_profile_func_exit")) {
		end_path(walk, DECODE_RETURN);
		return;
	}
	end_at(walk, DECODE_TAIL_CALL, slot ? 0 : target, slot);
}

/* Whether the call resumes an exception.  After any other call the function continues:
 * its hook belongs to an inlined function. */
static bool is_resume(const struct instruction *call)
{
	uintptr_t target;
	const uintptr_t *slot;

	instruction_target(call, &target, &slot);
	if (target)
		slot = instruction_slot_behind(target);
	return slot && instruction_is_slot_of(slot, "_Unwind_Resume");
}

static void keep_choice(struct unwind *walk, uintptr_t target)
{
	struct way *other = &walk->choices[walk->choice_count];

	if (!target || walk->choice_count == CHOICES_MAX) {
		walk->is_partial = true;
		return;
	}
	*other = walk->way;
	other->at = target;
	walk->choice_count++;
}

static bool take_choice(struct unwind *walk)
{
	if (walk->choice_count == 0)
		return false;
	walk->way = walk->choices[--walk->choice_count];
	walk->has_ended = false;
	return true;
}

/* Takes one step.  False if no path is left to follow. */
static bool take_step(struct unwind *walk)
{
	struct instruction instruction;
	uintptr_t target;
	const uintptr_t *slot;

	if (!instruction_decode(&instruction, walk->way.at))
		return take_choice(walk);
	walk->way.at = instruction_next(&instruction);
	switch (instruction.head.meta.category) {
	case ZYDIS_CATEGORY_RET: end_path(walk, DECODE_RETURN); break;
	case ZYDIS_CATEGORY_CALL:
		if (!is_resume(&instruction))
			return take_choice(walk);
		end_path(walk, DECODE_UNWIND);
		break;
	case ZYDIS_CATEGORY_UNCOND_BR: follow_jump(walk, &instruction); break;
	case ZYDIS_CATEGORY_COND_BR:
		instruction_target(&instruction, &target, &slot);
		keep_choice(walk, target);
		break;
	default: lower(&walk->way, &instruction); break;
	}
	return !walk->has_ended || take_choice(walk);
}

static void follow_code(const struct decode_question *question,
			struct decode_answer *answer)
{
	struct unwind walk = {
		.question = question,
		.answer = answer,
		.way = { question->code, question->sp, true },
	};

	*answer = (struct decode_answer){ .end = DECODE_UNKNOWN };
	while (take_step(&walk) && ++walk.steps < STEPS_MAX)
		;
	walk.is_partial |= walk.steps >= STEPS_MAX;
	if (walk.is_partial &&
	    (answer->end == DECODE_RETURN || answer->end == DECODE_TAIL_CALL))
		*answer = (struct decode_answer){ .end = DECODE_DEPENDS };
}

/* --- the caller --- */

static bool leads_to(uintptr_t target, const uintptr_t *slot,
		     uintptr_t function)
{
	if (target == function)
		return true;
	if (target)
		slot = instruction_slot_behind(target);
	return slot && bound(slot) == function;
}

/* The number of a callee-saved register; only these still have their values. */
static uint8_t saved_register_number(const ZydisDecodedOperand *operand)
{
	switch (operand->type == ZYDIS_OPERAND_TYPE_REGISTER ?
			operand->reg.value :
			ZYDIS_REGISTER_NONE) {
	case ZYDIS_REGISTER_RBX: return 3;
	case ZYDIS_REGISTER_RBP: return 5;
	case ZYDIS_REGISTER_R12: return 12;
	case ZYDIS_REGISTER_R13: return 13;
	case ZYDIS_REGISTER_R14: return 14;
	case ZYDIS_REGISTER_R15: return 15;
	default: return 0;
	}
}

/* A call of another length may end with the same bytes, but not with the same target.
 * For `call *register`, the register's value decides. */
static bool is_call(struct decode_call *call)
{
	struct instruction instruction;
	const uintptr_t *slot;
	uintptr_t target;

	for (unsigned length = 5; length <= 6; length++)
		if (instruction_decode(&instruction, call->site - length) &&
		    instruction.head.mnemonic == ZYDIS_MNEMONIC_CALL &&
		    instruction.head.length == length) {
			instruction_target(&instruction, &target, &slot);
			/* The value of a slot in writable memory proves nothing. */
			if (target && leads_to(target, NULL, call->function))
				return true;
		}
	/* Without its first byte, `call *%r13` is `call *%rbp`. */
	for (unsigned length = 3; length >= 2; length--)
		if (instruction_decode(&instruction, call->site - length) &&
		    instruction.head.mnemonic == ZYDIS_MNEMONIC_CALL &&
		    instruction.head.length == length) {
			call->number = saved_register_number(
				&instruction.operands[0]);
			if (call->number)
				return true;
		}
	return false;
}

/* Whether the jump is a jump table: `add %rcx, %rax; jmp *%rax` or `jmp *table(, %rax,
 * 8)`.  The end of a function has just restored the stack pointer. */
static bool is_table(const struct instruction *before,
		     const struct instruction *follow_jump)
{
	const ZydisDecodedOperand *operand = &follow_jump->operands[0];

	if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return operand->mem.index != ZYDIS_REGISTER_NONE &&
		       operand->mem.scale == 8;
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       before->head.mnemonic == ZYDIS_MNEMONIC_ADD &&
	       instruction_is_register(&before->operands[0],
				       operand->reg.value);
}

/* Whether any jump in the function may lead out of it. */
static bool may_leave(const struct decode_call *call)
{
	const struct decode_location location = { .function = call->function,
						  .end = call->end };
	struct instruction instruction, before = { .at = 0 };
	const uintptr_t *slot;
	uintptr_t target;
	uintptr_t at = call->entry ? call->entry : call->function, next;

	for (; at != call->end; at = next) {
		if (!instruction_decode(&instruction, at))
			return true;
		next = uses_next(&location, &instruction);
		if (next == 0 || (at < call->end && next > call->end))
			return true;
		/* From moved instructions to those behind them. */
		if (next != instruction_next(&instruction))
			continue;
		if (instruction.head.meta.category == ZYDIS_CATEGORY_COND_BR ||
		    instruction.head.meta.category ==
			    ZYDIS_CATEGORY_UNCOND_BR) {
			instruction_target(&instruction, &target, &slot);
			if (target < call->function || target >= call->end) {
				if (target)
					slot = instruction_slot_behind(target);
				if (!is_table(&before, &instruction) &&
				    !(slot &&
				      instruction_is_slot_of(
					      slot, "__cyg_profile_func_"
						    "exit")))
					return true;
			}
		}
		before = instruction;
	}
	return false;
}

static bool call_is_of_function(struct decode_call *call)
{
	call->number = 0;
	return is_call(call) && !(call->may_tail_call && may_leave(call));
}

/* --- the code before a call --- */

static uint32_t bit_of(ZydisRegister given)
{
	int number = instruction_register_number(given);

	return number >= 0 ? 1u << number : 0;
}

/* The registers that the instruction reads, also for addresses. */
static uint32_t find_sources(const struct instruction *instruction)
{
	uint32_t sources = 0;

	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
			sources |= bit_of(operand->mem.base) |
				   bit_of(operand->mem.index);
		else if (operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			 (operand->actions & ZYDIS_OPERAND_ACTION_MASK_READ))
			sources |= bit_of(operand->reg.value);
	}
	return sources;
}

static void note_writes(struct decode_way *way, uint32_t count,
			const struct instruction *instruction)
{
	uint32_t sources = find_sources(instruction);

	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];
		int number;

		if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		number = instruction_register_number(operand->reg.value);
		if (number < 0)
			continue;
		way->written[number] = count;
		way->sources[number] = sources;
	}
}

/* Counts instructions from the start, then converts to distances from the call. */
static bool read_way(struct decode_way *way)
{
	struct instruction instruction;
	uint32_t count = 1;

	memset(way->written, 0, sizeof(way->written));
	memset(way->sources, 0, sizeof(way->sources));
	for (uintptr_t at = way->caller;;
	     at = instruction_next(&instruction), count++) {
		if (at >= way->site || !instruction_decode(&instruction, at))
			return false;
		if (instruction_next(&instruction) == way->site)
			break;
		note_writes(way, count, &instruction);
	}
	for (int i = 0; i < 32; i++)
		way->written[i] = count - way->written[i];
	return true;
}

extern const struct decode shim_decode __attribute__((visibility("default")));

const struct decode shim_decode = {
	.version = DECODE_VERSION,
	.start = instruction_start,
	.follow = follow_code,
	.bound = bound,
	.arguments = decode_arguments,
	.calls = call_is_of_function,
	.way = read_way,
	.passed = passed_find,
	.result = decode_result,
	.run = decode_run,
	.reads = uses_after_call,
	.writes = uses_write,
	.copy = decode_copy,
	.entries = decode_entries,
	.called = loads_are_called,
};
