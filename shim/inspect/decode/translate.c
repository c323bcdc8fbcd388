/*
 * Translates instructions to operations of a recipe.  operations.def lists the
 * supported instructions; any other instruction ends the recipe, and the value is
 * unavailable.
 */
#include "inspect/decode/translate.h"

#define SP 4
#define BP 5

/* --- supported operations --- */

struct supported {
	uint16_t mnemonic, vex; /* 0: none */
	uint8_t kind, size;
};

/* operations.def needs a name for imul with one operand. */
#define ZYDIS_MNEMONIC_IMUL_PAIR ZYDIS_MNEMONIC_INVALID

#define PLAIN(NAME, kind) { ZYDIS_MNEMONIC_##NAME, 0, kind, 0 },
#define BOTH(NAME, kind, size) \
	{ ZYDIS_MNEMONIC_##NAME, ZYDIS_MNEMONIC_V##NAME, kind, size },

static const struct supported supported[] = {
#define INTEGER(NAME, name)	       PLAIN(NAME, KIND_INTEGER)
#define INTEGER_UNARY(NAME, name)      PLAIN(NAME, KIND_INTEGER_UNARY)
#define INTEGER_SHIFT(NAME, name)      PLAIN(NAME, KIND_INTEGER_SHIFT)
#define INTEGER_WIDE(NAME, name)       PLAIN(NAME, KIND_INTEGER_WIDE)
#define INTEGER_SWAP(NAME, name)       PLAIN(NAME, KIND_INTEGER_SWAP)
#define INTEGER_LAST(NAME, name)       PLAIN(NAME, KIND_INTEGER_LAST)
#define INTEGER_COUNT(NAME, name)      PLAIN(NAME, KIND_INTEGER_COUNT)
#define INTEGER_ONLY(NAME, name)       PLAIN(NAME, KIND_INTEGER_ONLY)
#define INTEGER_PAIR(NAME, name)       PLAIN(NAME, KIND_INTEGER_PAIR)
#define SCALAR(NAME, name, size)       BOTH(NAME, KIND_SCALAR, size)
#define SCALAR_UNARY(NAME, name, size) BOTH(NAME, KIND_SCALAR_UNARY, size)
#define FROM_INTEGER(NAME, name, size) BOTH(NAME, KIND_FROM_INTEGER, size)
#define TO_INTEGER(NAME, name, size)   BOTH(NAME, KIND_TO_INTEGER, size)
#define COMPARE(NAME, name, size)      BOTH(NAME, KIND_COMPARE, size)
#define PACKED(NAME, name)	       BOTH(NAME, KIND_PACKED, 16)
#define PACKED_SHIFT(NAME, name)       BOTH(NAME, KIND_PACKED_SHIFT, 16)
#define PACKED_UNARY(NAME, name)       BOTH(NAME, KIND_PACKED_UNARY, 16)
#define NARROW(NAME, name)	       BOTH(NAME, KIND_NARROW, 16)
#define NARROW_UNARY(NAME, name)       BOTH(NAME, KIND_NARROW_UNARY, 16)
#define FUSED(NAME, name, size)	       { 0, ZYDIS_MNEMONIC_##NAME, KIND_FUSED, size },
#define FUSED_PACKED(NAME, name) \
	{ 0, ZYDIS_MNEMONIC_##NAME, KIND_FUSED_PACKED, 16 },
#define LONG_DOUBLE(NAME, name)	      PLAIN(NAME, KIND_LONG_DOUBLE)
#define LONG_DOUBLE_UNARY(NAME, name) PLAIN(NAME, KIND_LONG_DOUBLE_UNARY)
#include "inspect/decode/operations.def"
};

#define SUPPORTED_COUNT (sizeof(supported) / sizeof(supported[0]))

static const struct supported *find(ZydisMnemonic mnemonic, unsigned *number)
{
	for (unsigned i = 0; i < SUPPORTED_COUNT; i++) {
		if (mnemonic == 0 || (supported[i].mnemonic != mnemonic &&
				      supported[i].vex != mnemonic))
			continue;
		*number = i * 4;
		return &supported[i];
	}
	return NULL;
}

/* --- operands --- */

void translate_clear(struct operation *operation, unsigned code)
{
	*operation = (struct operation){
		.code = (uint8_t)code,
		.to = PLACE_NONE,
		.first = PLACE_NONE,
		.second = PLACE_NONE,
		.third = PLACE_NONE,
		.base = PLACE_NONE,
		.index = PLACE_NONE,
	};
}

static unsigned place_of_register(ZydisRegister given)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(
		ZYDIS_MACHINE_MODE_LONG_64, given);
	int number = ZydisRegisterGetId(whole);

	if (given >= ZYDIS_REGISTER_AH && given <= ZYDIS_REGISTER_BH)
		return REGISTER_HIGH + (unsigned)(given - ZYDIS_REGISTER_AH);
	if (number < 0 || number > 15)
		return PLACE_NONE;
	switch (ZydisRegisterGetClass(given)) {
	case ZYDIS_REGCLASS_GPR8:
	case ZYDIS_REGCLASS_GPR16:
	case ZYDIS_REGCLASS_GPR32:
	case ZYDIS_REGCLASS_GPR64: return REGISTER_GENERAL + (unsigned)number;
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM: return REGISTER_VECTOR + (unsigned)number;
	default: return PLACE_NONE;
	}
}

static bool set_memory(const struct instruction *instruction,
		       const ZydisDecodedOperand *operand,
		       struct operation *operation)
{
	uint64_t address;

	if (instruction->head.address_width != 64 ||
	    operand->mem.segment == ZYDIS_REGISTER_GS)
		return false;
	operation->is_thread_local = operand->mem.segment == ZYDIS_REGISTER_FS;
	operation->displacement = operand->mem.disp.has_displacement ?
					  operand->mem.disp.value :
					  0;
	if (operand->mem.base == ZYDIS_REGISTER_RIP) {
		if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(
			    &instruction->head, operand, instruction->at,
			    &address)))
			return false;
		operation->displacement = (int64_t)address;
		return true;
	}
	if (operand->mem.base != ZYDIS_REGISTER_NONE) {
		operation->base = (uint8_t)place_of_register(operand->mem.base);
		if (operation->base >= REGISTER_KEPT)
			return false;
	}
	if (operand->mem.index != ZYDIS_REGISTER_NONE) {
		operation->index = (uint8_t)place_of_register(
			operand->mem.index);
		operation->scale = operand->mem.scale;
		if (operation->index >= REGISTER_KEPT)
			return false;
	}
	return true;
}

/* The place of an operand; PLACE_NONE if it is not supported. */
static unsigned place(const struct instruction *instruction, unsigned number,
		      struct operation *operation)
{
	const ZydisDecodedOperand *operand = &instruction->operands[number];

	switch (operand->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		return place_of_register(operand->reg.value);
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		if (operand->imm.is_relative)
			return PLACE_NONE;
		operation->immediate = operand->imm.value.s;
		return PLACE_IMMEDIATE;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return set_memory(instruction, operand, operation) ?
			       PLACE_MEMORY :
			       PLACE_NONE;
	default: return PLACE_NONE;
	}
}

static uint8_t bytes_of(const struct instruction *instruction, unsigned number)
{
	return (uint8_t)(instruction->operands[number].size / 8);
}

static unsigned form_of(unsigned size)
{
	return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0;
}

static bool is_vex(const struct instruction *instruction)
{
	return instruction->head.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
}

static bool is_vector(unsigned place)
{
	return place >= REGISTER_VECTOR && place < REGISTER_HIGH;
}

static bool is_general(unsigned place)
{
	return place < REGISTER_KEPT || place >= REGISTER_HIGH;
}

/* --- integers --- */

#define COMPUTED \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_ZF | \
	 ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

static void set_flags(const struct instruction *instruction,
		      struct operation *operation)
{
	const ZydisAccessedFlags *flags = instruction->head.cpu_flags;
	uint32_t written = flags->modified | flags->set_0 | flags->set_1;

	operation->sets_flags = (written & COMPUTED) != 0;
	written |= flags->undefined;
	operation->tests_flags = (flags->tested & COMPUTED) != 0;
	operation->keeps_flags = operation->sets_flags &&
				 (written & COMPUTED) != COMPUTED;
}

static int integer(const struct instruction *instruction,
		   const struct supported *found, unsigned number,
		   struct operation *operation)
{
	unsigned operands[3] = { PLACE_NONE, PLACE_NONE, PLACE_NONE };
	unsigned count = instruction->head.operand_count_visible;
	uint8_t size = bytes_of(instruction, 0);

	translate_clear(operation, OPERATION_INTEGER);
	set_flags(instruction, operation);
	/* `shl %eax`: the 1 is implicit. */
	if (found->kind == KIND_INTEGER_SHIFT && count < 2)
		count = 2;
	for (unsigned i = 0; i < 3 && i < count; i++) {
		operands[i] = place(instruction, i, operation);
		if (operands[i] == PLACE_NONE || is_vector(operands[i]))
			return -1;
	}
	operation->size = operation->from_size = size;
	operation->to = operation->first = (uint8_t)operands[0];
	operation->second = (uint8_t)operands[1];
	switch (found->kind) {
	case KIND_INTEGER:
		if (found->mnemonic == ZYDIS_MNEMONIC_CMP ||
		    found->mnemonic == ZYDIS_MNEMONIC_TEST)
			operation->to = PLACE_NONE;
		break;
	case KIND_INTEGER_UNARY:
	case KIND_INTEGER_SWAP: break;
	case KIND_INTEGER_SHIFT:
		operation->from_size = 1;
		if (operation->second != PLACE_IMMEDIATE ||
		    (operation->immediate & 31) == 0)
			operation->keeps_flags = operation->sets_flags;
		break;
	case KIND_INTEGER_WIDE:
		if (count == 3) { /* imul */
			operation->first = (uint8_t)operands[1];
			operation->second = (uint8_t)operands[2];
		}
		switch (found->mnemonic) {
		case ZYDIS_MNEMONIC_BT:
		case ZYDIS_MNEMONIC_BTS:
		case ZYDIS_MNEMONIC_BTR:
		case ZYDIS_MNEMONIC_BTC:
			if (operation->first == PLACE_MEMORY &&
			    operation->second != PLACE_IMMEDIATE)
				return -1;
			if (found->mnemonic == ZYDIS_MNEMONIC_BT)
				operation->to = PLACE_NONE;
			break;
		case ZYDIS_MNEMONIC_TZCNT:
		case ZYDIS_MNEMONIC_LZCNT:
		case ZYDIS_MNEMONIC_POPCNT:
			operation->first = PLACE_NONE;
			break;
		default: break;
		}
		break;
	case KIND_INTEGER_LAST:
	case KIND_INTEGER_COUNT:
		operation->first = (uint8_t)operands[1];
		operation->second = (uint8_t)operands[2];
		break;
	case KIND_INTEGER_ONLY: operation->first = PLACE_NONE; break;
	default: return -1;
	}
	operation->number = (uint16_t)(number + form_of(size));
	return 1;
}

/* A rotation that keeps the flags. */
static int rorx(const struct instruction *instruction,
		struct operation *operation)
{
	unsigned number = INDEX_ROR * 4;

	translate_clear(operation, OPERATION_INTEGER);
	operation->size = bytes_of(instruction, 0);
	operation->from_size = 1;
	operation->to = (uint8_t)place(instruction, 0, operation);
	operation->first = (uint8_t)place(instruction, 1, operation);
	operation->second = (uint8_t)place(instruction, 2, operation);
	operation->number = (uint16_t)(number + form_of(operation->size));
	return operation->first == PLACE_NONE ? -1 : 1;
}

static int pair(const struct instruction *instruction, unsigned number,
		struct operation *operation)
{
	translate_clear(operation, OPERATION_PAIR);
	operation->size = operation->from_size = bytes_of(instruction, 0);
	operation->second = (uint8_t)place(instruction, 0, operation);
	operation->number = (uint16_t)(number + form_of(operation->size));
	operation->sets_flags = true;
	operation->immediate = instruction->head.mnemonic ==
					       ZYDIS_MNEMONIC_DIV ?
				       1 :
			       instruction->head.mnemonic ==
					       ZYDIS_MNEMONIC_IDIV ?
				       2 :
				       0;
	return operation->second < REGISTER_KEPT ||
			       operation->second == PLACE_MEMORY ?
		       1 :
		       -1;
}

static int move(const struct instruction *instruction,
		struct operation *operation, unsigned code)
{
	translate_clear(operation, code);
	operation->size = bytes_of(instruction, 0);
	operation->from_size = bytes_of(instruction, 1);
	operation->to = (uint8_t)place(instruction, 0, operation);
	operation->second = (uint8_t)place(instruction, 1, operation);
	if (operation->second == PLACE_IMMEDIATE)
		operation->from_size = operation->size;
	if (operation->to == PLACE_NONE || operation->second == PLACE_NONE ||
	    !is_general(operation->to) || !is_general(operation->second))
		return -1;
	return 1;
}

static int extend_itself(struct operation *operation, uint8_t size)
{
	translate_clear(operation, OPERATION_MOVE_SIGNED);
	operation->to = operation->second = 0;
	operation->size = size;
	operation->from_size = size / 2;
	return 1;
}

static int extend_to_pair(struct operation *operation, uint8_t size)
{
	translate_clear(operation, OPERATION_SIGN);
	operation->to = 2;
	operation->second = 0;
	operation->size = operation->from_size = size;
	return 1;
}

static int lea(const struct instruction *instruction,
	       struct operation *operation)
{
	translate_clear(operation, OPERATION_ADDRESS);
	operation->size = bytes_of(instruction, 0);
	operation->to = (uint8_t)place(instruction, 0, operation);
	if (place(instruction, 1, operation) != PLACE_MEMORY ||
	    operation->is_thread_local || operation->to >= REGISTER_KEPT)
		return -1;
	return 1;
}

static void add_to_sp(struct operation *operation, int64_t by)
{
	translate_clear(operation, OPERATION_ADDRESS);
	operation->size = 8;
	operation->to = operation->base = SP;
	operation->displacement = by;
}

static void load_top(struct operation *operation, uint8_t to)
{
	translate_clear(operation, OPERATION_MOVE);
	operation->size = operation->from_size = 8;
	operation->to = to;
	operation->second = PLACE_MEMORY;
	operation->base = SP;
}

static int push(const struct instruction *instruction,
		struct operation *operations)
{
	if (instruction->head.operand_width != 64)
		return -1;
	add_to_sp(&operations[0], -8);
	translate_clear(&operations[1], OPERATION_MOVE);
	operations[1].size = operations[1].from_size = 8;
	operations[1].second = (uint8_t)place(instruction, 0, &operations[1]);
	operations[1].to = PLACE_MEMORY;
	operations[1].base = SP;
	if (operations[1].second == SP ||
	    (operations[1].second >= REGISTER_KEPT &&
	     operations[1].second != PLACE_IMMEDIATE))
		return -1;
	return 2;
}

static int pop(const struct instruction *instruction,
	       struct operation *operations)
{
	unsigned to = place(instruction, 0, &operations[0]);

	if (instruction->head.operand_width != 64 || to >= REGISTER_KEPT ||
	    to == SP)
		return -1;
	load_top(&operations[0], (uint8_t)to);
	add_to_sp(&operations[1], 8);
	return 2;
}

static int leave(struct operation *operations)
{
	translate_clear(&operations[0], OPERATION_MOVE);
	operations[0].size = operations[0].from_size = 8;
	operations[0].to = SP;
	operations[0].second = BP;
	load_top(&operations[1], BP);
	add_to_sp(&operations[2], 8);
	return 3;
}

/* The low 4 bits of all opcodes that test flags are the condition. */
static int conditional(const struct instruction *instruction,
		       struct operation *operation, unsigned code)
{
	translate_clear(operation, code);
	operation->condition = instruction->head.opcode & 15;
	operation->size = bytes_of(instruction, 0);
	operation->from_size = operation->size;
	operation->to = (uint8_t)place(instruction, 0, operation);
	if (code == OPERATION_SELECT) {
		operation->first = operation->to;
		operation->second = (uint8_t)place(instruction, 1, operation);
		if (operation->second == PLACE_NONE)
			return -1;
	}
	return operation->to == PLACE_NONE ? -1 : 1;
}

int translate_condition(const struct instruction *branch)
{
	uint8_t opcode = branch->head.opcode;
	bool is_short = branch->head.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
			(opcode & 0xf0) == 0x70;
	bool is_long = branch->head.opcode_map == ZYDIS_OPCODE_MAP_0F &&
		       (opcode & 0xf0) == 0x80;

	return is_short || is_long ? opcode & 15 : -1;
}

/* --- vectors --- */

static void vector_move(struct operation *operation, unsigned to, unsigned from,
			unsigned size, unsigned cleared)
{
	operation->code = OPERATION_VECTOR_MOVE;
	operation->to = (uint8_t)to;
	operation->second = (uint8_t)from;
	operation->size = operation->from_size = (uint8_t)size;
	operation->cleared = (uint8_t)cleared;
}

/* Moves of the lowest @size bytes. */
static int move_lowest(const struct instruction *instruction, unsigned size,
		       struct operation *operation)
{
	unsigned to, from;

	translate_clear(operation, OPERATION_VECTOR_MOVE);
	to = place(instruction, 0, operation);
	from = place(instruction, 1, operation);
	if (to == PLACE_NONE || from == PLACE_NONE ||
	    (!is_vector(to) && !is_vector(from)) || to >= PLACE_IMMEDIATE ||
	    (to >= REGISTER_HIGH && to < PLACE_MEMORY))
		return -1;
	vector_move(operation, to, from, size,
		    !is_vector(to)	? 0 :
		    is_vex(instruction) ? 32 :
					  16);
	return 1;
}

/* Writes a part over a copy of another register. */
static int move_over(const struct instruction *instruction, unsigned from,
		     unsigned offset, unsigned size,
		     struct operation *operations)
{
	unsigned to = place(instruction, 0, &operations[0]), other, under;
	struct operation *last = operations;

	translate_clear(&operations[0], OPERATION_VECTOR_MOVE);
	translate_clear(&operations[1], OPERATION_VECTOR_MOVE);
	if (from == 2) {
		under = place(instruction, 1, &operations[0]);
		if (!is_vector(under))
			return -1;
		vector_move(&operations[0], to, under, size == 16 ? 32 : 16,
			    32);
		last = &operations[1];
	}
	other = place(instruction, from, last);
	if (!is_vector(to) || other == PLACE_NONE ||
	    (from == 2 && other == to && operations[0].second != to))
		return -1;
	vector_move(last, to, other, size, 0);
	last->to_offset = (uint8_t)offset;
	return from == 2 ? 2 : 1;
}

static int move_scalar(const struct instruction *instruction, unsigned size,
		       struct operation *operations)
{
	unsigned count = instruction->head.operand_count_visible;
	bool between = instruction->operands[0].type ==
			       ZYDIS_OPERAND_TYPE_REGISTER &&
		       instruction->operands[1].type ==
			       ZYDIS_OPERAND_TYPE_REGISTER;

	if (count == 3)
		return move_over(instruction, 2, 0, size, operations);
	if (count != 2)
		return -1;
	if (between)
		return move_over(instruction, 1, 0, size, operations);
	return move_lowest(instruction, size, operations);
}

/* Moves the lower or the upper half to or from memory. */
static int move_half(const struct instruction *instruction, unsigned offset,
		     struct operation *operations)
{
	unsigned from, to;

	if (instruction->head.operand_count_visible == 3)
		return move_over(instruction, 2, offset, 8, operations);
	translate_clear(operations, OPERATION_VECTOR_MOVE);
	to = place(instruction, 0, operations);
	if (is_vector(to))
		return move_over(instruction, 1, offset, 8, operations);
	from = place(instruction, 1, operations);
	if (to != PLACE_MEMORY || !is_vector(from))
		return -1;
	vector_move(operations, to, from, 8, 0);
	operations->from_offset = (uint8_t)offset;
	return 1;
}

static int insert(const struct instruction *instruction, unsigned size,
		  struct operation *operations)
{
	unsigned last = instruction->head.operand_count_visible - 1u;
	unsigned lanes = size == 16 ? 2 : 16 / size;
	unsigned offset = (unsigned)(instruction->operands[last].imm.value.u %
				     lanes) *
			  size;

	if (instruction->operands[last].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return -1;
	return move_over(instruction, last - 1, offset, size, operations);
}

static int extract(const struct instruction *instruction, unsigned size,
		   struct operation *operation)
{
	unsigned lanes = size == 16 ? 2 : 16 / size, to, from;

	translate_clear(operation, OPERATION_VECTOR_MOVE);
	to = place(instruction, 0, operation);
	from = place(instruction, 1, operation);
	if (!is_vector(from) || to == PLACE_NONE ||
	    instruction->operands[2].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return -1;
	vector_move(operation, to, from, size, is_vector(to) ? 32 : 0);
	operation->from_offset =
		(uint8_t)(instruction->operands[2].imm.value.u % lanes * size);
	return 1;
}

/* Copies a dword of the second into the first; a mask that clears dwords is not
 * supported. */
static int insert_float(const struct instruction *instruction,
			struct operation *operations)
{
	unsigned last = instruction->head.operand_count_visible - 1u;
	unsigned how = (unsigned)instruction->operands[last].imm.value.u;
	int count = move_over(instruction, last - 1, (how >> 4 & 3) * 4, 4,
			      operations);

	if (how & 15)
		return -1;
	if (count > 0 && is_vector(operations[count - 1].second))
		operations[count - 1].from_offset = (uint8_t)((how >> 6 & 3) *
							      4);
	return count;
}

/* A shift by bytes, to the right if @sign is 1. */
static int shift_bytes(const struct instruction *instruction, int sign,
		       struct operation *operation)
{
	unsigned last = instruction->head.operand_count_visible - 1u;
	unsigned by = (unsigned)instruction->operands[last].imm.value.u;
	unsigned to, from;

	translate_clear(operation, OPERATION_VECTOR_MOVE);
	to = place(instruction, 0, operation);
	from = place(instruction, last - 1, operation);
	if (!is_vector(to) || !is_vector(from) ||
	    bytes_of(instruction, 0) != 16)
		return -1;
	by = by > 16 ? 16 : by;
	vector_move(operation, to, from, 16 - by,
		    is_vex(instruction) ? 32 : 16);
	operation->from_offset = (uint8_t)(sign > 0 ? by : 0);
	operation->to_offset = (uint8_t)(sign > 0 ? 0 : by);
	return 1;
}

static int broadcast(const struct instruction *instruction, unsigned size,
		     struct operation *operation)
{
	translate_clear(operation, OPERATION_BROADCAST);
	operation->to = (uint8_t)place(instruction, 0, operation);
	operation->second = (uint8_t)place(instruction, 1, operation);
	operation->size = operation->from_size = (uint8_t)size;
	operation->width = bytes_of(instruction, 0);
	operation->cleared = 32;
	return is_vector(operation->to) && operation->second <= PLACE_MEMORY ?
		       1 :
		       -1;
}

static int shuffle(const struct instruction *instruction, bool of_two,
		   bool of_doubles, struct operation *operation)
{
	unsigned count = instruction->head.operand_count_visible;
	unsigned first = count == 3 && of_two ? 0 : 1;
	int64_t how;

	translate_clear(operation, OPERATION_SHUFFLE);
	operation->to = (uint8_t)place(instruction, 0, operation);
	operation->first = (uint8_t)place(instruction, first, operation);
	operation->second = (uint8_t)place(
		instruction, of_two ? first + 1 : first, operation);
	if (instruction->operands[count - 1].type !=
		    ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    !is_vector(operation->to) || operation->first > PLACE_MEMORY ||
	    operation->second > PLACE_MEMORY)
		return -1;
	how = instruction->operands[count - 1].imm.value.s;
	operation->width = operation->from_size = bytes_of(instruction, 0);
	if (of_doubles && operation->width != 16)
		return -1;
	if (of_doubles)
		how = (how & 1 ? 0x0e : 0x04) | (how & 2 ? 0xe0 : 0x40);
	operation->immediate = how;
	operation->cleared = is_vex(instruction) ? 32 : 0;
	return 1;
}

/* Translates `op first, second` or `op to, first, second`. */
static int vector(const struct instruction *instruction,
		  const struct supported *found, unsigned number,
		  struct operation *operation)
{
	unsigned count = instruction->head.operand_count_visible;
	unsigned last = count - 1u;
	uint8_t width = bytes_of(instruction, 0);

	translate_clear(operation, OPERATION_VECTOR);
	operation->to = (uint8_t)place(instruction, 0, operation);
	operation->first = (uint8_t)place(instruction, count == 3 ? 1 : 0,
					  operation);
	operation->second = (uint8_t)place(instruction, last, operation);
	operation->width = width == 32 ? 32 : 16;
	operation->cleared = is_vex(instruction) ? 32 : 0;
	operation->number = (uint16_t)(number +
				       (operation->width == 32 ? 1 : 0));
	operation->size = operation->width;
	operation->from_size = operation->width;
	switch (found->kind) {
	case KIND_SCALAR:
	case KIND_SCALAR_UNARY:
		operation->scalar = found->size;
		operation->is_unary = found->kind == KIND_SCALAR_UNARY;
		operation->from_size =
			(uint8_t)(found->mnemonic == ZYDIS_MNEMONIC_CVTSS2SD ?
					  4 :
				  found->mnemonic == ZYDIS_MNEMONIC_CVTSD2SS ?
					  8 :
					  found->size);
		break;
	case KIND_FROM_INTEGER:
		operation->code = OPERATION_FROM_INTEGER;
		operation->scalar = found->size;
		operation->is_unary = true;
		operation->from_size = bytes_of(instruction, last);
		operation->number = (uint16_t)(number +
					       (operation->from_size == 8));
		return is_general(operation->second) &&
				       operation->second != PLACE_NONE &&
				       is_vector(operation->to) ?
			       1 :
			       -1;
	case KIND_TO_INTEGER:
		operation->code = OPERATION_TO_INTEGER;
		operation->first = PLACE_NONE;
		operation->from_size = found->size;
		/* Wide masks are not supported. */
		if (bytes_of(instruction, last) == 32)
			return -1;
		operation->size = width;
		operation->number = (uint16_t)(number + (width == 8));
		return operation->to < REGISTER_KEPT &&
				       operation->second <= PLACE_MEMORY ?
			       1 :
			       -1;
	case KIND_COMPARE:
		operation->code = OPERATION_COMPARE;
		operation->first = operation->to;
		operation->to = PLACE_NONE;
		operation->from_size = found->size;
		operation->sets_flags = true;
		return is_vector(operation->first) &&
				       operation->second <= PLACE_MEMORY ?
			       1 :
			       -1;
	case KIND_PACKED_SHIFT: operation->from_size = 16; break;
	case KIND_PACKED_UNARY: operation->first = PLACE_NONE; break;
	case KIND_NARROW_UNARY:
		operation->first = PLACE_NONE;
		operation->from_size = bytes_of(instruction, last) < 16 ?
					       bytes_of(instruction, last) :
					       16;
		if (width != 16 || bytes_of(instruction, last) > 16)
			return -1;
		break;
	case KIND_NARROW:
		if (width != 16)
			return -1;
		break;
	case KIND_FUSED:
	case KIND_FUSED_PACKED:
		operation->first = operation->to;
		operation->third = operation->second;
		operation->second = (uint8_t)place(instruction, 1, operation);
		if (found->kind == KIND_FUSED)
			operation->scalar = operation->from_size = found->size;
		break;
	default: break;
	}
	if (found->kind == KIND_PACKED_UNARY &&
	    found->mnemonic == ZYDIS_MNEMONIC_MOVDDUP && operation->width == 16)
		operation->from_size = 8;
	if (!is_vector(operation->to) || operation->second >= PLACE_NONE ||
	    (operation->second >= REGISTER_HIGH &&
	     operation->second < PLACE_MEMORY) ||
	    operation->second < REGISTER_KEPT)
		return -1;
	return 1;
}

/* --- long doubles --- */

static int depth_of(const ZydisDecodedOperand *operand)
{
	if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER ||
	    ZydisRegisterGetClass(operand->reg.value) != ZYDIS_REGCLASS_X87)
		return -1;
	return ZydisRegisterGetId(operand->reg.value);
}

/* The memory operand, or the last operand on the x87 stack. */
static const ZydisDecodedOperand *
find_long(const struct instruction *instruction, bool *is_memory)
{
	const ZydisDecodedOperand *found = NULL;

	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		const ZydisDecodedOperand *operand = &instruction->operands[i];

		if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY) {
			*is_memory = true;
			return operand;
		}
		if (depth_of(operand) >= 0 && (!found || depth_of(operand) > 0))
			found = operand;
	}
	return found;
}

/* operations.S: operation_extend */
static int form_of_long(unsigned size, bool is_integer)
{
	switch (size) {
	case 2: return is_integer ? 2 : -1;
	case 4: return is_integer ? 3 : 0;
	case 8: return is_integer ? 4 : 1;
	default: return -1;
	}
}

static int long_move(const struct instruction *instruction, unsigned code,
		     bool is_integer, struct operation *operation)
{
	bool is_memory = false;
	const ZydisDecodedOperand *operand = find_long(instruction, &is_memory);
	int form;

	translate_clear(operation, code);
	if (!operand)
		return -1;
	if (!is_memory) {
		operation->immediate = depth_of(operand);
		if (code == OPERATION_LONG_PUSH)
			operation->code = OPERATION_LONG_COPY;
		return 1;
	}
	if (!set_memory(instruction, operand, operation))
		return -1;
	operation->size = (uint8_t)(operand->size / 8);
	operation->from_size = operation->size;
	if (code == OPERATION_LONG_PUSH)
		operation->second = PLACE_MEMORY;
	else
		operation->to = PLACE_MEMORY;
	form = form_of_long(operation->size, is_integer);
	if (form < 0 && operation->size != 10)
		return -1;
	operation->number = (uint16_t)form;
	return 1;
}

static int long_constant(struct operation *operation, int64_t value)
{
	translate_clear(operation, OPERATION_LONG_PUSH);
	operation->second = PLACE_IMMEDIATE;
	operation->immediate = value;
	return 1;
}

static int long_compute(const struct instruction *instruction,
			ZydisMnemonic mnemonic, bool pops,
			struct operation *operation)
{
	unsigned number = 0, depths = 0;
	bool is_memory = false;
	const ZydisDecodedOperand *operand = find_long(instruction, &is_memory);
	int form;

	translate_clear(operation, OPERATION_LONG);
	if (!find(mnemonic, &number) || !operand)
		return -1;
	operation->number = (uint16_t)number;
	operation->width = pops;
	operation->to = operation->first = operation->second = 0;
	if (is_memory) {
		operation->second = PLACE_MEMORY;
		operation->size = (uint8_t)(operand->size / 8);
		form = form_of_long(operation->size, false);
		operation->immediate = form;
		return form >= 0 && set_memory(instruction, operand,
					       operation) ?
			       1 :
			       -1;
	}
	for (unsigned i = 0; i < instruction->head.operand_count; i++) {
		int depth = depth_of(&instruction->operands[i]);

		if (depth < 0)
			continue;
		if (depths++ == 0)
			operation->to = operation->first = (uint8_t)depth;
		else if (depths == 2)
			operation->second = (uint8_t)depth;
	}
	return 1;
}

static int long_double(const struct instruction *instruction,
		       struct operation *operation)
{
	int count;

	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_FLD:
		return long_move(instruction, OPERATION_LONG_PUSH, false,
				 operation);
	case ZYDIS_MNEMONIC_FILD:
		return long_move(instruction, OPERATION_LONG_PUSH, true,
				 operation);
	case ZYDIS_MNEMONIC_FLDZ: return long_constant(operation, 0);
	case ZYDIS_MNEMONIC_FLD1: return long_constant(operation, 1);
	case ZYDIS_MNEMONIC_FST:
	case ZYDIS_MNEMONIC_FSTP:
		count = long_move(instruction, OPERATION_LONG_POP, false,
				  operation);
		operation->width = instruction->head.mnemonic ==
				   ZYDIS_MNEMONIC_FSTP;
		return count;
	case ZYDIS_MNEMONIC_FXCH:
		return long_move(instruction, OPERATION_LONG_EXCHANGE, false,
				 operation);
	case ZYDIS_MNEMONIC_FADDP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FADD, true,
				    operation);
	case ZYDIS_MNEMONIC_FMULP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FMUL, true,
				    operation);
	case ZYDIS_MNEMONIC_FSUBP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FSUB, true,
				    operation);
	case ZYDIS_MNEMONIC_FSUBRP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FSUBR, true,
				    operation);
	case ZYDIS_MNEMONIC_FDIVP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FDIV, true,
				    operation);
	case ZYDIS_MNEMONIC_FDIVRP:
		return long_compute(instruction, ZYDIS_MNEMONIC_FDIVR, true,
				    operation);
	default:
		return long_compute(instruction, instruction->head.mnemonic,
				    false, operation);
	}
}

/* --- all of them --- */

static int nothing(struct operation *operation)
{
	translate_clear(operation, OPERATION_NOTHING);
	return 1;
}

static int translate_supported(const struct instruction *instruction,
			       struct operation *operations)
{
	ZydisMnemonic mnemonic = instruction->head.mnemonic;
	const struct supported *found;
	unsigned number;

	if (mnemonic == ZYDIS_MNEMONIC_IMUL &&
	    instruction->head.operand_count_visible == 1)
		return pair(instruction, INDEX_IMUL_PAIR * 4, operations);
	found = find(mnemonic, &number);
	if (!found)
		return -1;
	if (found->kind == KIND_INTEGER_PAIR)
		return pair(instruction, number, operations);
	if (found->kind < KIND_INTEGER_PAIR)
		return integer(instruction, found, number, operations);
	if (found->kind >= KIND_LONG_DOUBLE)
		return long_double(instruction, operations);
	return vector(instruction, found, number, operations);
}

int translate(const struct instruction *instruction,
	      struct operation *operations)
{
	unsigned width = bytes_of(instruction, 0);

	if (instruction->head.attributes &
	    (ZYDIS_ATTRIB_HAS_LOCK | ZYDIS_ATTRIB_HAS_REP))
		return -1;
	if (instruction->head.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX)
		return -1;
	switch (instruction->head.mnemonic) {
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
	case ZYDIS_MNEMONIC_VZEROUPPER: return nothing(operations);
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		return move(instruction, operations, OPERATION_MOVE);
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		return move(instruction, operations, OPERATION_MOVE_SIGNED);
	case ZYDIS_MNEMONIC_CBW: return extend_itself(operations, 2);
	case ZYDIS_MNEMONIC_CWDE: return extend_itself(operations, 4);
	case ZYDIS_MNEMONIC_CDQE: return extend_itself(operations, 8);
	case ZYDIS_MNEMONIC_CWD: return extend_to_pair(operations, 2);
	case ZYDIS_MNEMONIC_CDQ: return extend_to_pair(operations, 4);
	case ZYDIS_MNEMONIC_CQO: return extend_to_pair(operations, 8);
	case ZYDIS_MNEMONIC_LEA: return lea(instruction, operations);
	case ZYDIS_MNEMONIC_PUSH: return push(instruction, operations);
	case ZYDIS_MNEMONIC_POP: return pop(instruction, operations);
	case ZYDIS_MNEMONIC_LEAVE: return leave(operations);
	case ZYDIS_MNEMONIC_RORX: return rorx(instruction, operations);
	case ZYDIS_MNEMONIC_MOVAPS:
	case ZYDIS_MNEMONIC_MOVAPD:
	case ZYDIS_MNEMONIC_MOVUPS:
	case ZYDIS_MNEMONIC_MOVUPD:
	case ZYDIS_MNEMONIC_MOVDQA:
	case ZYDIS_MNEMONIC_MOVDQU:
	case ZYDIS_MNEMONIC_LDDQU:
	case ZYDIS_MNEMONIC_VMOVAPS:
	case ZYDIS_MNEMONIC_VMOVAPD:
	case ZYDIS_MNEMONIC_VMOVUPS:
	case ZYDIS_MNEMONIC_VMOVUPD:
	case ZYDIS_MNEMONIC_VMOVDQA:
	case ZYDIS_MNEMONIC_VMOVDQU:
	case ZYDIS_MNEMONIC_VLDDQU:
		return move_lowest(instruction, width, operations);
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_VMOVD:
		return move_lowest(instruction, 4, operations);
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_VMOVQ:
		return move_lowest(instruction, 8, operations);
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_VMOVSS:
		return move_scalar(instruction, 4, operations);
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_VMOVSD:
		return move_scalar(instruction, 8, operations);
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
	case ZYDIS_MNEMONIC_VMOVLPS:
	case ZYDIS_MNEMONIC_VMOVLPD:
		return move_half(instruction, 0, operations);
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
	case ZYDIS_MNEMONIC_VMOVHPS:
	case ZYDIS_MNEMONIC_VMOVHPD:
		return move_half(instruction, 8, operations);
	case ZYDIS_MNEMONIC_PINSRB:
	case ZYDIS_MNEMONIC_VPINSRB: return insert(instruction, 1, operations);
	case ZYDIS_MNEMONIC_PINSRW:
	case ZYDIS_MNEMONIC_VPINSRW: return insert(instruction, 2, operations);
	case ZYDIS_MNEMONIC_PINSRD:
	case ZYDIS_MNEMONIC_VPINSRD: return insert(instruction, 4, operations);
	case ZYDIS_MNEMONIC_PINSRQ:
	case ZYDIS_MNEMONIC_VPINSRQ: return insert(instruction, 8, operations);
	case ZYDIS_MNEMONIC_VINSERTF128:
	case ZYDIS_MNEMONIC_VINSERTI128:
		return insert(instruction, 16, operations);
	case ZYDIS_MNEMONIC_INSERTPS:
	case ZYDIS_MNEMONIC_VINSERTPS:
		return insert_float(instruction, operations);
	case ZYDIS_MNEMONIC_PEXTRB:
	case ZYDIS_MNEMONIC_VPEXTRB: return extract(instruction, 1, operations);
	case ZYDIS_MNEMONIC_PEXTRW:
	case ZYDIS_MNEMONIC_VPEXTRW: return extract(instruction, 2, operations);
	case ZYDIS_MNEMONIC_PEXTRD:
	case ZYDIS_MNEMONIC_VPEXTRD:
	case ZYDIS_MNEMONIC_EXTRACTPS:
	case ZYDIS_MNEMONIC_VEXTRACTPS:
		return extract(instruction, 4, operations);
	case ZYDIS_MNEMONIC_PEXTRQ:
	case ZYDIS_MNEMONIC_VPEXTRQ: return extract(instruction, 8, operations);
	case ZYDIS_MNEMONIC_VEXTRACTF128:
	case ZYDIS_MNEMONIC_VEXTRACTI128:
		return extract(instruction, 16, operations);
	case ZYDIS_MNEMONIC_PSRLDQ:
	case ZYDIS_MNEMONIC_VPSRLDQ:
		return shift_bytes(instruction, 1, operations);
	case ZYDIS_MNEMONIC_PSLLDQ:
	case ZYDIS_MNEMONIC_VPSLLDQ:
		return shift_bytes(instruction, -1, operations);
	case ZYDIS_MNEMONIC_VBROADCASTSS:
	case ZYDIS_MNEMONIC_VPBROADCASTD:
		return broadcast(instruction, 4, operations);
	case ZYDIS_MNEMONIC_VBROADCASTSD:
	case ZYDIS_MNEMONIC_VPBROADCASTQ:
		return broadcast(instruction, 8, operations);
	case ZYDIS_MNEMONIC_VPBROADCASTB:
		return broadcast(instruction, 1, operations);
	case ZYDIS_MNEMONIC_VPBROADCASTW:
		return broadcast(instruction, 2, operations);
	case ZYDIS_MNEMONIC_VBROADCASTF128:
	case ZYDIS_MNEMONIC_VBROADCASTI128:
		return broadcast(instruction, 16, operations);
	case ZYDIS_MNEMONIC_PSHUFD:
	case ZYDIS_MNEMONIC_VPSHUFD:
		return shuffle(instruction, false, false, operations);
	case ZYDIS_MNEMONIC_SHUFPS:
	case ZYDIS_MNEMONIC_VSHUFPS:
		return shuffle(instruction, true, false, operations);
	case ZYDIS_MNEMONIC_SHUFPD:
	case ZYDIS_MNEMONIC_VSHUFPD:
		return shuffle(instruction, true, true, operations);
	case ZYDIS_MNEMONIC_VPERMILPS:
		return instruction->operands[2].type ==
				       ZYDIS_OPERAND_TYPE_IMMEDIATE ?
			       shuffle(instruction, false, false, operations) :
			       -1;
	case ZYDIS_MNEMONIC_VPERMILPD:
		return instruction->operands[2].type ==
				       ZYDIS_OPERAND_TYPE_IMMEDIATE ?
			       shuffle(instruction, false, true, operations) :
			       -1;
	case ZYDIS_MNEMONIC_FLD:
	case ZYDIS_MNEMONIC_FILD:
	case ZYDIS_MNEMONIC_FLDZ:
	case ZYDIS_MNEMONIC_FLD1:
	case ZYDIS_MNEMONIC_FST:
	case ZYDIS_MNEMONIC_FSTP:
	case ZYDIS_MNEMONIC_FXCH:
	case ZYDIS_MNEMONIC_FADDP:
	case ZYDIS_MNEMONIC_FMULP:
	case ZYDIS_MNEMONIC_FSUBP:
	case ZYDIS_MNEMONIC_FSUBRP:
	case ZYDIS_MNEMONIC_FDIVP:
	case ZYDIS_MNEMONIC_FDIVRP: return long_double(instruction, operations);
	default: break;
	}
	switch (instruction->head.meta.category) {
	case ZYDIS_CATEGORY_CMOV:
		return conditional(instruction, operations, OPERATION_SELECT);
	case ZYDIS_CATEGORY_SETCC:
		return conditional(instruction, operations, OPERATION_SET);
	default: return translate_supported(instruction, operations);
	}
}
