/*
 * Unwinds with libunwind's remote interface.  libunwind calls functions of this file
 * for registers, words of memory and the unwind table of an instruction; they read the
 * copies.
 *
 * They find the tables by .eh_frame_hdr in the memory of the process, so they open no
 * file.
 */
#include <inttypes.h>
#include <libunwind.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/messages.h"
#include "process/unwind.h"

/* libunwind exports this function for programs with their own tables, but no header
 * declares it. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as,
					      unw_word_t ip, unw_dyn_info_t *di,
					      unw_proc_info_t *pi,
					      int need_unwind_info, void *arg);
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)

/* The head of the table that all linkers write: version 1, a 32-bit pointer relative to
 * itself, a 32-bit count, sorted pairs of 32-bit numbers relative to the section. */
#define TABLE_HEADER 12
static const unsigned char table_head[4] = { 1, 0x1b, 0x03, 0x3b };

struct unwinder {
	unw_addr_space_t libunwind;
	struct space *space;
	const struct unwind_from *source;
	const struct user_regs_struct *registers; /* where libunwind begins */
};

static int find_proc_info(unw_addr_space_t libunwind, unw_word_t ip,
			  unw_proc_info_t *info, int wants_unwind_info,
			  void *context)
{
	struct unwinder *unwinder = context;
	const struct module *module = space_module(unwinder->space, ip);
	unsigned char header[TABLE_HEADER];
	unw_dyn_info_t table;
	uint32_t count;

	if (!module || !module->unwind ||
	    !space_read(unwinder->space, module->unwind, header,
			sizeof(header)) ||
	    memcmp(header, table_head, sizeof(table_head)))
		return -UNW_ENOINFO;
	memcpy(&count, header + 8, sizeof(count));
	memset(&table, 0, sizeof(table));
	table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	table.start_ip = module->start;
	table.end_ip = module->end;
	table.u.rti.segbase = module->unwind;
	table.u.rti.table_data = module->unwind + TABLE_HEADER;
	table.u.rti.table_len = (unw_word_t)count * 8 / sizeof(unw_word_t);
	return search_unwind_table(libunwind, ip, &table, info,
				   wants_unwind_info, context);
}

/* The contents belong to libunwind's pool. */
static void put_unwind_info(unw_addr_space_t libunwind, unw_proc_info_t *info,
			    void *context)
{
	(void)libunwind;
	(void)info;
	(void)context;
}

static int refuse_dynamic_list(unw_addr_space_t libunwind, unw_word_t *list,
			       void *context)
{
	(void)libunwind;
	(void)list;
	(void)context;
	return -UNW_ENOINFO;
}

static int access_memory(unw_addr_space_t libunwind, unw_word_t address,
			 unw_word_t *value, int is_write, void *context)
{
	struct unwinder *unwinder = context;
	const struct unwind_from *source = unwinder->source;
	uint64_t offset = address - source->stack;

	(void)libunwind;
	if (is_write)
		return -UNW_EREADONLYREG;
	if (offset < source->stack_size &&
	    source->stack_size - offset >= sizeof(*value)) {
		memcpy(value, source->bytes + offset, sizeof(*value));
		return 0;
	}
	return space_read(unwinder->space, address, value, sizeof(*value)) ?
		       0 :
		       -UNW_EINVAL;
}

static int access_register(unw_addr_space_t libunwind, unw_regnum_t number,
			   unw_word_t *value, int is_write, void *context)
{
	const struct unwinder *unwinder = context;
	const struct user_regs_struct *has = unwinder->registers;

	(void)libunwind;
	if (is_write)
		return -UNW_EREADONLYREG;
	switch (number) {
	case UNW_X86_64_RAX: *value = has->rax; return 0;
	case UNW_X86_64_RDX: *value = has->rdx; return 0;
	case UNW_X86_64_RCX: *value = has->rcx; return 0;
	case UNW_X86_64_RBX: *value = has->rbx; return 0;
	case UNW_X86_64_RSI: *value = has->rsi; return 0;
	case UNW_X86_64_RDI: *value = has->rdi; return 0;
	case UNW_X86_64_RBP: *value = has->rbp; return 0;
	case UNW_X86_64_RSP: *value = has->rsp; return 0;
	case UNW_X86_64_R8: *value = has->r8; return 0;
	case UNW_X86_64_R9: *value = has->r9; return 0;
	case UNW_X86_64_R10: *value = has->r10; return 0;
	case UNW_X86_64_R11: *value = has->r11; return 0;
	case UNW_X86_64_R12: *value = has->r12; return 0;
	case UNW_X86_64_R13: *value = has->r13; return 0;
	case UNW_X86_64_R14: *value = has->r14; return 0;
	case UNW_X86_64_R15: *value = has->r15; return 0;
	case UNW_X86_64_RIP: *value = has->rip; return 0;
	default: return -UNW_EBADREG;
	}
}

static int access_fp_register(unw_addr_space_t libunwind, unw_regnum_t number,
			      unw_fpreg_t *value, int is_write, void *context)
{
	(void)libunwind;
	(void)number;
	(void)value;
	(void)is_write;
	(void)context;
	return -UNW_EBADREG;
}

static int refuse_resume(unw_addr_space_t libunwind, unw_cursor_t *cursor,
			 void *context)
{
	(void)libunwind;
	(void)cursor;
	(void)context;
	return -UNW_EINVAL;
}

static int refuse_name(unw_addr_space_t libunwind, unw_word_t address,
		       char *name, size_t size, unw_word_t *offset,
		       void *context)
{
	(void)libunwind;
	(void)address;
	(void)name;
	(void)size;
	(void)offset;
	(void)context;
	return -UNW_ENOINFO;
}

struct unwinder *unwinder_open(struct space *space)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = refuse_dynamic_list,
		.access_mem = access_memory,
		.access_reg = access_register,
		.access_fpreg = access_fp_register,
		.resume = refuse_resume,
		.get_proc_name = refuse_name,
	};
	struct unwinder *unwinder = allocate(1, sizeof(*unwinder));

	unwinder->space = space;
	unwinder->libunwind = unw_create_addr_space(&accessors, 0);
	if (!unwinder->libunwind)
		die("libunwind: not enough memory");
	unw_set_caching_policy(unwinder->libunwind, UNW_CACHE_GLOBAL);
	return unwinder;
}

void unwinder_forget(struct unwinder *unwinder)
{
	unw_flush_cache(unwinder->libunwind, 0, 0);
}

/* Whether a call ends at @address. */
static bool is_after_call(struct unwinder *unwinder, uint64_t address)
{
	unsigned char bytes[7];
	unsigned size;

	if (!space_read(unwinder->space, address - sizeof(bytes), bytes,
			sizeof(bytes)))
		return false;
	if (bytes[2] == 0xe8)
		return true;
	/* ff /2 with its operand */
	for (size = 2; size <= sizeof(bytes); size++)
		if (bytes[7 - size] == 0xff && (bytes[8 - size] & 0x38) == 0x10)
			return true;
	return false;
}

/*
 * Assembly code may have no table: libc's clone3() around its system call, stubs of linkers.
 * libunwind takes it for code with a frame pointer.  If it has pushed nothing, the stack
 * pointer points to its return address: then stores the registers of its caller.
 */
static bool leave_without_table(struct unwinder *unwinder,
				struct user_regs_struct *registers)
{
	const struct module *module = space_module(unwinder->space,
						   registers->rip);
	const struct mapping *mapping;
	unw_word_t address;
	unw_proc_info_t info;

	/* (In a module without any table, functions may have frame pointers.) */
	if (!module || !module->unwind ||
	    find_proc_info(unwinder->libunwind, registers->rip, &info, 0,
			   unwinder) == 0 ||
	    access_memory(unwinder->libunwind, registers->rsp, &address, 0,
			  unwinder) != 0)
		return false;
	mapping = space_mapping(unwinder->space, address);
	if (!mapping || mapping->is_writable ||
	    !is_after_call(unwinder, address))
		return false;
	registers->rip = address;
	registers->rsp += sizeof(address);
	return true;
}

/*
 * A rule for the stack pointer may say that it is not where the frame begins, which is what
 * libunwind takes, although it knows the rule:
 *
 * - At the end of libc's longjmp(), the frame is where the jump buffer is, and the stack pointer
 *   is in a register, which is known in the innermost frame only.
 * - A function whose end shim records returns to arch_returned, and the stack pointer is a word
 *   below the beginning of that frame.
 */
static bool find_stack_pointer(struct unwinder *unwinder, unw_cursor_t *cursor,
			       bool is_innermost, unw_word_t *sp)
{
	unw_save_loc_t place;
	unw_word_t frame;

	if (unw_get_save_loc(cursor, UNW_X86_64_RSP, &place) != 0)
		return false;
	if (place.type == UNW_SLT_REG)
		return is_innermost && place.u.regnum != UNW_X86_64_RSP &&
		       access_register(NULL, place.u.regnum, sp, 0, unwinder) ==
			       0;
	*sp = place.u.addr;
	return place.type == UNW_SLT_MEMORY &&
	       unw_get_reg(cursor, UNW_REG_SP, &frame) == 0 &&
	       *sp + sizeof(*sp) == frame;
}

/* If the step to this frame had such a rule, stores the frame's registers. */
static bool follow_stack_pointer(struct unwinder *unwinder,
				 unw_cursor_t *cursor, bool is_innermost,
				 struct user_regs_struct *registers)
{
	/* The cursor reads the innermost registers until all are known. */
	struct user_regs_struct caller = *registers;
	const struct {
		unw_regnum_t number;
		unsigned long long *value;
	} kept[] = {
		{ UNW_X86_64_RBX, &caller.rbx },
		{ UNW_X86_64_RBP, &caller.rbp },
		{ UNW_X86_64_R12, &caller.r12 },
		{ UNW_X86_64_R13, &caller.r13 },
		{ UNW_X86_64_R14, &caller.r14 },
		{ UNW_X86_64_R15, &caller.r15 },
		{ UNW_X86_64_RIP, &caller.rip },
	};
	unw_word_t value;
	size_t i;

	if (!find_stack_pointer(unwinder, cursor, is_innermost, &value))
		return false;
	caller.rsp = value;
	for (i = 0; i < sizeof(kept) / sizeof(*kept); i++)
		if (unw_get_reg(cursor, kept[i].number, &value) == 0)
			*kept[i].value = value;
	*registers = caller;
	return true;
}

uint32_t unwinder_frames(struct unwinder *unwinder,
			 const struct unwind_from *source, uint64_t *addresses)
{
	struct user_regs_struct registers = *source->registers;
	unw_word_t ip, sp, last_sp = 0;
	bool was_signal;
	unw_cursor_t cursor;
	uint32_t count = 0;

	unwinder->source = source;
	unwinder->registers = &registers;
	if (leave_without_table(unwinder, &registers))
		addresses[count++] = source->registers->rip;
	if (unw_init_remote(&cursor, unwinder->libunwind, unwinder) != 0) {
		addresses[0] = source->registers->rip;
		return count ? count : 1;
	}
	while (count < UNWIND_DEPTH_MAX) {
		if (unw_get_reg(&cursor, UNW_REG_IP, &ip) != 0 || ip == 0 ||
		    unw_get_reg(&cursor, UNW_REG_SP, &sp) != 0)
			break;
		/* libunwind has guessed a frame without code, or a cycle. */
		if (count > 0 &&
		    (sp == last_sp || !space_mapping(unwinder->space, ip - 1)))
			break;
		last_sp = sp;
		/* libunwind marks the frame that the signal interrupted.  The kernel
		 * made the frame before it.  Neither has made a call. */
		was_signal = count > 0 && unw_is_signal_frame(&cursor) > 0;
		if (was_signal)
			addresses[count - 1] |= UNWIND_SIGNAL;
		addresses[count] = count == 0 || was_signal ? ip : ip - 1;
		count++;
		if (unw_step(&cursor) <= 0)
			break;
		if (follow_stack_pointer(unwinder, &cursor, count == 1,
					 &registers)) {
			/* arch_returned has nothing on the stack. */
			last_sp = 0;
			if (unw_init_remote(&cursor, unwinder->libunwind,
					    unwinder) != 0)
				break;
		}
	}
	return count;
}
