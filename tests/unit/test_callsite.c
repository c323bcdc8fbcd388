/*
 * The values that a caller passes, read from debug information that the test makes: it is
 * libdw and libelf itself.
 */
#include "inspect/debuginfo/callsite.c"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

/* --- DIEs; those of a list end with the tag 0 --- */

struct made_attribute {
	unsigned name;
	const Dwarf_Op *ops;
	size_t count;
	Dwarf_Addr address;
	const char *text;
	const struct made *die;
};

struct made {
	int tag;
	const char *name;
	const struct made *children;
	struct made_attribute attributes[3];
	const struct made_unit *unit;
};

struct made_unit {
	const char *name, *producer;
	Dwarf_Off abbreviations;
	bool has_no_header;
};

/* An operation, and its operands. */
#define OP(...) \
	{ \
		.atom = __VA_ARGS__ \
	}
#define OPS(...) \
	.ops = (const Dwarf_Op[]){ __VA_ARGS__ }, \
	.count = sizeof((const Dwarf_Op[]){ __VA_ARGS__ }) / sizeof(Dwarf_Op)

static const struct made *made_of(const Dwarf_Die *die)
{
	return die->addr;
}

int dwarf_tag(Dwarf_Die *die)
{
	return made_of(die)->tag;
}

const char *dwarf_diename(Dwarf_Die *die)
{
	return made_of(die)->name;
}

int dwarf_child(Dwarf_Die *die, Dwarf_Die *child)
{
	const struct made *children = made_of(die)->children;

	if (!children || children->tag == 0)
		return 1;
	child->addr = (void *)children;
	return 0;
}

int dwarf_siblingof(Dwarf_Die *die, Dwarf_Die *next)
{
	if (made_of(die)[1].tag == 0)
		return 1;
	next->addr = (void *)(made_of(die) + 1);
	return 0;
}

Dwarf_Attribute *dwarf_attr(Dwarf_Die *die, unsigned name,
			    Dwarf_Attribute *found)
{
	const struct made *made = made_of(die);

	for (size_t i = 0; i < 3; i++)
		if (made->attributes[i].name == name) {
			found->valp = (void *)&made->attributes[i];
			return found;
		}
	return NULL;
}

Dwarf_Attribute *dwarf_attr_integrate(Dwarf_Die *die, unsigned name,
				      Dwarf_Attribute *found)
{
	return dwarf_attr(die, name, found);
}

static const struct made_attribute *
attribute_of(const Dwarf_Attribute *attribute)
{
	return (const void *)attribute->valp;
}

int dwarf_formaddr(Dwarf_Attribute *attribute, Dwarf_Addr *address)
{
	*address = attribute_of(attribute)->address;
	return *address == 0 ? -1 : 0;
}

const char *dwarf_formstring(Dwarf_Attribute *attribute)
{
	return attribute ? attribute_of(attribute)->text : NULL;
}

Dwarf_Die *dwarf_formref_die(Dwarf_Attribute *attribute, Dwarf_Die *die)
{
	die->addr = (void *)attribute_of(attribute)->die;
	return die->addr ? die : NULL;
}

int dwarf_getlocation(Dwarf_Attribute *attribute, Dwarf_Op **ops, size_t *count)
{
	*ops = (Dwarf_Op *)attribute_of(attribute)->ops;
	*count = attribute_of(attribute)->count;
	return *ops ? 0 : -1;
}

/* --- units: the DIE is of the unit itself, whose attribute is the producer --- */

static const struct made_unit gcc_unit = { "a.c", "GNU C17", 0, false };
static struct made unit_die;

Dwarf_Die *dwarf_diecu(Dwarf_Die *die, Dwarf_Die *unit, uint8_t *address_size,
		       uint8_t *offset_size)
{
	const struct made_unit *of = made_of(die)->unit;

	(void)address_size;
	(void)offset_size;
	if (!of)
		return NULL;
	unit_die = (struct made){
		.tag = DW_TAG_compile_unit,
		.name = of->name,
		.attributes = { { .name = DW_AT_producer,
				  .text = of->producer } },
		.unit = of,
	};
	unit->addr = &unit_die;
	unit->cu = (Dwarf_CU *)of;
	return unit;
}

Dwarf_Die *dwarf_cu_die(Dwarf_CU *cu, Dwarf_Die *die, Dwarf_Half *version,
			Dwarf_Off *abbreviations, uint8_t *address_size,
			uint8_t *offset_size, uint64_t *id, Dwarf_Off *type)
{
	const struct made_unit *unit = (const void *)cu;

	(void)version;
	(void)address_size;
	(void)offset_size;
	(void)id;
	(void)type;
	*abbreviations = unit->abbreviations;
	return unit->has_no_header ? NULL : die;
}

/* --- unwind tables: of the file, and of the debug information --- */

struct made_table {
	bool is_missing, has_no_row, has_no_rule;
	const Dwarf_Op *ops;
	size_t count;
};

static struct made_table tables[2];
static Dwarf_Addr address_asked;

Dwarf_CFI *dwarf_getcfi_elf(Elf *elf)
{
	(void)elf;
	return tables[0].is_missing ? NULL : (Dwarf_CFI *)&tables[0];
}

Dwarf_CFI *dwarf_getcfi(Dwarf *dwarf)
{
	(void)dwarf;
	return tables[1].is_missing ? NULL : (Dwarf_CFI *)&tables[1];
}

int dwarf_cfi_addrframe(Dwarf_CFI *cfi, Dwarf_Addr address, Dwarf_Frame **frame)
{
	const struct made_table *table = (const void *)cfi;
	void *copy;

	address_asked = address;
	if (table->has_no_row)
		return -1;
	copy = malloc(sizeof(*table)); /* the caller frees it */
	cr_assert(ne(ptr, copy, NULL));
	memcpy(copy, table, sizeof(*table));
	*frame = copy;
	return 0;
}

int dwarf_frame_cfa(Dwarf_Frame *frame, Dwarf_Op **ops, size_t *count)
{
	const struct made_table *table = (const void *)frame;

	*ops = (Dwarf_Op *)table->ops;
	*count = table->count;
	return table->has_no_rule ? -1 : 0;
}

static void set_frame(unsigned number, int64_t offset)
{
	static Dwarf_Op rule;

	rule = (Dwarf_Op)OP(DW_OP_bregx, number, (Dwarf_Word)offset, 0);
	tables[0] = (struct made_table){ .ops = &rule, .count = 1 };
	tables[1] = (struct made_table){ .is_missing = true };
}

static void set_no_frame(void)
{
	tables[0].is_missing = tables[1].is_missing = true;
}

/* --- symbols: a section of each number, the first one is 1 --- */

struct made_section {
	unsigned type;
	size_t entry_size, count;
	bool is_unreadable;
	const struct made_symbol {
		uint64_t value;
		unsigned char info;
		bool is_damaged;
	} * symbols;
};

static const struct made_section *sections;
static size_t section_count;
static const struct made_section *section_read;

Elf_Scn *elf_nextscn(Elf *elf, Elf_Scn *section)
{
	uintptr_t next = (uintptr_t)section + 1;

	(void)elf;
	return next <= section_count ? (Elf_Scn *)next : NULL;
}

GElf_Shdr *gelf_getshdr(Elf_Scn *section, GElf_Shdr *header)
{
	const struct made_section *made = &sections[(uintptr_t)section - 1];

	*header = (GElf_Shdr){ .sh_type = made->type,
			       .sh_entsize = made->entry_size,
			       .sh_size = made->count * sizeof(Elf64_Sym) };
	return header;
}

Elf_Data *elf_getdata(Elf_Scn *section, Elf_Data *before)
{
	static Elf_Data data;

	(void)before;
	section_read = &sections[(uintptr_t)section - 1];
	return section_read->is_unreadable ? NULL : &data;
}

GElf_Sym *gelf_getsym(Elf_Data *data, int index, GElf_Sym *symbol)
{
	const struct made_symbol *made = &section_read->symbols[index];

	(void)data;
	*symbol = (GElf_Sym){ .st_value = made->value, .st_info = made->info };
	return made->is_damaged ? NULL : symbol;
}

/* --- expressions --- */

#define SITE  0x1234
#define BIAS  0x700000
#define STEPS 3

/* A function with one call, which passes @value in the register of @location. */
struct call {
	struct made parameters[2], sites[2], caller;
};

static void make_call(struct call *call, struct made_attribute location,
		      struct made_attribute value, struct made_attribute base)
{
	*call = (struct call){
		.parameters = { { .tag = DW_TAG_call_site_parameter } },
		.sites = { { .tag = DW_TAG_call_site,
			     .children = call->parameters } },
		.caller = { .tag = DW_TAG_subprogram,
			    .children = call->sites,
			    .attributes = { base },
			    .unit = &gcc_unit },
	};
	location.name = DW_AT_location;
	value.name = DW_AT_call_value;
	call->parameters[0].attributes[0] = location;
	call->parameters[0].attributes[1] = value;
	call->sites[0].attributes[0] = (struct made_attribute){
		.name = DW_AT_call_return_pc, .address = SITE
	};
}

static void read_values(const struct made *caller, struct callsite *callsite)
{
	struct callsite_place place = { .address = SITE, .bias = BIAS };
	Dwarf_Die die = { .addr = (void *)caller };

	memset(callsite, 0, sizeof(*callsite));
	callsite_read(&die, &place, callsite);
}

static const struct made_attribute in_rdi = { OPS(OP(DW_OP_reg5)) };
static struct made_attribute base; /* of the caller's frame; none */

/* The number of steps of the expression; 0 if it is refused. */
static unsigned read_ops(const Dwarf_Op *ops, size_t count,
			 struct callsite_step *steps)
{
	struct made_attribute value = { .ops = ops, .count = count };
	struct callsite callsite;
	struct call call;

	make_call(&call, in_rdi, value, base);
	read_values(&call.caller, &callsite);
	if (callsite.count == 0)
		return 0;
	cr_assert(eq(u32, callsite.count, 1));
	cr_assert(eq(u8, callsite.values[0].entry, 8));
	cr_assert(eq(u8, callsite.values[0].size, 8));
	memcpy(steps, callsite.values[0].steps,
	       sizeof(callsite.values[0].steps));
	return callsite.values[0].count;
}

static bool is_refused(const Dwarf_Op *ops, size_t count)
{
	struct callsite_step steps[CALLSITE_STEPS_MAX];

	return read_ops(ops, count, steps) == 0;
}

/* What expressions become. */
static const struct {
	unsigned count, step_count;
	Dwarf_Op ops[STEPS];
	struct callsite_step steps[STEPS];
} rows[] = {
#define CONSTANT(atom) \
	{ \
		1, 1, { OP(atom, (Dwarf_Word)-77) }, \
		{ \
			{ \
				CALLSITE_CONSTANT, 0, -77 \
			} \
		} \
	}
	CONSTANT(DW_OP_const1u),
	CONSTANT(DW_OP_const1s),
	CONSTANT(DW_OP_const2u),
	CONSTANT(DW_OP_const2s),
	CONSTANT(DW_OP_const4u),
	CONSTANT(DW_OP_const4s),
	CONSTANT(DW_OP_const8u),
	CONSTANT(DW_OP_const8s),
	CONSTANT(DW_OP_constu),
	CONSTANT(DW_OP_consts),
#define BINARY(atom, operation) \
	{ \
		3, 3, { OP(DW_OP_breg3), OP(DW_OP_lit2), OP(atom) }, \
		{ \
			{ CALLSITE_REGISTER, 3, 0 }, \
				{ CALLSITE_CONSTANT, 0, 2 }, \
			{ \
				operation, 0, 0 \
			} \
		} \
	}
	BINARY(DW_OP_plus, CALLSITE_PLUS),
	BINARY(DW_OP_minus, CALLSITE_MINUS),
	BINARY(DW_OP_mul, CALLSITE_MULTIPLY),
	BINARY(DW_OP_and, CALLSITE_AND),
	BINARY(DW_OP_or, CALLSITE_OR),
	BINARY(DW_OP_xor, CALLSITE_XOR),
	BINARY(DW_OP_shl, CALLSITE_SHIFT_LEFT),
	BINARY(DW_OP_shr, CALLSITE_SHIFT_RIGHT),
	BINARY(DW_OP_shra, CALLSITE_SHIFT_SIGNED),
#define UNARY(atom, operation) \
	{ \
		2, 2, { OP(DW_OP_breg3), OP(atom) }, \
		{ \
			{ CALLSITE_REGISTER, 3, 0 }, \
			{ \
				operation, 0, 0 \
			} \
		} \
	}
	UNARY(DW_OP_neg, CALLSITE_NEGATE),
	UNARY(DW_OP_not, CALLSITE_NOT),
	{ 2,
	  3,
	  { OP(DW_OP_breg3), OP(DW_OP_plus_uconst, 9) },
	  { { CALLSITE_REGISTER, 3, 0 },
	    { CALLSITE_CONSTANT, 0, 9 },
	    { CALLSITE_PLUS, 0, 0 } } },
	{ 1,
	  1,
	  { OP(DW_OP_addr, 0x4000) },
	  { { CALLSITE_CONSTANT, 0, 0x4000 + BIAS } } },
	{ 1,
	  1,
	  { OP(DW_OP_bregx, 13, 0x20) },
	  { { CALLSITE_REGISTER, 13, 0x20 } } },
	{ 1, 1, { OP(DW_OP_bregx, 7, 0x20) }, { { CALLSITE_SP, 0, 0x20 } } },
	{ 1, 1, { OP(DW_OP_call_frame_cfa) }, { { CALLSITE_SP, 0, 32 } } },
	{ 2,
	  1,
	  { OP(DW_OP_lit2), OP(DW_OP_stack_value) },
	  { { CALLSITE_CONSTANT, 0, 2 } } },
	{ 2,
	  1,
	  { OP(DW_OP_nop), OP(DW_OP_lit2) },
	  { { CALLSITE_CONSTANT, 0, 2 } } },
	/* No value, several values, and too few for an operation. */
	{ 0, 0, { OP(0) }, { { 0 } } },
	{ 1, 0, { OP(DW_OP_nop) }, { { 0 } } },
	{ 2, 0, { OP(DW_OP_lit1), OP(DW_OP_lit2) }, { { 0 } } },
	{ 2, 0, { OP(DW_OP_lit1), OP(DW_OP_plus) }, { { 0 } } },
	{ 3, 0, { OP(DW_OP_lit1), OP(DW_OP_plus), OP(DW_OP_lit2) }, { { 0 } } },
	{ 2, 0, { OP(DW_OP_neg), OP(DW_OP_lit2) }, { { 0 } } },
	{ 1, 0, { OP(DW_OP_deref) }, { { 0 } } },
	/* Operations that are not known. */
	{ 1, 0, { OP(DW_OP_entry_value) }, { { 0 } } },
	{ 2, 0, { OP(DW_OP_lit1), OP(DW_OP_dup) }, { { 0 } } },
	{ 2, 0, { OP(DW_OP_lit1), OP(DW_OP_skip) }, { { 0 } } },
	{ 2, 0, { OP(DW_OP_lit1), OP(DW_OP_reg0) }, { { 0 } } },
	{ 2, 0, { OP(DW_OP_lit1), OP(DW_OP_reg31) }, { { 0 } } },
	{ 1, 0, { OP(DW_OP_fbreg, 8) }, { { 0 } } },
};

static void expect_row(size_t i)
{
	struct callsite_step steps[CALLSITE_STEPS_MAX];
	unsigned count = read_ops(rows[i].ops, rows[i].count, steps);

	cr_expect(eq(uint, count, rows[i].step_count), "row %zu", i);
	for (unsigned k = 0; k < count && k < STEPS; k++) {
		const struct callsite_step *want = &rows[i].steps[k];

		cr_expect(eq(u8, steps[k].operation, want->operation),
			  "row %zu, %u", i, k);
		cr_expect(eq(u8, steps[k].number, want->number), "row %zu, %u",
			  i, k);
		cr_expect(eq(i64, steps[k].value, want->value), "row %zu, %u",
			  i, k);
	}
}

Test(callsite, each_operation_is_a_step)
{
	set_frame(SP, 32);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_row(i);
}

Test(callsite, each_literal_is_a_constant)
{
	struct callsite_step steps[CALLSITE_STEPS_MAX];

	for (unsigned i = 0; i < 32; i++) {
		Dwarf_Op op = OP((uint8_t)(DW_OP_lit0 + i), 99);

		cr_assert(eq(uint, read_ops(&op, 1, steps), 1), "%u", i);
		cr_expect(eq(u8, steps[0].operation, CALLSITE_CONSTANT));
		cr_expect(eq(i64, steps[0].value, i));
	}
}

/* The processor's number of DWARF's register if callees keep it, or -1. */
static int kept_as(unsigned number)
{
	return number == 3		    ? 3 :
	       number == 6		    ? 5 :
	       number >= 12 && number <= 15 ? (int)number :
					      -1;
}

Test(callsite, only_registers_that_callees_keep_have_values)
{
	struct callsite_step steps[CALLSITE_STEPS_MAX];

	set_frame(SP, 32);
	for (unsigned i = 0; i < 32; i++) {
		Dwarf_Op op = OP((uint8_t)(DW_OP_breg0 + i), (Dwarf_Word)-5);

		if (kept_as(i) < 0 && i != SP) {
			cr_expect(is_refused(&op, 1), "%u", i);
			continue;
		}
		cr_assert(eq(uint, read_ops(&op, 1, steps), 1), "%u", i);
		cr_expect(eq(u8, steps[0].operation,
			     i == SP ? CALLSITE_SP : CALLSITE_REGISTER));
		cr_expect(eq(int, steps[0].number, i == SP ? 0 : kept_as(i)));
		cr_expect(eq(i64, steps[0].value, -5));
	}
}

Test(callsite, an_expression_has_at_most_eight_steps)
{
	struct callsite_step steps[CALLSITE_STEPS_MAX];
	Dwarf_Op ops[CALLSITE_STEPS_MAX + 1] = { OP(DW_OP_lit1) };

	for (unsigned i = 1; i <= CALLSITE_STEPS_MAX; i++)
		ops[i] = (Dwarf_Op)OP(DW_OP_neg);
	cr_expect(eq(uint, read_ops(ops, CALLSITE_STEPS_MAX, steps),
		     CALLSITE_STEPS_MAX));
	cr_expect(is_refused(ops, CALLSITE_STEPS_MAX + 1));
}

Test(callsite, four_values_may_wait_for_operations)
{
	struct callsite_step steps[CALLSITE_STEPS_MAX];
	const Dwarf_Op ops[] = { OP(DW_OP_lit1), OP(DW_OP_lit2), OP(DW_OP_lit3),
				 OP(DW_OP_lit4), OP(DW_OP_plus), OP(DW_OP_plus),
				 OP(DW_OP_plus) };

	cr_expect(eq(uint, read_ops(ops, 7, steps), 7));
}

/* --- memory --- */

/* Whether the value at @offset from the register is read. */
static bool is_read(unsigned number, int64_t offset, uint8_t atom,
		    uint64_t size)
{
	const Dwarf_Op ops[] = { OP(DW_OP_bregx, number, (Dwarf_Word)offset),
				 OP(atom, size) };
	struct callsite_step steps[CALLSITE_STEPS_MAX];

	if (read_ops(ops, 2, steps) == 0)
		return false;
	cr_expect(eq(u8, steps[1].operation, CALLSITE_LOAD));
	cr_expect(zero(i64, steps[1].value));
	cr_expect(eq(u8, steps[1].number, atom == DW_OP_deref ? 8 : size));
	return true;
}

Test(callsite,
     memory_is_read_only_between_the_stack_pointer_and_the_end_of_the_frame)
{
	set_frame(SP, 32);
	cr_expect(is_read(SP, 0, DW_OP_deref, 0));
	cr_expect(is_read(SP, 24, DW_OP_deref, 0));
	cr_expect(not(is_read(SP, 25, DW_OP_deref, 0)));
	cr_expect(not(is_read(SP, -1, DW_OP_deref, 0)));
	cr_expect(is_read(SP, 31, DW_OP_deref_size, 1));
	cr_expect(not(is_read(SP, 32, DW_OP_deref_size, 1)));
	cr_expect(not(is_read(BP, -8, DW_OP_deref, 0)));
	cr_expect(not(is_read(3, 8, DW_OP_deref, 0)));
}

Test(callsite, memory_is_read_up_to_a_page_below_the_frame_pointer)
{
	set_frame(BP, 16);
	cr_expect(is_read(BP, -1, DW_OP_deref, 0));
	cr_expect(not(is_read(BP, 0, DW_OP_deref, 0)));
	cr_expect(is_read(BP, -4096, DW_OP_deref, 0));
	cr_expect(not(is_read(BP, -4097, DW_OP_deref, 0)));
	cr_expect(not(is_read(SP, 0, DW_OP_deref, 0)));
	cr_expect(not(is_read(3, -8, DW_OP_deref, 0)));
}

Test(callsite, one_to_eight_bytes_are_read)
{
	set_frame(SP, 32);
	for (unsigned size = 1; size <= 8; size++)
		cr_expect(is_read(SP, 0, DW_OP_deref_size, size), "%u", size);
	cr_expect(not(is_read(SP, 0, DW_OP_deref_size, 0)));
	cr_expect(not(is_read(SP, 0, DW_OP_deref_size, 9)));
}

Test(callsite, no_memory_is_read_at_a_constant_or_a_sum)
{
	const Dwarf_Op constant[] = { OP(DW_OP_lit8), OP(DW_OP_deref) };
	const Dwarf_Op sum[] = { OP(DW_OP_breg7), OP(DW_OP_plus_uconst, 8),
				 OP(DW_OP_deref) };

	set_frame(SP, 32);
	cr_expect(is_refused(constant, 2));
	cr_expect(is_refused(sum, 3));
}

Test(callsite, without_the_frame_no_memory_is_read)
{
	const Dwarf_Op ops[] = { OP(DW_OP_call_frame_cfa) };

	set_no_frame();
	cr_expect(not(is_read(SP, 0, DW_OP_deref, 0)));
	cr_expect(not(is_read(BP, -8, DW_OP_deref, 0)));
	cr_expect(is_refused(ops, 1));
}

/* --- the frame --- */

/* The offset of the frame's end from the stack pointer; -1: unknown. */
static int64_t find_end(void)
{
	const Dwarf_Op op = OP(DW_OP_call_frame_cfa);
	struct callsite_step steps[CALLSITE_STEPS_MAX];

	return read_ops(&op, 1, steps) == 1 &&
			       steps[0].operation == CALLSITE_SP ?
		       steps[0].value :
		       -1;
}

Test(callsite, the_frame_is_described_by_either_table)
{
	const Dwarf_Op ops[] = { OP(DW_OP_bregx, SP, 48), OP(DW_OP_deref) };
	const Dwarf_Op others[] = { OP(DW_OP_bregx, 10, 8),
				    OP(DW_OP_breg7, 64) };
	const struct made_table good = { .ops = ops, .count = 1 };
	struct made_table bad[] = {
		{ .is_missing = true },
		{ .has_no_row = true },
		{ .has_no_rule = true, .ops = ops, .count = 1 },
		{ .ops = ops, .count = 2 },
		{ .ops = &others[0], .count = 1 },
		{ .ops = &others[1], .count = 1 },
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		tables[0] = tables[1] = bad[i];
		cr_expect(eq(i64, find_end(), -1), "%zu", i);
		tables[1] = good;
		cr_expect(eq(i64, find_end(), 48), "%zu", i);
		/* The row is that of the call, which is before the return address. */
		cr_expect(eq(u64, address_asked, SITE - 1));
		tables[0] = good;
		tables[1] = bad[i];
		cr_expect(eq(i64, find_end(), 48), "%zu", i);
	}
}

Test(callsite, the_file_s_own_table_comes_first)
{
	const Dwarf_Op ops[] = { OP(DW_OP_bregx, SP, 48),
				 OP(DW_OP_bregx, SP, 64) };

	tables[0] = (struct made_table){ .ops = &ops[0], .count = 1 };
	tables[1] = (struct made_table){ .ops = &ops[1], .count = 1 };
	cr_expect(eq(i64, find_end(), 48));
}

/* Whether DW_OP_fbreg 8 has become this. */
static bool is_fbreg(struct made_attribute frame_base, unsigned operation,
		     unsigned number, int64_t value)
{
	const Dwarf_Op op = OP(DW_OP_fbreg, 8);
	struct callsite_step steps[CALLSITE_STEPS_MAX];

	base = frame_base;
	base.name = DW_AT_frame_base;
	return read_ops(&op, 1, steps) == 1 &&
	       steps[0].operation == operation && steps[0].number == number &&
	       steps[0].value == value;
}

Test(callsite, the_base_of_the_frame_is_its_end_or_a_register)
{
	const struct made_attribute end = { OPS(OP(DW_OP_call_frame_cfa)) };
	const struct made_attribute bp = { OPS(OP(DW_OP_reg6)) };
	const struct made_attribute sp = { OPS(OP(DW_OP_reg7)) };

	set_frame(SP, 32);
	cr_expect(is_fbreg(end, CALLSITE_SP, 0, 40));
	cr_expect(is_fbreg(bp, CALLSITE_REGISTER, 5, 8));
	cr_expect(is_fbreg(sp, CALLSITE_SP, 0, 8));
	set_frame(BP, 16);
	cr_expect(is_fbreg(end, CALLSITE_REGISTER, 5, 24));
}

Test(callsite, another_base_of_the_frame_is_unknown)
{
	const Dwarf_Op op = OP(DW_OP_fbreg, 8);
	struct made_attribute bases[] = {
		{ OPS(OP(DW_OP_reg3)) },
		{ OPS(OP(DW_OP_reg6), OP(DW_OP_nop)) },
		{ .ops = NULL, .count = 1 },
		{ OPS(OP(DW_OP_call_frame_cfa)) },
	};

	set_no_frame();
	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		base = bases[i];
		base.name = DW_AT_frame_base;
		cr_expect(is_refused(&op, 1), "%zu", i);
	}
}

/* --- parameters --- */

/* The register of the argument, plus 1; 0: none. */
static unsigned read_entry(struct made_attribute location)
{
	struct made_attribute value = { OPS(OP(DW_OP_lit1)) };
	struct callsite callsite;
	struct call call;

	make_call(&call, location, value, base);
	read_values(&call.caller, &callsite);
	return callsite.count == 0 ? 0 : callsite.values[0].entry;
}

Test(callsite, arguments_are_in_the_registers_of_the_convention)
{
	static const uint8_t want[40] = {
		[1] = 3,   [2] = 2,   [4] = 7,	 [5] = 8,   [8] = 9,
		[9] = 10,  [17] = 17, [18] = 18, [19] = 19, [20] = 20,
		[21] = 21, [22] = 22, [23] = 23, [24] = 24,
	};

	for (unsigned i = 0; i < sizeof(want); i++) {
		struct made_attribute any = { OPS(OP(DW_OP_regx, i)) };
		struct made_attribute short_form = { OPS(
			OP((uint8_t)(DW_OP_reg0 + i))) };

		cr_expect(eq(uint, read_entry(any), want[i]), "%u", i);
		if (i < 32)
			cr_expect(eq(uint, read_entry(short_form), want[i]),
				  "%u", i);
	}
}

Test(callsite, an_argument_that_is_not_in_one_register_is_left_out)
{
	struct made_attribute memory = { OPS(OP(DW_OP_breg5)) };
	struct made_attribute before = { OPS(OP(DW_OP_reg0 - 1)) };
	struct made_attribute pieces = { OPS(OP(DW_OP_reg5),
					     OP(DW_OP_piece, 4)) };
	struct made_attribute unreadable = { .ops = NULL, .count = 1 };

	cr_expect(zero(uint, read_entry(memory)));
	cr_expect(zero(uint, read_entry(before)));
	cr_expect(zero(uint, read_entry(pieces)));
	cr_expect(zero(uint, read_entry(unreadable)));
}

#define LOCATION(reg) \
	{ \
		.name = DW_AT_location, OPS(OP(reg)) \
	}
#define VALUE(attribute, op) \
	{ \
		.name = attribute, OPS(OP(op)) \
	}

Test(callsite, parameters_are_those_of_dwarf_5_and_of_gnu)
{
	const struct made parameters[] = {
		{ .tag = DW_TAG_GNU_call_site_parameter,
		  .attributes = { LOCATION(DW_OP_reg5),
				  VALUE(DW_AT_GNU_call_site_value,
					DW_OP_lit1) } },
		{ .tag = DW_TAG_formal_parameter,
		  .attributes = { LOCATION(DW_OP_reg1),
				  VALUE(DW_AT_call_value, DW_OP_lit2) } },
		{ .tag = DW_TAG_call_site_parameter,
		  .attributes = { LOCATION(DW_OP_reg1) } },
		{ .tag = DW_TAG_call_site_parameter,
		  .attributes = { VALUE(DW_AT_call_value, DW_OP_lit2) } },
		{ .tag = DW_TAG_call_site_parameter,
		  .attributes = { LOCATION(DW_OP_reg4),
				  VALUE(DW_AT_call_value, DW_OP_lit3) } },
		{ .tag = 0 },
	};
	struct callsite callsite;
	struct call call;

	make_call(&call, in_rdi, in_rdi, base);
	call.sites[0].children = parameters;
	read_values(&call.caller, &callsite);
	cr_assert(eq(u32, callsite.count, 2));
	cr_expect(eq(u8, callsite.values[0].entry, 8));
	cr_expect(eq(i64, callsite.values[0].steps[0].value, 1));
	cr_expect(eq(u8, callsite.values[1].entry, 7));
	cr_expect(eq(i64, callsite.values[1].steps[0].value, 3));
}

Test(callsite, a_call_has_at_most_as_many_values_as_there_is_room)
{
	struct made parameters[CALLSITE_VALUES_MAX + 3];
	struct {
		struct callsite callsite;
		char guard[sizeof(struct callsite_value)];
	} both;
	struct call call;

	make_call(&call, in_rdi, (struct made_attribute){ OPS(OP(DW_OP_lit1)) },
		  base);
	for (unsigned i = 0; i < CALLSITE_VALUES_MAX + 2; i++)
		parameters[i] = call.parameters[0];
	parameters[CALLSITE_VALUES_MAX + 2].tag = 0;
	call.sites[0].children = parameters;
	memset(both.guard, 0, sizeof(both.guard));
	read_values(&call.caller, &both.callsite);
	cr_expect(eq(u32, both.callsite.count, CALLSITE_VALUES_MAX));
	for (size_t i = 0; i < sizeof(both.guard); i++)
		cr_expect(zero(chr, both.guard[i]));
}

Test(callsite, values_of_gcc_are_exact_and_those_of_others_are_loose)
{
	static const struct {
		struct made_unit unit;
		bool is_loose;
	} units[] = {
		{ { .producer = "GNU C17 12.2.0" }, false },
		{ { .producer = "clang version 14" }, true },
		{ { .producer = NULL }, true },
	};
	struct callsite callsite;
	struct call call;

	make_call(&call, in_rdi, in_rdi, base);
	for (size_t i = 0; i < 3; i++) {
		call.caller.unit = &units[i].unit;
		read_values(&call.caller, &callsite);
		cr_expect(eq(int, callsite.is_loose, units[i].is_loose), "%zu",
			  i);
	}
}

/* --- sites --- */

static const struct made site_parameters[] = {
	{ .tag = DW_TAG_call_site_parameter,
	  .attributes = { LOCATION(DW_OP_reg5),
			  VALUE(DW_AT_call_value, DW_OP_lit1) } },
	{ .tag = 0 },
};

static bool is_found_in(const struct made *children)
{
	struct made caller = { .tag = DW_TAG_subprogram,
			       .children = children,
			       .unit = &gcc_unit };
	struct callsite callsite;

	read_values(&caller, &callsite);
	return callsite.count == 1;
}

static bool is_site(int tag, unsigned attribute, Dwarf_Addr address)
{
	const struct made children[] = {
		{ .tag = DW_TAG_variable },
		{ .tag = tag,
		  .children = site_parameters,
		  .attributes = { { .name = attribute, .address = address } } },
		{ .tag = 0 },
	};

	return is_found_in(children);
}

Test(callsite, a_site_is_found_by_the_return_address)
{
	cr_expect(is_site(DW_TAG_call_site, DW_AT_call_return_pc, SITE));
	cr_expect(is_site(DW_TAG_GNU_call_site, DW_AT_call_return_pc, SITE));
	cr_expect(is_site(DW_TAG_GNU_call_site, DW_AT_low_pc, SITE));
	cr_expect(not(is_site(DW_TAG_call_site, DW_AT_low_pc, SITE)));
	cr_expect(
		not(is_site(DW_TAG_call_site, DW_AT_call_return_pc, SITE + 1)));
	cr_expect(not(is_site(DW_TAG_GNU_call_site, DW_AT_low_pc, SITE - 1)));
	cr_expect(not(is_site(DW_TAG_call_site, DW_AT_call_return_pc, 0)));
	cr_expect(not(is_site(DW_TAG_subprogram, DW_AT_call_return_pc, SITE)));
	cr_expect(not(is_found_in(NULL)));
}

/* A site in @count blocks, each of which has another call, too. */
static bool is_found_behind(unsigned count, int tag)
{
	struct made levels[DEPTH_MAX + 2][3];
	const struct made *inner;
	struct made site = { .tag = DW_TAG_call_site,
			     .children = site_parameters,
			     .attributes = { { .name = DW_AT_call_return_pc,
					       .address = SITE } } };
	struct made last[2] = { site, { .tag = 0 } };

	inner = last;
	for (unsigned i = 0; i < count; i++) {
		levels[i][0] = site;
		levels[i][0].attributes[0].address = SITE + 1;
		levels[i][1] = (struct made){ .tag = tag, .children = inner };
		levels[i][2] = (struct made){ .tag = 0 };
		inner = levels[i];
	}
	return is_found_in(inner);
}

Test(callsite, a_site_may_be_in_a_block_or_in_inlined_code)
{
	cr_expect(is_found_behind(1, DW_TAG_lexical_block));
	cr_expect(is_found_behind(2, DW_TAG_inlined_subroutine));
	cr_expect(not(is_found_behind(1, DW_TAG_subprogram)));
	cr_expect(is_found_behind(DEPTH_MAX, DW_TAG_lexical_block));
	cr_expect(not(is_found_behind(DEPTH_MAX + 1, DW_TAG_lexical_block)));
}

/* --- the called function --- */

static const char *find_called(struct made_attribute origin)
{
	const struct made children[] = {
		{ .tag = DW_TAG_call_site,
		  .attributes = { { .name = DW_AT_call_return_pc,
				    .address = SITE },
				  origin } },
		{ .tag = 0 },
	};
	const struct made caller = { .tag = DW_TAG_subprogram,
				     .children = children };
	Dwarf_Die die = { .addr = (void *)&caller };

	cr_expect(eq(ptr, (void *)callsite_called(&die, SITE + 1), NULL));
	return callsite_called(&die, SITE);
}

Test(callsite, the_called_function_has_its_name_for_the_linker)
{
	const struct made linked = { .tag = DW_TAG_subprogram,
				     .name = "f",
				     .attributes = {
					     { .name = DW_AT_linkage_name,
					       .text = "_Z1fv" } } };
	const struct made plain = { .tag = DW_TAG_subprogram, .name = "main" };
	const struct made_attribute call_origin = { .name = DW_AT_call_origin,
						    .die = &linked },
				    abstract = { .name = DW_AT_abstract_origin,
						 .die = &plain },
				    damaged = { .name = DW_AT_call_origin,
						.die = NULL },
				    other = { .name = DW_AT_specification,
					      .die = &plain };

	cr_expect(eq(str, (char *)find_called(call_origin), "_Z1fv"));
	cr_expect(eq(str, (char *)find_called(abstract), "main"));
	cr_expect(eq(ptr, (void *)find_called(damaged), NULL));
	cr_expect(eq(ptr, (void *)find_called(other), NULL));
}

/* --- functions that see each other --- */

static bool sees(const struct made_unit *caller, const struct made_unit *callee)
{
	const struct made functions[] = {
		{ .tag = DW_TAG_subprogram, .unit = caller },
		{ .tag = DW_TAG_subprogram, .unit = callee }
	};
	Dwarf_Die dies[] = { { .addr = (void *)&functions[0] },
			     { .addr = (void *)&functions[1] } };

	return callsite_sees(&dies[0], &dies[1], NULL, SITE);
}

Test(callsite, functions_of_one_translation_see_each_other)
{
	const struct made_unit first = { "a.c", "GNU C17", 0, false };
	const struct made_unit second = { "b.c", "GNU C17", 100, false };
	const struct made_unit nameless = { NULL, "GNU C17", 100, false };
	const struct made_unit linked = { "<artificial>", "GNU GIMPLE", 200,
					  false };
	const struct made_unit damaged = { "c.c", "GNU C17", 300, true };

	cr_expect(sees(&first, &first));
	cr_expect(not(sees(&first, &second)));
	cr_expect(sees(&second, &nameless));
	cr_expect(not(sees(&first, &nameless)));
	/* If it is not known, they may. */
	cr_expect(sees(&first, &linked));
	cr_expect(sees(&linked, &first));
	cr_expect(sees(&first, &damaged));
	cr_expect(sees(&damaged, &first));
	cr_expect(sees(&first, NULL));
	cr_expect(sees(NULL, &first));
}

#define WEAK   ELF64_ST_INFO(STB_WEAK, STT_FUNC)
#define GLOBAL ELF64_ST_INFO(STB_GLOBAL, STT_FUNC)
#define OBJECT ELF64_ST_INFO(STB_WEAK, STT_OBJECT)
#define ENTRY  sizeof(Elf64_Sym)

Test(callsite, a_weak_function_of_clang_may_be_replaced)
{
	const struct made_unit clang = { "a.c", "clang version 14", 0, false };
	const struct made_unit gcc = { "a.c", "GNU C17", 0, false };
	const struct {
		bool sees;
		struct made_section sections[2];
	} cases[] = {
#define SYMBOLS(count, ...) \
	SHT_SYMTAB, ENTRY, count, false, \
		(const struct made_symbol[]){ __VA_ARGS__ }
		{ false, { { SYMBOLS(1, { SITE, WEAK, false }) } } },
		{ true, { { SYMBOLS(1, { SITE, GLOBAL, false }) } } },
		{ true, { { SYMBOLS(1, { SITE + 1, WEAK, false }) } } },
		{ true, { { SYMBOLS(1, { SITE, OBJECT, false }) } } },
		{ true, { { SYMBOLS(1, { SITE, WEAK, true }) } } },
		{ true, { { SYMBOLS(0, { SITE, WEAK, false }) } } },
		/* The one that is not weak counts, wherever it is. */
		{ true,
		  { { SYMBOLS(2, { SITE, WEAK, false },
			      { SITE, GLOBAL, false }) } } },
		{ false,
		  { { SYMBOLS(2, { SITE + 8, GLOBAL, false },
			      { SITE, WEAK, false }) } } },
		/* Sections that are not the table of symbols, or damaged. */
		{ false,
		  { { SHT_DYNSYM, ENTRY, 1, false,
		      (const struct made_symbol[]){ { SITE, GLOBAL, false } } },
		    { SYMBOLS(1, { SITE, WEAK, false }) } } },
		{ true,
		  { { SHT_DYNSYM, ENTRY, 1, false,
		      (const struct made_symbol[]){
			      { SITE, WEAK, false } } } } },
		{ true,
		  { { SHT_SYMTAB, 0, 1, false,
		      (const struct made_symbol[]){
			      { SITE, WEAK, false } } } } },
		{ true,
		  { { SHT_SYMTAB, ENTRY, 1, true,
		      (const struct made_symbol[]){
			      { SITE, WEAK, false } } } } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sections = cases[i].sections;
		section_count = cases[i].sections[1].symbols ? 2 : 1;
		cr_expect(eq(int, sees(&clang, &clang), cases[i].sees),
			  "case %zu", i);
		/* gcc has made the calls of such a function as of any other. */
		cr_expect(sees(&gcc, &gcc), "case %zu", i);
	}
}
