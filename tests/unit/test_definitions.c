/*
 * The search for definitions of classes in the bytes of a unit, which the test makes: it is
 * libdw and libelf itself.
 */
#include "inspect/debuginfo/definitions.c"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdio.h>

/* --- a file --- */

#define HEADER 12 /* of a unit */
#define BASE   8  /* of its table of strings */
#define SHAPES 80
#define FORMS  4

/* An abbreviation; its number is its offset. */
struct made_shape {
	unsigned code;
	int tag;
	size_t count;
	struct {
		unsigned name, form;
	} attributes[FORMS];
};

static unsigned char info[4096], table[4096], strings[16384];
static struct made_shape shapes_made[SHAPES];
static size_t info_size, table_size, strings_size, shape_count;

/* What is wrong with the file. */
static struct {
	const char *missing; /* section */
	bool is_compressed, is_moved, has_no_sections, has_no_names,
		has_no_base;
	bool has_no_unit, has_damaged_shape;
	uint8_t offset_size;
	size_t more; /* bytes of the unit than of the file */
	Dwarf_Word base;
} made;

static const struct {
	const char *name;
	unsigned char *start;
	size_t *size;
} sections[] = {
	{ ".text", NULL, NULL },
	{ ".debug_info", info, &info_size },
	{ ".debug_str_offsets", table, &table_size },
	{ ".debug_str", strings, &strings_size },
};

Elf *dwarf_getelf(Dwarf *dwarf)
{
	return made.has_no_sections ? NULL : (Elf *)dwarf;
}

int elf_getshdrstrndx(Elf *elf, size_t *names)
{
	(void)elf;
	*names = 77;
	return made.has_no_names ? -1 : 0;
}

Elf_Scn *elf_nextscn(Elf *elf, Elf_Scn *section)
{
	uintptr_t next = (uintptr_t)section + 1;

	(void)elf;
	return next <= 4 ? (Elf_Scn *)next : NULL;
}

GElf_Shdr *gelf_getshdr(Elf_Scn *section, GElf_Shdr *header)
{
	*header = (GElf_Shdr){
		.sh_name = (GElf_Word)(uintptr_t)section,
		.sh_flags = made.is_compressed ? SHF_COMPRESSED : 0,
	};
	return header;
}

char *elf_strptr(Elf *elf, size_t names, size_t offset)
{
	const char *name = sections[offset - 1].name;

	(void)elf;
	cr_assert(eq(sz, names, 77));
	return made.missing && strcmp(made.missing, name) == 0 ? NULL :
								 (char *)name;
}

Elf_Data *elf_getdata(Elf_Scn *section, Elf_Data *before)
{
	static Elf_Data data[4];
	uintptr_t i = (uintptr_t)section - 1;

	(void)before;
	data[i].d_buf = sections[i].start;
	data[i].d_size = *sections[i].size;
	return &data[i];
}

const char *dwarf_getstring(Dwarf *dwarf, Dwarf_Off offset, size_t *length)
{
	(void)dwarf;
	(void)length;
	return (const char *)strings + offset + made.is_moved;
}

Dwarf *dwarf_cu_getdwarf(Dwarf_CU *cu)
{
	return (Dwarf *)cu;
}

Dwarf_Off dwarf_dieoffset(Dwarf_Die *die)
{
	(void)die;
	return HEADER;
}

Dwarf_Off dwarf_cuoffset(Dwarf_Die *die)
{
	(void)die;
	return HEADER;
}

int dwarf_next_unit(Dwarf *dwarf, Dwarf_Off offset, Dwarf_Off *next,
		    size_t *header_size, Dwarf_Half *version,
		    Dwarf_Off *abbreviations, uint8_t *address_size,
		    uint8_t *offset_size, uint64_t *signature, Dwarf_Off *type)
{
	(void)dwarf;
	(void)header_size;
	(void)version;
	(void)abbreviations;
	(void)address_size;
	(void)signature;
	(void)type;
	cr_assert(zero(u64, offset));
	*next = info_size + made.more;
	*offset_size = made.offset_size;
	return made.has_no_unit;
}

Dwarf_Attribute *dwarf_attr(Dwarf_Die *die, unsigned name,
			    Dwarf_Attribute *attribute)
{
	(void)die;
	cr_assert(eq(uint, name, DW_AT_str_offsets_base));
	return made.has_no_base ? NULL : attribute;
}

int dwarf_formudata(Dwarf_Attribute *attribute, Dwarf_Word *word)
{
	(void)attribute;
	*word = made.base;
	return 0;
}

Dwarf_Abbrev *dwarf_getabbrev(Dwarf_Die *unit, Dwarf_Off offset, size_t *length)
{
	(void)unit;
	*length = 1;
	if (offset == shape_count)
		return made.has_damaged_shape ? NULL : DWARF_END_ABBREV;
	return (Dwarf_Abbrev *)&shapes_made[offset];
}

static const struct made_shape *shape_of(const Dwarf_Abbrev *abbreviation)
{
	return (const void *)abbreviation;
}

unsigned dwarf_getabbrevtag(Dwarf_Abbrev *abbreviation)
{
	return (unsigned)shape_of(abbreviation)->tag;
}

unsigned dwarf_getabbrevcode(Dwarf_Abbrev *abbreviation)
{
	return shape_of(abbreviation)->code;
}

int dwarf_getattrcnt(Dwarf_Abbrev *abbreviation, size_t *count)
{
	*count = shape_of(abbreviation)->count;
	return 0;
}

int dwarf_getabbrevattr(Dwarf_Abbrev *abbreviation, size_t index,
			unsigned *name, unsigned *form, Dwarf_Off *offset)
{
	(void)offset;
	*name = shape_of(abbreviation)->attributes[index].name;
	*form = shape_of(abbreviation)->attributes[index].form;
	return 0;
}

/* --- making one --- */

static void put_word(unsigned char *at, size_t word)
{
	uint32_t value = (uint32_t)word;

	memcpy(at, &value, sizeof(value));
}

static void empty_file(void)
{
	memset(&made, 0, sizeof(made));
	made.offset_size = 4;
	made.base = BASE;
	info_size = HEADER;
	shape_count = 0;
	strings_size = 1; /* the empty string */
	table_size = BASE;
	put_word(table, 4);
	definitions_forget();
}

static void add_bytes(const void *bytes, size_t count)
{
	memcpy(info + info_size, bytes, count);
	info_size += count;
}

/* Adds the string, and an index of its part from @from on; returns the index. */
static uint32_t add_index(const char *string, size_t from)
{
	put_word(table + table_size, strings_size + from);
	table_size += 4;
	put_word(table, table_size - 4);
	memcpy(strings + strings_size, string, strlen(string) + 1);
	strings_size += strlen(string) + 1;
	return (uint32_t)(table_size - BASE) / 4 - 1;
}

static void add_shape(struct made_shape shape)
{
	shapes_made[shape_count++] = shape;
}

#define CLASS(code, form) \
	{ \
		code, DW_TAG_class_type, 1, \
		{ \
			{ \
				DW_AT_name, form \
			} \
		} \
	}

static Dwarf_Off found[32];

static size_t find_some(const char *name, size_t room)
{
	static char file;
	Dwarf_Die unit = { .addr = info + HEADER, .cu = (Dwarf_CU *)&file };

	return definitions_find(&unit, name, room, found);
}

static size_t find(const char *name)
{
	return find_some(name, 32);
}

/* A file with one definition of "name", which is found. */
static void usual_file(void)
{
	empty_file();
	add_shape((struct made_shape)CLASS(9, DW_FORM_strx1));
	add_index("other", 0);
	add_index("name", 0);
	add_bytes("\x1\x2\x9\x0\x9\x1\x3", 7);
}

/* --- what is found --- */

Test(definitions, a_definition_is_at_its_offset)
{
	usual_file();
	cr_assert(eq(sz, find("name"), 1));
	cr_expect(eq(u64, found[0], HEADER + 4));
	cr_assert(eq(sz, find("other"), 1));
	cr_expect(eq(u64, found[0], HEADER + 2));
	cr_expect(zero(sz, find("nam")));
	cr_expect(zero(sz, find("xname")));
}

/* Sizes of forms that may be in front of the name; 99: they are not understood. */
static const struct {
	unsigned form;
	size_t size;
} forms[] = {
	{ DW_FORM_flag_present, 0 }, { DW_FORM_implicit_const, 0 },
	{ DW_FORM_data1, 1 },	     { DW_FORM_flag, 1 },
	{ DW_FORM_ref1, 1 },	     { DW_FORM_strx1, 1 },
	{ DW_FORM_data2, 2 },	     { DW_FORM_ref2, 2 },
	{ DW_FORM_strx2, 2 },	     { DW_FORM_strx3, 3 },
	{ DW_FORM_data4, 4 },	     { DW_FORM_ref4, 4 },
	{ DW_FORM_strx4, 4 },	     { DW_FORM_data8, 8 },
	{ DW_FORM_ref8, 8 },	     { DW_FORM_udata, 99 },
	{ DW_FORM_string, 99 },	     { DW_FORM_strp, 99 },
};

Test(definitions, attributes_in_front_of_the_name_have_their_sizes)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct made_shape shape = CLASS(0x9, DW_FORM_strx1);

		empty_file();
		shape.count = 3;
		shape.attributes[1].name = DW_AT_name;
		shape.attributes[1].form = DW_FORM_strx1;
		shape.attributes[0].name = DW_AT_decl_line;
		shape.attributes[0].form = forms[i].form;
		/* Those behind it do not matter. */
		shape.attributes[2].form = DW_FORM_block;
		add_shape(shape);
		add_index("other", 0);
		add_index("name", 0);
		add_bytes("\x9\x5\x5\x5\x5\x5\x5\x5\x5", 1 + forms[i].size % 9);
		add_bytes("\x1\x6", 2);
		if (forms[i].size == 99) {
			cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN),
				  "%zu", i);
			continue;
		}
		cr_assert(eq(sz, find("name"), 1), "%zu", i);
		cr_expect(eq(u64, found[0], HEADER), "%zu", i);
	}
}

Test(definitions, an_index_has_one_to_four_bytes)
{
	static const unsigned index_forms[] = { DW_FORM_strx1, DW_FORM_strx2,
						DW_FORM_strx3, DW_FORM_strx4 };

	for (unsigned size = 1; size <= 4; size++) {
		uint32_t index = 0;

		empty_file();
		add_shape((struct made_shape)CLASS(9, index_forms[size - 1]));
		/* The index has two bytes, except where there is only one. */
		for (unsigned i = 0; i < (size == 1 ? 7 : 0x123); i++)
			index = add_index("o", 0);
		index = add_index("name", 0);
		add_bytes("\x9", 1);
		add_bytes(&index, size);
		cr_assert(eq(sz, find("name"), 1), "%u", size);
		cr_expect(eq(u64, found[0], HEADER), "%u", size);
	}
}

Test(definitions, an_index_that_does_not_fit_into_a_form_is_not_there)
{
	empty_file();
	add_shape((struct made_shape)CLASS(9, DW_FORM_strx1));
	for (unsigned i = 0; i < 0x103; i++)
		add_index("o", 0);
	cr_assert(eq(u32, add_index("name", 0), 0x103));
	add_bytes("\x9\x3\x1", 3);
	cr_expect(zero(sz, find("name")));
}

Test(definitions, codes_of_abbreviations_have_seven_bits_a_byte)
{
	static const struct {
		unsigned code;
		const char *bytes;
	} codes[] = { { 1, "\x1" },	      { 0x7f, "\x7f" },
		      { 0x80, "\x80\x1" },    { 0xff, "\xff\x1" },
		      { 0x1234, "\xb4\x24" }, { 0x4000, "\x80\x80\x1" } };

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		empty_file();
		add_shape(
			(struct made_shape)CLASS(codes[i].code, DW_FORM_strx1));
		add_index("name", 0);
		add_bytes("\x55", 1);
		add_bytes(codes[i].bytes, strlen(codes[i].bytes));
		add_bytes("\x0", 1);
		cr_assert(eq(sz, find("name"), 1), "%zu", i);
		cr_expect(eq(u64, found[0], HEADER + 1), "%zu", i);
	}
}

/* Where the first byte of an index is again, and at the end of the unit. */
Test(definitions, bytes_that_begin_as_an_index_hide_none)
{
	empty_file();
	add_shape((struct made_shape)CLASS(1, DW_FORM_strx1));
	add_index("other", 0);
	add_index("name", 0);
	add_bytes("\x55\x1\x1", 3);
	cr_assert(eq(sz, find("name"), 1));
	cr_expect(eq(u64, found[0], HEADER + 1));
	empty_file();
	add_shape((struct made_shape)CLASS(9, DW_FORM_strx2));
	for (unsigned i = 0; i < 0x201; i++)
		add_index("o", 0);
	cr_assert(eq(u32, add_index("name", 0), 0x201));
	add_bytes("\x9\x1\x1\x1\x9\x1\x2", 7);
	cr_assert(eq(sz, find("name"), 1));
	cr_expect(eq(u64, found[0], HEADER + 4));
}

Test(definitions, no_definition_begins_in_the_header_of_the_unit)
{
	/* What would be the code is in the unit's header. */
	usual_file();
	info[HEADER - 1] = 9;
	info[HEADER] = 1;
	cr_expect(eq(sz, find("name"), 1));
}

/* --- names --- */

Test(definitions, a_scope_may_be_outside_of_the_name)
{
	static const struct {
		const char *string, *name;
		size_t from;
		bool is_found;
	} names[] = {
		{ "b", "a::b", 0, true },
		{ "a::b", "a::b", 0, true },
		{ "a::b", "x::a::b", 0, true },
		{ "a::b", "xa::b", 3, true },
		{ "a::b", "xa::b", 0, false },
		{ "::b", "a::b", 0, false },
		{ ":b", "a::b", 0, false },
		{ "a", "a::b", 0, false },
		/* Linkers let strings share their ends. */
		{ "other_b", "a::b", 6, true },
		{ "xa::b", "a::b", 1, true },
		{ "xa::b", "a::b", 4, true },
		{ "xa::b", "a::b", 0, false },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		empty_file();
		add_shape((struct made_shape)CLASS(9, DW_FORM_strx1));
		add_index("first", 0);
		add_index(names[i].string, names[i].from);
		add_bytes("\x9\x1", 2);
		cr_expect(eq(sz, find(names[i].name), names[i].is_found), "%zu",
			  i);
	}
}

Test(definitions, names_of_up_to_511_bytes_are_found)
{
	char name[NAME_MAX + 1];

	memset(name, 'n', sizeof(name));
	name[NAME_MAX - 1] = '\0';
	usual_file();
	add_index(name, 0);
	add_bytes("\x9\x2", 2);
	cr_expect(eq(sz, find(name), 1));
	name[NAME_MAX - 1] = 'n';
	name[NAME_MAX] = '\0';
	cr_expect(eq(sz, find(name), DEFINITIONS_UNKNOWN));
}

Test(definitions, a_name_without_a_last_part_may_be_everywhere)
{
	usual_file();
	cr_expect(eq(sz, find("name::"), DEFINITIONS_UNKNOWN));
	cr_expect(eq(sz, find(""), DEFINITIONS_UNKNOWN));
}

/* --- abbreviations --- */

Test(definitions, classes_unions_and_enumerations_are_definitions)
{
	static const struct {
		int tag;
		bool is_class;
	} tags[] = {
		{ DW_TAG_class_type, true },  { DW_TAG_structure_type, true },
		{ DW_TAG_union_type, true },  { DW_TAG_enumeration_type, true },
		{ DW_TAG_typedef, false },    { DW_TAG_base_type, false },
		{ DW_TAG_array_type, false }, { DW_TAG_subprogram, false }
	};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		usual_file();
		shapes_made[0].tag = tags[i].tag;
		cr_expect(eq(sz, find("name"), tags[i].is_class), "%zu", i);
	}
}

static size_t find_with(unsigned attribute, unsigned form)
{
	usual_file();
	shapes_made[0].count = 2;
	shapes_made[0].attributes[1].name = attribute;
	shapes_made[0].attributes[1].form = form;
	return find("name");
}

Test(definitions, declarations_and_nameless_classes_are_none)
{
	cr_expect(eq(sz, find_with(DW_AT_decl_line, DW_FORM_data1), 1));
	cr_expect(zero(sz, find_with(DW_AT_declaration, DW_FORM_flag_present)));
	/* The name of the class is that of another DIE, or not. */
	cr_expect(eq(sz, find_with(DW_AT_specification, DW_FORM_ref4), 1));
	usual_file();
	shapes_made[0].attributes[0].name = DW_AT_decl_line;
	cr_expect(zero(sz, find("name")));
	shapes_made[0].attributes[0].name = DW_AT_specification;
	cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN));
	shapes_made[0].attributes[0].name = DW_AT_abstract_origin;
	cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN));
	/* The first name counts. */
	cr_expect(eq(sz, find_with(DW_AT_name, DW_FORM_strx4), 1));
}

Test(definitions, a_name_that_is_no_index_may_be_anything)
{
	usual_file();
	shapes_made[0].attributes[0].form = DW_FORM_strp;
	cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN));
	shapes_made[0].attributes[0].form = DW_FORM_data1;
	cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN));
}

/* --- limits --- */

Test(definitions, too_many_of_anything_are_unknown)
{
	usual_file();
	while (shape_count < SHAPES_MAX)
		add_shape((struct made_shape)CLASS(77, DW_FORM_strx1));
	cr_expect(eq(sz, find("name"), 1));
	add_shape((struct made_shape)CLASS(77, DW_FORM_strx1));
	cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN));

	usual_file();
	for (unsigned i = 1; i < INDICES_MAX; i++)
		add_index("name", 0);
	cr_expect(eq(sz, find("name"), 1));
	definitions_forget();
	add_index("name", 0);
	cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN));

	usual_file();
	for (unsigned i = 1; i < STRINGS_MAX; i++) {
		memcpy(strings + strings_size, "name", 5);
		strings_size += 5;
	}
	cr_expect(eq(sz, find("name"), 1));
	definitions_forget();
	memcpy(strings + strings_size, "name", 5);
	strings_size += 5;
	cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN));
}

Test(definitions, there_is_room_for_as_many_as_the_caller_says)
{
	usual_file();
	add_bytes("\x9\x1\x9\x1", 4);
	cr_expect(eq(sz, find_some("name", 3), 3));
	cr_expect(eq(u64, found[2], HEADER + 9));
	found[2] = 77;
	cr_expect(eq(sz, find_some("name", 2), DEFINITIONS_UNKNOWN));
	cr_expect(eq(u64, found[2], 77));
}

/* --- damage --- */

Test(definitions, the_table_of_a_unit_is_in_its_section)
{
	static const struct {
		Dwarf_Word base;
		uint32_t length;
		size_t found;
	} tables[] = {
		{ BASE, 12, 1 }, /* to the end of the section */
		{ BASE, 13, DEFINITIONS_UNKNOWN },
		{ BASE, 8, 0 }, /* it ends before the name */
		{ BASE, 4, 0 },
		{ BASE, 3, DEFINITIONS_UNKNOWN },
		{ BASE - 1, 12, DEFINITIONS_UNKNOWN },
		{ 16, 12, DEFINITIONS_UNKNOWN },
		{ 17, 12, DEFINITIONS_UNKNOWN },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		usual_file();
		made.base = tables[i].base;
		put_word(table, tables[i].length);
		cr_expect(eq(sz, find("name"), tables[i].found), "%zu", i);
	}
	/* An empty table at the end of the section. */
	usual_file();
	made.base = table_size;
	put_word(table + table_size - 8, 4);
	cr_expect(zero(sz, find("name")));
}

#define UNKNOWN_WITH(field, value) \
	do { \
		usual_file(); \
		made.field = value; \
		cr_expect(eq(sz, find("name"), DEFINITIONS_UNKNOWN), \
			  #field " %s", #value); \
	} while (0)

Test(definitions, in_a_file_that_is_not_understood_all_is_unknown)
{
	UNKNOWN_WITH(missing, ".debug_info");
	UNKNOWN_WITH(missing, ".debug_str_offsets");
	UNKNOWN_WITH(missing, ".debug_str");
	UNKNOWN_WITH(is_compressed, true);
	UNKNOWN_WITH(is_moved, true);
	UNKNOWN_WITH(has_no_sections, true);
	UNKNOWN_WITH(has_no_names, true);
	UNKNOWN_WITH(has_no_base, true);
	UNKNOWN_WITH(has_no_unit, true);
	UNKNOWN_WITH(has_damaged_shape, true);
	UNKNOWN_WITH(offset_size, 8);
	UNKNOWN_WITH(more, 1);
	usual_file();
	cr_expect(eq(sz, find("name"), 1));
}
