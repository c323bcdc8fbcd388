/*
 * Disassembles code with Zydis, if the report was built with it.  Bytes that are no
 * instruction are shown as such, one at a time.
 */
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "names/elf_code.h"

#ifdef SHIM_REPORT_HAS_ZYDIS
#include <Zydis/Zydis.h>
#endif

const unsigned char *code_find(Elf *elf, uint64_t begin, uint64_t *size)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf_Data *data;

	while ((section = elf_nextscn(elf, section)) != NULL) {
		if (!gelf_getshdr(section, &header) ||
		    header.sh_type != SHT_PROGBITS ||
		    !(header.sh_flags & SHF_EXECINSTR) ||
		    begin < header.sh_addr ||
		    begin - header.sh_addr >= header.sh_size)
			continue;
		data = elf_rawdata(section, NULL);
		if (!data || !data->d_buf ||
		    begin - header.sh_addr >= data->d_size)
			return NULL;
		*size = data->d_size - (begin - header.sh_addr);
		return (const unsigned char *)data->d_buf +
		       (begin - header.sh_addr);
	}
	return NULL;
}

bool code_is_readable(Elf *elf)
{
	GElf_Ehdr header;

	return elf && gelf_getehdr(elf, &header) &&
	       header.e_machine == EM_X86_64;
}

#ifdef SHIM_REPORT_HAS_ZYDIS

static uint64_t target_of(const ZydisDecodedInstruction *decoded,
			  const ZydisDecodedOperand *operands, uint64_t address)
{
	ZyanU64 target = 0;
	bool is_jump = decoded->meta.category == ZYDIS_CATEGORY_COND_BR ||
		       decoded->meta.category == ZYDIS_CATEGORY_UNCOND_BR ||
		       decoded->meta.category == ZYDIS_CATEGORY_CALL;

	if (!is_jump || decoded->operand_count_visible == 0 ||
	    operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE ||
	    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(decoded, &operands[0],
						   address, &target)))
		return 0;
	return target;
}

/* Returns the size of the instruction. */
static uint64_t read_one(const ZydisDecoder *decoder,
			 const ZydisFormatter *formatter,
			 const unsigned char *bytes, uint64_t size,
			 uint64_t address, take_instruction *take)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction decoded;
	char text[256];

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, bytes, size, &decoded,
						 operands)) ||
	    !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
		    formatter, &decoded, operands,
		    decoded.operand_count_visible, text, sizeof(text), address,
		    NULL))) {
		snprintf(text, sizeof(text), "(bad) 0x%02x", bytes[0]);
		take(address, 0, text);
		return 1;
	}
	take(address, target_of(&decoded, operands, address), text);
	return decoded.length;
}

enum names_code code_read(Elf *elf, uint64_t begin, uint64_t end,
			  take_instruction *take)
{
	ZydisFormatter formatter;
	ZydisDecoder decoder;
	uint64_t size = 0, at;
	const unsigned char *code;

	if (!code_is_readable(elf) || end <= begin)
		return NAMES_CODE_IS_MISSING;
	code = code_find(elf, begin, &size);
	if (!code)
		return NAMES_CODE_IS_MISSING;
	if (size > end - begin)
		size = end - begin;
	if (size > CODE_MOST)
		size = CODE_MOST;
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisFormatterInit(&formatter,
					     ZYDIS_FORMATTER_STYLE_INTEL)))
		return NAMES_CODE_IS_NOT_READ;
	ZydisFormatterSetProperty(&formatter,
				  ZYDIS_FORMATTER_PROP_ADDR_PADDING_ABSOLUTE,
				  ZYDIS_PADDING_DISABLED);
	ZydisFormatterSetProperty(
		&formatter, ZYDIS_FORMATTER_PROP_HEX_UPPERCASE, ZYAN_FALSE);
	for (at = 0; at < size;)
		at += read_one(&decoder, &formatter, code + at, size - at,
			       begin + at, take);
	return NAMES_CODE_IS_READ;
}

#else

enum names_code code_read(Elf *elf, uint64_t begin, uint64_t end,
			  take_instruction *take)
{
	(void)elf;
	(void)begin;
	(void)end;
	(void)take;
	return NAMES_CODE_IS_NOT_READ;
}

#endif
