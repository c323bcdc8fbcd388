/*
 * Finds the locations of variables.  A location is an expression, or a list of
 * expressions for parts of the code.  This file translates each expression to steps,
 * which libshim.so evaluates without DWARF.  It inserts the frame base, and refuses
 * caller-saved registers.
 *
 * With optimization, only locations that follow a value are trusted.  For an object in
 * memory, the compiler gives the address but omits stores that no code reads; at the
 * end of a function, no code reads them.  gcc has lists only for values; clang also has
 * lists for objects and for halves of values.
 */
#include "inspect/debuginfo/locals.h"

#include "inspect/debuginfo/attributes.h"

#include <dwarf.h>
#include <shim/values.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64
#define STEPS_MAX 4096
#define TEXT_MAX  32768

/* --- the answer under construction --- */

static struct variable variables[VARIABLES_MAX];
static struct variable_step steps[STEPS_MAX];
static char text[TEXT_MAX];
static uint32_t variable_count, step_count, text_size;
static bool is_too_much;

/* Aligned to 8 bytes. */
static uint64_t answer[(sizeof(struct variables) + sizeof(variables) +
			sizeof(steps) + sizeof(text)) /
			       sizeof(uint64_t) +
		       1];

static void add_step(enum variable_step_kind kind, unsigned number,
		     int64_t value)
{
	if (step_count == STEPS_MAX) {
		is_too_much = true;
		return;
	}
	steps[step_count++] = (struct variable_step){
		.kind = (uint8_t)kind,
		.number = (uint8_t)number,
		.value = value,
	};
}

static uint32_t add_text(const char *name)
{
	size_t size = strlen(name) + 1;
	uint32_t at = text_size;

	if (size > TEXT_MAX - text_size) {
		is_too_much = true;
		return 0;
	}
	memcpy(text + at, name, size);
	text_size += (uint32_t)size;
	return at;
}

/* The names come last, because steps need an alignment of 8 bytes. */
static struct variables *build_answer(uint32_t parameter_count)
{
	struct variables *of = (struct variables *)answer;
	uint32_t at = (uint32_t)(sizeof(*of) +
				 variable_count * sizeof(variables[0]));

	at = (at + 7) / 8 * 8;
	of->steps = at;
	memcpy((char *)of + at, steps, step_count * sizeof(steps[0]));
	at += (uint32_t)(step_count * sizeof(steps[0]));
	for (uint32_t i = 0; i < variable_count; i++) {
		of->variables[i] = variables[i];
		of->variables[i].name += at;
	}
	memcpy((char *)of + at, text, text_size);
	of->size = at + text_size;
	of->parameter_count = parameter_count;
	of->count = variable_count;
	return of;
}

/* --- expressions --- */

struct function {
	Dwarf_Die *die;
	Dwarf_Die written; /* the function as in the source, perhaps itself */
	bool is_copy;
	uint64_t place;
	Dwarf_CFI *frames;
	bool is_covered; /* its own code contains @place, not that of an outer function */
	bool is_optimized; /* its objects in memory may be out of date */
	bool is_followed;  /* values are described as they change */
	bool is_by_gcc;	   /* its lists also describe values in memory */
};

enum found_kind { IN_MEMORY, A_NUMBER, BYTES };

/* The translation of one expression so far. */
struct found {
	const struct function *function;
	Dwarf_Attribute *attribute;
	uint32_t size; /* of the variable */
	uint32_t taken;
	enum found_kind kind;
	bool has_steps; /* there are steps for the next part */
	bool is_static;
	bool reads_memory;
	enum shim_unavailable reason;
};

static bool refuse(struct found *found, enum shim_unavailable reason)
{
	found->reason = reason;
	return false;
}

/* The processor's number for DWARF's number of a callee-saved register; -1 for other
 * registers. */
static int saved_register_number(unsigned number)
{
#ifdef __x86_64__
	switch (number) {
	case 3: return 3;
	case 6: return 5;
	case 7: return VARIABLE_SP;
	case 12:
	case 13:
	case 14:
	case 15: return (int)number;
	}
#endif
	(void)number;
	return -1;
}

static bool add_register(struct found *found, Dwarf_Word number, int64_t offset)
{
	int kept = number < 17 ? saved_register_number((unsigned)number) : -1;

	if (kept < 0)
		return refuse(found, SHIM_UNAVAILABLE_CLOBBERED);
	add_step(VARIABLE_REGISTER, (unsigned)kept, offset);
	return true;
}

static void add_number(int64_t number)
{
	struct variable_step *last = &steps[step_count - 1];

	if (step_count > 0 && (last->kind == VARIABLE_REGISTER ||
			       last->kind == VARIABLE_ADDRESS)) {
		last->value += number;
		return;
	}
	add_step(VARIABLE_NUMBER, 0, number);
	add_step(VARIABLE_ADD, 0, 0);
}

static bool translate(struct found *found, const Dwarf_Op *ops, size_t count,
		      unsigned depth);

/* The caller's stack pointer (CFA), by the unwind rule. */
static bool add_caller_sp(struct found *found, unsigned depth)
{
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t count;
	bool is_done;

	if (!found->function->frames ||
	    dwarf_cfi_addrframe(found->function->frames, found->function->place,
				&frame) != 0)
		return refuse(found, SHIM_UNAVAILABLE_CODE);
	is_done = dwarf_frame_cfa(frame, &ops, &count) == 0 && count > 0 ?
			  translate(found, ops, count, depth + 1) :
			  refuse(found, SHIM_UNAVAILABLE_CODE);
	free(frame);
	return is_done;
}

static bool add_frame_base(struct found *found, unsigned depth)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;

	if (!dwarf_attr_integrate(found->function->die, DW_AT_frame_base,
				  &attribute) ||
	    dwarf_getlocation_addr(&attribute, found->function->place, &ops,
				   &count, 1) != 1)
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	/* The register contains the frame base. */
	if (count == 1 && ops[0].atom >= DW_OP_reg0 &&
	    ops[0].atom <= DW_OP_reg31)
		return add_register(found, ops[0].atom - DW_OP_reg0, 0);
	return translate(found, ops, count, depth + 1);
}

/* Adds a constant of @size bytes. */
static bool add_bytes(struct found *found, const unsigned char *bytes,
		      size_t size)
{
	if (size == 0 || size > 256)
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	for (size_t at = 0; at < size; at += 8) {
		size_t part = size - at < 8 ? size - at : 8;
		int64_t number = 0;

		memcpy(&number, bytes + at, part);
		add_step(VARIABLE_NUMBER, 0, number);
		add_step(VARIABLE_TAKE_NUMBER, 0, (int64_t)part);
	}
	found->taken += (uint32_t)size;
	found->kind = BYTES;
	return true;
}

/* Uses the steps so far for the next @size bytes of the variable. */
static bool take_steps(struct found *found, uint64_t size)
{
	if (found->kind == BYTES) {
		found->kind = IN_MEMORY;
		found->has_steps = false;
		return true;
	}
	/* The part has no location. */
	if (!found->has_steps)
		return refuse(found, SHIM_UNAVAILABLE_OPTIMIZED_OUT);
	if (size > found->size - found->taken ||
	    (found->kind == A_NUMBER && size > 8))
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	found->reads_memory |= found->kind == IN_MEMORY;
	found->is_static &= found->kind == IN_MEMORY;
	add_step(found->kind == A_NUMBER ? VARIABLE_TAKE_NUMBER :
					   VARIABLE_TAKE_MEMORY,
		 0, (int64_t)size);
	found->taken += (uint32_t)size;
	found->kind = IN_MEMORY;
	found->has_steps = false;
	return true;
}

static bool add_address(struct found *found, const Dwarf_Op *op)
{
	Dwarf_Attribute attribute;
	Dwarf_Addr address = op->number;

	if (op->atom != DW_OP_addr &&
	    (dwarf_getlocation_attr(found->attribute, op, &attribute) != 0 ||
	     dwarf_formaddr(&attribute, &address) != 0))
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	found->is_static = true;
	add_step(VARIABLE_ADDRESS, 0, (int64_t)address);
	return true;
}

static bool add_implicit(struct found *found, const Dwarf_Op *op)
{
	Dwarf_Block block;

	if (dwarf_getlocation_implicit_value(found->attribute, op, &block) != 0)
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	return add_bytes(found, block.data, block.length);
}

/* Operations that translate one to one. */
static const struct {
	uint8_t atom, kind;
} plain[] = {
	{ DW_OP_drop, VARIABLE_DROP },
	{ DW_OP_swap, VARIABLE_SWAP },
	{ DW_OP_neg, VARIABLE_NEGATE },
	{ DW_OP_not, VARIABLE_INVERT },
	{ DW_OP_plus, VARIABLE_ADD },
	{ DW_OP_minus, VARIABLE_SUBTRACT },
	{ DW_OP_mul, VARIABLE_MULTIPLY },
	{ DW_OP_and, VARIABLE_AND },
	{ DW_OP_or, VARIABLE_OR },
	{ DW_OP_xor, VARIABLE_XOR },
	{ DW_OP_shl, VARIABLE_SHIFT_LEFT },
	{ DW_OP_shr, VARIABLE_SHIFT_RIGHT },
	{ DW_OP_shra, VARIABLE_SHIFT_SIGNED },
};

static bool add_plain(struct found *found, const Dwarf_Op *op)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (plain[i].atom != op->atom)
			continue;
		add_step(plain[i].kind, 0, 0);
		return true;
	}
	return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
}

static bool translate_one(struct found *found, const Dwarf_Op *op,
			  unsigned depth)
{
	switch (op->atom) {
	case DW_OP_lit0 ... DW_OP_lit31:
		add_step(VARIABLE_NUMBER, 0, op->atom - DW_OP_lit0);
		return true;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		add_step(VARIABLE_NUMBER, 0, (int64_t)op->number);
		return true;
	case DW_OP_reg0 ... DW_OP_reg31:
		found->kind = A_NUMBER;
		return add_register(found, op->atom - DW_OP_reg0, 0);
	case DW_OP_regx:
		found->kind = A_NUMBER;
		return add_register(found, op->number, 0);
	case DW_OP_breg0 ... DW_OP_breg31:
		return add_register(found, op->atom - DW_OP_breg0,
				    (int64_t)op->number);
	case DW_OP_bregx:
		return add_register(found, op->number, (int64_t)op->number2);
	case DW_OP_fbreg:
		if (!add_frame_base(found, depth))
			return false;
		add_number((int64_t)op->number);
		return true;
	case DW_OP_call_frame_cfa: return add_caller_sp(found, depth);
	case DW_OP_plus_uconst: add_number((int64_t)op->number); return true;
	case DW_OP_addr:
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index: return add_address(found, op);
	case DW_OP_deref:
		found->reads_memory = true;
		add_step(VARIABLE_LOAD, 8, 0);
		return true;
	case DW_OP_deref_size:
		found->reads_memory = true;
		add_step(VARIABLE_LOAD, (unsigned)op->number, 0);
		return op->number <= 8 ||
		       refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	case DW_OP_dup: add_step(VARIABLE_PICK, 0, 0); return true;
	case DW_OP_over: add_step(VARIABLE_PICK, 1, 0); return true;
	case DW_OP_pick:
		add_step(VARIABLE_PICK, (unsigned)op->number, 0);
		return op->number < 8 ||
		       refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	case DW_OP_nop: return true;
	case DW_OP_stack_value: found->kind = A_NUMBER; return true;
	case DW_OP_implicit_value: return add_implicit(found, op);
	/* These depend on a value at the entry, which is lost. */
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		return refuse(found, SHIM_UNAVAILABLE_CLOBBERED);
	/* These are pointers to objects that were optimized out. */
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		return refuse(found, SHIM_UNAVAILABLE_OPTIMIZED_OUT);
	default: return add_plain(found, op);
	}
}

static bool translate(struct found *found, const Dwarf_Op *ops, size_t count,
		      unsigned depth)
{
	if (depth > 3)
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	for (size_t i = 0; i < count; i++) {
		if (ops[i].atom == DW_OP_piece) {
			if (!take_steps(found, ops[i].number))
				return false;
			continue;
		}
		/* The operation that gives the kind must be the last. */
		if (found->kind != IN_MEMORY)
			return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
		if (!translate_one(found, &ops[i], depth))
			return false;
		found->has_steps = true;
	}
	return true;
}

/* --- one variable --- */

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		       dwarf_attr_integrate(die, DW_AT_type, &attribute),
		       type) &&
	       dwarf_peel_type(type, type) == 0;
}

/* The size of the variable; 0 if unknown, or only known when the program runs. */
static uint32_t size_of(Dwarf_Die *die)
{
	Dwarf_Die type, of;
	Dwarf_Word size;

	if (!type_of(die, &type))
		return 0;
	/* libdw returns the size of a pointer for each pointer to a member. */
	of = type;
	for (unsigned i = 0;
	     i < DEPTH_MAX && dwarf_tag(&of) == DW_TAG_array_type; i++)
		if (!type_of(&of, &of))
			return 0;
	if (dwarf_tag(&of) == DW_TAG_ptr_to_member_type) {
		if (dwarf_tag(&type) == DW_TAG_array_type ||
		    !type_of(&type, &of))
			return 0;
		return dwarf_tag(&of) == DW_TAG_subroutine_type ? 16 : 8;
	}
	return dwarf_aggregate_size(&type, &size) == 0 && size <= UINT32_MAX ?
		       (uint32_t)size :
		       0;
}

static unsigned bytes_of(unsigned form)
{
	switch (form) {
	case DW_FORM_data1: return 1;
	case DW_FORM_data2: return 2;
	case DW_FORM_data4: return 4;
	default: return 8;
	}
}

static bool add_constant(struct found *found, Dwarf_Attribute *attribute)
{
	unsigned form = dwarf_whatform(attribute);
	Dwarf_Word word = 0;
	Dwarf_Sword number = 0;
	Dwarf_Block block;

	if (dwarf_formblock(attribute, &block) == 0)
		return block.length == found->size ?
			       add_bytes(found, block.data, block.length) :
			       refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	if (form == DW_FORM_sdata ? dwarf_formsdata(attribute, &number) != 0 :
				    dwarf_formudata(attribute, &word) != 0)
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	if (form != DW_FORM_sdata)
		number = (Dwarf_Sword)word;
	/* A constant shorter than the variable may be signed or unsigned. */
	if (found->size > 8 ||
	    (form != DW_FORM_sdata && form != DW_FORM_udata &&
	     bytes_of(form) < found->size &&
	     (word >> (bytes_of(form) * 8 - 1) & 1)))
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	return add_bytes(found, (const unsigned char *)&number, found->size);
}

/* Whether @attribute is an expression without a list, which is valid in the whole
 * scope. */
static bool is_for_whole_scope(Dwarf_Attribute *attribute)
{
	unsigned form = dwarf_whatform(attribute);

	return form == DW_FORM_exprloc || form == DW_FORM_block1 ||
	       form == DW_FORM_block2 || form == DW_FORM_block4 ||
	       form == DW_FORM_block;
}

static bool find_location(struct found *found, Dwarf_Die *die)
{
	const struct function *function = found->function;
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t count;
	int places;

	found->attribute = &attribute;
	if (found->size == 0)
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	if (dwarf_attr_integrate(die, DW_AT_const_value, &attribute))
		return add_constant(found, &attribute);
	if (!dwarf_attr_integrate(die, DW_AT_location, &attribute))
		return refuse(found, SHIM_UNAVAILABLE_OPTIMIZED_OUT);
	places = dwarf_getlocation_addr(&attribute, function->place, &ops,
					&count, 1);
	if (places < 0)
		return refuse(found, SHIM_UNAVAILABLE_NOT_UNDERSTOOD);
	if (places == 0 || count == 0)
		return refuse(found, SHIM_UNAVAILABLE_OPTIMIZED_OUT);
	if (!translate(found, ops, count, 0))
		return false;
	if (found->taken == 0 && !take_steps(found, found->size))
		return false;
	if (found->taken != found->size)
		return refuse(found, SHIM_UNAVAILABLE_OPTIMIZED_OUT);
	if (found->is_static)
		return true;
	if (function->is_optimized &&
	    (!function->is_followed ||
	     (found->reads_memory &&
	      (!function->is_by_gcc || is_for_whole_scope(&attribute)))))
		return refuse(found, SHIM_UNAVAILABLE_OPTIMIZED_OUT);
	return true;
}

static void add_variable(const struct function *function, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	struct found found = { .function = function, .size = size_of(die) };
	struct variable *variable;
	uint32_t before = step_count;

	if (variable_count == VARIABLES_MAX) {
		is_too_much = true;
		return;
	}
	find_location(&found, die);
	/* The function was inlined, so the location is in another frame. */
	if (!function->is_covered &&
	    (found.reason != SHIM_AVAILABLE || !found.is_static))
		found.reason = SHIM_UNAVAILABLE_INLINED;
	if (found.reason != SHIM_AVAILABLE)
		step_count = before;
	variable = &variables[variable_count++];
	*variable = (struct variable){
		.name = add_text(name ? name : ""),
		.size = found.size,
		.step = before,
		.step_count = step_count - before,
		.reason = (uint8_t)found.reason,
		.is_static = found.is_static,
	};
	if (dwarf_tag(die) == DW_TAG_formal_parameter &&
	    has_flag(die, DW_AT_artificial)) {
		variable->is_this = name && (strcmp(name, "this") == 0 ||
					     strcmp(name, "__closure") == 0);
		variable->is_hidden = !variable->is_this;
	}
}

/* --- selecting the variables --- */

static bool find_origin(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;

	return dwarf_formref_die(
		dwarf_attr(die, DW_AT_abstract_origin, &attribute), origin);
}

/* Finds the variable of @function that is a copy of @variable, which belongs to the
 * function as in the source. */
static bool find_copy(Dwarf_Die *function, Dwarf_Die *variable, Dwarf_Die *copy)
{
	Dwarf_Die child, origin;

	if (dwarf_child(function, &child) != 0)
		return false;
	do {
		if (dwarf_tag(&child) == dwarf_tag(variable) &&
		    find_origin(&child, &origin) &&
		    dwarf_dieoffset(&origin) == dwarf_dieoffset(variable)) {
			*copy = child;
			return true;
		}
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static bool is_declared(Dwarf_Die *die)
{
	return dwarf_tag(die) == DW_TAG_variable &&
	       !has_flag(die, DW_AT_artificial) &&
	       !has_flag(die, DW_AT_declaration);
}

/* Adds all variables or parameters of the function as in the source, which may have a
 * DIE separate from its copies.  Adds parameters in the order of prototype.c, and
 * variables; copies do not repeat static variables. */
static void add_written(const struct function *function, int tag)
{
	Dwarf_Die child, copy;

	if (dwarf_child((Dwarf_Die *)&function->written, &child) != 0)
		return;
	do {
		if (dwarf_tag(&child) != tag ||
		    (tag == DW_TAG_variable && !is_declared(&child)))
			continue;
		if (function->is_copy &&
		    find_copy(function->die, &child, &copy))
			add_variable(function, &copy);
		else
			add_variable(function, &child);
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* Whether add_written adds the variable. */
static bool is_written(const struct function *function, Dwarf_Die *die)
{
	Dwarf_Die child, origin;

	if (!function->is_copy)
		return true;
	if (!find_origin(die, &origin) ||
	    dwarf_child((Dwarf_Die *)&function->written, &child) != 0)
		return false;
	do {
		if (dwarf_dieoffset(&child) == dwarf_dieoffset(&origin))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

static void add_locals(const struct function *function, Dwarf_Die *scope,
		       unsigned depth)
{
	Dwarf_Die child;

	if (depth > DEPTH_MAX || dwarf_child(scope, &child) != 0)
		return;
	do {
		if (is_declared(&child) &&
		    (depth > 0 || !is_written(function, &child)))
			add_variable(function, &child);
		else if (dwarf_tag(&child) == DW_TAG_lexical_block &&
			 dwarf_haspc(&child, function->place) > 0)
			add_locals(function, &child, depth + 1);
	} while (dwarf_siblingof(&child, &child) == 0);
}

/* --- functions --- */

static void read_compiler(struct function *function)
{
	const char *producer = read_producer(function->die);
	const char *option = producer ? strstr(producer, " -O") : NULL;

	function->is_by_gcc = producer && strncmp(producer, "GNU ", 4) == 0;
	/* Described calls show optimization, too, because clang does not record its
	 * options. */
	function->is_followed = has_flag(function->die, DW_AT_call_all_calls) ||
				has_flag(function->die,
					 DW_AT_GNU_all_call_sites);
	function->is_optimized = function->is_followed ||
				 (option && option[3] != '0');
}

struct variables *locals_read(Dwarf_Die *die, uint64_t place, Dwarf_CFI *frames)
{
	struct function function = {
		.die = die,
		.place = place,
		.frames = frames,
		.is_covered = dwarf_haspc(die, place) > 0,
		.written = *die,
	};
	Dwarf_Die origin;
	uint32_t parameter_count;

	for (unsigned i = 0; i < 4 && find_origin(&function.written, &origin);
	     i++) {
		function.written = origin;
		function.is_copy = true;
	}
	read_compiler(&function);
	variable_count = step_count = text_size = 0;
	is_too_much = false;
	add_written(&function, DW_TAG_formal_parameter);
	parameter_count = variable_count;
	add_written(&function, DW_TAG_variable);
	add_locals(&function, die, 0);
	return is_too_much ? NULL : build_answer(parameter_count);
}
