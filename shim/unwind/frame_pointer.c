/*
 * Guesses callers where no table describes the code.  A cache keeps what is known about a
 * return address.  Code that the program makes may change, so an entry may be outdated;
 * then a guess fails, or is wrong.  No read of memory can fault.
 */
#include "unwind/frame_pointer.h"

#include "image/code_bytes.h"
#include "os/maps.h"
#include "os/sys.h"
#include "runtime/state.h"

#include <shim/banned.h>

#define RBP 6

/* The most that may lie between two frames on a stack whose bounds are unknown. */
#define FRAME_SIZE_MAX (1u << 20)

/* The most changes of the stack in a walk. */
#define SWITCHES_MAX 4

/* --- return addresses --- */

#define CACHE_BITS	 12
#define MONOTONIC_COARSE 6

/* An entry is the address << 16, the second in which it was stored << 4, and: */
#define IS_RETURN 1u   /* It is executable, after a call instruction. */
#define IS_CODE	  2u   /* It is executable. */
#define ENDS	  4u   /* Its function may end soon after it. */
#define ABOUT	  0xfu /* all of these */

static uint64_t cache[1u << CACHE_BITS];

struct place {
	uintptr_t address;
	bool executable;
};

static bool visit_mapping(const struct map *map, void *argument)
{
	struct place *place = argument;

	if (place->address >= map->end)
		return true;
	place->executable = place->address >= map->start && map->executable;
	return false;
}

static int find_place(void *argument)
{
	struct place *place = argument;
	uintptr_t low, high;
	char name[64];

	if (maps_find(place->address, &low, &high, &place->executable, name) <
	    0)
		maps_read(visit_mapping, place);
	return 0;
}

/* Whether the last of these seven bytes are a call: E8 with a distance, or FF /2 with the
 * forms of its operand. */
static bool is_call(const unsigned char *code)
{
	return code[2] == 0xe8 ||
	       (code[5] == 0xff && (code[6] & 0x38) == 0x10) ||
	       (code[4] == 0xff && (code[5] & 0x38) == 0x10) ||
	       (code[3] == 0xff && code[4] == 0x54) ||
	       (code[1] == 0xff && (code[2] & 0x38) == 0x10) ||
	       (code[0] == 0xff && code[1] == 0x94);
}

/* Copies the code at @address up to the end of its page. */
static unsigned copy_code(uintptr_t address, unsigned char *code, unsigned size)
{
	unsigned rest = 4096 - (unsigned)(address & 4095);

	if (size > rest)
		size = rest;
	return code_bytes_read(address, code, size) == 0 ? size : 0;
}

static bool ends_with(const unsigned char *code, unsigned size)
{
	return size > 0 &&
	       (code[0] == 0xc3 || code[0] == 0xc2 || code[0] == 0xc9 ||
		code[0] == 0xf3 || (code[0] & 0xf8) == 0x58 ||
		code[0] == 0x41 || code[0] == 0x48);
}

static unsigned look_at(uintptr_t address)
{
	struct place place = { .address = address - 1 };
	unsigned char code[7];
	unsigned about = 0;

	state_call_locked(find_place, &place);
	if (!place.executable)
		return 0;
	about |= IS_CODE;
	if (code_bytes_read(address - 7, code, 7) == 0 && is_call(code))
		about |= IS_RETURN;
	if (ends_with(code, copy_code(address, code, 1)))
		about |= ENDS;
	return about;
}

/* What is known about a return address.  The answer that it is none may change: it holds
 * for a second. */
static unsigned know(uintptr_t address)
{
	uint64_t *entry =
		&cache[address * 0x9e3779b97f4a7c15ull >> (64 - CACHE_BITS)];
	uint64_t value = __atomic_load_n(entry, __ATOMIC_RELAXED);
	uint64_t now_ns = 0, second;
	unsigned about;

	if (address < 4096 || address >> 47 != 0)
		return 0;
	if (value >> 16 == address && (value & IS_RETURN))
		return value & ABOUT;
	sys_time_ns(MONOTONIC_COARSE, &now_ns);
	second = now_ns / 1000000000 & 0xfff;
	if (value >> 16 == address && (value >> 4 & 0xfff) == second)
		return value & ABOUT;
	about = look_at(address);
	__atomic_store_n(entry, (uint64_t)address << 16 | second << 4 | about,
			 __ATOMIC_RELAXED);
	return about;
}

void frame_pointer_clear(void)
{
	for (unsigned i = 0; i < 1u << CACHE_BITS; i++)
		__atomic_store_n(&cache[i], 0, __ATOMIC_RELAXED);
}

/* --- the ends of functions --- */

static bool pop(struct unwind *walk, unsigned number)
{
	uintptr_t sp = walk->registers[WALK_SP];

	if (!unwind_read(walk, sp, &walk->registers[number]))
		return false;
	walk->known |= 1u << number;
	walk->registers[WALK_SP] = sp + sizeof(sp);
	return true;
}

/* Pops the register that the instruction names with three bits. */
static bool pop_named(struct unwind *walk, unsigned name, bool is_high)
{
	static const unsigned char numbers[] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	unsigned number = is_high ? 8 + (name & 7) : numbers[name & 7];

	return number != WALK_SP && pop(walk, number);
}

static int read_int(const unsigned char *code)
{
	return (int)(code[0] | (unsigned)code[1] << 8 |
		     (unsigned)code[2] << 16 | (unsigned)code[3] << 24);
}

/* Executes the instruction of an epilogue; returns its size, or 0 if it is another one. */
static unsigned execute(struct unwind *walk, const unsigned char *code,
			unsigned size)
{
	uintptr_t *sp = &walk->registers[WALK_SP];

	if ((code[0] & 0xf8) == 0x58)
		return pop_named(walk, code[0], false);
	if (size >= 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x58)
		return pop_named(walk, code[1], true) ? 2 : 0;
	if (code[0] == 0xc9 && (walk->known >> RBP & 1)) { /* leave */
		*sp = walk->registers[RBP];
		return pop(walk, RBP);
	}
	if (size >= 4 && code[0] == 0x48 && code[1] == 0x83 &&
	    code[2] == 0xc4) { /* add n, rsp */
		*sp += (uintptr_t)(intptr_t)(signed char)code[3];
		return 4;
	}
	if (size >= 7 && code[0] == 0x48 && code[1] == 0x81 &&
	    code[2] == 0xc4) {
		*sp += (uintptr_t)(intptr_t)read_int(code + 3);
		return 7;
	}
	return 0;
}

static bool is_return(const unsigned char *code, unsigned size)
{
	return code[0] == 0xc3 || code[0] == 0xc2 ||
	       (size >= 2 && code[0] == 0xf3 && code[1] == 0xc3);
}

static bool run_epilogue(struct unwind *walk, const unsigned char *code,
			 unsigned size)
{
	unsigned at = 0, done;

	while (at < size && !is_return(code + at, size - at)) {
		done = execute(walk, code + at, size - at);
		if (done == 0)
			return false;
		at += done;
	}
	return at < size && pop(walk, WALK_IP);
}

/* --- the beginnings of functions --- */

static bool run_prologue(struct unwind *walk, const unsigned char *code,
			 unsigned size)
{
	if (size >= 5 && code[0] == 0xf3 && code[1] == 0x0f &&
	    code[2] == 0x1e && code[3] == 0xfa) { /* endbr64 */
		code += 4;
		size -= 4;
	}
	if (size >= 1 && code[0] == 0x55) /* push rbp */
		return pop(walk, WALK_IP);
	if (size >= 3 && code[0] == 0x48 &&
	    ((code[1] == 0x89 && code[2] == 0xe5) ||
	     (code[1] == 0x8b && code[2] == 0xec))) /* mov rsp, rbp */
		return pop(walk, RBP) && pop(walk, WALK_IP);
	return false;
}

/* --- functions that keep their caller's frame pointer --- */

/* Where such a function may be, after its first instruction. */
#define FUNCTION_SIZE_MAX 4096
/* The code in which a function sets its frame pointer. */
#define BEGIN_SIZE 192

static bool sets_frame_pointer(const unsigned char *code, unsigned size)
{
	for (unsigned i = 0; i + 3 <= size; i++)
		if (code[i] == 0x48 &&
		    ((code[i + 1] == 0x89 && code[i + 2] == 0xe5) ||
		     (code[i + 1] == 0x8b && code[i + 2] == 0xec) ||
		     (code[i + 1] == 0x8d &&
		      (code[i + 2] == 0x6c || code[i + 2] == 0xac))))
			return true;
	return false;
}

/* Whether the call before @address leads to the function that contains @ip, which has not
 * set its frame pointer. */
static bool has_called(uintptr_t address, uintptr_t ip)
{
	unsigned char code[BEGIN_SIZE];
	uintptr_t target;
	unsigned size;

	if (code_bytes_read(address - 5, code, 5) < 0 || code[0] != 0xe8)
		return false;
	target = address + (uintptr_t)(intptr_t)read_int(code + 1);
	if (ip - target >= FUNCTION_SIZE_MAX)
		return false;
	size = ip - target < BEGIN_SIZE ? (unsigned)(ip - target) : BEGIN_SIZE;
	return code_bytes_read(target, code, size) == 0 &&
	       !sets_frame_pointer(code, size);
}

/* --- a step --- */

#define CODE_SIZE 24

static bool is_on_known_stack(const struct unwind *walk)
{
	uintptr_t sp = walk->registers[WALK_SP];

	return sp >= walk->stack_low && sp < walk->stack_high;
}

static bool is_plausible(const struct unwind *from, const struct unwind *to)
{
	uintptr_t distance = to->registers[WALK_SP] - from->registers[WALK_SP];
	unsigned about;

	if (distance == 0 || distance > FRAME_SIZE_MAX ||
	    (is_on_known_stack(from) &&
	     to->registers[WALK_SP] > from->stack_high))
		return false;
	about = know(to->registers[WALK_IP]);
	return (about & IS_RETURN) ||
	       ((about & IS_CODE) && (to->known >> RBP & 1) &&
		to->registers[RBP] == 0);
}

static bool step_by_code(struct unwind *walk, struct unwind *next)
{
	unsigned char code[CODE_SIZE];
	unsigned size;

	if (!walk->is_exact && !(know(walk->registers[WALK_IP]) & ENDS))
		return false;
	size = copy_code(walk->registers[WALK_IP], code, CODE_SIZE);
	if (run_epilogue(next, code, size) && is_plausible(walk, next))
		return true;
	if (!walk->is_exact)
		return false;
	*next = *walk;
	if (run_prologue(next, code, size) && is_plausible(walk, next))
		return true;
	*next = *walk;
	if (!pop(next, WALK_IP))
		return false;
	/* The kernel has just called a signal handler. */
	next->is_exact = false;
	if (unwind_is_signal_frame(next))
		return true;
	return is_plausible(walk, next) &&
	       has_called(next->registers[WALK_IP], walk->registers[WALK_IP]);
}

/* Whether the caller's frame is on another stack, as if Go calls C: the frame pointer
 * still leads to it. */
static bool may_switch(const struct unwind *walk, uintptr_t frame)
{
	return !walk->is_exact && walk->switches < SWITCHES_MAX &&
	       !(frame >= walk->stack_low && frame < walk->stack_high);
}

static bool step_by_pointer(const struct unwind *walk, struct unwind *next)
{
	uintptr_t frame = walk->registers[RBP], sp = walk->registers[WALK_SP];
	struct unwind from = *walk;
	bool switches = frame < sp || frame - sp > FRAME_SIZE_MAX;

	if (!(walk->known >> RBP & 1) || frame % sizeof(frame) != 0 ||
	    (switches && !may_switch(walk, frame)))
		return false;
	next->registers[WALK_SP] = frame;
	next->known = 1u << WALK_SP;
	if (!pop(next, RBP) || !pop(next, WALK_IP))
		return false;
	if (switches) {
		next->switches++;
		from.registers[WALK_SP] = frame;
		/* Many objects begin with 0 and the address of a function. */
		if (!(know(next->registers[WALK_IP]) & IS_RETURN) ||
		    (next->registers[RBP] != 0 &&
		     next->registers[RBP] - frame > FRAME_SIZE_MAX))
			return false;
	}
	next->chained_ip = next->registers[WALK_IP];
	return is_plausible(&from, next);
}

bool frame_pointer_step(struct unwind *walk)
{
	struct unwind next = *walk;

	if (walk->chained_ip != 0 &&
	    walk->chained_ip == walk->registers[WALK_IP] &&
	    walk->registers[RBP] == 0)
		return walk->is_last = true, false;
	/* The first address of a coroutine is none; its frame pointer is another
	 * stack's. */
	if (!walk->is_exact && !(know(walk->registers[WALK_IP]) & IS_RETURN))
		return false;
	if (!step_by_code(walk, &next)) {
		next = *walk;
		if (!step_by_pointer(walk, &next))
			return false;
	}
	next.known &= 0xf048u | 1u << WALK_SP | 1u << WALK_IP;
	next.is_exact = false;
	next.is_guess = true;
	*walk = next;
	return true;
}
