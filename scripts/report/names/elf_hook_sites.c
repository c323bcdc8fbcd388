/*
 * Finds instructions that exist only to call the hooks of -finstrument-functions.
 *
 * The code of each function is disassembled from its start.  From a call of a hook, or
 * a jump there, the search goes back to the instructions that load its two arguments,
 * and to those that these get their values from.  It ends at the previous jump or call.
 */
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "names/elf_code.h"
#include "names/elf_hook_sites.h"
#include "names/plt.h"

#ifdef SHIM_REPORT_HAS_ZYDIS
#include <Zydis/Zydis.h>

/* How many instructions before the call are searched. */
#define BACK 8
/* After a call, the processor waits at the function's first instructions, whatever these
 * are.  So they are not marked. */
#define FIRST 2
/* Limit for one request: a hostile file must not take minutes. */
#define STEPS_MAX 20000000
/* The code after the last address that can hold its call. */
#define AHEAD 128

#define SLOTS_MAX 8

struct decoded {
	uint64_t address;
	unsigned writes, reads; /* sets of general registers, by number */
	bool is_first;
};

struct search {
	Elf *elf;
	ZydisDecoder decoder;
	uint64_t slots[SLOTS_MAX]; /* GOT slots of hooks */
	uint32_t slot_count;
	struct decoded before[BACK]; /* the last instructions, since a jump */
	uint32_t before_count;	     /* all of them */
	uint32_t number;	     /* of the instruction in its function */
	const uint64_t *addresses;
	uint32_t count; /* of the addresses in this function */
	bool *is_site;
	uint64_t steps;
};

static void mark(struct search *search, uint64_t address)
{
	uint32_t low = 0, high = search->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (search->addresses[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < search->count && search->addresses[low] == address)
		search->is_site[low] = true;
}

/* The set that has the general register of which @name is a part. */
static unsigned set_of(ZydisRegister name)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(
		ZYDIS_MACHINE_MODE_LONG_64, name);
	ZyanI8 number;

	if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64)
		return 0;
	number = ZydisRegisterGetId(whole);
	return number < 0 ? 0 : 1u << number;
}

/* Moves and address computations, of which arguments are made.  (What the stack's and the
 * frame's pointer point to needs no other instruction.) */
static void keep(struct search *search,
		 const ZydisDecodedInstruction *instruction,
		 const ZydisDecodedOperand *operands, uint64_t address)
{
	struct decoded *kept = &search->before[search->before_count++ % BACK];
	const unsigned pointers = set_of(ZYDIS_REGISTER_RSP) |
				  set_of(ZYDIS_REGISTER_RBP);

	*kept = (struct decoded){ .address = address,
				  .is_first = search->number < FIRST };
	if ((instruction->mnemonic != ZYDIS_MNEMONIC_MOV &&
	     instruction->mnemonic != ZYDIS_MNEMONIC_LEA) ||
	    instruction->operand_count_visible != 2 ||
	    operands[0].type != ZYDIS_OPERAND_TYPE_REGISTER)
		return;
	kept->writes = set_of(operands[0].reg.value);
	if (operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
		kept->reads = set_of(operands[1].reg.value);
	else if (operands[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
		kept->reads = (set_of(operands[1].mem.base) |
			       set_of(operands[1].mem.index)) &
			      ~pointers;
}

static void take_site(struct search *search, uint64_t address)
{
	unsigned wanted = set_of(ZYDIS_REGISTER_RDI) |
			  set_of(ZYDIS_REGISTER_RSI);
	uint32_t i, most = search->before_count < BACK ? search->before_count :
							 BACK;

	mark(search, address);
	for (i = 1; i <= most && wanted; i++) {
		const struct decoded *at =
			&search->before[(search->before_count - i) % BACK];

		if (!(at->writes & wanted))
			continue;
		wanted = (wanted & ~at->writes) | at->reads;
		if (!at->is_first)
			mark(search, at->address);
	}
}

static bool is_hook_slot(const struct search *search, uint64_t slot)
{
	uint32_t i;

	for (i = 0; i < search->slot_count; i++)
		if (search->slots[i] == slot)
			return true;
	return false;
}

/* Calls and jumps to a hook go through its slot, directly or from the linkage table. */
static bool is_to_hook(const struct search *search,
		       const ZydisDecodedInstruction *instruction,
		       const ZydisDecodedOperand *operands, uint64_t address)
{
	ZyanU64 target;
	uint64_t slot;

	if ((instruction->meta.category != ZYDIS_CATEGORY_CALL &&
	     instruction->meta.category != ZYDIS_CATEGORY_UNCOND_BR) ||
	    !ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(instruction, &operands[0],
						   address, &target)))
		return false;
	if (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		return is_hook_slot(search, target);
	return operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
	       plt_slot(search->elf, target, &slot) &&
	       is_hook_slot(search, slot);
}

static bool is_jump(const ZydisDecodedInstruction *instruction)
{
	switch (instruction->meta.category) {
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_COND_BR:
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_RET: return true;
	default: return false;
	}
}

static void read_function(struct search *search, uint64_t start, uint64_t end)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction instruction;
	uint64_t size = 0, at;
	const unsigned char *code = code_find(search->elf, start, &size);

	if (!code)
		return;
	if (size > end - start)
		size = end - start;
	if (size > CODE_MOST)
		size = CODE_MOST;
	search->before_count = search->number = 0;
	for (at = 0; at < size && search->steps++ < STEPS_MAX;
	     at += instruction.length, search->number++) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(
			    &search->decoder, code + at, size - at,
			    &instruction, operands)))
			return;
		if (!is_jump(&instruction)) {
			keep(search, &instruction, operands, start + at);
			continue;
		}
		if (is_to_hook(search, &instruction, operands, start + at))
			take_site(search, start + at);
		search->before_count = 0;
	}
}

static bool is_hook(const char *name)
{
	return !strcmp(name, "__cyg_profile_func_enter") ||
	       !strcmp(name, "__cyg_profile_func_exit");
}

static uint32_t hook_slots(Elf *elf, uint64_t *slots)
{
	return code_is_readable(elf) ?
		       plt_slots(elf, is_hook, slots, SLOTS_MAX) :
		       0;
}

bool hook_sites_may_be_there(Elf *elf)
{
	uint64_t slots[SLOTS_MAX];

	return hook_slots(elf, slots) > 0;
}

void hook_sites_find(Elf *elf, const uint64_t *addresses,
		     const uint64_t *starts, uint32_t count, bool *is_site)
{
	struct search search = { .elf = elf };
	uint32_t first, end;

	search.slot_count = hook_slots(elf, search.slots);
	if (!search.slot_count ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&search.decoder,
					   ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)))
		return;
	for (first = 0; first < count; first = end) {
		for (end = first + 1;
		     end < count && starts[end] == starts[first];)
			end++;
		if (!starts[first] || starts[first] > addresses[first])
			continue;
		search.addresses = addresses + first;
		search.is_site = is_site + first;
		search.count = end - first;
		read_function(&search, starts[first],
			      addresses[end - 1] + AHEAD);
	}
}

#else

bool hook_sites_may_be_there(Elf *elf)
{
	(void)elf;
	return false;
}

void hook_sites_find(Elf *elf, const uint64_t *addresses,
		     const uint64_t *starts, uint32_t count, bool *is_site)
{
	(void)elf;
	(void)addresses;
	(void)starts;
	(void)count;
	(void)is_site;
}

#endif
