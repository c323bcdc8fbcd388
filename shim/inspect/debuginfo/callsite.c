/*
 * Finds the values that a caller passes from its call_site_parameters: expressions of
 * callee-saved registers.  Parameters with other expressions are left out.
 *
 * Expressions read memory only in the caller's frame, as its unwind rule describes the
 * frame.  Since the call, only the first instructions of the function have run on that
 * stack.  Other threads may have written other memory.
 */
#include "inspect/debuginfo/callsite.h"

#include "inspect/debuginfo/attributes.h"
#include "inspect/debuginfo/bindings.h"

#include <dwarf.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64
#define SP	  7 /* DWARF's numbers of registers */
#define BP	  6
#define XMM0	  17

/* --- addresses --- */

static bool returns_to(Dwarf_Die *site, uint64_t address)
{
	Dwarf_Attribute attribute;
	Dwarf_Addr at;

	if (dwarf_attr(site, DW_AT_call_return_pc, &attribute) ||
	    (dwarf_tag(site) == DW_TAG_GNU_call_site &&
	     dwarf_attr(site, DW_AT_low_pc, &attribute)))
		return dwarf_formaddr(&attribute, &at) == 0 && at == address;
	return false;
}

static bool find_site(Dwarf_Die *parent, uint64_t address, unsigned depth,
		      Dwarf_Die *site)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return false;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_call_site:
		case DW_TAG_GNU_call_site:
			*site = die;
			if (returns_to(&die, address))
				return true;
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine:
			if (find_site(&die, address, depth + 1, site))
				return true;
			break;
		default: break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* --- the caller's frame --- */

struct frame {
	uint64_t bias;
	bool has_cfa;
	int cfa_register;  /* SP or BP */
	int64_t cfa;	   /* offset from that register */
	int base_register; /* the base of DW_OP_fbreg; -1: unknown */
	int64_t base;
};

/* Finds the CFA at the call: at the address before the return address. */
static void find_cfa(const struct callsite_place *place, struct frame *frame)
{
	Dwarf_CFI *tables[2] = { dwarf_getcfi_elf(place->elf),
				 dwarf_getcfi(place->dwarf) };

	for (int i = 0; i < 2 && !frame->has_cfa; i++) {
		Dwarf_Frame *found = NULL;
		Dwarf_Op *operations;
		size_t count;

		if (!tables[i] ||
		    dwarf_cfi_addrframe(tables[i], place->address - 1,
					&found) != 0)
			continue;
		if (dwarf_frame_cfa(found, &operations, &count) == 0 &&
		    count == 1 && operations[0].atom == DW_OP_bregx) {
			frame->cfa_register = (int)operations[0].number;
			frame->cfa = (int64_t)operations[0].number2;
			frame->has_cfa = frame->cfa_register == SP ||
					 frame->cfa_register == BP;
		}
		free(found);
	}
}

static void find_base(Dwarf_Die *caller, struct frame *frame)
{
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	size_t count;

	frame->base_register = -1;
	if (!dwarf_attr_integrate(caller, DW_AT_frame_base, &attribute) ||
	    dwarf_getlocation(&attribute, &operations, &count) != 0 ||
	    count != 1)
		return;
	switch (operations[0].atom) {
	case DW_OP_call_frame_cfa:
		if (!frame->has_cfa)
			return;
		frame->base_register = frame->cfa_register;
		frame->base = frame->cfa;
		return;
	case DW_OP_reg6: frame->base_register = BP; return;
	case DW_OP_reg7: frame->base_register = SP; return;
	default: return;
	}
}

/* --- expressions --- */

/* The processor's number of a callee-saved register, or -1. */
static int saved_register_number(uint64_t number)
{
	switch (number) {
	case 3: return 3;
	case BP: return 5;
	case 12:
	case 13:
	case 14:
	case 15: return (int)number;
	default: return -1;
	}
}

static bool add_step(struct callsite_value *value, unsigned operation,
		     unsigned number, int64_t constant)
{
	if (value->count == CALLSITE_STEPS_MAX)
		return false;
	value->steps[value->count++] = (struct callsite_step){
		.operation = (uint8_t)operation,
		.number = (uint8_t)number,
		.value = constant,
	};
	return true;
}

static bool add_register(struct callsite_value *value, uint64_t number,
			 int64_t offset)
{
	int kept = saved_register_number(number);

	if (number == SP)
		return add_step(value, CALLSITE_SP, 0, offset);
	return kept >= 0 &&
	       add_step(value, CALLSITE_REGISTER, (unsigned)kept, offset);
}

/* Whether the last step is an address in the caller's frame. */
static bool is_in_frame(const struct frame *frame,
			const struct callsite_value *value, uint64_t size)
{
	const struct callsite_step *last;
	bool is_sp, is_bp;

	if (!frame->has_cfa || value->count == 0 || size == 0 || size > 8)
		return false;
	last = &value->steps[value->count - 1];
	is_sp = last->operation == CALLSITE_SP;
	is_bp = last->operation == CALLSITE_REGISTER && last->number == 5;
	if (is_sp && frame->cfa_register == SP)
		return last->value >= 0 &&
		       last->value + (int64_t)size <= frame->cfa;
	/* The frame's lower end is unknown.  Slots up to a page below rbp are assumed
	 * to be in the frame. */
	return is_bp && frame->cfa_register == BP && last->value < 0 &&
	       last->value >= -4096;
}

static bool add_load(const struct frame *frame, struct callsite_value *value,
		     uint64_t size)
{
	return is_in_frame(frame, value, size) &&
	       add_step(value, CALLSITE_LOAD, (unsigned)size, 0);
}

static bool add_plain(struct callsite_value *value, const Dwarf_Op *operation)
{
	switch (operation->atom) {
	case DW_OP_plus: return add_step(value, CALLSITE_PLUS, 0, 0);
	case DW_OP_minus: return add_step(value, CALLSITE_MINUS, 0, 0);
	case DW_OP_mul: return add_step(value, CALLSITE_MULTIPLY, 0, 0);
	case DW_OP_and: return add_step(value, CALLSITE_AND, 0, 0);
	case DW_OP_or: return add_step(value, CALLSITE_OR, 0, 0);
	case DW_OP_xor: return add_step(value, CALLSITE_XOR, 0, 0);
	case DW_OP_shl: return add_step(value, CALLSITE_SHIFT_LEFT, 0, 0);
	case DW_OP_shr: return add_step(value, CALLSITE_SHIFT_RIGHT, 0, 0);
	case DW_OP_shra: return add_step(value, CALLSITE_SHIFT_SIGNED, 0, 0);
	case DW_OP_neg: return add_step(value, CALLSITE_NEGATE, 0, 0);
	case DW_OP_not: return add_step(value, CALLSITE_NOT, 0, 0);
	case DW_OP_plus_uconst:
		return add_step(value, CALLSITE_CONSTANT, 0,
				(int64_t)operation->number) &&
		       add_step(value, CALLSITE_PLUS, 0, 0);
	default: return false;
	}
}

static bool add_operation(const struct frame *frame,
			  struct callsite_value *value,
			  const Dwarf_Op *operation)
{
	unsigned atom = operation->atom;
	int64_t first = (int64_t)operation->number;

	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return add_step(value, CALLSITE_CONSTANT, 0, atom - DW_OP_lit0);
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return add_register(value, atom - DW_OP_breg0, first);
	switch (atom) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts: return add_step(value, CALLSITE_CONSTANT, 0, first);
	case DW_OP_addr:
		return add_step(value, CALLSITE_CONSTANT, 0,
				first + (int64_t)frame->bias);
	case DW_OP_bregx:
		return add_register(value, operation->number,
				    (int64_t)operation->number2);
	case DW_OP_fbreg:
		return frame->base_register >= 0 &&
		       add_register(value, (uint64_t)frame->base_register,
				    frame->base + first);
	case DW_OP_call_frame_cfa:
		return frame->has_cfa &&
		       add_register(value, (uint64_t)frame->cfa_register,
				    frame->cfa);
	case DW_OP_deref: return add_load(frame, value, 8);
	case DW_OP_deref_size: return add_load(frame, value, operation->number);
	case DW_OP_stack_value:
	case DW_OP_nop: return true;
	default: return add_plain(value, operation);
	}
}

/* Checks the depth of the stack at each step; exactly one value must remain. */
static bool is_balanced(const struct callsite_value *value)
{
	int depth = 0;

	for (unsigned i = 0; i < value->count; i++) {
		switch (value->steps[i].operation) {
		case CALLSITE_CONSTANT:
		case CALLSITE_REGISTER:
		case CALLSITE_SP: depth++; break;
		case CALLSITE_LOAD:
		case CALLSITE_NEGATE:
		case CALLSITE_NOT: break;
		default: depth--;
		}
		if (depth < 1 || depth > CALLSITE_DEPTH_MAX)
			return false;
	}
	return depth == 1;
}

static bool read_expression(const struct frame *frame,
			    Dwarf_Attribute *attribute,
			    struct callsite_value *value)
{
	Dwarf_Op *operations;
	size_t count;

	value->count = 0;
	if (dwarf_getlocation(attribute, &operations, &count) != 0)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!add_operation(frame, value, &operations[i]))
			return false;
	return is_balanced(value);
}

/* --- parameters --- */

/* The processor's number plus 1 for DWARF's numbers of rdi, rsi, rdx, rcx, r8, r9, and
 * xmm0 to xmm7; 0: no such register. */
static uint8_t entry_of(Dwarf_Die *parameter)
{
	static const uint8_t general[] = {
		[1] = 2, [2] = 1, [4] = 6, [5] = 7, [8] = 8, [9] = 9
	};
	Dwarf_Attribute attribute;
	Dwarf_Op *operations;
	uint64_t number;
	size_t count;

	if (!dwarf_attr(parameter, DW_AT_location, &attribute) ||
	    dwarf_getlocation(&attribute, &operations, &count) != 0 ||
	    count != 1)
		return 0;
	if (operations[0].atom == DW_OP_regx)
		number = operations[0].number;
	else if (operations[0].atom >= DW_OP_reg0 &&
		 operations[0].atom <= DW_OP_reg31)
		number = operations[0].atom - DW_OP_reg0;
	else
		return 0;
	if (number >= XMM0 && number < XMM0 + 8)
		return (uint8_t)(17 + number - XMM0);
	return number < sizeof(general) && general[number] ?
		       (uint8_t)(general[number] + 1) :
		       0;
}

static bool read_parameter(Dwarf_Die *parameter, const struct frame *frame,
			   struct callsite_value *value)
{
	Dwarf_Attribute attribute;

	value->entry = entry_of(parameter);
	value->size = 8;
	return value->entry != 0 &&
	       (dwarf_attr(parameter, DW_AT_call_value, &attribute) ||
		dwarf_attr(parameter, DW_AT_GNU_call_site_value, &attribute)) &&
	       read_expression(frame, &attribute, value);
}

void callsite_read(Dwarf_Die *caller, const struct callsite_place *place,
		   struct callsite *callsite)
{
	struct frame frame = { .bias = place->bias };
	Dwarf_Die site, child;

	callsite->is_loose = is_made_by_clang(caller);
	if (!find_site(caller, place->address, 0, &site) ||
	    dwarf_child(&site, &child) != 0)
		return;
	find_cfa(place, &frame);
	find_base(caller, &frame);
	do {
		if (dwarf_tag(&child) != DW_TAG_call_site_parameter &&
		    dwarf_tag(&child) != DW_TAG_GNU_call_site_parameter)
			continue;
		if (callsite->count < CALLSITE_VALUES_MAX &&
		    read_parameter(&child, &frame,
				   &callsite->values[callsite->count]))
			callsite->count++;
	} while (dwarf_siblingof(&child, &child) == 0);
}

const char *callsite_called(Dwarf_Die *caller, uint64_t address)
{
	Dwarf_Die site, called;
	Dwarf_Attribute attribute;
	const char *name;

	if (!find_site(caller, address, 0, &site) ||
	    !(dwarf_attr(&site, DW_AT_call_origin, &attribute) ||
	      dwarf_attr(&site, DW_AT_abstract_origin, &attribute)) ||
	    !dwarf_formref_die(&attribute, &called))
		return NULL;
	name = dwarf_formstring(
		dwarf_attr_integrate(&called, DW_AT_linkage_name, &attribute));
	return name ? name : dwarf_diename(&called);
}

/* --- were both functions visible to the compiler? --- */

/* Identifies the translation of a function.  Units that clang compiles together share a
 * table of abbreviations, also with link-time optimization.  gcc gives such units a
 * special name. */
static bool find_translation(Dwarf_Die *function, uint64_t *translation)
{
	const char *name;
	Dwarf_Die unit;
	Dwarf_Off abbreviations;

	if (!dwarf_diecu(function, &unit, NULL, NULL) ||
	    !dwarf_cu_die(unit.cu, &unit, NULL, &abbreviations, NULL, NULL,
			  NULL, NULL))
		return false;
	name = dwarf_diename(&unit);
	*translation = abbreviations;
	return !name || strcmp(name, "<artificial>") != 0;
}

/* A weak definition may be replaced by another one. */
static bool is_weak(Elf *elf, uint64_t address)
{
	return bindings_at(elf, address) == 1u << STB_WEAK;
}

bool callsite_sees(Dwarf_Die *caller, Dwarf_Die *callee, Elf *elf,
		   uint64_t address)
{
	uint64_t here, there;

	if (!find_translation(caller, &here) ||
	    !find_translation(callee, &there))
		return true;
	if (here != there)
		return false;
	/* clang does not use a definition that may be replaced. */
	return !(is_made_by_clang(callee) && is_weak(elf, address));
}
