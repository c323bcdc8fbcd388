/*
 * Runs a recipe (recipe.h), in a hook, with the program's registers.
 *
 * It reads only memory that the program will read before `ret`, and does not write
 * memory.  A list keeps the writes of the program, which later reads search.
 */
#include "inspect/decode/recipe.h"

#define STEPS_MAX 512
#define FLAGS	  0x8d5u

/* operations.S */
void operation_integer(uint32_t number, struct operands *operands);
void operation_integer_flags(uint32_t number, struct operands *operands);
void operation_vector(uint32_t number, struct operands *operands);
void operation_vector_wide(uint32_t number, struct operands *operands);
void operation_long_double(uint32_t number, struct operands *operands);
void operation_extend(uint32_t form, struct operands *operands);
void operation_narrow(uint32_t form, struct operands *operands);

_Static_assert(__builtin_offsetof(struct operands, first) == 96 &&
		       __builtin_offsetof(struct operands, flags) == 120,
	       "operations.S");

static void copy_bytes(unsigned char *to, const unsigned char *from,
		       uint32_t size)
{
	if (size == 8) {
		__builtin_memcpy(to, from, 8);
		return;
	}
	for (uint32_t i = 0; i < size; i++)
		to[i] = from[i];
}

static void clear_bytes(unsigned char *to, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		to[i] = 0;
}

/* --- memory --- */

static uintptr_t address_of(const struct decode_machine *machine,
			    const struct operation *operation)
{
	uintptr_t address = (uintptr_t)operation->displacement;

	if (operation->base != PLACE_NONE)
		address += machine->registers[operation->base];
	if (operation->index != PLACE_NONE)
		address += machine->registers[operation->index] *
			   operation->scale;
	if (operation->is_thread_local)
		address += (uintptr_t)__builtin_thread_pointer();
	return address;
}

/* Applies the stores in order, so that the last store wins. */
static void apply_stores(const struct decode_machine *machine,
			 uintptr_t address, uint32_t size, unsigned char *bytes)
{
	for (uint32_t i = 0; i < machine->store_count; i++) {
		const struct store *store = &machine->stores[i];

		for (uint32_t j = 0; j < store->size; j++) {
			uintptr_t at = store->address + j - address;

			if (at < size)
				bytes[at] = store->bytes[j];
		}
	}
}

/* The program may read at any address. */
typedef uint64_t __attribute__((aligned(1), may_alias)) eight_bytes;
typedef uint32_t __attribute__((aligned(1), may_alias)) four_bytes;
typedef uint16_t __attribute__((aligned(1), may_alias)) two_bytes;

/* Reads in one access what the program reads in one access. */
static void load_bytes(uintptr_t address, uint32_t size, unsigned char *bytes)
{
	uint64_t value;

	switch (size) {
	case 8: value = *(const volatile eight_bytes *)address; break;
	case 4: value = *(const volatile four_bytes *)address; break;
	case 2: value = *(const volatile two_bytes *)address; break;
	case 1: value = *(const volatile uint8_t *)address; break;
	default:
		copy_bytes(bytes, (const unsigned char *)address, size);
		size = 0;
	}
	if (size)
		copy_bytes(bytes, (const unsigned char *)&value, size);
}

static void read_memory(const struct decode_machine *machine,
			const struct operation *operation, uint32_t size,
			unsigned char *bytes)
{
	uintptr_t address = address_of(machine, operation);

	load_bytes(address, size, bytes);
	if (machine->store_count)
		apply_stores(machine, address, size, bytes);
}

static bool write_memory(struct decode_machine *machine,
			 const struct operation *operation, uint32_t size,
			 const unsigned char *bytes)
{
	struct store *store = &machine->stores[machine->store_count];

	if (machine->store_count == STORES_MAX)
		return false;
	store->address = address_of(machine, operation);
	store->size = size;
	copy_bytes(store->bytes, bytes, size);
	machine->store_count++;
	return true;
}

/* --- integers --- */

static uint64_t truncate(uint64_t value, uint32_t size)
{
	return size >= 8 ? value : value & ((1ull << size * 8) - 1);
}

static uint64_t sign_extend(uint64_t value, uint32_t size)
{
	return (uint64_t)((int64_t)(value << (64 - size * 8)) >>
			  (64 - size * 8));
}

static uint64_t read_integer(const struct decode_machine *machine,
			     const struct operation *operation, unsigned from,
			     uint32_t size)
{
	uint64_t value = 0;

	if (from < REGISTER_VECTOR)
		return truncate(machine->registers[from], size);
	if (from == PLACE_MEMORY) {
		read_memory(machine, operation, size, (unsigned char *)&value);
		return value;
	}
	if (from == PLACE_IMMEDIATE)
		return truncate((uint64_t)operation->immediate, size);
	if (from >= REGISTER_HIGH && from < REGISTER_HIGH + 4)
		return machine->registers[from - REGISTER_HIGH] >> 8 & 0xff;
	return 0;
}

/* A write of 32 bits clears the upper half; smaller writes keep the rest. */
static bool write_integer(struct decode_machine *machine,
			  const struct operation *operation, uint64_t value)
{
	unsigned to = operation->to;
	uint32_t size = operation->size;

	if (to == PLACE_MEMORY)
		return write_memory(machine, operation, size,
				    (const unsigned char *)&value);
	if (to >= REGISTER_HIGH && to < REGISTER_HIGH + 4) {
		to -= REGISTER_HIGH;
		machine->registers[to] &= ~0xff00ull;
		machine->registers[to] |= (value & 0xff) << 8;
	} else if (to < REGISTER_KEPT && size >= 4) {
		machine->registers[to] = truncate(value, size);
	} else if (to < REGISTER_KEPT) {
		machine->registers[to] -= truncate(machine->registers[to],
						   size);
		machine->registers[to] |= truncate(value, size);
	}
	return true;
}

static bool is_true(uint64_t flags, unsigned condition)
{
	bool carry = flags & 1, parity = flags & 4, zero = flags & 0x40,
	     sign = flags & 0x80, overflow = flags & 0x800, is;

	switch (condition / 2) {
	case 0: is = overflow; break;
	case 1: is = carry; break;
	case 2: is = zero; break;
	case 3: is = carry || zero; break;
	case 4: is = sign; break;
	case 5: is = parity; break;
	case 6: is = sign != overflow; break;
	default: is = zero || sign != overflow;
	}
	return is != (condition & 1);
}

static bool compute_integer(struct decode_machine *machine,
			    const struct operation *operation)
{
	struct operands *operands = &machine->operands;

	operands->first = read_integer(machine, operation, operation->first,
				       operation->size);
	operands->second = read_integer(machine, operation, operation->second,
					operation->from_size);
	if (operation->tests_flags || operation->keeps_flags) {
		operands->flags = machine->flags;
		operation_integer_flags(operation->number, operands);
	} else {
		operation_integer(operation->number, operands);
	}
	if (operation->sets_flags)
		machine->flags = operands->flags & FLAGS;
	return operation->to == PLACE_NONE ||
	       write_integer(machine, operation, operands->first);
}

/* Whether the division might raise an exception, which the program must not see. */
static bool divides_badly(const struct operands *operands, uint32_t size,
			  bool is_signed)
{
	uint64_t low = truncate(operands->first, size),
		 high = truncate(operands->pair, size),
		 by = truncate(operands->second, size);

	if (by == 0 || size == 1)
		return true;
	if (!is_signed)
		return high >= by;
	/* Accepts only a sign-extended dividend, and a divisor other than -1. */
	return high != truncate((uint64_t)((int64_t)sign_extend(low, size) >>
					   63),
				size) ||
	       sign_extend(by, size) == UINT64_MAX;
}

static bool compute_pair(struct decode_machine *machine,
			 const struct operation *operation)
{
	struct operands *operands = &machine->operands;

	operands->first = machine->registers[0];
	operands->pair = machine->registers[2];
	operands->second = read_integer(machine, operation, operation->second,
					operation->size);
	if (operation->immediate &&
	    divides_badly(operands, operation->size, operation->immediate == 2))
		return false;
	operation_integer(operation->number, operands);
	machine->flags = operands->flags & FLAGS;
	machine->registers[0] = operands->first;
	if (operation->size > 1)
		machine->registers[2] = operands->pair;
	return true;
}

/* --- vectors --- */

static unsigned char *vector(struct decode_machine *machine, unsigned number)
{
	return machine->vectors[(number - REGISTER_VECTOR) & 15];
}

static bool is_vector(unsigned number)
{
	return number >= REGISTER_VECTOR && number < REGISTER_VECTOR + 16;
}

static void read_vector(struct decode_machine *machine,
			const struct operation *operation, unsigned from,
			uint32_t size, unsigned char *bytes)
{
	uint64_t value;

	if (from == PLACE_MEMORY) {
		read_memory(machine, operation, size, bytes);
	} else if (is_vector(from)) {
		copy_bytes(bytes,
			   vector(machine, from) + operation->from_offset,
			   size);
	} else if (from < REGISTER_VECTOR || from == PLACE_IMMEDIATE) {
		value = read_integer(machine, operation, from, 8);
		clear_bytes(bytes, size);
		copy_bytes(bytes, (const unsigned char *)&value,
			   size < 8 ? size : 8);
	}
}

static bool write_vector(struct decode_machine *machine,
			 const struct operation *operation,
			 const unsigned char *bytes)
{
	uint32_t size = operation->size, offset = operation->to_offset;
	uint64_t value = 0;
	unsigned char *to;

	if (operation->to == PLACE_MEMORY)
		return write_memory(machine, operation, size, bytes);
	if (!is_vector(operation->to)) {
		copy_bytes((unsigned char *)&value, bytes, size < 8 ? size : 8);
		machine->registers[operation->to] = value;
		return true;
	}
	to = vector(machine, operation->to);
	copy_bytes(to + offset, bytes, size);
	for (uint32_t i = 0; i < operation->cleared; i++)
		if (i < offset || i >= offset + size)
			to[i] = 0;
	return true;
}

static bool move_vector(struct decode_machine *machine,
			const struct operation *operation)
{
	unsigned char bytes[32];

	read_vector(machine, operation, operation->second, operation->size,
		    bytes);
	return write_vector(machine, operation, bytes);
}

static void broadcast_vector(struct decode_machine *machine,
			     const struct operation *operation)
{
	unsigned char bytes[32], *to = vector(machine, operation->to);

	read_vector(machine, operation, operation->second, operation->size,
		    bytes);
	clear_bytes(to, 32);
	for (uint32_t i = 0; i < operation->width; i++)
		to[i] = bytes[i % operation->size];
}

/* Takes two dwords of the first and two of the second, in each half of 16 bytes. */
static void shuffle_vector(struct decode_machine *machine,
			   const struct operation *operation)
{
	unsigned char first[32], second[32], *to;

	read_vector(machine, operation, operation->first, operation->width,
		    first);
	read_vector(machine, operation, operation->second, operation->width,
		    second);
	to = vector(machine, operation->to);
	for (unsigned i = 0; i < operation->width / 4; i++) {
		const unsigned char *from = i % 4 < 2 ? first : second;
		unsigned which = (unsigned)operation->immediate >> i % 4 * 2 &
				 3;

		copy_bytes(to + i * 4, from + i / 4 * 16 + which * 4, 4);
	}
	if (operation->cleared > operation->width)
		clear_bytes(to + operation->width,
			    (uint32_t)operation->cleared - operation->width);
}

static void compute_vector(struct decode_machine *machine,
			   const struct operation *operation)
{
	struct operands *operands = &machine->operands;
	unsigned char *to = vector(machine, operation->to);

	if (operation->first != PLACE_NONE)
		read_vector(machine, operation, operation->first,
			    operation->width, operands->a);
	read_vector(machine, operation, operation->second, operation->from_size,
		    operands->b);
	if (operation->third != PLACE_NONE)
		read_vector(machine, operation, operation->third,
			    operation->from_size, operands->c);
	if (operation->width == 32)
		operation_vector_wide(operation->number, operands);
	else
		operation_vector(operation->number, operands);
	copy_bytes(to, operands->a, operation->width);
	if (operation->cleared > operation->width)
		clear_bytes(to + operation->width,
			    (uint32_t)operation->cleared - operation->width);
}

static void convert_from_integer(struct decode_machine *machine,
				 const struct operation *operation)
{
	struct operands *operands = &machine->operands;
	unsigned char *to = vector(machine, operation->to);

	read_vector(machine, operation, operation->first, 16, operands->a);
	operands->second = read_integer(machine, operation, operation->second,
					operation->from_size);
	operation_vector(operation->number, operands);
	copy_bytes(to, operands->a, 16);
	if (operation->cleared > 16)
		clear_bytes(to + 16, 16);
}

static bool convert_to_integer(struct decode_machine *machine,
			       const struct operation *operation)
{
	struct operands *operands = &machine->operands;

	read_vector(machine, operation, operation->second, operation->from_size,
		    operands->b);
	operation_vector(operation->number, operands);
	return write_integer(machine, operation, operands->first);
}

static void compare_scalars(struct decode_machine *machine,
			    const struct operation *operation)
{
	struct operands *operands = &machine->operands;

	read_vector(machine, operation, operation->first, 16, operands->a);
	read_vector(machine, operation, operation->second, operation->from_size,
		    operands->b);
	operation_vector(operation->number, operands);
	machine->flags = operands->flags & FLAGS;
}

/* --- long doubles --- */

static unsigned char *long_at(struct decode_machine *machine, int64_t depth)
{
	if (depth < 0 || depth >= machine->long_count)
		return NULL;
	return machine->longs[machine->long_count - 1 - (uint32_t)depth];
}

/* operations.S: operation_extend */
static uint32_t form_of(const struct operation *operation)
{
	return operation->number;
}

static bool push_long(struct decode_machine *machine,
		      const struct operation *operation)
{
	struct operands *operands = &machine->operands;
	unsigned char *to;

	if (machine->long_count == LONGS_MAX)
		return false;
	to = machine->longs[machine->long_count++];
	clear_bytes(to, 16);
	if (operation->second == PLACE_IMMEDIATE) { /* 0 or 1 */
		if (operation->immediate) {
			to[7] = 0x80;
			to[8] = 0xff;
			to[9] = 0x3f;
		}
		return true;
	}
	if (operation->size == 10) {
		read_memory(machine, operation, 10, to);
		return true;
	}
	read_memory(machine, operation, operation->size, operands->b);
	operation_extend(form_of(operation), operands);
	copy_bytes(to, operands->a, 10);
	return true;
}

static bool copy_long(struct decode_machine *machine,
		      const struct operation *operation)
{
	const unsigned char *from = long_at(machine, operation->immediate);

	if (!from || machine->long_count == LONGS_MAX)
		return false;
	copy_bytes(machine->longs[machine->long_count++], from, 16);
	return true;
}

/* Removes the top if @width is set. */
static bool pop_long(struct decode_machine *machine,
		     const struct operation *operation)
{
	struct operands *operands = &machine->operands;
	unsigned char *top = long_at(machine, 0), *to;
	bool done = true;

	if (!top)
		return false;
	if (operation->to == PLACE_NONE) {
		to = long_at(machine, operation->immediate);
		if (!to)
			return false;
		copy_bytes(to, top, 16);
	} else if (operation->size == 10) {
		done = write_memory(machine, operation, 10, top);
	} else {
		copy_bytes(operands->a, top, 10);
		operation_narrow(form_of(operation), operands);
		done = write_memory(machine, operation, operation->size,
				    operands->b);
	}
	machine->long_count -= operation->width;
	return done;
}

static bool exchange_longs(struct decode_machine *machine,
			   const struct operation *operation)
{
	unsigned char *a = long_at(machine, 0),
		      *b = long_at(machine, operation->immediate), kept[16];

	if (!a || !b)
		return false;
	copy_bytes(kept, a, 16);
	copy_bytes(a, b, 16);
	copy_bytes(b, kept, 16);
	return true;
}

/* The first and the second are depths, or memory; the result replaces @to. */
static bool compute_long(struct decode_machine *machine,
			 const struct operation *operation)
{
	struct operands *operands = &machine->operands;
	unsigned char *first = long_at(machine, operation->first), *second,
		      *to = long_at(machine, operation->to);

	if (!first || !to)
		return false;
	if (operation->second == PLACE_MEMORY) {
		read_memory(machine, operation, operation->size, operands->b);
		operation_extend((uint32_t)operation->immediate, operands);
		copy_bytes(operands->b, operands->a, 10);
	} else {
		second = long_at(machine, operation->second);
		if (!second)
			return false;
		copy_bytes(operands->b, second, 10);
	}
	copy_bytes(operands->a, first, 10);
	operation_long_double(operation->number, operands);
	copy_bytes(to, operands->a, 10);
	machine->long_count -= operation->width;
	return true;
}

/* --- running --- */

static bool execute(struct decode_machine *machine,
		    const struct operation *operation)
{
	uint64_t value;

	switch (operation->code) {
	case OPERATION_MOVE:
		return write_integer(machine, operation,
				     read_integer(machine, operation,
						  operation->second,
						  operation->from_size));
	case OPERATION_MOVE_SIGNED:
		value = read_integer(machine, operation, operation->second,
				     operation->from_size);
		return write_integer(machine, operation,
				     sign_extend(value, operation->from_size));
	case OPERATION_ADDRESS:
		return write_integer(machine, operation,
				     address_of(machine, operation));
	case OPERATION_SIGN:
		value = sign_extend(machine->registers[operation->second],
				    operation->size);
		return write_integer(machine, operation,
				     (uint64_t)((int64_t)value >> 63));
	case OPERATION_INTEGER: return compute_integer(machine, operation);
	case OPERATION_PAIR: return compute_pair(machine, operation);
	case OPERATION_SET:
		return write_integer(
			machine, operation,
			is_true(machine->flags, operation->condition));
	case OPERATION_SELECT:
		value = read_integer(machine, operation, operation->second,
				     operation->size);
		if (!is_true(machine->flags, operation->condition))
			value = read_integer(machine, operation,
					     operation->first, operation->size);
		return write_integer(machine, operation, value);
	case OPERATION_VECTOR_MOVE: return move_vector(machine, operation);
	case OPERATION_BROADCAST:
		broadcast_vector(machine, operation);
		return true;
	case OPERATION_SHUFFLE: shuffle_vector(machine, operation); return true;
	case OPERATION_VECTOR: compute_vector(machine, operation); return true;
	case OPERATION_FROM_INTEGER:
		convert_from_integer(machine, operation);
		return true;
	case OPERATION_TO_INTEGER:
		return convert_to_integer(machine, operation);
	case OPERATION_COMPARE:
		compare_scalars(machine, operation);
		return true;
	case OPERATION_LONG_PUSH: return push_long(machine, operation);
	case OPERATION_LONG_COPY: return copy_long(machine, operation);
	case OPERATION_LONG_POP: return pop_long(machine, operation);
	case OPERATION_LONG_EXCHANGE: return exchange_longs(machine, operation);
	case OPERATION_LONG: return compute_long(machine, operation);
	default: return true;
	}
}

/* Returns the operation at the end of the path, or NULL with *@reason. */
static const struct operation *execute_path(const struct decode_recipe *recipe,
					    struct decode_machine *machine,
					    enum shim_unavailable *reason)
{
	const struct operation *at = recipe->operations;

	for (unsigned steps = 0; steps < STEPS_MAX; steps++) {
		switch (at->code) {
		case OPERATION_RETURN: return at;
		case OPERATION_STOP: *reason = at->reason; return NULL;
		case OPERATION_JUMP:
			at = &recipe->operations[at->target];
			continue;
		case OPERATION_BRANCH:
			if (!is_true(machine->flags, at->condition))
				break;
			at = &recipe->operations[at->target];
			continue;
		case OPERATION_GUARD:
			if (!is_true(machine->flags, at->condition))
				break;
			*reason = SHIM_UNAVAILABLE_NOT_RETURNED;
			return NULL;
		default:
			if (execute(machine, at))
				break;
			*reason = SHIM_UNAVAILABLE_CODE;
			return NULL;
		}
		at++;
	}
	*reason = SHIM_UNAVAILABLE_CODE;
	return NULL;
}

/* Whether the program still has to write this memory, so that the memory lacks the
 * value. */
static bool is_written(const struct decode_machine *machine, uintptr_t address,
		       uint32_t size)
{
	for (uint32_t i = 0; i < machine->store_count; i++)
		if (machine->stores[i].address < address + size &&
		    address < machine->stores[i].address +
				      machine->stores[i].size)
			return true;
	return false;
}

static void store_result(const struct decode_recipe *recipe,
			 struct decode_machine *machine)
{
	unsigned integers = 0, vectors = 0;

	if (recipe->is_whole) {
		copy_bytes(machine->result, machine->vectors[0],
			   recipe->result_size);
		return;
	}
	if (recipe->is_split) {
		copy_bytes(machine->result, machine->vectors[0], 16);
		copy_bytes(machine->result + 16, machine->vectors[1], 16);
		return;
	}
	for (uint32_t i = 0; i < 2 && recipe->classes[i]; i++) {
		const void *from = recipe->classes[i] == PROTOTYPE_INTEGER ?
					   (const void *)&machine
						   ->registers[integers++ * 2] :
					   (const void *)
						   machine->vectors[vectors++];

		copy_bytes(machine->result + i * 8, from, 8);
	}
}

static bool store_longs(const struct decode_recipe *recipe,
			struct decode_machine *machine)
{
	if (machine->long_count != recipe->long_count)
		return false;
	for (uint32_t i = 0; i < recipe->long_count; i++)
		copy_bytes(machine->result + i * 16, long_at(machine, i), 16);
	return true;
}

enum shim_unavailable decode_run(const struct decode_recipe *recipe,
				 struct decode_machine *machine, uintptr_t site,
				 uintptr_t *start)
{
	enum shim_unavailable reason = SHIM_UNAVAILABLE_CODE;
	const struct operation *end;
	uint64_t at = 0;

	*start = 0;
	machine->store_count = machine->long_count = 0;
	if (recipe->copies)
		copy_bytes((unsigned char *)machine->registers,
			   (const unsigned char *)&machine
				   ->registers[REGISTER_KEPT],
			   16 * 8);
	end = execute_path(recipe, machine, &reason);
	if (!end)
		return reason;
	/* A `ret` that does not return to the call site of the function belongs to
	 * another function. */
	read_memory(machine, end, 8, (unsigned char *)&at);
	if (at != site)
		return SHIM_UNAVAILABLE_INLINED;
	*start = (uintptr_t)machine->result;
	if (recipe->is_address) {
		*start = machine->registers[0];
		if (is_written(machine, *start, recipe->result_size))
			*start = 0;
	} else if (recipe->long_count) {
		if (!store_longs(recipe, machine))
			*start = 0;
	} else {
		store_result(recipe, machine);
	}
	return *start ? SHIM_AVAILABLE : SHIM_UNAVAILABLE_CODE;
}
