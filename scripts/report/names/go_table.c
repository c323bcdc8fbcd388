/*
 * Reads .gopclntab as the linkers of Go 1.16 to 1.17, 1.18 to 1.19, and 1.20 and later
 * write it: a head with the offsets of its parts, an index of functions sorted by address,
 * a record for each function, and values that change from address to address as pairs of
 * differences.  A file may say anything: each access is checked.
 */
#include <gelf.h>
#include <stddef.h>
#include <string.h>

#include "names/go_table.h"

#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

/* Offsets in a record behind the address of its function. */
#define RECORD_NAME  0
#define RECORD_FILES 16
#define RECORD_LINES 20
#define RECORD_UNIT  28

static struct {
	Elf *elf; /* whose table this is; NULL: none was sought */
	const unsigned char *data;
	uint64_t size;	  /* 0: there is no table */
	bool is_relative; /* addresses have 4 bytes and are relative to @text */
	unsigned step;	  /* differences of addresses are multiples of it */
	uint64_t text, count;
	/* offsets of the parts */
	uint64_t names, units, files, values, functions;
} table;

/* --- numbers --- */

/* 0 outside of the table. */
static uint64_t number_at(uint64_t at, unsigned size)
{
	uint64_t number = 0;

	if (at <= table.size && table.size - at >= size)
		memcpy(&number, table.data + at, size);
	return number;
}

/* A text with an end, or NULL. */
static const char *text_at(uint64_t at)
{
	return at < table.size && memchr(table.data + at, 0, table.size - at) ?
		       (const char *)table.data + at :
		       NULL;
}

static bool read_varint(uint64_t *at, uint32_t *number)
{
	unsigned shift;

	*number = 0;
	for (shift = 0; shift < 35 && *at < table.size; shift += 7) {
		unsigned char byte = table.data[(*at)++];

		*number |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* --- the table --- */

static uint64_t text_section(Elf *elf, const char *wanted, Elf_Data **data)
{
	Elf_Scn *section = NULL;
	size_t strings;
	GElf_Shdr header;
	const char *name;

	if (elf_getshdrstrndx(elf, &strings) != 0)
		return 0;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		name = gelf_getshdr(section, &header) ?
			       elf_strptr(elf, strings, header.sh_name) :
			       NULL;
		if (!name || strcmp(name, wanted))
			continue;
		*data = elf_rawdata(section, NULL);
		return header.sh_addr;
	}
	return 0;
}

/* The offsets of the parts begin at @at. */
static void read_parts(uint64_t at)
{
	table.names = number_at(at, 8);
	table.units = number_at(at + 8, 8);
	table.files = number_at(at + 16, 8);
	table.values = number_at(at + 24, 8);
	table.functions = number_at(at + 32, 8);
}

static void read_head(Elf *elf)
{
	uint64_t magic = number_at(0, 4);
	Elf_Data *text = NULL;
	uint64_t start;

	table.step = (unsigned)number_at(6, 1);
	table.count = number_at(8, 8);
	table.is_relative = magic != MAGIC_1_16;
	if (!table.is_relative) {
		read_parts(24);
	} else {
		table.text = number_at(24, 8);
		read_parts(32);
		/* The loader would write it into position-independent code. */
		start = text_section(elf, ".text", &text);
		if (!table.text)
			table.text = start;
	}
	if ((magic != MAGIC_1_16 && magic != MAGIC_1_18 &&
	     magic != MAGIC_1_20) ||
	    number_at(7, 1) != 8 || table.count > table.size)
		table.size = 0;
}

bool go_table_is_there(Elf *elf)
{
	Elf_Data *data = NULL;

	if (elf && table.elf != elf) {
		table.elf = elf;
		text_section(elf, ".gopclntab", &data);
		if (!data)
			text_section(elf, ".data.rel.ro.gopclntab", &data);
		table.data = data ? data->d_buf : NULL;
		table.size = table.data ? data->d_size : 0;
		if (table.size)
			read_head(elf);
	}
	return elf && table.size > 0;
}

/* --- functions --- */

static unsigned address_size(void)
{
	return table.is_relative ? 4 : 8;
}

static uint64_t start_of(uint64_t number)
{
	unsigned size = address_size();

	return table.text +
	       number_at(table.functions + number * 2 * size, size);
}

bool go_table_function(Elf *elf, uint64_t address, struct go_function *function)
{
	uint64_t low = 0, high, middle;
	unsigned size;

	if (!go_table_is_there(elf))
		return false;
	size = address_size();
	high = table.count;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (start_of(middle) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* (Behind the last function stands its end.) */
	if (low == 0 || start_of(low) <= address)
		return false;
	function->start = start_of(low - 1);
	function->record = table.functions +
			   number_at(table.functions + (2 * low - 1) * size,
				     size);
	if (function->record < table.functions)
		return false;
	function->name = text_at(
		table.names +
		number_at(function->record + size + RECORD_NAME, 4));
	return function->name && *function->name;
}

/* --- lines --- */

/* The value at @address in the list at @at, or -1. */
static int32_t value_at(uint64_t at, uint64_t pc, uint64_t address)
{
	uint32_t change, distance, value = UINT32_MAX;
	bool is_first = true;

	/* (Every pair takes two bytes at least, so this ends.) */
	while (read_varint(&at, &change) && (change || is_first) &&
	       read_varint(&at, &distance)) {
		is_first = false;
		value += change & 1 ? ~(change >> 1) : change >> 1;
		pc += (uint64_t)distance * table.step;
		if (address < pc)
			return (int32_t)value;
	}
	return -1;
}

static int32_t value_of(const struct go_function *function, unsigned field,
			uint64_t address)
{
	uint64_t offset = number_at(function->record + address_size() + field,
				    4);

	return offset ? value_at(table.values + offset, function->start,
				 address) :
			-1;
}

bool go_table_line(const struct go_function *function, uint64_t address,
		   const char **file, int *line)
{
	int32_t number = value_of(function, RECORD_FILES, address);
	uint64_t unit = number_at(
		function->record + address_size() + RECORD_UNIT, 4);

	*line = value_of(function, RECORD_LINES, address);
	if (number < 0 || *line <= 0)
		return false;
	*file = text_at(
		table.files +
		number_at(table.units + 4 * (unit + (uint32_t)number), 4));
	return *file && **file;
}
