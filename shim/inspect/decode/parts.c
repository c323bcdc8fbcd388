/* Which parts of the registers an operation reads and writes: what liveness is made of. */
#include "inspect/decode/parts.h"

#include "inspect/decode/translate.h"

uint64_t parts_of_general(unsigned place, uint32_t size)
{
	if (place >= REGISTER_HIGH && place < REGISTER_HIGH + 4)
		return 2ull << (place - REGISTER_HIGH) * 3;
	if (place >= REGISTER_KEPT)
		return 0;
	return (size == 1 ? 1ull : size == 2 ? 3ull : 7ull) << place * 3;
}

uint64_t parts_of_vector(unsigned place, uint32_t from, uint32_t size)
{
	static const uint8_t starts[] = { 0, 4, 8, 16, 32 };
	uint64_t bits = 0;

	if (place < REGISTER_VECTOR || place >= REGISTER_HIGH)
		return 0;
	for (unsigned i = 0; i < 4; i++)
		if (from < starts[i + 1] && starts[i] < from + size)
			bits |= 1ull << i;
	return bits << (place - REGISTER_VECTOR) * 4;
}

/* Only the parts that are completely written. */
static uint64_t covered_bits(unsigned place, uint32_t from, uint32_t size)
{
	static const uint8_t starts[] = { 0, 4, 8, 16, 32 };
	uint64_t bits = 0;

	if (place < REGISTER_VECTOR || place >= REGISTER_HIGH)
		return 0;
	for (unsigned i = 0; i < 4; i++)
		if (from <= starts[i] && starts[i + 1] <= from + size)
			bits |= 1ull << i;
	return bits << (place - REGISTER_VECTOR) * 4;
}

bool operation_uses_memory(const struct operation *operation)
{
	return operation->to == PLACE_MEMORY ||
	       operation->first == PLACE_MEMORY ||
	       operation->second == PLACE_MEMORY ||
	       operation->third == PLACE_MEMORY ||
	       operation->code == OPERATION_ADDRESS ||
	       operation->code == OPERATION_RETURN;
}

bool operation_is_flow(const struct operation *operation)
{
	return operation->code >= OPERATION_GUARD;
}

bool operation_is_long(const struct operation *operation)
{
	return operation->code >= OPERATION_LONG_PUSH &&
	       operation->code <= OPERATION_LONG;
}

bool operation_is_zero(const struct operation *operation)
{
	unsigned index = operation->number / 4;

	if (operation->first != operation->second ||
	    operation->first >= PLACE_MEMORY)
		return false;
	if (operation->code == OPERATION_INTEGER)
		return index == INDEX_XOR || index == INDEX_SUB ||
		       index == INDEX_SBB;
	return operation->code == OPERATION_VECTOR &&
	       (index == INDEX_PXOR || index == INDEX_XORPS ||
		index == INDEX_XORPD || index == INDEX_PCMPEQD ||
		index == INDEX_PCMPEQB || index == INDEX_PCMPEQW);
}

void parts_add(struct parts *set, unsigned place, uint32_t offset,
	       uint32_t size)
{
	set->general |= parts_of_general(place, size);
	set->vectors |= parts_of_vector(place, offset, size);
}

/* The live bytes of the first operand above the computed ones. */
static uint64_t first_bits(const struct operation *operation,
			   const struct parts *after)
{
	uint32_t scalar = operation->scalar;
	uint64_t upper = parts_of_vector(REGISTER_VECTOR, scalar, 16 - scalar);
	uint64_t wanted = after->vectors >>
			  (operation->to - REGISTER_VECTOR) * 4;

	if (operation->first < REGISTER_VECTOR ||
	    operation->first >= REGISTER_HIGH)
		return 0;
	wanted = (wanted & upper) << (operation->first - REGISTER_VECTOR) * 4;
	return operation->is_unary ?
		       wanted :
		       wanted | parts_of_vector(operation->first, 0, scalar);
}

struct parts parts_read(const struct operation *operation,
			const struct parts *after)
{
	struct parts set = { 0, 0 };

	if (operation_uses_memory(operation)) {
		parts_add(&set, operation->base, 0, 8);
		parts_add(&set, operation->index, 0, 8);
	}
	if (operation_is_long(operation))
		set.general |= PARTS_LONGS;
	if (operation->tests_flags)
		set.general |= PARTS_FLAGS;
	if (operation_is_zero(operation))
		return set;
	switch (operation->code) {
	case OPERATION_PAIR:
		parts_add(&set, 0, 0, operation->size);
		if (operation->size > 1 && operation->immediate)
			parts_add(&set, 2, 0, operation->size);
		break;
	case OPERATION_SET:
	case OPERATION_SELECT:
	case OPERATION_GUARD:
	case OPERATION_BRANCH: set.general |= PARTS_FLAGS; break;
	case OPERATION_VECTOR:
	case OPERATION_SHUFFLE:
	case OPERATION_FROM_INTEGER:
	case OPERATION_COMPARE:
		if (operation->scalar)
			set.vectors |= first_bits(operation, after);
		else
			set.vectors |= parts_of_vector(
				operation->first, 0,
				operation->code == OPERATION_COMPARE ?
					operation->from_size :
					(uint32_t)operation->width);
		break;
	default: break;
	}
	if (operation_is_long(operation))
		return set;
	set.general |= parts_of_general(operation->first, operation->size);
	parts_add(&set, operation->second, operation->from_offset,
		  operation->from_size);
	set.vectors |= parts_of_vector(operation->third, 0,
				       operation->from_size);
	return set;
}

struct parts parts_written(const struct operation *operation)
{
	struct parts set = { 0, 0 };

	if (operation->sets_flags && !operation->keeps_flags)
		set.general |= PARTS_FLAGS;
	switch (operation->code) {
	case OPERATION_PAIR:
		set.general |= parts_of_general(
			0, operation->size == 1 ? 2 : operation->size);
		if (operation->size > 1)
			set.general |= parts_of_general(2, operation->size);
		return set;
	case OPERATION_VECTOR_MOVE:
		set.general |= parts_of_general(operation->to, 8);
		set.vectors |= covered_bits(operation->to, operation->to_offset,
					    operation->size);
		set.vectors |= covered_bits(operation->to, 0,
					    operation->cleared);
		return set;
	case OPERATION_BROADCAST:
		set.vectors |= covered_bits(operation->to, 0, 32);
		return set;
	case OPERATION_SHUFFLE:
	case OPERATION_VECTOR:
	case OPERATION_FROM_INTEGER:
		set.vectors |= covered_bits(operation->to, 0,
					    operation->cleared >
							    operation->width ?
						    operation->cleared :
						    operation->width);
		return set;
	default:
		if (operation_is_flow(operation) ||
		    operation_is_long(operation))
			return set;
		set.general |= parts_of_general(operation->to, operation->size);
		return set;
	}
}
