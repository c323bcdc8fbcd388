/*
 * Decodes one instruction with Zydis, and finds the target of a branch.
 */
#define _GNU_SOURCE
#include "inspect/decode/instruction.h"

#include <link.h>
#include <string.h>

/* --- PLT and GOT --- */

struct names {
	const ElfW(Rela) * relocations[2];
	size_t sizes[2];
	const ElfW(Sym) * symbols;
	const char *strings;
};

/* glibc has relocated these addresses. */
static void read_dynamic(const ElfW(Dyn) * entry, struct names *names)
{
	for (; entry->d_tag != DT_NULL; entry++) {
		void *address = (void *)entry->d_un.d_ptr;

		switch (entry->d_tag) {
		case DT_JMPREL: names->relocations[0] = address; break;
		case DT_PLTRELSZ: names->sizes[0] = entry->d_un.d_val; break;
		case DT_RELA: names->relocations[1] = address; break;
		case DT_RELASZ: names->sizes[1] = entry->d_un.d_val; break;
		case DT_SYMTAB: names->symbols = address; break;
		case DT_STRTAB: names->strings = address; break;
		}
	}
}

/* Finds the relocation of the slot and compares its symbol, so the slot need not be
 * bound. */
bool instruction_is_slot_of(const uintptr_t *slot, const char *name)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
	struct dl_find_object object;
	struct names names = { .symbols = NULL };

	if (_dl_find_object((void *)slot, &object) != 0)
		return false;
	read_dynamic(object.dlfo_link_map->l_ld, &names);
	for (int table = 0; table < 2; table++) {
		const ElfW(Rela) *at = names.relocations[table];
		size_t count = names.sizes[table] / sizeof(*at);

		for (size_t i = 0; at && i < count; i++) {
			const ElfW(Sym) *symbol =
				&names.symbols[ELF64_R_SYM(at[i].r_info)];

			if (at[i].r_offset + object.dlfo_link_map->l_addr ==
			    (uintptr_t)slot)
				return strcmp(names.strings + symbol->st_name,
					      name) == 0;
		}
	}
#else
	(void)slot, (void)name;
#endif
	return false;
}

/* --- instructions --- */

bool instruction_decode_copy(struct instruction *instruction, uintptr_t at,
			     const unsigned char *copy, size_t size)
{
	static ZydisDecoder decoder;
	static bool is_ready; /* a zeroed decoder has wrong modes */

	if (!is_ready)
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
				 ZYDIS_STACK_WIDTH_64);
	is_ready = true;
	instruction->at = at;
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, copy, size,
						   &instruction->head,
						   instruction->operands));
}

#define TRAP 0xcc
#define PAGE 4096u

static void (*restore_code)(uintptr_t address, unsigned char *copy,
			    size_t size);

void instruction_start(void (*restore)(uintptr_t address, unsigned char *copy,
				       size_t size))
{
	restore_code = restore;
}

/* Behind a trap that is taken for an instruction, operands would be read as instructions,
 * and their targets may be anywhere. */
static bool decode_trapped(struct instruction *instruction, uintptr_t at)
{
	unsigned char copy[ZYDIS_MAX_INSTRUCTION_LENGTH];
	size_t size = PAGE - at % PAGE;

	if (size > sizeof(copy))
		size = sizeof(copy);
	memcpy(copy, (const void *)at, size);
	if (restore_code)
		restore_code(at, copy, size);
	return copy[0] != TRAP &&
	       instruction_decode_copy(instruction, at, copy, size);
}

/* A target that is unknown is 0. */
bool instruction_decode(struct instruction *instruction, uintptr_t at)
{
	if (at == 0)
		return false;
	if (*(const unsigned char *)at == TRAP)
		return decode_trapped(instruction, at);
	return instruction_decode_copy(instruction, at, (void *)at,
				       ZYDIS_MAX_INSTRUCTION_LENGTH);
}

uintptr_t instruction_next(const struct instruction *instruction)
{
	return instruction->at + instruction->head.length;
}

bool instruction_is_register(const ZydisDecodedOperand *operand,
			     ZydisRegister wanted)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       operand->reg.value == wanted;
}

int instruction_register_number(ZydisRegister given)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(
		ZYDIS_MACHINE_MODE_LONG_64, given);
	int number = ZydisRegisterGetId(whole);

	switch (ZydisRegisterGetClass(whole)) {
	case ZYDIS_REGCLASS_GPR64: return number;
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM: return number < 16 ? 16 + number : -1;
	default: return -1;
	}
}

void instruction_target(const struct instruction *branch, uintptr_t *target,
			const uintptr_t **slot)
{
	const ZydisDecodedOperand *operand = &branch->operands[0];

	*target = 0;
	*slot = NULL;
	if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	    operand->imm.is_relative)
		*target = instruction_next(branch) +
			  (uintptr_t)operand->imm.value.s;
	if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY &&
	    operand->mem.base == ZYDIS_REGISTER_RIP &&
	    operand->mem.index == ZYDIS_REGISTER_NONE)
		*slot = (const uintptr_t *)(instruction_next(branch) +
					    (uintptr_t)operand->mem.disp.value);
}

const uintptr_t *instruction_slot_behind(uintptr_t target)
{
	struct instruction instruction;
	const uintptr_t *slot;
	uintptr_t none;

	for (int i = 0; i < 2 && instruction_decode(&instruction, target);
	     i++) {
		target = instruction_next(&instruction);
		if (instruction.head.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
			continue;
		if (instruction.head.mnemonic != ZYDIS_MNEMONIC_JMP)
			break;
		instruction_target(&instruction, &none, &slot);
		return slot;
	}
	return NULL;
}
