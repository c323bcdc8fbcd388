/*
 * Reads the frames of CPython 3.11 to 3.13 at a sample.
 *
 * The interpreter keeps a list of its frames for each thread.  One call of
 * _PyEval_EvalFrameDefault runs one or more of them, and the last one is marked: by
 * is_entry in 3.11, by a frame of its own on the C stack since.  The list may be in any
 * state at a signal, so every read is checked, and a code object counts only if its type
 * is PyCode_Type.
 *
 * The offsets are those of the interpreter's own headers (pycore_frame.h, pycore_code.h).
 * They do not change within 3.11, 3.12 and 3.13; where 3.13 might change them, it says
 * them itself, in _Py_DebugOffsets at the begin of _PyRuntime.
 */
#include "sampling/python.h"

#include <shim/builtin.h>
#include <shim/format.h>
#include <shim/info.h>
#include <shim/record.h>
#include <shim/stack.h>
#include <string.h>

#include <shim/banned.h>

#define CODES_MIN	  256 /* a power of two */
#define LINES_KNOWN	  1024
#define GROUP_MOST	  1024
#define THREADS_MOST	  4096
#define INTERPRETERS_MOST 64
#define TABLE_PART	  256
#define FRAME_SIZE	  80
#define OBJECT_SIZE	  144 /* of a code object, up to its table of lines */
#define RESEARCH \
	256 /* samples after which a thread without Python is tried again */

/* Offsets in bytes. */
struct offsets {
	uint16_t version; /* major << 8 | minor */
	uint16_t interpreters, next_interpreter,
		threads; /* to the first of a list */
	uint16_t next_thread, thread_id;
	uint16_t
		c_frame; /* of the thread, to what holds @frame; 0: the thread */
	uint16_t current_frame; /* there */
	uint16_t code, previous, instruction, owner;
	uint16_t is_entry; /* 0: the last frame is that of the C stack */
	uint16_t first_line, file, name, table, bytes; /* of the code object */
	uint16_t ascii, text; /* size of a string's head */
};

#define OWNED_BY_C_STACK 3
/* Offsets of all objects, and of strings and bytes. */
#define OBJECT_TYPE    8
#define OBJECT_SIZE_AT 16
#define STRING_STATE   32
#define BYTES_TEXT     32

static const struct offsets known[] = {
	{ 0x30b, 40, 0,	 16, 8,	  160, 56,  8,	 32, 48,
	  56,	 69, 68, 72, 112, 128, 136, 184, 48, 72 },
	{ 0x30c, 40, 0, 72, 8,	 144, 56,  0,	0,  8,
	  56,	 70, 0, 68, 112, 128, 136, 192, 40, 56 },
	{ 0x30d, 0,  0, 0,  8,	 160, 0,   72,	0,  8,
	  56,	 70, 0, 68, 112, 128, 136, 200, 40, 56 },
};

/* Positions of _Py_DebugOffsets in 3.13. */
#define DEBUG_COOKIE	   "xdebugpy"
#define DEBUG_INTERPRETERS 40
#define DEBUG_NEXT	   64
#define DEBUG_THREADS	   72

/* Filled while @is_there is false.  If another interpreter comes in the place of one that
 * was unloaded, a sample of another thread may meet both: it reads wrong places, and every
 * read is checked. */
static struct {
	struct offsets offsets;
	uintptr_t runtime, code_type;
	uintptr_t eval;
	size_t eval_size;
	bool is_there;
} python;

/* --- reading --- */

static bool read_word(uintptr_t at, uintptr_t *word)
{
	return at % sizeof(*word) == 0 &&
	       shim_memory_read(word, (const void *)at, sizeof(*word));
}

static bool read_debug_offsets(struct offsets *offsets)
{
	uintptr_t interpreters, next, threads;
	char cookie[8];

	if (!shim_memory_read(cookie, (const void *)python.runtime,
			      sizeof(cookie)) ||
	    memcmp(cookie, DEBUG_COOKIE, sizeof(cookie)) != 0 ||
	    !read_word(python.runtime + DEBUG_INTERPRETERS, &interpreters) ||
	    !read_word(python.runtime + DEBUG_NEXT, &next) ||
	    !read_word(python.runtime + DEBUG_THREADS, &threads) ||
	    (interpreters | next | threads) > UINT16_MAX)
		return false;
	offsets->interpreters = (uint16_t)interpreters;
	offsets->next_interpreter = (uint16_t)next;
	offsets->threads = (uint16_t)threads;
	return true;
}

/* Where a symbol is looked for: in @image, or if it is 0, in all objects that were loaded
 * at the start. */
static uintptr_t find_symbol(shim_image image, const char *name, size_t *size)
{
	return (uintptr_t)(image ? shim_symbol_find_in(image, name, size) :
				   shim_symbol_find(name, size));
}

static void find_interpreter(shim_image image)
{
	uintptr_t version = 0;
	size_t size = 0;

	python.runtime = find_symbol(image, "_PyRuntime", &size);
	if (!python.runtime)
		return;
	python.eval = find_symbol(image, "_PyEval_EvalFrameDefault",
				  &python.eval_size);
	if (!python.eval)
		return;
	python.offsets = (struct offsets){ .version = 0 };
	python.code_type = find_symbol(image, "PyCode_Type", &size);
	read_word(find_symbol(image, "Py_Version", &size), &version);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (known[i].version == version >> 16)
			python.offsets = known[i];
	if (python.offsets.version != 0 && python.code_type &&
	    (python.offsets.interpreters ||
	     read_debug_offsets(&python.offsets)))
		__atomic_store_n(&python.is_there, true, __ATOMIC_RELEASE);
	else
		shim_record_log("sampling: functions of Python are not shown: "
				"they are known of CPython 3.11 to 3.13");
}

void python_begin(void)
{
	find_interpreter(0);
	shim_symbol_expect("_PyRuntime");
}

void python_image_loaded(shim_image image)
{
	if (!python_is_there())
		find_interpreter(image);
}

void python_image_unloaded(uintptr_t low, uintptr_t high)
{
	if (python.eval >= low && python.eval < high)
		__atomic_store_n(&python.is_there, false, __ATOMIC_RELEASE);
}

bool python_is_there(void)
{
	return __atomic_load_n(&python.is_there, __ATOMIC_ACQUIRE);
}

/* --- the interpreter's thread --- */

struct code {
	uintptr_t at; /* 0: none */
	uintptr_t file, name, table;
	uint32_t first_line;
	uint64_t address; /* of its first line */
};

struct line {
	uint64_t instruction;
	uint64_t address;
};

struct python_thread {
	uint32_t tid, retry;
	uintptr_t state; /* PyThreadState */
	struct code *codes;
	uint64_t room, used;
	struct line lines[LINES_KNOWN];
	/* Copies: one system call each. */
	unsigned char frame[FRAME_SIZE], object[OBJECT_SIZE], part[TABLE_PART];
};

static uintptr_t word_at(const unsigned char *copy, uint16_t offset)
{
	uintptr_t word;

	memcpy(&word, copy + offset, sizeof(word));
	return word;
}

static bool is_state_of(uintptr_t state, uint32_t tid)
{
	uintptr_t id;

	return read_word(state + python.offsets.thread_id, &id) && id == tid;
}

static uintptr_t find_state(uint32_t tid)
{
	const struct offsets *offsets = &python.offsets;
	uintptr_t interpreter, state;
	uint32_t i, n;

	if (!read_word(python.runtime + offsets->interpreters, &interpreter))
		return 0;
	for (i = 0; interpreter && i < INTERPRETERS_MOST; i++) {
		if (!read_word(interpreter + offsets->threads, &state))
			return 0;
		for (n = 0; state && n < THREADS_MOST; n++) {
			if (is_state_of(state, tid))
				return state;
			if (!read_word(state + offsets->next_thread, &state))
				return 0;
		}
		if (!read_word(interpreter + offsets->next_interpreter,
			       &interpreter))
			return 0;
	}
	return 0;
}

static uintptr_t innermost_frame(struct python_thread *thread)
{
	const struct offsets *offsets = &python.offsets;
	uint32_t tid = shim_thread_id();
	uintptr_t at;

	if (thread->retry > 0 && thread->tid == tid) {
		thread->retry--;
		return 0;
	}
	if (thread->tid != tid || !thread->state ||
	    !is_state_of(thread->state, tid)) {
		thread->tid = tid;
		thread->state = find_state(tid);
		thread->retry = thread->state ? 0 : RESEARCH;
	}
	at = thread->state;
	if (at && offsets->c_frame && !read_word(at + offsets->c_frame, &at))
		return 0;
	return at && read_word(at + offsets->current_frame, &at) ? at : 0;
}

/* --- names --- */

/* Encodes a string of @kind bytes a character in UTF-8; cuts it to @room bytes. */
static uint32_t encode(const unsigned char *from, uint32_t length,
		       uint32_t kind, char *to, uint32_t room)
{
	uint32_t size = 0;

	for (uint32_t i = 0; i < length; i++) {
		const unsigned char *at = from + (size_t)i * kind;
		uint32_t c = at[0];

		if (kind > 1)
			c |= (uint32_t)at[1] << 8;
		if (kind > 2)
			c |= (uint32_t)at[2] << 16;
		if (size + 4 > room)
			break;
		if (c < 0x80) {
			to[size++] = (char)c;
		} else if (c < 0x800) {
			to[size++] = (char)(0xc0 | c >> 6);
			to[size++] = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			to[size++] = (char)(0xe0 | c >> 12);
			to[size++] = (char)(0x80 | (c >> 6 & 0x3f));
			to[size++] = (char)(0x80 | (c & 0x3f));
		} else {
			to[size++] = (char)(0xf0 | (c >> 18 & 7));
			to[size++] = (char)(0x80 | (c >> 12 & 0x3f));
			to[size++] = (char)(0x80 | (c >> 6 & 0x3f));
			to[size++] = (char)(0x80 | (c & 0x3f));
		}
	}
	return size;
}

/* Reads the end of a string of Python. */
static uint32_t read_text(struct python_thread *thread, uintptr_t string,
			  char *text, uint32_t room)
{
	uintptr_t length, state;
	uint32_t kind, head, most;

	if (!read_word(string + OBJECT_SIZE_AT, &length) ||
	    !read_word(string + STRING_STATE, &state))
		return 0;
	kind = state >> 2 & 7;
	if (!(state >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	head = state >> 6 & 1 ? python.offsets.ascii : python.offsets.text;
	most = room < TABLE_PART ? room : TABLE_PART;
	most /= kind;
	if (length > most) {
		string += (length - most) * kind;
		length = most;
	}
	if (!shim_memory_read(thread->part, (const void *)(string + head),
			      length * kind))
		return 0;
	return encode(thread->part, (uint32_t)length, kind, text, room);
}

/* --- code objects --- */

/* Addresses that no code of the program has: the kernel has them. */
#define CODE_FIRST 0x800000000000ull
/* Each code object has an address for each of its lines. */
#define CODE_LINES 0x10000u

static uint64_t codes_named;

static uint64_t name_code(struct python_thread *thread, const struct code *code,
			  python_allocate allocate, void *argument)
{
	struct shim_code_node *node = allocate(argument, sizeof(*node));
	uint64_t number;

	if (!node)
		return 0;
	number = __atomic_fetch_add(&codes_named, 1, __ATOMIC_RELAXED);
	node->address = CODE_FIRST + number * CODE_LINES;
	node->lines = CODE_LINES;
	node->first_line = code->first_line;
	node->name_size = read_text(thread, code->name, node->text,
				    SHIM_CODE_NAME);
	node->file_size = read_text(
		thread, code->file, node->text + node->name_size,
		(uint32_t)sizeof(node->text) - node->name_size);
	__atomic_store_n(&node->function, SHIM_NODE_CODE, __ATOMIC_RELEASE);
	return node->address;
}

static struct code *slot_of(struct code *codes, uint64_t room, uintptr_t at)
{
	uint64_t i = (at >> 4) * 0x9e3779b97f4a7c15ull >> 20;

	while (codes[i & (room - 1)].at && codes[i & (room - 1)].at != at)
		i++;
	return &codes[i & (room - 1)];
}

/* The old table stays mapped: this file frees nothing. */
static bool grow_codes(struct python_thread *thread)
{
	uint64_t room = thread->room ? thread->room * 2 : CODES_MIN;
	struct code *codes = shim_memory_map(room * sizeof(*codes));

	if (!codes)
		return false;
	for (uint64_t i = 0; i < thread->room; i++)
		if (thread->codes[i].at)
			*slot_of(codes, room,
				 thread->codes[i].at) = thread->codes[i];
	thread->codes = codes;
	thread->room = room;
	return true;
}

/* The code object at @at, which may be another one than at the last sample. */
static const struct code *find_code(struct python_thread *thread, uintptr_t at,
				    python_allocate allocate, void *argument)
{
	const struct offsets *offsets = &python.offsets;
	const unsigned char *object = thread->object;
	struct code now = { .at = at }, *slot;

	if (!shim_memory_read(thread->object, (const void *)at, OBJECT_SIZE) ||
	    word_at(object, OBJECT_TYPE) != python.code_type)
		return NULL;
	now.file = word_at(object, offsets->file);
	now.name = word_at(object, offsets->name);
	now.table = word_at(object, offsets->table);
	memcpy(&now.first_line, object + offsets->first_line,
	       sizeof(now.first_line));
	if (thread->used * 2 >= thread->room && !grow_codes(thread))
		return NULL;
	slot = slot_of(thread->codes, thread->room, at);
	if (slot->at && slot->file == now.file && slot->name == now.name &&
	    slot->table == now.table && slot->first_line == now.first_line)
		return slot;
	now.address = name_code(thread, &now, allocate, argument);
	if (!now.address)
		return NULL;
	thread->used += !slot->at;
	*slot = now;
	return slot;
}

/* --- lines --- */

/* A table of lines, which is read part by part. */
struct table {
	struct python_thread *thread;
	uintptr_t at, end;   /* what was not read yet */
	uint32_t next, size; /* in thread->part */
};

/* The next byte; -1: the table ends. */
static int next_byte(struct table *table)
{
	size_t size = table->end - table->at;

	if (table->next == table->size) {
		if (size > TABLE_PART)
			size = TABLE_PART;
		if (size == 0 ||
		    !shim_memory_read(table->thread->part,
				      (const void *)table->at, size))
			return -1;
		table->at += size;
		table->next = 0;
		table->size = (uint32_t)size;
	}
	return table->thread->part[table->next++];
}

static int next_number(struct table *table)
{
	uint32_t number = 0, shift = 0;
	int byte;

	do {
		byte = next_byte(table);
		if (byte < 0 || shift > 24)
			return 0;
		number |= (uint32_t)(byte & 0x3f) << shift;
		shift += 6;
	} while (byte & 0x40);
	return (int)number;
}

static int next_signed(struct table *table)
{
	int number = next_number(table);

	return number & 1 ? -(number >> 1) : number >> 1;
}

static void skip_bytes(struct table *table, uint32_t count)
{
	while (count-- > 0)
		next_byte(table);
}

/* How many lines the instruction @unit, of two bytes each, is after the first one.  The
 * table is that of Objects/locations.md of CPython. */
static uint32_t find_line(struct python_thread *thread, uintptr_t bytes,
			  uint64_t unit)
{
	struct table table = { .thread = thread };
	uintptr_t size;
	uint64_t at = 0;
	int line = 0, head, kind;

	if (!read_word(bytes + OBJECT_SIZE_AT, &size) || size > 1u << 24)
		return 0;
	table.at = bytes + BYTES_TEXT;
	table.end = table.at + size;
	while (at <= unit && (head = next_byte(&table)) >= 0) {
		kind = head >> 3 & 15;
		at += (head & 7) + 1u;
		if (kind == 14) {
			line += next_signed(&table);
			next_number(&table);
			next_number(&table);
			next_number(&table);
		} else if (kind == 13) {
			line += next_signed(&table);
		} else if (kind >= 10 && kind <= 12) {
			line += kind - 10;
			skip_bytes(&table, 2);
		} else if (kind < 10) {
			skip_bytes(&table, 1);
		}
	}
	return line < 0 || line >= (int)CODE_LINES ? 0 : (uint32_t)line;
}

static uint64_t address_of(struct python_thread *thread,
			   const struct code *code, uintptr_t instruction)
{
	uintptr_t begin = code->at + python.offsets.bytes;
	uint64_t unit = (instruction - begin) / 2;
	uint64_t key = code->address + unit * 2 + 1;
	struct line *line = &thread->lines[(key * 0x9e3779b97f4a7c15ull >> 40) %
					   LINES_KNOWN];

	/* Before its first instruction, a frame is at its first line. */
	if (instruction < begin || unit > 1u << 24)
		return code->address;
	if (line->instruction != key) {
		line->address = code->address +
				find_line(thread, code->table, unit);
		line->instruction = key;
	}
	return line->address;
}

/* --- stacks --- */

struct mix {
	struct python_thread *thread;
	python_allocate allocate;
	void *argument;
	uintptr_t frame; /* the next one */
	uintptr_t *mixed;
	uint32_t count, room;
};

static void add(struct mix *mix, uintptr_t address)
{
	if (mix->count < mix->room)
		mix->mixed[mix->count++] = address;
}

/* Adds the frames that one call of the interpreter runs; false: there are none. */
static bool add_group(struct mix *mix)
{
	const struct offsets *offsets = &python.offsets;
	uint32_t before = mix->count, n;
	const unsigned char *frame = mix->thread->frame;
	const struct code *code;

	for (n = 0; mix->frame && n < GROUP_MOST; n++) {
		if (!shim_memory_read(mix->thread->frame,
				      (const void *)mix->frame, FRAME_SIZE)) {
			mix->frame = 0;
			break;
		}
		mix->frame = word_at(frame, offsets->previous);
		if (!offsets->is_entry &&
		    frame[offsets->owner] == OWNED_BY_C_STACK)
			break;
		code = find_code(mix->thread, word_at(frame, offsets->code),
				 mix->allocate, mix->argument);
		if (code)
			add(mix, (uintptr_t)address_of(
					 mix->thread, code,
					 word_at(frame, offsets->instruction)));
		if (offsets->is_entry && frame[offsets->is_entry])
			break;
	}
	return mix->count > before;
}

static bool is_interpreter(uintptr_t address)
{
	return (address & ~SHIM_STACK_GUESS) - python.eval < python.eval_size;
}

/* Whether @address is in code that the program made, such as that of -X perf. */
static bool is_made(uintptr_t address)
{
	shim_image image;

	address &= ~SHIM_STACK_GUESS;
	return shim_image_from_address((const void *)address, &image) ==
	       SHIM_E_FAIL;
}

uint32_t python_mix(struct python_thread **thread, python_allocate allocate,
		    void *argument, const uintptr_t *stack, uint32_t count,
		    uintptr_t *mixed, uint32_t room)
{
	struct mix mix = { .allocate = allocate,
			   .argument = argument,
			   .mixed = mixed,
			   .room = room };
	uint32_t i;

	for (i = 0; i < count && !is_interpreter(stack[i]); i++)
		;
	if (i == count)
		return 0;
	if (!*thread)
		*thread = shim_memory_map(sizeof(**thread));
	mix.thread = *thread;
	if (!mix.thread)
		return 0;
	mix.frame = innermost_frame(mix.thread);
	if (!mix.frame)
		return 0;
	for (i = 0; i < count; i++) {
		if (!is_interpreter(stack[i]) || !add_group(&mix))
			add(&mix, stack[i]);
		else if (i + 1 < count && is_made(stack[i + 1]))
			i++; /* -X perf has code for each function */
	}
	return mix.count;
}
