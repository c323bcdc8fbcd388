/*
 * Copies code so that it runs at another address: instruction by instruction, with the
 * distances to data and to other code changed.  A call becomes a push of the original
 * return address and a jump, so unwinders and the called function see no difference.
 *
 * Copies everything between two addresses in sequence, and so may copy data between
 * instructions, too; no jump leads there.  Added instructions do not change flags.
 * Only those of a call write into the 128 bytes below the stack pointer, where the call
 * itself writes.
 */
#include "inspect/decode/decode.h"

#include <string.h>
#include <Zydis/Zydis.h>

#define RED_ZONE  128
#define MARKS_MAX 128 /* that one register can address */
#define PAGE	  4096u

struct output {
	struct decode_copy *copy;
	size_t size;
	bool fits; /* all distances fit */
};

struct input {
	ZydisDecodedInstruction decoded;
	unsigned char bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
	uintptr_t at;
};

/* --- writing --- */

static void append(struct output *output, const void *bytes, size_t size)
{
	if (output->copy->memory)
		memcpy(output->copy->memory + output->size, bytes, size);
	output->size += size;
}

static void append_byte(struct output *output, unsigned byte)
{
	unsigned char one = (unsigned char)byte;

	append(output, &one, 1);
}

static void append_word(struct output *output, uint64_t word)
{
	uint32_t low = (uint32_t)word;

	append(output, &low, sizeof(low));
}

/* Writes the distance to @target from the end of these four bytes and @more further
 * bytes. */
static void append_distance(struct output *output, uintptr_t target,
			    unsigned more)
{
	uintptr_t next = output->copy->to + output->size + 4 + more;
	int64_t distance = (int64_t)(target - next);

	if (distance != (int32_t)distance)
		output->fits = false;
	append_word(output, (uint64_t)distance);
}

static void append_jump(struct output *output, uintptr_t target)
{
	append_byte(output, 0xe9);
	append_distance(output, target, 0);
}

/* --- instructions --- */

static ZyanStatus decode_bytes(struct input *input, unsigned size)
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64,
			 ZYDIS_STACK_WIDTH_64);
	return ZydisDecoderDecodeInstruction(&decoder, NULL, input->bytes, size,
					     &input->decoded);
}

static bool decode_at(struct input *input, const struct decode_copy *copy,
		      uintptr_t at)
{
	const unsigned size = sizeof(input->bytes), left = PAGE - at % PAGE;
	ZyanStatus status;

	input->at = at;
	copy->read(copy, at, input->bytes, left < size ? left : size);
	status = decode_bytes(input, left < size ? left : size);
	if (status == ZYDIS_STATUS_NO_MORE_DATA && left < size &&
	    (at == copy->code || at + left < copy->end)) {
		copy->read(copy, at, input->bytes, size);
		status = decode_bytes(input, size);
	}
	return ZYAN_SUCCESS(status);
}

static bool is_from_here(const ZydisDecodedInstruction *decoded)
{
	return (decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM) &&
	       decoded->raw.modrm.mod == 0 && decoded->raw.modrm.rm == 5;
}

/* Copies the instruction, and changes the distance to its data. */
static void append_unchanged(struct output *output, const struct input *input)
{
	const ZydisDecodedInstruction *decoded = &input->decoded;
	unsigned at = decoded->raw.disp.offset;
	uintptr_t next = input->at + decoded->length;

	if (!is_from_here(decoded)) {
		append(output, input->bytes, decoded->length);
		return;
	}
	if (decoded->raw.disp.size != 32 || decoded->address_width != 64)
		output->fits = false;
	append(output, input->bytes, at);
	append_distance(output, next + (uintptr_t)decoded->raw.disp.value,
			decoded->length - at - 4u);
	append(output, input->bytes + at + 4, decoded->length - at - 4u);
}

/* The address of the copy of the code at @target.  A first pass, which only counts, has
 * found the positions of later code. */
static uintptr_t find_target(const struct decode_copy *copy, uintptr_t target)
{
	uintptr_t offset = target - copy->code;

	if (offset < copy->end - copy->code && copy->places &&
	    copy->places[offset] != 0)
		return copy->to + copy->places[offset] - 1;
	return copy->memory ? copy->target(copy, target) : target;
}

/* push $low; mov $high, 4(%rsp); jmp target */
static void append_call(struct output *output, uintptr_t next, uintptr_t target)
{
	append_byte(output, 0x68);
	append_word(output, next);
	append(output, "\xc7\x44\x24\x04", 4);
	append_word(output, next >> 32);
	append_jump(output, target);
}

/* push target; push (%rsp); mov $low, 8(%rsp); mov $high, 12(%rsp); ret */
static void append_indirect_call(struct output *output,
				 const struct input *input)
{
	unsigned modrm = input->decoded.raw.modrm.offset;
	uintptr_t next = input->at + input->decoded.length;
	struct input push = *input;

	push.bytes[modrm] = (unsigned char)((push.bytes[modrm] & ~0x38u) |
					    6u << 3);
	append_unchanged(output, &push);
	append(output, "\xff\x34\x24", 3);
	append(output, "\xc7\x44\x24\x08", 4);
	append_word(output, next);
	append(output, "\xc7\x44\x24\x0c", 4);
	append_word(output, next >> 32);
	append_byte(output, 0xc3);
}

/* Writes loop or jrcxz, which can jump only short distances. */
static void append_counting(struct output *output, const struct input *input,
			    uintptr_t target)
{
	append(output, input->bytes, input->decoded.length - 1u);
	append(output, "\x02\xeb\x05", 3);
	append_jump(output, target);
}

static void append_branch(struct output *output, const struct input *input)
{
	const ZydisDecodedInstruction *decoded = &input->decoded;
	uintptr_t next = input->at + decoded->length;
	uintptr_t target = find_target(
		output->copy, next + (uintptr_t)decoded->raw.imm[0].value.s);
	uint8_t code = decoded->opcode;
	bool is_long = decoded->opcode_map == ZYDIS_OPCODE_MAP_0F;

	if (decoded->raw.imm[0].size == 16) {
		output->fits = false;
	} else if (is_long ? code >> 4 == 8 : code >> 4 == 7) {
		append_byte(output, 0x0f);
		append_byte(output, 0x80 | (code & 15));
		append_distance(output, target, 0);
	} else if (!is_long && code >= 0xe0 && code <= 0xe3) {
		append_counting(output, input, target);
	} else if (!is_long && code == 0xe8) {
		append_call(output, next, target);
	} else if (!is_long && (code == 0xe9 || code == 0xeb)) {
		append_jump(output, target);
	} else {
		output->fits = false; /* xbegin and similar instructions */
	}
}

static void append_instruction(struct output *output, const struct input *input)
{
	const ZydisDecodedInstruction *decoded = &input->decoded;

	if (decoded->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		output->fits = false;
	else if (decoded->raw.imm[0].is_relative)
		append_branch(output, input);
	else if (decoded->mnemonic == ZYDIS_MNEMONIC_CALL)
		append_indirect_call(output, input);
	else
		append_unchanged(output, input);
}

/* lea -128(%rsp), %rsp; push %rax; mov $marks, %rax; movb $1, i(%rax) ...;
 * pop %rax; lea 128(%rsp), %rsp */
static void append_marks(struct output *output, uintptr_t at)
{
	unsigned count = 0;
	unsigned char *marks = output->copy->mark(output->copy, at, &count);

	if (!marks)
		return;
	append(output, "\x48\x8d\x64\x24\x80\x50\x48\xb8", 8);
	append(output, &marks, sizeof(marks));
	for (unsigned i = 0; i < count && i < MARKS_MAX; i++) {
		append(output, "\xc6\x40", 2);
		append_byte(output, i);
		append_byte(output, 1);
	}
	append(output, "\x58\x48\x8d\xa4\x24\x80\x00\x00\x00", 9);
}

/* The processor may have fetched other bytes where the memory has another address here.
 * (A virtual machine takes some microseconds for it.) */
static void synchronize(void)
{
	unsigned a = 0, c = 0;

	__asm__ volatile("cpuid" : "+a"(a), "+c"(c) : : "rbx", "rdx", "memory");
}

size_t decode_copy(struct decode_copy *copy)
{
	struct output output = { copy, 0, true };
	struct input input = { .at = 0 };
	uintptr_t at = copy->code;
	size_t before = 0;

	do {
		before = output.size;
		if (!decode_at(&input, copy, at))
			break;
		append_marks(&output, at);
		append_instruction(&output, &input);
		if (!output.fits)
			break;
		if (copy->places && output.size < UINT16_MAX)
			copy->places[at - copy->code] = (uint16_t)(before + 1);
		before = output.size;
		at += input.decoded.length;
	} while (at < copy->end);
	output.size = before;
	if (at == copy->code)
		return 0;
	output.fits = true;
	append_jump(&output, find_target(copy, at));
	if (copy->memory && (uintptr_t)copy->memory != copy->to)
		synchronize();
	return output.fits ? output.size : 0;
}
