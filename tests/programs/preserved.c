/*
 * Registers across calls of marked functions whose calling conventions preserve more than
 * the usual one, also with a stack that is not aligned.  Prints "kept" or what was changed.
 * With an argument, the program has hooks of its own, which use all vector registers.
 * Compiled by clang, for x86-64.
 */
#include <shim/hooks.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define UNMARKED \
	__attribute__((no_instrument_function, noinline, patchable_function_entry(0)))

static volatile long count;

__attribute__((noinline, preserve_most, used)) static void most(void)
{
	count++;
}

__attribute__((noinline, ms_abi, used)) static void microsoft(void)
{
	count++;
}

struct state {
	uint64_t general[8]; /* rcx, rdx, rsi, rdi, r8, r9, r10, rax */
	uint64_t vectors[16][2];
};

/* Calls a function with all registers of @state, and stores them after the call.
 * @unaligned: 0 or 8. */
void call_with(void (*function)(void), struct state *state, long unaligned);
__asm__(".text\n"
	".globl call_with\n"
	".type call_with, @function\n"
	"call_with:\n"
	"	push %rbx\n	push %rbp\n	push %r12\n	push %r13\n"
	"	mov %rsp, %r13\n"
	"	sub $72, %rsp\n"
	"	and $-16, %rsp\n"
	"	sub %rdx, %rsp\n"
	"	mov %rdi, %rbx\n	mov %rsi, %rbp\n"
#define VECTOR(n, m) \
	"	movups " #m "(%rbp), %xmm" #n "\n"
	VECTOR(0, 64) VECTOR(1, 80) VECTOR(2, 96) VECTOR(3, 112) VECTOR(4, 128)
	VECTOR(5, 144) VECTOR(6, 160) VECTOR(7, 176) VECTOR(8, 192)
	VECTOR(9, 208) VECTOR(10, 224) VECTOR(11, 240) VECTOR(12, 256)
	VECTOR(13, 272) VECTOR(14, 288) VECTOR(15, 304)
#undef VECTOR
	"	mov (%rbp), %rcx\n	mov 8(%rbp), %rdx\n"
	"	mov 16(%rbp), %rsi\n	mov 24(%rbp), %rdi\n"
	"	mov 32(%rbp), %r8\n	mov 40(%rbp), %r9\n"
	"	mov 48(%rbp), %r10\n	mov 56(%rbp), %rax\n"
	"	call *%rbx\n"
	"	mov %rcx, (%rbp)\n	mov %rdx, 8(%rbp)\n"
	"	mov %rsi, 16(%rbp)\n	mov %rdi, 24(%rbp)\n"
	"	mov %r8, 32(%rbp)\n	mov %r9, 40(%rbp)\n"
	"	mov %r10, 48(%rbp)\n	mov %rax, 56(%rbp)\n"
#define VECTOR(n, m) \
	"	movups %xmm" #n ", " #m "(%rbp)\n"
	VECTOR(0, 64) VECTOR(1, 80) VECTOR(2, 96) VECTOR(3, 112) VECTOR(4, 128)
	VECTOR(5, 144) VECTOR(6, 160) VECTOR(7, 176) VECTOR(8, 192)
	VECTOR(9, 208) VECTOR(10, 224) VECTOR(11, 240) VECTOR(12, 256)
	VECTOR(13, 272) VECTOR(14, 288) VECTOR(15, 304)
	"	mov %r13, %rsp\n"
	"	pop %r13\n	pop %r12\n	pop %rbp\n	pop %rbx\n"
	"	ret\n"
	".size call_with, .-call_with\n");

static int changed;

/* @general: a bit for each register that is preserved. */
UNMARKED static void check(const char *name, void (*function)(void), unsigned general,
			   unsigned vectors, long unaligned)
{
	struct state before, after;

	memset(&before, 0x5a, sizeof(before));
	for (unsigned i = 0; i < 8; i++)
		before.general[i] += i;
	for (unsigned i = 0; i < 16; i++)
		before.vectors[i][0] += i;
	after = before;
	call_with(function, &after, unaligned);
	for (unsigned i = 0; i < 8; i++)
		if ((general >> i & 1) && before.general[i] != after.general[i]) {
			printf("%s: general %u\n", name, i);
			changed = 1;
		}
	for (unsigned i = 0; i < 16; i++)
		if ((vectors >> i & 1) &&
		    memcmp(before.vectors[i], after.vectors[i], 16) != 0) {
			printf("%s: xmm%u\n", name, i);
			changed = 1;
		}
}

#pragma weak shim_profiler_create
#pragma weak shim_profiler_set_event_mask
#pragma weak shim_profiler_set_enter_leave_function_hooks3_with_info

static long hooks;

UNMARKED static void hook(union shim_function_or_client function,
			  shim_elt_info info)
{
	(void)function, (void)info;
	hooks++;
	__asm__ volatile("" : : :
			 "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			 "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
			 "xmm13", "xmm14", "xmm15");
#define CLEAR(n) "pxor %%xmm" #n ", %%xmm" #n "\n"
	__asm__ volatile(CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5)
			 CLEAR(6) CLEAR(7) CLEAR(8) CLEAR(9) CLEAR(10) CLEAR(11)
			 CLEAR(12) CLEAR(13) CLEAR(14) CLEAR(15) : :);
#undef CLEAR
}

/* In a constructor, as hooks cannot be set later. */
UNMARKED __attribute__((constructor)) static void begin(int argc)
{
	struct shim_profiler_handle *handle;

	if (argc < 2 || !shim_profiler_create)
		return;
	handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(handle, SHIM_MONITOR_ENTERLEAVE |
						     SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(handle, hook,
								hook, hook);
}

UNMARKED int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < 3; i++)
		for (long unaligned = 0; unaligned <= 8; unaligned += 8) {
			/* rcx, rdx, rsi, rdi, r8, r9, r10 */
			check("preserve_most", (void (*)(void))most, 0x7f, 0, unaligned);
			check("ms_abi", (void (*)(void))microsoft, 0x0c, 0xffc0,
			      unaligned);
		}
	if (!changed)
		puts("kept");
	printf("calls %ld\n", count);
	if (argc > 1)
		printf("hooks %ld\n", hooks);
	return 0;
}
