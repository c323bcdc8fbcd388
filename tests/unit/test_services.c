/*
 * Services for the built-in profilers.
 */
#include "fake_sys.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <shim/record.h>
#include <string.h>

/* In a locked page the kernel may refuse. */
Test(services, discarded_memory_reads_as_zero_even_if_the_kernel_refuses)
{
	static uint64_t memory[2048] __attribute__((aligned(4096)));
	static const uint64_t none[1024];

	for (int refused = 0; refused < 2; refused++) {
		memset(memory, 0x55, sizeof(memory));
		memory[7] = 0;
		fake_fail(refused ? 1 : 0, EINVAL, false);
		shim_memory_discard(memory, 8192);
		cr_expect(eq(int, fake_failed() != NULL, refused));
		cr_expect(eq(int, memcmp(memory, none, 8192), 0));
		cr_expect(eq(u64, memory[1024], 0x5555555555555555));
	}
	fake_fail(1, EINVAL, false);
	shim_memory_discard(NULL, 8192);
	cr_expect(eq(ptr, (void *)fake_failed(), NULL));
}
