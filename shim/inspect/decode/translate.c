/*
 * Translates instructions to operations of a recipe.  operations.def lists the
 * supported instructions; any other instruction ends the recipe, and the value is
 * unavailable.
 */
#include "inspect/decode/translate.h"

#include "inspect/decode/operands.h"
#include "inspect/decode/translators.h"

/* --- supported operations --- */

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

const struct supported *supported_find(ZydisMnemonic mnemonic, unsigned *number)
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

/* --- by mnemonic --- */

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

static int translate_nothing(struct operation *operation)
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
		return translate_pair(instruction, INDEX_IMUL_PAIR * 4,
				      operations);
	found = supported_find(mnemonic, &number);
	if (!found)
		return -1;
	if (found->kind == KIND_INTEGER_PAIR)
		return translate_pair(instruction, number, operations);
	if (found->kind < KIND_INTEGER_PAIR)
		return translate_integer(instruction, found, number,
					 operations);
	if (found->kind >= KIND_LONG_DOUBLE)
		return translate_long_double(instruction, operations);
	return translate_vector(instruction, found, number, operations);
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
	case ZYDIS_MNEMONIC_VZEROUPPER: return translate_nothing(operations);
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_MOVZX:
		return translate_move(instruction, operations, OPERATION_MOVE);
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
		return translate_move(instruction, operations,
				      OPERATION_MOVE_SIGNED);
	case ZYDIS_MNEMONIC_CBW: return translate_extend_itself(operations, 2);
	case ZYDIS_MNEMONIC_CWDE: return translate_extend_itself(operations, 4);
	case ZYDIS_MNEMONIC_CDQE: return translate_extend_itself(operations, 8);
	case ZYDIS_MNEMONIC_CWD: return translate_extend_to_pair(operations, 2);
	case ZYDIS_MNEMONIC_CDQ: return translate_extend_to_pair(operations, 4);
	case ZYDIS_MNEMONIC_CQO: return translate_extend_to_pair(operations, 8);
	case ZYDIS_MNEMONIC_LEA: return translate_lea(instruction, operations);
	case ZYDIS_MNEMONIC_PUSH:
		return translate_push(instruction, operations);
	case ZYDIS_MNEMONIC_POP: return translate_pop(instruction, operations);
	case ZYDIS_MNEMONIC_LEAVE: return translate_leave(operations);
	case ZYDIS_MNEMONIC_RORX:
		return translate_rorx(instruction, operations);
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
		return translate_move_lowest(instruction, width, operations);
	case ZYDIS_MNEMONIC_MOVD:
	case ZYDIS_MNEMONIC_VMOVD:
		return translate_move_lowest(instruction, 4, operations);
	case ZYDIS_MNEMONIC_MOVQ:
	case ZYDIS_MNEMONIC_VMOVQ:
		return translate_move_lowest(instruction, 8, operations);
	case ZYDIS_MNEMONIC_MOVSS:
	case ZYDIS_MNEMONIC_VMOVSS:
		return translate_move_scalar(instruction, 4, operations);
	case ZYDIS_MNEMONIC_MOVSD:
	case ZYDIS_MNEMONIC_VMOVSD:
		return translate_move_scalar(instruction, 8, operations);
	case ZYDIS_MNEMONIC_MOVLPS:
	case ZYDIS_MNEMONIC_MOVLPD:
	case ZYDIS_MNEMONIC_VMOVLPS:
	case ZYDIS_MNEMONIC_VMOVLPD:
		return translate_move_half(instruction, 0, operations);
	case ZYDIS_MNEMONIC_MOVHPS:
	case ZYDIS_MNEMONIC_MOVHPD:
	case ZYDIS_MNEMONIC_VMOVHPS:
	case ZYDIS_MNEMONIC_VMOVHPD:
		return translate_move_half(instruction, 8, operations);
	case ZYDIS_MNEMONIC_PINSRB:
	case ZYDIS_MNEMONIC_VPINSRB:
		return translate_insert(instruction, 1, operations);
	case ZYDIS_MNEMONIC_PINSRW:
	case ZYDIS_MNEMONIC_VPINSRW:
		return translate_insert(instruction, 2, operations);
	case ZYDIS_MNEMONIC_PINSRD:
	case ZYDIS_MNEMONIC_VPINSRD:
		return translate_insert(instruction, 4, operations);
	case ZYDIS_MNEMONIC_PINSRQ:
	case ZYDIS_MNEMONIC_VPINSRQ:
		return translate_insert(instruction, 8, operations);
	case ZYDIS_MNEMONIC_VINSERTF128:
	case ZYDIS_MNEMONIC_VINSERTI128:
		return translate_insert(instruction, 16, operations);
	case ZYDIS_MNEMONIC_INSERTPS:
	case ZYDIS_MNEMONIC_VINSERTPS:
		return translate_insert_float(instruction, operations);
	case ZYDIS_MNEMONIC_PEXTRB:
	case ZYDIS_MNEMONIC_VPEXTRB:
		return translate_extract(instruction, 1, operations);
	case ZYDIS_MNEMONIC_PEXTRW:
	case ZYDIS_MNEMONIC_VPEXTRW:
		return translate_extract(instruction, 2, operations);
	case ZYDIS_MNEMONIC_PEXTRD:
	case ZYDIS_MNEMONIC_VPEXTRD:
	case ZYDIS_MNEMONIC_EXTRACTPS:
	case ZYDIS_MNEMONIC_VEXTRACTPS:
		return translate_extract(instruction, 4, operations);
	case ZYDIS_MNEMONIC_PEXTRQ:
	case ZYDIS_MNEMONIC_VPEXTRQ:
		return translate_extract(instruction, 8, operations);
	case ZYDIS_MNEMONIC_VEXTRACTF128:
	case ZYDIS_MNEMONIC_VEXTRACTI128:
		return translate_extract(instruction, 16, operations);
	case ZYDIS_MNEMONIC_PSRLDQ:
	case ZYDIS_MNEMONIC_VPSRLDQ:
		return translate_shift_bytes(instruction, 1, operations);
	case ZYDIS_MNEMONIC_PSLLDQ:
	case ZYDIS_MNEMONIC_VPSLLDQ:
		return translate_shift_bytes(instruction, -1, operations);
	case ZYDIS_MNEMONIC_VBROADCASTSS:
	case ZYDIS_MNEMONIC_VPBROADCASTD:
		return translate_broadcast(instruction, 4, operations);
	case ZYDIS_MNEMONIC_VBROADCASTSD:
	case ZYDIS_MNEMONIC_VPBROADCASTQ:
		return translate_broadcast(instruction, 8, operations);
	case ZYDIS_MNEMONIC_VPBROADCASTB:
		return translate_broadcast(instruction, 1, operations);
	case ZYDIS_MNEMONIC_VPBROADCASTW:
		return translate_broadcast(instruction, 2, operations);
	case ZYDIS_MNEMONIC_VBROADCASTF128:
	case ZYDIS_MNEMONIC_VBROADCASTI128:
		return translate_broadcast(instruction, 16, operations);
	case ZYDIS_MNEMONIC_PSHUFD:
	case ZYDIS_MNEMONIC_VPSHUFD:
		return translate_shuffle(instruction, false, false, operations);
	case ZYDIS_MNEMONIC_SHUFPS:
	case ZYDIS_MNEMONIC_VSHUFPS:
		return translate_shuffle(instruction, true, false, operations);
	case ZYDIS_MNEMONIC_SHUFPD:
	case ZYDIS_MNEMONIC_VSHUFPD:
		return translate_shuffle(instruction, true, true, operations);
	case ZYDIS_MNEMONIC_VPERMILPS:
		return instruction->operands[2].type ==
				       ZYDIS_OPERAND_TYPE_IMMEDIATE ?
			       translate_shuffle(instruction, false, false,
						 operations) :
			       -1;
	case ZYDIS_MNEMONIC_VPERMILPD:
		return instruction->operands[2].type ==
				       ZYDIS_OPERAND_TYPE_IMMEDIATE ?
			       translate_shuffle(instruction, false, true,
						 operations) :
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
	case ZYDIS_MNEMONIC_FDIVRP:
		return translate_long_double(instruction, operations);
	default: break;
	}
	switch (instruction->head.meta.category) {
	case ZYDIS_CATEGORY_CMOV:
		return translate_conditional(instruction, operations,
					     OPERATION_SELECT);
	case ZYDIS_CATEGORY_SETCC:
		return translate_conditional(instruction, operations,
					     OPERATION_SET);
	default: return translate_supported(instruction, operations);
	}
}
