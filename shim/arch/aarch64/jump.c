/*
 * Reads the stack pointer in a jmp_buf.  All C libraries store it in the same word;
 * some encode it by XOR with a secret.  shim finds the secret by calling libc's setjmp
 * with a known stack pointer.
 */
#include "arch.h"
#include "edge/edge.h"
#include "os/lookup.h"

#include <shim/banned.h>

#define SP_WORD	    13
#define BUFFER_SIZE 64 /* words; larger than any jmp_buf */

/* edge.S */
uintptr_t arch_measure_jump(int (*saver)(void *), void *buffer, size_t below);

static struct {
	bool is_measured; /* written last */
	bool is_known;
	uintptr_t value;
} secret;

static uintptr_t measure_secret(int (*saver)(void *), size_t below)
{
	uintptr_t buffer[BUFFER_SIZE] = { 0 };
	uintptr_t sp = arch_measure_jump(saver, buffer, below);

	return buffer[SP_WORD] ^ sp;
}

/* Runs in a constructor, because a signal handler must not look up symbols. */
__attribute__((constructor)) static void find_secret(void)
{
	int (*saver)(void *) = (int (*)(void *))lookup_real("_setjmp");

	if (saver) {
		secret.value = measure_secret(saver, 0);
		/* A second stack pointer must give the same secret. */
		secret.is_known = measure_secret(saver, 1008) == secret.value;
	}
	__atomic_store_n(&secret.is_measured, true, __ATOMIC_RELEASE);
}

uintptr_t arch_jump_sp(const void *buffer)
{
	if (!__atomic_load_n(&secret.is_measured, __ATOMIC_ACQUIRE))
		find_secret();
	return secret.is_known ?
		       ((const uintptr_t *)buffer)[SP_WORD] ^ secret.value :
		       0;
}
