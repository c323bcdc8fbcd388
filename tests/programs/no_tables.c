/*
 * Calls through assembly without unwind tables: no_tables [spin].  Prints how the walks of
 * shim_stack_addresses end.
 */
#include <shim/stack.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#pragma weak shim_stack_addresses

#define APART __attribute__((noinline, noclone))

/* Call @function(@argument).  The callee sees the frame pointer that the name says;
 * with_pointer(function, argument, value) sets it to @value. */
void by_pointer(void (*function)(void *), void *argument);
void by_epilogue(void (*function)(void *), void *argument);
void with_pointer(void (*function)(void *), void *argument, uintptr_t value);
/* Computes; called by a function that has a frame pointer. */
unsigned leaf(unsigned rounds);
unsigned calls_leaf(unsigned rounds);
/* A return address. */
extern const char after_call[];

__asm__(".text\n"
	".globl by_pointer\n"
	".type by_pointer, @function\n"
	"by_pointer:\n\t"
	"push %rbp\n\t"
	"mov %rsp, %rbp\n\t"
	"sub $64, %rsp\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rsi, %rdi\n\t"
	"call *%rax\n"
	".globl after_call\n"
	"after_call:\n\t"
	"xor %eax, %eax\n\t"
	"leave\n\t"
	"ret\n"
	".size by_pointer, . - by_pointer\n"
	".globl by_epilogue\n"
	".type by_epilogue, @function\n"
	"by_epilogue:\n\t"
	"push %rbp\n\t"
	"push %r15\n\t"
	"sub $40, %rsp\n\t"
	"mov $1, %ebp\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rsi, %rdi\n\t"
	"call *%rax\n\t"
	"add $40, %rsp\n\t"
	"pop %r15\n\t"
	"pop %rbp\n\t"
	"ret\n"
	".size by_epilogue, . - by_epilogue\n"
	".globl with_pointer\n"
	".type with_pointer, @function\n"
	"with_pointer:\n\t"
	"push %rbp\n\t"
	"mov %rdx, %rbp\n\t"
	"mov %rdi, %rax\n\t"
	"mov %rsi, %rdi\n\t"
	"call *%rax\n\t"
	"nop\n\t"
	"pop %rbp\n\t"
	"ret\n"
	".size with_pointer, . - with_pointer\n"
	".globl leaf\n"
	".type leaf, @function\n"
	"leaf:\n\t"
	"mov $1, %eax\n"
	"1:\t"
	"imul %edi, %eax\n\t"
	"dec %edi\n\t"
	"jnz 1b\n\t"
	"ret\n"
	".size leaf, . - leaf\n"
	".globl calls_leaf\n"
	".type calls_leaf, @function\n"
	"calls_leaf:\n\t"
	"push %rbp\n\t"
	"mov %rsp, %rbp\n\t"
	"call leaf\n\t"
	"inc %eax\n\t"
	"pop %rbp\n\t"
	"ret\n"
	".size calls_leaf, . - calls_leaf\n"
	".section .note.GNU-stack, \"\", @progbits\n"
	".text\n");

/* The end of main, which has a section of its own. */
extern const char __stop_of_main[];
int main(int argc, char **argv);

/* Stores whether the walk ended well, and whether it found main. */
struct walk {
	enum shim_result result;
	uint32_t total;
	bool has_main;
};

static APART void take(void *argument)
{
	struct walk *walk = argument;
	uintptr_t addresses[64];

	memset(walk, 0, sizeof(*walk));
	walk->result = shim_stack_addresses(NULL, 64, &walk->total, addresses);
	for (uint32_t i = 0; i < walk->total && i < 64; i++)
		walk->has_main |= addresses[i] > (uintptr_t)main &&
				  addresses[i] < (uintptr_t)__stop_of_main;
}

static void tell(const char *name, const struct walk *walk)
{
	printf("%s: %s, %s main, %s\n", name,
	       walk->result == SHIM_OK	    ? "whole" :
	       walk->result == SHIM_S_FALSE ? "cut" :
					      "failed",
	       walk->has_main ? "with" : "without",
	       walk->total <= 20 ? "short" : "long");
}

static APART void take_inside(void *argument)
{
	by_epilogue(take, argument);
	__asm__ volatile("");
}

static void try_values(void)
{
	static struct {
		uintptr_t caller, address;
	} loop, data, inside, below, end;
	char *gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct {
		const char *name;
		uintptr_t value;
	} values[] = {
		{ "none", 0 },
		{ "odd", (uintptr_t)&loop + 1 },
		{ "loop", (uintptr_t)&loop },
		{ "data", (uintptr_t)&data },
		{ "inside", (uintptr_t)&inside },
		{ "below", (uintptr_t)&below },
		{ "end", (uintptr_t)&end },
		{ "gone", (uintptr_t)gone },
		{ "kernel", (uintptr_t)-4096 },
		{ "strange", (uintptr_t)1 << 52 },
	};
	struct walk walk;

	/* A frame that is its own caller; one that returns to data; one that returns to code
	 * that no call precedes; one whose caller is below it; and one without a caller. */
	loop.caller = (uintptr_t)&loop;
	loop.address = (uintptr_t)after_call;
	end.address = (uintptr_t)after_call;
	data.caller = data.address = (uintptr_t)&data;
	inside.caller = (uintptr_t)&inside + 64;
	inside.address = (uintptr_t)take + 1;
	below.caller = (uintptr_t)&below - 64;
	below.address = (uintptr_t)take + 1;
	for (unsigned i = 0; i < sizeof(values) / sizeof(*values); i++) {
		with_pointer(take, &walk, values[i].value);
		tell(values[i].name, &walk);
	}
}

APART __attribute__((section("of_main"))) int main(int argc, char **argv)
{
	struct walk walk;
	unsigned sum = 0;

	if (argc > 1 && strcmp(argv[1], "spin") == 0) {
		for (int i = 0; i < 40; i++)
			sum += calls_leaf(10000000);
		return printf("%u\n", sum) < 0;
	}
	if (!shim_stack_addresses)
		return 1;
	by_pointer(take, &walk);
	tell("by_pointer", &walk);
	by_epilogue(take, &walk);
	tell("by_epilogue", &walk);
	by_pointer(take_inside, &walk);
	tell("both", &walk);
	try_values();
	return 0;
}
