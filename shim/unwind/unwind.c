/*
 * The unwinder.  It executes the rules of .eh_frame for one frame at a time.  row_cache
 * keeps the rules of each address, so most steps cost one lookup.
 */
#define _GNU_SOURCE
#include "unwind/unwind.h"

#include "arch.h"
#include "os/sys.h"
#include "runtime/thread.h"
#include "unwind/eh_frame.h"
#include "unwind/frame_pointer.h"
#include "unwind/row_cache.h"
#include "unwind/second.h"

#include <shim/record.h>
#include <shim/stack.h>
#include <signal.h>
#include <sys/auxv.h>
#include <ucontext.h>

#include <shim/banned.h>

/* --- the stack --- */

bool unwind_read(const struct unwind *walk, uintptr_t at, uintptr_t *value)
{
	if (at >= walk->stack_low && at < walk->stack_high &&
	    walk->stack_high - at >= sizeof(*value)) {
		*value = *(const uintptr_t *)at;
		return true;
	}
	return sys_peek((const void *)at, value, sizeof(*value)) == 0;
}

static bool is_known(const struct unwind *walk, unsigned number)
{
	return number < WALK_REGISTERS && (walk->known >> number & 1);
}

#define DEPTH 16

/* Evaluates the DWARF expressions that compilers and libc use here: for aligned stacks,
 * in stubs, and for the frames of signal handlers. */
static bool evaluate_expression(const struct unwind *walk,
				const struct tables *tables,
				const struct rule *rule, const uintptr_t *first,
				uintptr_t *result)
{
	struct cursor cursor = { .tables = tables,
				 .at = (uintptr_t)rule->value,
				 .end = (uintptr_t)rule->value + rule->size };
	uintptr_t stack[DEPTH], a, b;
	unsigned depth = 0, number;

	if (first)
		stack[depth++] = *first;
	while (cursor.at < cursor.end) {
		uint64_t op = cursor_read_fixed(&cursor, 1);

		if (cursor.failed || depth == DEPTH)
			return false;
		if (op >= 0x70 && op <= 0x8f) {
			number = (unsigned)op - 0x70;
			if (!is_known(walk, number))
				return false;
			stack[depth++] = walk->registers[number] +
					 (uintptr_t)cursor_read_sleb(&cursor);
			continue;
		}
		if (op >= 0x30 && op <= 0x4f) {
			stack[depth++] = op - 0x30;
			continue;
		}
		switch (op) {
		case 0x08:
			stack[depth++] = cursor_read_fixed(&cursor, 1);
			continue;
		case 0x09:
			stack[depth++] = (uintptr_t)cursor_read_signed(&cursor,
								       1);
			continue;
		case 0x0a:
			stack[depth++] = cursor_read_fixed(&cursor, 2);
			continue;
		case 0x0b:
			stack[depth++] = (uintptr_t)cursor_read_signed(&cursor,
								       2);
			continue;
		case 0x10: stack[depth++] = cursor_read_uleb(&cursor); continue;
		case 0x11:
			stack[depth++] = (uintptr_t)cursor_read_sleb(&cursor);
			continue;
		case 0x23:
			if (depth < 1)
				return false;
			stack[depth - 1] += cursor_read_uleb(&cursor);
			continue;
		case 0x06:
			if (depth < 1 || !unwind_read(walk, stack[depth - 1],
						      &stack[depth - 1]))
				return false;
			continue;
		case 0x96: continue;
		}
		if (depth < 2)
			return false;
		b = stack[--depth];
		a = stack[depth - 1];
		switch (op) {
		case 0x1a: a &= b; break;
		case 0x1c: a -= b; break;
		case 0x21: a |= b; break;
		case 0x22: a += b; break;
		case 0x27: a ^= b; break;
		case 0x24: a = b < 64 ? a << b : 0; break;
		case 0x25: a = b < 64 ? a >> b : 0; break;
		case 0x29: a = a == b; break;
		case 0x2a: a = (intptr_t)a >= (intptr_t)b; break;
		case 0x2b: a = (intptr_t)a > (intptr_t)b; break;
		case 0x2c: a = (intptr_t)a <= (intptr_t)b; break;
		case 0x2d: a = (intptr_t)a < (intptr_t)b; break;
		default: return false;
		}
		stack[depth - 1] = a;
	}
	if (depth == 0 || cursor.failed)
		return false;
	*result = stack[depth - 1];
	return true;
}

/* --- one step, by the tables --- */

static bool find_cfa(const struct unwind *walk,
		     const struct cfi_machine *machine,
		     const struct tables *tables, uintptr_t *cfa)
{
	const struct rule *rule = &machine->row.cfa;

	if (rule->how == HOW_EXPRESSION_IS)
		return evaluate_expression(walk, tables, rule, NULL, cfa);
	if (rule->how != HOW_IS || !is_known(walk, rule->size))
		return false;
	*cfa = walk->registers[rule->size] + (uintptr_t)rule->value;
	return true;
}

static void find_original_code(struct unwind *walk)
{
	NOTIFY(unwind_interrupted, &walk->registers[WALK_IP],
	       &walk->registers[WALK_SP]);
}

static bool apply_row(struct unwind *walk, const struct cfi_machine *machine,
		      const struct tables *tables)
{
	struct unwind next = *walk;
	uintptr_t cfa;

	if (!find_cfa(walk, machine, tables, &cfa))
		return false;
	next.registers[WALK_SP] = cfa;
	next.known |= 1u << WALK_SP;
	for (unsigned i = 0; i < WALK_REGISTERS; i++) {
		const struct rule *rule = &machine->row.rules[i];
		uintptr_t *value = &next.registers[i];
		bool good = true;

		switch (rule->how) {
		case HOW_SAME:
			/* After a call, only registers that functions preserve
			 * are known. */
			if (i != WALK_SP)
				good = is_known(walk, i) && (0xf048u >> i & 1);
			break;
		case HOW_UNDEFINED: good = false; break;
		case HOW_AT:
			good = unwind_read(walk, cfa + (uintptr_t)rule->value,
					   value);
			break;
		case HOW_IS: *value = cfa + (uintptr_t)rule->value; break;
		case HOW_REGISTER:
			good = is_known(walk, (unsigned)rule->value);
			if (good)
				*value = walk->registers[rule->value];
			break;
		case HOW_EXPRESSION:
			good = evaluate_expression(walk, tables, rule, &cfa,
						   value) &&
			       unwind_read(walk, *value, value);
			break;
		case HOW_EXPRESSION_IS:
			good = evaluate_expression(walk, tables, rule, &cfa,
						   value);
			break;
		}
		if (good)
			next.known |= 1u << i;
		else
			next.known &= ~(1u << i);
	}
	if (!is_known(&next, WALK_IP))
		return false;
	next.is_exact = machine->fde.is_signal_frame;
	if (next.is_exact)
		find_original_code(&next);
	*walk = next;
	return true;
}

/* --- one step, by a cached row --- */

static bool step_simply(struct unwind *walk, const struct cached_row *row)
{
	unsigned number = row->cfa >> 8 & 0xff;
	int64_t ip_distance = (int64_t)(int16_t)(row->cfa >> 16) * 8;
	uintptr_t cfa, ip;
	uint32_t lost = 0;

	if (!is_known(walk, number))
		return false;
	cfa = walk->registers[number] +
	      (uintptr_t)(int64_t)(int32_t)(row->cfa >> 32);
	if (!unwind_read(walk, cfa + (uintptr_t)ip_distance, &ip))
		return false;
	for (unsigned i = 0; i < sizeof(row_registers); i++) {
		uint64_t field = row->distances >> (DISTANCE_BITS * i) &
				 DISTANCE_MASK;
		int64_t distance = (int64_t)(field << 54) >> 54;

		if (field == DISTANCE_SAME)
			continue;
		if (unwind_read(walk, cfa + (uintptr_t)(distance * 8),
				&walk->registers[row_registers[i]]))
			walk->known |= 1u << row_registers[i];
		else
			lost |= 1u << row_registers[i];
	}
	walk->known &= 0xf048u & ~lost;
	walk->known |= 1u << WALK_SP | 1u << WALK_IP;
	walk->registers[WALK_SP] = cfa;
	walk->registers[WALK_IP] = ip;
	walk->is_exact = false;
	return true;
}

/* --- stepping --- */

/* An address inside the call instruction.  The return address itself may be in another
 * function, if the call never returns. */
static uintptr_t call_address(const struct unwind *walk)
{
	return walk->registers[WALK_IP] - !walk->is_exact;
}

uintptr_t unwind_function(const struct unwind *walk)
{
	struct tables tables;
	struct fde fde;

	return eh_frame_open(call_address(walk), &tables, &fde) ? fde.start : 0;
}

uintptr_t unwind_code(uintptr_t address, uintptr_t *lsda)
{
	struct tables tables;
	struct fde fde;

	if (!eh_frame_open(address, &tables, &fde))
		return 0;
	if (lsda)
		*lsda = fde.lsda;
	return fde.start;
}

bool unwind_is_signal_frame(const struct unwind *walk)
{
	struct cached_row row;
	struct cfi_machine machine;
	struct tables tables;
	uint64_t key = row_cache_key(walk->registers[WALK_IP], walk->is_exact);

	if (walk->is_exact || walk->registers[WALK_IP] == 0)
		return false;
	if (row_cache_find(key, &row))
		return row.cfa & ROW_SIGNAL;
	if (!eh_frame_open(call_address(walk), &tables, &machine.fde) ||
	    machine.fde.return_register != WALK_IP ||
	    !eh_frame_find_row(&machine, call_address(walk)))
		return false;
	row_cache_store(key, &machine);
	return machine.fde.is_signal_frame;
}

static bool step_by_tables(struct unwind *walk, uint64_t key)
{
	uintptr_t address = call_address(walk);
	struct cfi_machine machine;
	struct tables tables;

	if (!eh_frame_open(address, &tables, &machine.fde))
		return walk->may_guess && frame_pointer_step(walk);
	if (machine.fde.return_register != WALK_IP ||
	    !eh_frame_find_row(&machine, address))
		return false;
	walk->function = machine.fde.start;
	row_cache_store(key, &machine);
	if (machine.row.rules[WALK_IP].how == HOW_UNDEFINED) {
		walk->is_last = true;
		return false;
	}
	return apply_row(walk, &machine, &tables);
}

/* A function whose end is recorded returns to arch_returned first. */
static bool find_real_caller(struct unwind *walk)
{
#ifdef ARCH_HAS_RETURNS
	uintptr_t slot = walk->registers[WALK_SP] - sizeof(uintptr_t);
	uintptr_t at = ARCH_RETURNS_MIRROR(slot);

	if (walk->registers[WALK_IP] != (uintptr_t)arch_returned ||
	    walk->is_exact)
		return true;
	/* The thread's own stack has that address only where the mirror is mapped. */
	if (slot < walk->stack_low || slot >= walk->stack_high)
		return sys_peek((const void *)at, &walk->registers[WALK_IP],
				sizeof(uintptr_t)) == 0;
	walk->registers[WALK_IP] = *(const uintptr_t *)at;
#else
	(void)walk;
#endif
	return true;
}

static bool step_alone(struct unwind *walk)
{
	uint64_t key = row_cache_key(walk->registers[WALK_IP], walk->is_exact);
	uintptr_t sp = walk->registers[WALK_SP];
	uintptr_t ip = walk->registers[WALK_IP];
	struct cached_row row;
	bool done;

	walk->function = 0;
	/* A return address of 0 marks the end of a stack. */
	if (ip == 0 && !walk->is_exact)
		return walk->is_last = true, false;
	if (!row_cache_find(key, &row) || (row.cfa & ROW_COMPLEX))
		done = step_by_tables(walk, key);
	else if ((walk->function = row.function) == 0)
		return false;
	else if (row.cfa & ROW_LAST)
		return walk->is_last = true, false;
	else
		done = step_simply(walk, &row);
	done = done && find_real_caller(walk);
	/* A step that changes nothing would repeat for ever, as on a broken
	 * stack. */
	return done && (walk->registers[WALK_SP] != sp ||
			walk->registers[WALK_IP] != ip);
}

static bool step_by_libunwind(struct unwind *walk)
{
	if (walk->registers[WALK_IP] == 0 && !walk->is_exact)
		return walk->is_last = true, false;
	return second_step(walk) ||
	       (walk->function == 0 && frame_pointer_step(walk));
}

bool unwind_step(struct unwind *walk)
{
	uint32_t wanted = walk->may_guess ? second_wanted() : SHIM_UNWINDER_OWN;

	walk->is_guess = false;
	if (wanted == SHIM_UNWINDER_LIBUNWIND)
		return step_by_libunwind(walk) && find_real_caller(walk);
	return step_alone(walk) ||
	       (wanted == SHIM_UNWINDER_BOTH && !walk->is_last &&
		second_step(walk) && find_real_caller(walk));
}

/* The number of tries of unwind_find_own_stack(). */
#define TRIES_MAX 8

void unwind_find_own_stack(struct thread *self, uintptr_t sp)
{
	uintptr_t low, high;

	if (self->own_stack_high != 0 || self->own_stack_tries >= TRIES_MAX)
		return;
	self->own_stack_tries++;
	if (shim_stack_find(sp, &low, &high) == SHIM_STACK_THREAD &&
	    stack_is_own(low, high)) {
		self->own_stack_low = low;
		self->own_stack_high = high;
	}
}

void unwind_begin(struct unwind *walk, struct thread *self)
{
	uintptr_t sp = walk->registers[WALK_SP];

	if (!self)
		return;
	unwind_find_own_stack(self, sp);
	if (thread_is_on_own_stack(self, sp)) {
		walk->stack_low = sp - 128;
		walk->stack_high = self->own_stack_high;
	}
}

uintptr_t unwind_interrupted_ip(const void *context)
{
	uintptr_t ip = ARCH_CONTEXT_IP((const ucontext_t *)context);
	uintptr_t sp = ARCH_CONTEXT_SP((const ucontext_t *)context);

	NOTIFY(unwind_interrupted, &ip, &sp);
	return ip;
}

void unwind_from_context(struct unwind *walk, const void *context,
			 struct thread *self)
{
	*walk = (struct unwind){ .is_exact = true, .may_guess = true };
	walk->known = ARCH_GET_REGISTERS((const ucontext_t *)context,
					 walk->registers);
	find_original_code(walk);
	unwind_begin(walk, self);
}

uintptr_t unwind_end(uintptr_t ip, uintptr_t sp,
		     uintptr_t (*read)(void *argument, int number),
		     void *argument)
{
	struct unwind walk = { .is_exact = true };
	uintptr_t own[WALK_REGISTERS];

	/* This processor has no unwinder. */
	if (!ARCH_GET_OWN_REGISTERS(own))
		return 0;
	for (unsigned i = 0; i < sizeof(row_registers); i++) {
		walk.registers[row_registers[i]] = read(argument,
							row_registers[i]);
		walk.known |= 1u << row_registers[i];
	}
	walk.registers[WALK_SP] = sp;
	walk.registers[WALK_IP] = ip;
	walk.known |= 1u << WALK_SP | 1u << WALK_IP;
	return unwind_step(&walk) ? walk.registers[WALK_SP] : 0;
}

void unwind_closed(void)
{
	row_cache_clear();
	frame_pointer_clear();
	second_closed();
}
