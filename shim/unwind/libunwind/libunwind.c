/*
 * Steps with libunwind's remote interface, on the own process: libunwind calls functions
 * of this file for registers, words of memory and tables.  The local interface would look
 * for tables with dl_iterate_phdr, under the loader's lock, and test addresses with pipes.
 */
#include <libunwind.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "unwind/second.h"

/* libunwind exports this function for programs with their own tables, but no header
 * declares it. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as,
					      unw_word_t ip, unw_dyn_info_t *di,
					      unw_proc_info_t *pi,
					      int need_unwind_info, void *arg);
#define search_unwind_table UNW_OBJ(dwarf_search_unwind_table)

/* The head of the index that all linkers write: version 1, a 32-bit pointer relative to
 * itself, a 32-bit count, sorted pairs of 32-bit numbers relative to the section. */
#define INDEX_HEADER 12
#define INDEX_HEAD   0x3b031b01u

static const struct second_calls *calls;
static unw_addr_space_t space;

/* --- libc's functions that libunwind calls --- */

/*
 * The loader binds libunwind's calls to these, because this library comes first in its
 * namespace.  libunwind blocks all signals while it holds a lock, but libc's sigprocmask
 * leaves out the signals that libc reserves for itself, and would unblock that of
 * samples.  shim lets one thread at a time into the library, and no signal handler of
 * that thread: neither a mask nor a lock is needed, and none stays locked if a handler of
 * the program leaves the library by a jump, or another thread forks.
 */
#define BOUND __attribute__((visibility("default")))

BOUND int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	(void)how, (void)set, (void)old;
	return 0;
}

BOUND int pthread_mutex_lock(pthread_mutex_t *lock)
{
	(void)lock;
	return 0;
}

BOUND int pthread_mutex_unlock(pthread_mutex_t *lock)
{
	(void)lock;
	return 0;
}

/* --- what libunwind calls --- */

static int find_proc_info(unw_addr_space_t unused, unw_word_t ip,
			  unw_proc_info_t *info, int wants_unwind_info,
			  void *context)
{
	const struct unwind *walk = context;
	struct second_tables tables;
	unw_dyn_info_t table;
	uintptr_t head, count;

	if (!calls->find_tables(ip, &tables) ||
	    !calls->read(walk, tables.index, &head) ||
	    !calls->read(walk, tables.index + 8, &count) ||
	    (uint32_t)head != INDEX_HEAD)
		return -UNW_ENOINFO;
	memset(&table, 0, sizeof(table));
	table.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	table.start_ip = tables.start;
	table.end_ip = tables.end;
	table.u.rti.segbase = tables.index;
	table.u.rti.table_data = tables.index + INDEX_HEADER;
	table.u.rti.table_len = (unw_word_t)(uint32_t)count * 8 /
				sizeof(unw_word_t);
	return search_unwind_table(unused, ip, &table, info, wants_unwind_info,
				   context);
}

/* The contents belong to libunwind's pool. */
static void put_unwind_info(unw_addr_space_t unused, unw_proc_info_t *info,
			    void *context)
{
	(void)unused, (void)info, (void)context;
}

static int refuse_dynamic_list(unw_addr_space_t unused, unw_word_t *list,
			       void *context)
{
	(void)unused, (void)list, (void)context;
	return -UNW_ENOINFO;
}

static int access_memory(unw_addr_space_t unused, unw_word_t address,
			 unw_word_t *value, int is_write, void *context)
{
	const struct unwind *walk = context;
	uintptr_t word;

	(void)unused;
	if (is_write)
		return -UNW_EREADONLYREG;
	if (!calls->read(walk, address, &word))
		return -UNW_EINVAL;
	*value = word;
	return 0;
}

/* libunwind numbers the registers as DWARF does.  It looks for the rules of exactly this
 * address: of a return address, those of the call count. */
static int access_register(unw_addr_space_t unused, unw_regnum_t number,
			   unw_word_t *value, int is_write, void *context)
{
	const struct unwind *walk = context;

	(void)unused;
	if (is_write)
		return -UNW_EREADONLYREG;
	if (number < 0 || number >= WALK_REGISTERS ||
	    !(walk->known >> number & 1))
		return -UNW_EBADREG;
	*value = walk->registers[number];
	if (number == WALK_IP && !walk->is_exact)
		--*value;
	return 0;
}

static int access_fp_register(unw_addr_space_t unused, unw_regnum_t number,
			      unw_fpreg_t *value, int is_write, void *context)
{
	(void)unused, (void)number, (void)value, (void)is_write, (void)context;
	return -UNW_EBADREG;
}

static int refuse_resume(unw_addr_space_t unused, unw_cursor_t *cursor,
			 void *context)
{
	(void)unused, (void)cursor, (void)context;
	return -UNW_EINVAL;
}

static int refuse_name(unw_addr_space_t unused, unw_word_t address, char *name,
		       size_t size, unw_word_t *offset, void *context)
{
	(void)unused, (void)address, (void)name, (void)size, (void)offset;
	(void)context;
	return -UNW_ENOINFO;
}

/* --- what libshim.so calls --- */

static bool start(const struct second_calls *given)
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
	struct unwind nothing = { .is_exact = true };
	unw_cursor_t cursor;

	calls = given;
	space = unw_create_addr_space(&accessors, 0);
	if (!space)
		return false;
	unw_set_caching_policy(space, UNW_CACHE_GLOBAL);
	/* libunwind makes its pools now. */
	unw_init_remote(&cursor, space, &nothing);
	return true;
}

/* The registers that functions preserve, the stack pointer and the address. */
#define PRESERVED (0xf048u | 1u << WALK_SP | 1u << WALK_IP)

static bool is_preserved(unsigned number)
{
	return PRESERVED >> number & 1;
}

static bool step(struct unwind *walk)
{
	struct unwind from = *walk;
	bool is_signal = calls->is_signal_frame(walk);
	unw_cursor_t cursor;
	unw_word_t value;
	int r;

	if (unw_init_remote(&cursor, space, &from) != 0)
		return false;
	r = unw_step(&cursor);
	if (r < 0)
		return false;
	if (r == 0)
		return walk->is_last = true, false;
	walk->known = 0;
	for (unsigned i = 0; i < WALK_REGISTERS; i++) {
		if ((!is_signal && !is_preserved(i)) ||
		    unw_get_reg(&cursor, (unw_regnum_t)i, &value) != 0)
			continue;
		walk->registers[i] = value;
		walk->known |= 1u << i;
	}
	walk->is_exact = is_signal;
	return (walk->known >> WALK_IP & 1) && (walk->known >> WALK_SP & 1);
}

static void forget(void)
{
	unw_flush_cache(space, 0, 0);
}

extern BOUND const struct second_unwinder shim_second_unwinder;

const struct second_unwinder shim_second_unwinder = {
	.version = SECOND_VERSION,
	.start = start,
	.step = step,
	.forget = forget,
};
