/*
 * Prints values of this process.  System calls read its memory, and symbol tables give
 * the names for addresses.
 */
#include "inspect/info.h"
#include "inspect/types.h"
#include "os/sys.h"
#include "print/print.h"
#include "runtime/contract.h"
#include "runtime/output.h"

#include <shim/banned.h>

#define FLAGS (SHIM_PRINT_JSON | SHIM_PRINT_LONG | SHIM_PRINT_PLAIN)

/* --- working memory: one space for each thread that prints --- */

#define SPACES 32

static struct print_space *spaces[SPACES];

static struct print_space *take_space(void)
{
	void *memory;

	for (unsigned i = 0; i < SPACES; i++) {
		struct print_space *space = NULL;

		if (__atomic_load_n(&spaces[i], __ATOMIC_RELAXED))
			space = __atomic_exchange_n(&spaces[i], NULL,
						    __ATOMIC_ACQUIRE);
		if (space)
			return space;
	}
	return sys_map(sizeof(struct print_space), &memory) < 0 ? NULL : memory;
}

static void give_space(struct print_space *space)
{
	for (unsigned i = 0; i < SPACES; i++) {
		struct print_space *none = NULL;

		if (__atomic_compare_exchange_n(&spaces[i], &none, space, false,
						__ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return;
	}
	sys_unmap(space, sizeof(*space));
}

/* --- callbacks of the printer --- */

static int read_memory(void *unused, uintptr_t from, void *to, size_t size)
{
	(void)unused;
	return sys_peek((const void *)from, to, size);
}

static bool find_name(void *unused, uintptr_t address, char *name, size_t size,
		      uint64_t *offset)
{
	(void)unused;
	return info_name_address(address, contract_allows(CONTRACT_MAY_BLOCK),
				 name, size, offset);
}

enum shim_result shim_print_value(shim_type type, const void *value,
				  uint32_t flags, uint32_t count,
				  uint32_t *total, char *text)
{
	struct print_job job = {
		.value = value,
		.flags = flags,
		.read = read_memory,
		.name = find_name,
	};
	size_t size;

	ENTRY_SYNC();
	job.tree = types_find(type);
	if (!output_is_valid(count, text) || !job.tree || !value ||
	    (flags & ~(uint32_t)FLAGS) != 0)
		return SHIM_E_INVALIDARG;
	if (print_needs_space(job.tree)) {
		job.space = take_space();
		if (!job.space)
			return SHIM_E_OUTOFMEMORY;
	}
	size = print_write(&job, text, count);
	if (total)
		*total = output_saturate(size);
	if (job.space)
		give_space(job.space);
	return SHIM_OK;
}
