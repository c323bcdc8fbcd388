/*
 * Changes the program's code, first through /proc/self/mem.  A write to that file
 * changes pages that are not writable: code never becomes writable, shim has no
 * protection to restore, and the kernel flushes no address translations.  If the kernel
 * refuses that, or /proc is missing, shim makes the code writable for the duration of
 * the change.
 */
#include "dispatch/patch.h"

#include "arch.h"
#include "os/maps.h"
#include "os/sys.h"
#include "runtime/state.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <shim/banned.h>

#define PAGE 4096u

void patch_open(struct patch *patch, uintptr_t start, uintptr_t end)
{
	ASSERT_LOCKED();
	*patch = (struct patch){ .start = start, .end = end };
	patch->fd = sys_open_memory(O_WRONLY | O_CLOEXEC);
}

int patch_read(uintptr_t address, unsigned char *bytes, size_t size,
	       bool may_go)
{
	const unsigned char *from = (const unsigned char *)address;
	size_t i = 0;

	if (may_go)
		return sys_peek(from, bytes, size);
	for (; i + 8 <= size; i += 8) {
		__builtin_memcpy(bytes + i, from + i, 8);
		/* Keeps the compiler from calling memcpy: shim's is slow. */
		__asm__ volatile("" ::: "memory");
	}
	for (; i < size; i++)
		bytes[i] = from[i];
	return 0;
}

static int write_file(struct patch *patch, uintptr_t address,
		      const unsigned char *bytes, size_t size)
{
	while (size > 0) {
		long r = sys_write_at(patch->fd, bytes, size, address);

		if (r == -EINTR)
			continue;
		if (r <= 0)
			return r < 0 ? (int)r : -EIO;
		bytes += r;
		address += (uintptr_t)r;
		size -= (size_t)r;
	}
	return 0;
}

static bool collect_mapping(const struct map *map, void *argument)
{
	struct patch *patch = argument;
	struct patch_map *last;

	if (!map->executable || map->end <= patch->start ||
	    map->start >= patch->end)
		return true;
	if (patch->map_count == PATCH_MAPS)
		return false;
	last = &patch->maps[patch->map_count++];
	last->start = map->start;
	last->end = map->end;
	last->protection = PROT_EXEC | (map->readable ? PROT_READ : 0) |
			   (map->writable ? PROT_WRITE : 0);
	return true;
}

static void restore_protection(struct patch *patch)
{
	while (patch->map_count > 0) {
		struct patch_map *map = &patch->maps[--patch->map_count];

		/* The change of a whole mapping does not split it, so it needs no memory
		 * and cannot fail. */
		sys_protect((void *)map->start, map->end - map->start,
			    map->protection);
	}
}

/* Until patch_close. */
static int make_writable(struct patch *patch)
{
	unsigned count, i;
	int r;

	if (patch->map_count > 0)
		return 0;
	r = maps_read_range(patch->start, patch->end, collect_mapping, patch);
	if (r < 0) {
		patch->map_count = 0;
		r = maps_read(collect_mapping, patch);
	}
	count = patch->map_count;
	if (r == 0 && (count == 0 || count == PATCH_MAPS))
		r = -EFAULT;
	for (i = 0; r == 0 && i < count; i++)
		r = sys_protect((void *)patch->maps[i].start,
				patch->maps[i].end - patch->maps[i].start,
				PROT_READ | PROT_WRITE | PROT_EXEC);
	if (r < 0) {
		patch->map_count = i > 0 ? i - 1 : 0;
		restore_protection(patch);
	}
	return r;
}

static bool is_equal_word(uintptr_t address, const unsigned char *bytes)
{
	uint64_t word, wanted;

	__builtin_memcpy(&word, (const void *)address, sizeof(word));
	__builtin_memcpy(&wanted, bytes, sizeof(wanted));
	return word == wanted;
}

static int write_memory(struct patch *patch, uintptr_t address,
			const unsigned char *bytes, size_t size)
{
	volatile unsigned char *memory = (volatile unsigned char *)address;
	int r = make_writable(patch);
	size_t i = 0;

	if (r < 0)
		return r;
	while (i < size) {
		if (size - i >= 8 && is_equal_word(address + i, bytes + i)) {
			i += 8;
			continue;
		}
		if (memory[i] != bytes[i])
			memory[i] = bytes[i];
		i++;
	}
	return 0;
}

int patch_write(struct patch *patch, uintptr_t address,
		const unsigned char *bytes, size_t size)
{
	if (patch->fd >= 0) {
		if (write_file(patch, address, bytes, size) == 0)
			return 0;
		sys_close(patch->fd);
		patch->fd = -1;
	}
	return write_memory(patch, address, bytes, size);
}

int patch_store(struct patch *patch, uintptr_t address, uint32_t word)
{
	int r = make_writable(patch);

	if (r == 0)
		arch_store_word((void *)address, word);
	return r;
}

int patch_store_pair(struct patch *patch, uintptr_t address,
		     const unsigned char *bytes)
{
	int r = make_writable(patch);
	uint16_t pair;

	__builtin_memcpy(&pair, bytes, sizeof(pair));
	if (r == 0)
		__atomic_store_n((uint16_t *)address, pair, __ATOMIC_RELAXED);
	return r;
}

/* --- restoring a byte --- */

static bool has_byte(uintptr_t address, unsigned char byte)
{
	return *(const volatile unsigned char *)address == byte;
}

/* For the case that shim cannot read the protections from /proc.  It assumes that the
 * page is readable and executable, as nearly all code is. */
static void write_page(uintptr_t address, unsigned char byte)
{
	void *page = (void *)(address & ~(uintptr_t)(PAGE - 1));

	if (sys_protect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) < 0)
		return;
	__atomic_store_n((unsigned char *)address, byte, __ATOMIC_RELEASE);
	sys_protect(page, PAGE, PROT_READ | PROT_EXEC);
}

int patch_put_back(uintptr_t address, unsigned char byte)
{
	void *page = (void *)(address & ~(uintptr_t)(PAGE - 1));
	struct patch patch;

	ASSERT_LOCKED();
	patch_open(&patch, address, address + 1);
	patch_write(&patch, address, &byte, 1);
	patch_close(&patch);
	/* This works if the program has made the page writable. */
	if (!has_byte(address, byte))
		sys_poke((void *)address, &byte, 1);
	if (!has_byte(address, byte))
		write_page(address, byte);
	/* Drops the page: the kernel reads it from its file again. */
	if (!has_byte(address, byte))
		sys_drop(page, PAGE);
	return has_byte(address, byte) ? 0 : -EPERM;
}

void patch_close(struct patch *patch)
{
	if (patch->fd >= 0)
		sys_close(patch->fd);
	patch->fd = -1;
	restore_protection(patch);
}
