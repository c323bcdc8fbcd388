/*
 * Finds the values that a caller passes from its code, for x86-64: value numbering over
 * the straight code before a call, into which no jump leads.
 *
 * Each register and each slot of the caller's frame has a number.  A loaded or computed
 * value gets a new number, and a copy keeps the number.  An argument is available in
 * anything with the same number that still exists when the hook is called: a
 * callee-saved register, a slot of the caller's frame, an address in the frame, or a
 * constant.
 */
#include "inspect/decode/passed.h"

#include "inspect/decode/instruction.h"
#include "inspect/decode/straight.h"

#include <string.h>

#define FACTS_MAX 64
#define SP	  DECODE_SP
#define BP	  5
#define VECTOR	  16 /* number of the first vector register */
/* Slots are assumed to be at most this many bytes below the frame pointer. */
#define FRAME_MAX 4096

/* Two values with the same number differ by the difference of their offsets, in the
 * bytes that are known of both. */
struct value {
	uint32_t number;
	uint32_t size; /* known bytes, from the lowest */
	int64_t offset;
};

enum { NONE, CONSTANT, FIRST_NUMBER };

struct fact {
	uint32_t base; /* the number of its address */
	uint32_t size;
	int64_t offset; /* from the address with that number */
	struct value value;
};

static struct {
	struct value general[16];
	struct value vectors[16][2]; /* their lower eightbytes */
	struct fact facts[FACTS_MAX];
	uint32_t fact_count, last_number;
	bool has_frame_pointer;
} now;

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* --- values --- */

static struct value new_value(void)
{
	return (struct value){ .number = ++now.last_number, .size = 8 };
}

static struct value constant(int64_t value)
{
	return (struct value){ CONSTANT, 8, value };
}

static struct value plus(struct value value, int64_t by)
{
	value.offset = (int64_t)((uint64_t)value.offset + (uint64_t)by);
	return value;
}

/* Keeps the lowest @size bytes. */
static struct value cut(struct value value, uint32_t size)
{
	value.size = smaller(value.size, size);
	return value;
}

/* Zero-extends a constant of 4 bytes; of other values, only the lowest 4 bytes stay
 * known. */
static struct value extend(struct value value)
{
	if (value.number == CONSTANT && value.size >= 4)
		return constant((int64_t)(uint32_t)value.offset);
	return cut(value, 4);
}

/* --- memory --- */

static bool is_in_frame(const struct value *place)
{
	return place->number == now.general[SP].number ||
	       (now.has_frame_pointer &&
		place->number == now.general[BP].number);
}

static uint32_t bytes_of(const ZydisDecodedOperand *operand)
{
	return operand->size / 8;
}

static bool is_memory(const ZydisDecodedOperand *operand)
{
	return operand->type == ZYDIS_OPERAND_TYPE_MEMORY;
}

/* The address of a memory operand, as a value. */
static bool place_of(const ZydisDecodedOperand *operand, struct value *place)
{
	ZydisRegister base = operand->mem.base;
	int number = instruction_register_number(base);

	if (operand->mem.index != ZYDIS_REGISTER_NONE || number < 0 ||
	    number >= VECTOR ||
	    ZydisRegisterGetClass(base) != ZYDIS_REGCLASS_GPR64 ||
	    operand->mem.segment == ZYDIS_REGISTER_FS ||
	    operand->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	*place = now.general[number];
	if (place->size < 8)
		return false;
	if (operand->mem.disp.has_displacement)
		*place = plus(*place, operand->mem.disp.value);
	return true;
}

/* Drops all memory that the write may overlap. */
static void drop_overlapping(const struct value *place, uint32_t size)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < now.fact_count; i++) {
		const struct fact *fact = &now.facts[i];

		if (fact->base == place->number &&
		    (fact->offset >= place->offset + size ||
		     fact->offset + fact->size <= place->offset))
			now.facts[kept++] = *fact;
	}
	now.fact_count = kept;
}

static void add_fact(const struct value *place, uint32_t size,
		     struct value value)
{
	if (now.fact_count == FACTS_MAX || !is_in_frame(place))
		return;
	now.facts[now.fact_count++] = (struct fact){ place->number, size,
						     place->offset, value };
}

static void store_value(const struct value *place, uint32_t size,
			struct value value)
{
	drop_overlapping(place, size);
	value.size = smaller(value.size, size);
	add_fact(place, size, value);
}

static struct value load_value(const struct value *place, uint32_t size)
{
	struct value value;

	for (uint32_t i = 0; i < now.fact_count; i++)
		if (now.facts[i].base == place->number &&
		    now.facts[i].offset == place->offset &&
		    now.facts[i].value.size >= size)
			return cut(now.facts[i].value, size);
	value = cut(new_value(), size);
	add_fact(place, size, value);
	return value;
}

/* --- operands --- */

static bool is_high_byte(ZydisRegister given)
{
	return given >= ZYDIS_REGISTER_AH && given <= ZYDIS_REGISTER_BH;
}

static struct value *general(const ZydisDecodedOperand *operand)
{
	int number = operand->type == ZYDIS_OPERAND_TYPE_REGISTER ?
			     instruction_register_number(operand->reg.value) :
			     -1;

	return number >= 0 && number < VECTOR ? &now.general[number] : NULL;
}

static struct value *vector(const ZydisDecodedOperand *operand)
{
	int number = operand->type == ZYDIS_OPERAND_TYPE_REGISTER ?
			     instruction_register_number(operand->reg.value) :
			     -1;

	return number >= VECTOR ? now.vectors[number - VECTOR] : NULL;
}

/* Reads @size bytes of the operand from byte @from on. */
static struct value read_memory(const ZydisDecodedOperand *operand,
				uint32_t from, uint32_t size)
{
	struct value place;

	if (!place_of(operand, &place))
		return cut(new_value(), size);
	place = plus(place, from);
	return load_value(&place, size);
}

static struct value read_operand(const ZydisDecodedOperand *operand)
{
	const struct value *from = general(operand);

	if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return constant(operand->imm.value.s);
	if (is_memory(operand) && operand->size > 0 && operand->size <= 64)
		return read_memory(operand, 0, bytes_of(operand));
	if (!from || is_high_byte(operand->reg.value))
		return new_value();
	return cut(*from, bytes_of(operand));
}

/* Whether the memory is at an address relative to rip, and so not on the stack. */
static bool is_global(const ZydisDecodedOperand *operand)
{
	return operand->mem.base == ZYDIS_REGISTER_RIP &&
	       operand->mem.index == ZYDIS_REGISTER_NONE;
}

static void write_operand(const ZydisDecodedOperand *operand,
			  struct value value)
{
	struct value *to = general(operand), place;

	if (is_memory(operand) && is_global(operand))
		return;
	if (is_memory(operand)) {
		if (operand->size > 0 && place_of(operand, &place))
			store_value(&place, bytes_of(operand), value);
		else
			now.fact_count = 0;
	} else if (to) {
		*to = is_high_byte(operand->reg.value) ? new_value() :
		      bytes_of(operand) == 4	       ? extend(value) :
					       cut(value, bytes_of(operand));
	}
}

/* --- effects of instructions --- */

/* Gives new numbers to all operands that the instruction writes. */
static void renumber_written(const struct instruction *instruction)
{
	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];
		struct value *halves = vector(operand);

		if (!(operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (halves)
			halves[0] = new_value(), halves[1] = new_value();
		else if (general(operand) == &now.general[SP])
			now.general[SP] = new_value(), now.fact_count = 0;
		else
			write_operand(operand, new_value());
	}
}

static void execute_push(const struct instruction *instruction)
{
	struct value value = read_operand(&instruction->operands[0]);
	struct value *sp = &now.general[SP];

	if (instruction->head.operand_width != 64) {
		renumber_written(instruction);
		return;
	}
	*sp = plus(*sp, -8);
	store_value(sp, 8, value);
}

static void execute_pop(const struct instruction *instruction)
{
	struct value value;

	if (instruction->head.operand_width != 64 ||
	    general(&instruction->operands[0]) == &now.general[SP]) {
		renumber_written(instruction);
		return;
	}
	value = load_value(&now.general[SP], 8);
	now.general[SP] = plus(now.general[SP], 8);
	write_operand(&instruction->operands[0], value);
}

static void emulate_add(const struct instruction *instruction, int sign)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *by = &instruction->operands[1];

	if (general(to) && by->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    !is_high_byte(to->reg.value))
		write_operand(to,
			      plus(read_operand(to), sign * by->imm.value.s));
	else
		renumber_written(instruction);
}

/* Executes a load with extension, whose result counts as the value. */
static void load_part(const struct instruction *instruction)
{
	const ZydisDecodedOperand *from = &instruction->operands[1];

	write_operand(&instruction->operands[0],
		      cut(read_operand(from), bytes_of(from)));
}

static void load_address(const struct instruction *instruction)
{
	const ZydisDecodedOperand *from = &instruction->operands[1];
	struct value place;

	if (is_global(from))
		place = constant((int64_t)instruction_next(instruction) +
				 from->mem.disp.value);
	else if (!place_of(from, &place))
		place = new_value();
	write_operand(&instruction->operands[0], place);
}

static bool is_cleared(const struct instruction *instruction)
{
	const ZydisDecodedOperand *operands = instruction->operands;
	unsigned last = instruction->head.operand_count_visible - 1u;

	return (last == 1 || last == 2) &&
	       operands[last].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       instruction_is_register(&operands[last - 1],
				       operands[last].reg.value);
}

static void execute_clear(const struct instruction *instruction)
{
	struct value *halves = vector(&instruction->operands[0]);

	if (!is_cleared(instruction))
		renumber_written(instruction);
	else if (halves)
		halves[0] = halves[1] = constant(0);
	else
		write_operand(&instruction->operands[0], constant(0));
}

/* --- vectors --- */

/* Moves the lowest @size bytes.  A load, or @clears, clears the rest of a register;
 * other copies between registers keep it. */
static void move_low(const struct instruction *instruction, uint32_t size,
		     bool clears)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *from = &instruction->operands[1];
	struct value *halves = vector(to), *others = vector(from);
	struct value value;

	if (is_memory(from))
		value = read_memory(from, 0, size);
	else
		value = cut(others ? others[0] : read_operand(from), size);
	if (!halves) {
		write_operand(to, value);
		return;
	}
	clears |= is_memory(from);
	halves[0] = clears && size == 4 ? extend(value) : value;
	if (clears)
		halves[1] = constant(0);
}

static void move_whole(const struct instruction *instruction)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *from = &instruction->operands[1];
	struct value *halves = vector(to), *others = vector(from);
	struct value values[2], place;

	for (uint32_t i = 0; i < 2; i++)
		values[i] = others ? others[i] : read_memory(from, i * 8, 8);
	if (halves) {
		halves[0] = values[0];
		halves[1] = values[1];
	} else if (place_of(to, &place)) {
		drop_overlapping(&place, bytes_of(to));
		store_value(&place, 8, values[0]);
		place = plus(place, 8);
		store_value(&place, 8, values[1]);
	} else if (!is_global(to)) {
		now.fact_count = 0;
	}
}

static void move_half(const struct instruction *instruction, int half)
{
	const ZydisDecodedOperand *to = &instruction->operands[0];
	const ZydisDecodedOperand *from = &instruction->operands[1];
	struct value *halves = vector(to), *others = vector(from);

	if (halves && is_memory(from))
		halves[half] = read_memory(from, 0, 8);
	else if (others && is_memory(to))
		write_operand(to, others[half]);
	else
		renumber_written(instruction);
}

/* The lower half of the last operand becomes the upper half. */
static void execute_join(const struct instruction *instruction)
{
	unsigned count = instruction->head.operand_count_visible;
	struct value *to = vector(&instruction->operands[0]);
	struct value *low = vector(&instruction->operands[count == 3 ? 1 : 0]);
	const ZydisDecodedOperand *last = &instruction->operands[count - 1u];
	struct value *high = vector(last), values[2];

	if (!to || !low) {
		renumber_written(instruction);
		return;
	}
	values[0] = low[0];
	values[1] = high ? high[0] : read_memory(last, 0, 8);
	to[0] = values[0];
	to[1] = values[1];
}

static bool is_plain_move(const struct instruction *instruction)
{
	return instruction->head.operand_count_visible == 2 &&
	       instruction->head.avx.mask.mode <= ZYDIS_MASK_MODE_DISABLED;
}

/* Executes instructions on vectors.  False for other instructions. */
static bool execute_vector(const struct instruction *instruction)
{
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_VMOVSS: move_low(instruction, 4, false); break;
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_VMOVSD: move_low(instruction, 8, false); break;
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_VMOVD: move_low(instruction, 4, true); break;
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_VMOVQ: move_low(instruction, 8, true); break;
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVUPS:
	case ZYDIS_MNEMONIC_VMOVUPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQU: move_whole(instruction); break;
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD: move_half(instruction, 0); break;
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD: move_half(instruction, 1); break;
	default: return false;
	}
	return true;
}

static void execute(const struct instruction *instruction)
{
	if (instruction->head.meta.category == ZYDIS_CATEGORY_STRINGOP) {
		renumber_written(instruction);
		now.fact_count = 0;
		return;
	}
	if (is_plain_move(instruction) && execute_vector(instruction))
		return;
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		write_operand(&instruction->operands[0],
			      read_operand(&instruction->operands[1]));
		return;
	case ZYDIS_MNEMONIC_MOVZX:
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD: load_part(instruction); return;
	case ZYDIS_MNEMONIC_PUSH: execute_push(instruction); return;
	case ZYDIS_MNEMONIC_POP: execute_pop(instruction); return;
	case ZYDIS_MNEMONIC_ADD: emulate_add(instruction, 1); return;
	case ZYDIS_MNEMONIC_SUB:
		if (is_cleared(instruction))
			execute_clear(instruction);
		else
			emulate_add(instruction, -1);
		return;
	case ZYDIS_MNEMONIC_LEA: load_address(instruction); return;
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_PXOR:
	case ZYDIS_MNEMONIC_VPXOR:
	case ZYDIS_MNEMONIC_XORPS:
	case ZYDIS_MNEMONIC_VXORPS:
	case ZYDIS_MNEMONIC_XORPD:
	case ZYDIS_MNEMONIC_VXORPD: execute_clear(instruction); return;
	case ZYDIS_MNEMONIC_PUNPCKLQDQ:
	case ZYDIS_MNEMONIC_VPUNPCKLQDQ:
	case ZYDIS_MNEMONIC_UNPCKLPD:
	case ZYDIS_MNEMONIC_VUNPCKLPD:
	case ZYDIS_MNEMONIC_MOVLHPS: execute_join(instruction); return;
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_VZEROUPPER: return;
	default: renumber_written(instruction);
	}
}

/* Executes the code up to @site.  True if a call ends at @site. */
static bool execute_run(const struct straight_code *code, uintptr_t site)
{
	struct instruction instruction;

	memset(&now, 0, sizeof(now));
	now.last_number = FIRST_NUMBER;
	now.has_frame_pointer = code->has_frame_pointer;
	for (int i = 0; i < 16; i++) {
		now.general[i] = new_value();
		now.vectors[i][0] = new_value();
		now.vectors[i][1] = new_value();
	}
	for (uintptr_t at = code->begin; at < site;
	     at = instruction_next(&instruction)) {
		if (!instruction_decode(&instruction, at))
			return false;
		if (instruction_next(&instruction) == site)
			return instruction.head.meta.category ==
			       ZYDIS_CATEGORY_CALL;
		execute(&instruction);
	}
	return false;
}

/* --- values that are still available in the hook --- */

static const uint8_t kept_registers[] = { 3, BP, 12, 13, 14, 15 };

static void set_value(struct callsite_value *to, uint32_t size,
		      unsigned operation, unsigned number, int64_t value)
{
	to->size = (uint8_t)size;
	to->count = 1;
	to->steps[0] = (struct callsite_step){ (uint8_t)operation,
					       (uint8_t)number, value };
}

static void add_step(struct callsite_value *to, unsigned operation,
		     unsigned number, int64_t value)
{
	to->steps[to->count++] = (struct callsite_step){ (uint8_t)operation,
							 (uint8_t)number,
							 value };
}

/* Uses a slot with the value, if the slot has more bytes than the best location so
 * far. */
static void find_slot(struct value value, const struct fact *fact,
		      struct callsite_value *to)
{
	const struct value *sp = &now.general[SP], *bp = &now.general[BP];
	int64_t above = fact->offset - sp->offset;
	int64_t below = fact->offset - bp->offset;
	int64_t more = (int64_t)((uint64_t)value.offset -
				 (uint64_t)fact->value.offset);
	uint32_t size = smaller(value.size, fact->value.size);

	if (fact->value.number != value.number || size <= to->size)
		return;
	if (fact->base == sp->number && above >= 0)
		set_value(to, size, CALLSITE_SP, 0, above);
	else if (fact->base == bp->number && below < 0 && below >= -FRAME_MAX)
		set_value(to, size, CALLSITE_REGISTER, BP, below);
	else
		return;
	add_step(to, CALLSITE_LOAD, fact->size, 0);
	if (more) {
		add_step(to, CALLSITE_CONSTANT, 0, more);
		add_step(to, CALLSITE_PLUS, 0, 0);
	}
}

static void find_value(struct value value, struct callsite_value *to)
{
	const struct value *sp = &now.general[SP];

	to->count = to->size = 0;
	if (value.number == CONSTANT)
		set_value(to, value.size, CALLSITE_CONSTANT, 0, value.offset);
	else if (value.number == sp->number)
		set_value(to, value.size, CALLSITE_SP, 0,
			  value.offset - sp->offset);
	for (unsigned i = 0; i < sizeof(kept_registers); i++) {
		const struct value *kept = &now.general[kept_registers[i]];
		uint32_t size = smaller(value.size, kept->size);

		if (kept->number == value.number && size > to->size)
			set_value(to, size, CALLSITE_REGISTER,
				  kept_registers[i],
				  (int64_t)((uint64_t)value.offset -
					    (uint64_t)kept->offset));
	}
	for (uint32_t i = 0; i < now.fact_count; i++)
		find_slot(value, &now.facts[i], to);
}

static void add_argument(struct decode_passed *passed, unsigned entry,
			 struct value value)
{
	struct callsite_value *to = &passed->values[passed->count];

	find_value(value, to);
	to->entry = (uint8_t)(entry + 1);
	passed->count += to->count > 0;
}

bool passed_find(struct decode_passed *passed)
{
	static const uint8_t integers[] = { 7, 6, 2, 1, 8, 9 };
	struct straight_code code;

	passed->count = 0;
	if (!straight_find(passed, &code) ||
	    !execute_run(&code, passed->site) || now.general[SP].size < 8)
		return false;
	for (unsigned i = 0; i < sizeof(integers); i++)
		add_argument(passed, integers[i], now.general[integers[i]]);
	for (unsigned i = 0; i < 8; i++) {
		add_argument(passed, VECTOR + i, now.vectors[i][0]);
		add_argument(passed, VECTOR + CALLSITE_UPPER + i,
			     now.vectors[i][1]);
	}
	return true;
}
