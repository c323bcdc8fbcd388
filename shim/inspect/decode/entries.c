/*
 * Decides which functions can be changed at their beginnings: their first instructions
 * will run elsewhere, and a jump takes their place.  That is right only if nothing but a
 * call of the function ever reaches these bytes.
 *
 * It decodes all code of the image that has unwind tables, and notes each address to
 * which something may jump: targets of jumps and calls, addresses that code computes or
 * has as a number, words of data with an address in the code, and tables of distances
 * (switch statements).  It notes too many rather than too few.  A function that may be
 * reached behind its beginning is left alone; so is one that reads or removes its return
 * address, for which it would find that of shim, and one that ends with a jump to such a
 * function, which finds it, too; and one that a jump reaches whose stack
 * pointer is elsewhere than where a function begins, as the thunk of a retpoline: no return
 * address is there.
 */
#include "inspect/decode/decode.h"

#include <string.h>
#include <Zydis/Zydis.h>

#define TABLE_MAX   65536
#define NUMBER_RSP  4
#define NUMBER_RBP  5
#define NO_REGISTER 255

#define STATUS_FLAGS \
	(ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | \
	 ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF)

struct search {
	const struct decode_entries *question;
	ZydisDecoder decoder;
	/* The part that is decoded. */
	struct decode_part *part;
	uint32_t tail_count;
	struct decode_entry *owner; /* or NULL */
	/* It was called, and the code behind the call has not set the flags yet; or NULL. */
	struct decode_entry *called;
	struct decode_stack_row row;
	bool has_row;
	/* A piece of an unknown function uses the return address of that function. */
	bool is_piece_using;
};

/* --- the image --- */

static const unsigned char *bytes_at(const struct decode_entries *question,
				     uintptr_t address)
{
	return question->copy + (address - question->start);
}

static bool is_text(const struct decode_entries *question, uintptr_t address)
{
	return address - question->text < question->text_end - question->text;
}

static bool has_bit(const struct decode_entries *question,
		    const unsigned char *bits, uintptr_t address)
{
	uintptr_t bit = address - question->text;

	return bits[bit / 8] >> bit % 8 & 1;
}

static void set_bit(const struct decode_entries *question, unsigned char *bits,
		    uintptr_t address)
{
	uintptr_t bit = address - question->text;

	if (is_text(question, address))
		bits[bit / 8] |= (unsigned char)(1u << bit % 8);
}

static void note_target(const struct search *search, uintptr_t address)
{
	set_bit(search->question, search->question->targets, address);
}

static void refuse(struct decode_entry *entry, enum decode_entry_reason reason)
{
	if (entry && entry->reason == DECODE_ENTRY_MOVABLE)
		entry->reason = (uint8_t)reason;
}

/* --- data --- */

/* Each word that is an address in the code, at any place a compiler may put it. */
static void note_words(const struct search *search)
{
	const struct decode_entries *question = search->question;
	uintptr_t size = question->end - question->start;

	for (uintptr_t at = 0; at + 8 <= size; at += 4) {
		uint64_t word;

		memcpy(&word, question->copy + at, sizeof(word));
		note_target(search, word);
	}
}

static bool is_object(const struct decode_entries *question, uintptr_t address)
{
	uintptr_t bit = address - question->start;

	return question->objects[bit / 8] >> bit % 8 & 1;
}

/*
 * Distances from @table to code, as a switch statement of position-independent code has
 * them; mostly there is other data, whose first number leads nowhere.  Code that uses a
 * table computes the address of its beginning, so the next such address ends it.
 */
static void note_table(const struct search *search, uintptr_t table)
{
	const struct decode_entries *question = search->question;

	for (uintptr_t i = 0; i < TABLE_MAX; i++) {
		uintptr_t at = table + i * 4;
		int32_t distance;

		if (at + 4 > question->end ||
		    (i > 0 && is_object(question, at)))
			return;
		memcpy(&distance, bytes_at(question, at), sizeof(distance));
		if (!is_text(question, table + (uintptr_t)(intptr_t)distance))
			return;
		note_target(search, table + (uintptr_t)(intptr_t)distance);
	}
}

static void note_tables(const struct search *search)
{
	const struct decode_entries *question = search->question;
	uintptr_t size = question->end - question->start;

	for (uintptr_t i = 0; i < size; i++) {
		if (i % 8 == 0 && question->objects[i / 8] == 0)
			i += 7;
		else if (is_object(question, question->start + i))
			note_table(search, question->start + i);
	}
}

/* --- one instruction --- */

static bool decode_at(const struct search *search, uintptr_t at, uintptr_t end,
		      ZydisDecodedInstruction *decoded)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		       &search->decoder, NULL, bytes_at(search->question, at),
		       end - at, decoded)) &&
	       decoded->length <= end - at;
}

static bool has_memory(const ZydisDecodedInstruction *decoded)
{
	return (decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM) &&
	       decoded->raw.modrm.mod != 3;
}

static bool is_from_here(const ZydisDecodedInstruction *decoded)
{
	return has_memory(decoded) && decoded->raw.modrm.mod == 0 &&
	       decoded->raw.modrm.rm == 5;
}

/* The register that an operand in memory is relative to, if there is no other one. */
static unsigned base_of(const ZydisDecodedInstruction *decoded)
{
	unsigned rm = decoded->raw.modrm.rm, rex = decoded->raw.rex.B;

	if (!has_memory(decoded) || rex)
		return NO_REGISTER;
	if (rm != 4)
		return rm == 5 && decoded->raw.modrm.mod == 0 ? NO_REGISTER :
								rm;
	if (decoded->raw.sib.index != 4 || decoded->raw.rex.X)
		return NO_REGISTER;
	return decoded->raw.sib.base == 5 && decoded->raw.modrm.mod == 0 ?
		       NO_REGISTER :
		       decoded->raw.sib.base;
}

static bool is_return(const ZydisDecodedInstruction *decoded)
{
	return decoded->meta.category == ZYDIS_CATEGORY_RET;
}

/* Whether the instruction after it is not its successor. */
static bool ends_block(const ZydisDecodedInstruction *decoded)
{
	return is_return(decoded) || decoded->mnemonic == ZYDIS_MNEMONIC_JMP ||
	       decoded->mnemonic == ZYDIS_MNEMONIC_UD2 ||
	       decoded->mnemonic == ZYDIS_MNEMONIC_HLT ||
	       decoded->mnemonic == ZYDIS_MNEMONIC_INT3;
}

/* Whether the instruction takes words off the stack, other than by returning. */
static bool pops(const ZydisDecodedInstruction *decoded)
{
	const bool is_register = decoded->raw.modrm.mod == 3 &&
				 decoded->raw.modrm.rm == NUMBER_RSP &&
				 !decoded->raw.rex.B;

	switch (decoded->mnemonic) {
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ: return true;
	case ZYDIS_MNEMONIC_ADD:
		return is_register && decoded->raw.imm[0].size != 0 &&
		       decoded->raw.imm[0].value.s > 0;
	case ZYDIS_MNEMONIC_LEA:
		return base_of(decoded) == NUMBER_RSP &&
		       decoded->raw.modrm.reg == NUMBER_RSP &&
		       !decoded->raw.rex.R && decoded->raw.disp.value > 0;
	default: return false;
	}
}

static bool find_row(struct search *search, uintptr_t at)
{
	if (!search->has_row || at >= search->row.until)
		search->has_row = search->question->row(search->question, at,
							&search->row);
	return search->has_row;
}

/* Whether the stack pointer is where it was when the function began, as at a tail call. */
static bool has_no_frame(struct search *search, uintptr_t at)
{
	return find_row(search, at) && search->row.base == NUMBER_RSP &&
	       search->row.offset == 8;
}

/* Whether the instruction may see, or remove, the return address of its function. */
static bool uses_return_address(struct search *search, uintptr_t at,
				const ZydisDecodedInstruction *decoded)
{
	unsigned base = base_of(decoded);
	bool removes = pops(decoded);
	int64_t distance;

	/* It returns, and takes off arguments. */
	if (is_return(decoded) && decoded->raw.imm[0].size != 0)
		return true;
	if (base != NUMBER_RSP && base != NUMBER_RBP && !removes)
		return false;
	if (!find_row(search, at))
		return true;
	if (removes && has_no_frame(search, at))
		return true;
	/* A frame whose place is computed: its copy of the return address is there. */
	if (search->row.base == DECODE_COMPUTED)
		return base == NUMBER_RBP && decoded->raw.disp.value == 8;
	if (base != search->row.base)
		return false;
	distance = decoded->raw.disp.value - search->row.offset;
	return distance >= -8 && distance < 0;
}

/* The part that contains @address, or NULL. */
static struct decode_part *find_part(const struct decode_entries *question,
				     uintptr_t address)
{
	uint32_t low = 0, high = question->part_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (question->parts[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < question->part_count &&
			       question->parts[low].start <= address ?
		       &question->parts[low] :
		       NULL;
}

static bool is_in_piece(const struct decode_entries *question,
			uintptr_t address)
{
	const struct decode_part *part = find_part(question, address);

	return part && part->is_piece;
}

/* The entry that begins at @address, or NULL. */
static struct decode_entry *find_entry(const struct decode_entries *question,
				       uintptr_t address)
{
	uint32_t low = 0, high = question->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (question->entries[middle].start < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < question->count &&
			       question->entries[low].start == address ?
		       &question->entries[low] :
		       NULL;
}

/* --- what has the return address of a function --- */

/* Notes that the function of the part, and what ends with a jump to it, must keep the return
 * address.  Returns whether that is new. */
static bool set_using(const struct decode_entries *question,
		      struct decode_part *part)
{
	struct decode_entry *entry = part->owner < question->count ?
					     &question->entries[part->owner] :
					     NULL;

	if (entry ? entry->uses_return : part->uses_return)
		return false;
	if (!entry)
		part->uses_return = true;
	else
		entry->uses_return = 1;
	refuse(entry, DECODE_ENTRY_ADDRESS);
	return true;
}

static bool is_using(const struct decode_entries *question,
		     const struct decode_part *part)
{
	return part->owner < question->count ?
		       question->entries[part->owner].uses_return :
		       part->uses_return;
}

/* A retpoline's thunk begins with a call into itself.  Then the stack has this call's return
 * address, too, of which unwind tables say nothing: the thunk changes that one. */
static bool is_thunk(const struct decode_entries *question,
		     const struct decode_part *part)
{
	const unsigned char *code = bytes_at(question, part->start);
	int32_t distance;

	if (part->end - part->start <= 5 || code[0] != 0xe8)
		return false;
	memcpy(&distance, code + 1, sizeof(distance));
	return distance >= 0 &&
	       (uintptr_t)distance < part->end - part->start - 5;
}

static void note_tail(struct search *search, uintptr_t target)
{
	const struct decode_entries *question = search->question;
	const struct decode_part *to = find_part(question, target);
	struct decode_tail tail;

	if (!to || is_thunk(question, to))
		return;
	tail.from = (uint32_t)(search->part - question->parts);
	tail.to = (uint32_t)(to - question->parts);
	if (search->tail_count > 0 &&
	    memcmp(&question->tails[search->tail_count - 1], &tail,
		   sizeof(tail)) == 0)
		return;
	if (search->tail_count == question->tail_room)
		set_using(question, search->part); /* it might */
	else
		question->tails[search->tail_count++] = tail;
}

static void note_branch(struct search *search, uintptr_t at, uintptr_t target,
			const ZydisDecodedInstruction *decoded)
{
	struct decode_entry *owner = search->owner;
	bool is_call = decoded->mnemonic == ZYDIS_MNEMONIC_CALL;

	set_bit(search->question, search->question->jumps, target);
	note_target(search, target);
	if (owner && !is_call && target == owner->start)
		refuse(owner, DECODE_ENTRY_LOOP);
	else if (!is_call && target - search->part->start >=
				     search->part->end - search->part->start) {
		if (!has_no_frame(search, at))
			refuse(find_entry(search->question, target),
			       DECODE_ENTRY_FRAME);
		else if (owner)
			note_tail(search, target);
	}
	if (owner && search->is_piece_using &&
	    is_in_piece(search->question, target))
		refuse(owner, DECODE_ENTRY_ADDRESS);
}

/* The code has this address as a number. */
static void note_address(const struct search *search, uintptr_t address)
{
	const struct decode_part *part = search->part;

	note_target(search, address);
	if (search->owner && address > part->start && address < part->end)
		search->owner->has_label = 1;
}

static void note_object(const struct search *search, uintptr_t address)
{
	const struct decode_entries *question = search->question;
	uintptr_t bit = address - question->start;

	if (bit < question->end - question->start)
		question->objects[bit / 8] |= (unsigned char)(1u << bit % 8);
}

static void look_at(struct search *search, uintptr_t at,
		    const ZydisDecodedInstruction *decoded)
{
	uintptr_t next = at + decoded->length, address;

	for (unsigned i = 0; i < 2; i++) {
		if (decoded->raw.imm[i].is_relative)
			note_branch(
				search, at,
				next + (uintptr_t)decoded->raw.imm[i].value.s,
				decoded);
		else if (decoded->raw.imm[i].size >= 32)
			note_address(search, decoded->raw.imm[i].value.u);
	}
	if (is_from_here(decoded)) {
		address = next + (uintptr_t)decoded->raw.disp.value;
		note_address(search, address);
		if (decoded->mnemonic == ZYDIS_MNEMONIC_LEA)
			note_object(search, address);
	}
	if (search->owner && decoded->mnemonic == ZYDIS_MNEMONIC_JMP &&
	    !decoded->raw.imm[0].is_relative)
		search->owner->has_switch = 1;
	if ((search->owner || search->part->is_piece) &&
	    uses_return_address(search, at, decoded)) {
		set_using(search->question, search->part);
		search->is_piece_using |= search->part->is_piece;
	}
}

static void begin_part(struct search *search, struct decode_part *part)
{
	const struct decode_entries *question = search->question;

	search->part = part;
	search->owner = part->owner < question->count ?
				&question->entries[part->owner] :
				NULL;
	search->has_row = false;
	search->called = NULL;
}

/* A part of a function that is not asked for, to which such a jump leads. */
static void search_part(struct search *search, struct decode_part *part)
{
	ZydisDecodedInstruction decoded;

	begin_part(search, part);
	part->is_searched = true;
	for (uintptr_t at = part->start; at < part->end; at += decoded.length) {
		uintptr_t target;

		if (!decode_at(search, at, part->end, &decoded))
			return;
		if (uses_return_address(search, at, &decoded)) {
			part->uses_return = true;
			return;
		}
		if (decoded.mnemonic == ZYDIS_MNEMONIC_CALL ||
		    !decoded.raw.imm[0].is_relative)
			continue;
		target = at + decoded.length +
			 (uintptr_t)decoded.raw.imm[0].value.s;
		if (target - part->start >= part->end - part->start &&
		    has_no_frame(search, at))
			note_tail(search, target);
	}
}

/* After all parts have been decoded. */
static void follow_tails(struct search *search)
{
	const struct decode_entries *question = search->question;
	bool is_up = false, is_new = true;

	for (uint32_t i = 0; i < search->tail_count; i++) {
		struct decode_part *to =
			&question->parts[question->tails[i].to];

		if (to->owner >= question->count && !to->is_searched)
			search_part(search, to);
	}
	/* Most chains of jumps lead up, or down. */
	for (; is_new; is_up = !is_up) {
		is_new = false;
		for (uint32_t i = 0; i < search->tail_count; i++) {
			const struct decode_tail *tail =
				&question->tails[is_up ? i :
							 search->tail_count -
								 1 - i];

			if (is_using(question, &question->parts[tail->to]))
				is_new |= set_using(
					question, &question->parts[tail->from]);
		}
	}
}

/* --- flags --- */

static bool tests_flags(const ZydisDecodedInstruction *decoded)
{
	return (decoded->cpu_flags->tested & STATUS_FLAGS) != 0;
}

/* Whether code behind this instruction sees other flags than code in front of it. */
static bool ends_flags(const ZydisDecodedInstruction *decoded)
{
	const ZydisAccessedFlags *flags = decoded->cpu_flags;

	return ((flags->modified | flags->set_0 | flags->set_1 |
		 flags->undefined) &
		STATUS_FLAGS) != 0 ||
	       ends_block(decoded) ||
	       decoded->meta.category == ZYDIS_CATEGORY_CALL ||
	       decoded->meta.category == ZYDIS_CATEGORY_COND_BR;
}

/* Flags that pass a call are lost in shim's code.  No convention of functions has such flags,
 * but instructions that clang's outliner has moved into a function do. */
static void look_at_flags(struct search *search, uintptr_t at,
			  const ZydisDecodedInstruction *decoded)
{
	/* The call may not return: jumps lead behind it. */
	if (has_bit(search->question, search->question->jumps, at))
		search->called = NULL;
	if (search->called && tests_flags(decoded))
		refuse(search->called, DECODE_ENTRY_SHARED);
	if (search->called && ends_flags(decoded))
		search->called = NULL;
	if (decoded->mnemonic == ZYDIS_MNEMONIC_CALL &&
	    decoded->raw.imm[0].is_relative)
		search->called = find_entry(
			search->question,
			at + decoded->length +
				(uintptr_t)decoded->raw.imm[0].value.s);
}

/* Whether a function begins with a use of its caller's flags. */
static bool begins_with_flags(const struct search *search,
			      const struct decode_entry *entry)
{
	ZydisDecodedInstruction decoded;

	for (uintptr_t at = entry->start; at < entry->end;
	     at += decoded.length) {
		if (!decode_at(search, at, entry->end, &decoded))
			return false;
		if (tests_flags(&decoded))
			return true;
		if (ends_flags(&decoded))
			return false;
	}
	return false;
}

static void look_at_part(struct search *search, struct decode_part *part)
{
	const struct decode_entries *question = search->question;
	ZydisDecodedInstruction decoded;

	begin_part(search, part);
	for (uintptr_t at = part->start; at < part->end; at += decoded.length) {
		if (!decode_at(search, at, part->end, &decoded)) {
			refuse(search->owner, DECODE_ENTRY_UNKNOWN);
			return;
		}
		set_bit(question, question->begins, at);
		look_at(search, at, &decoded);
		look_at_flags(search, at, &decoded);
	}
}

/* --- one function --- */

/* A jump to the middle of an instruction shows that there is data, or that
 * instructions overlap. */
static bool is_consistent(const struct decode_entries *question,
			  const struct decode_entry *entry)
{
	for (uintptr_t at = entry->start; at < entry->end; at++)
		if (has_bit(question, question->jumps, at) &&
		    !has_bit(question, question->begins, at))
			return false;
	return true;
}

static bool is_foreign_jump(const struct decode_entries *question, uintptr_t at,
			    const ZydisDecodedInstruction *decoded)
{
	return decoded->mnemonic == ZYDIS_MNEMONIC_JMP &&
	       decoded->raw.imm[0].is_relative &&
	       !is_text(question,
			at + decoded->length +
				(uintptr_t)decoded->raw.imm[0].value.s);
}

static bool begins_ordinarily(const struct decode_entries *question,
			      const struct decode_entry *entry)
{
	struct decode_stack_row row;

	return question->row(question, entry->start, &row) && row.is_ordinary &&
	       row.base == NUMBER_RSP && row.offset == 8;
}

static enum decode_entry_reason decide(const struct search *search,
				       struct decode_entry *entry)
{
	const struct decode_entries *question = search->question;
	ZydisDecodedInstruction decoded;
	uintptr_t at = entry->start, first;

	if (!begins_ordinarily(question, entry))
		return DECODE_ENTRY_STACK;
	if (!decode_at(search, at, entry->end, &decoded))
		return DECODE_ENTRY_UNKNOWN;
	if (decoded.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		at += decoded.length;
	first = at;
	entry->skip = (uint8_t)(at - entry->start);
	while (at - first < question->size) {
		if (at == entry->end)
			return DECODE_ENTRY_SHORT;
		if (!decode_at(search, at, entry->end, &decoded))
			return DECODE_ENTRY_UNKNOWN;
		if (decoded.mnemonic == ZYDIS_MNEMONIC_INT3 ||
		    is_foreign_jump(question, at, &decoded))
			return DECODE_ENTRY_REPLACED;
		entry->may_leave |= ends_block(&decoded) ||
				    decoded.meta.category ==
					    ZYDIS_CATEGORY_COND_BR;
		at += decoded.length;
		/* A call returns to its successor, which must be behind them. */
		if ((ends_block(&decoded) ||
		     decoded.meta.category == ZYDIS_CATEGORY_CALL) &&
		    at - first < question->size)
			return DECODE_ENTRY_SHORT;
	}
	for (uintptr_t i = entry->start + 1; i < at; i++)
		if (has_bit(question, question->targets, i))
			return DECODE_ENTRY_TARGET;
	if (!is_consistent(question, entry))
		return DECODE_ENTRY_UNKNOWN;
	if (begins_with_flags(search, entry))
		return DECODE_ENTRY_SHARED;
	/* Distances from a label to others (labels as values). */
	if (entry->has_label && entry->has_switch)
		return DECODE_ENTRY_TARGET;
	entry->length = (uint8_t)(at - first);
	return DECODE_ENTRY_MOVABLE;
}

void decode_entries(const struct decode_entries *question)
{
	struct search search = { .question = question };

	ZydisDecoderInit(&search.decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	note_words(&search);
	for (uint32_t i = 0; i < question->part_count; i++)
		if (question->parts[i].is_piece)
			look_at_part(&search, &question->parts[i]);
	for (uint32_t i = 0; i < question->part_count; i++)
		if (!question->parts[i].is_piece)
			look_at_part(&search, &question->parts[i]);
	note_tables(&search);
	follow_tails(&search);
	for (uint32_t i = 0; i < question->count; i++) {
		struct decode_entry *entry = &question->entries[i];

		if (entry->reason == DECODE_ENTRY_MOVABLE)
			entry->reason = (uint8_t)decide(&search, entry);
	}
}
