/*
 * The conventions of <shim/shim.h>, for every function that has an output: one
 * table with one row for each function. tests/unit/contracts checks that no
 * function is missing.
 */
#define _GNU_SOURCE
#include "image/image.h"
#include "image/symbols.h"
#include "runtime/state.h"
#include "runtime/thread.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <shim/clr.h>
#include <shim/hooks.h>
#include <shim/info.h>
#include <shim/query.h>
#include <shim/values.h>
#include <shim/allocations.h>
#include <shim/sampling.h>
#include <shim/signals.h>
#include <shim/stack.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CANARY		0xa5
#define OUTPUTS_MAX	4
#define OUTPUT_SIZE_MAX 64
#define BUFFER_SIZE	65536

/* Characters of two, three and four bytes; aliases; a function with lines. */
#define UTF8_NAME "k\xc3\xa4se_\xe6\xbc\xa2\xe5\xad\x97_\xf0\x9f\x90\x9f"
int utf8(int value) __asm__(UTF8_NAME);
const char *takes_text(const char *text);
int utf8_alias(int value) __asm__("zz_a_longer_name_\xc3\xb6\xc3\xb6")
	__attribute__((alias(UTF8_NAME), nothrow, used));

__attribute__((noinline, used)) int utf8(int value)
{
	for (int i = 0; i < value; i++)
		value ^= i * value;
	return value;
}

__attribute__((noinline)) const char *takes_text(const char *text)
{
	return text + 1;
}

/* Criterion does not accept a condition that begins with a sign. */
static bool holds(bool condition)
{
	return condition;
}

/* The subject of the calls below. */
enum subject { GOOD, NEVER, GONE };

static struct {
	shim_image image;
	shim_function function;
	shim_thread thread;
	const void *address;
} subjects[3];

static enum subject subject;
static struct shim_profiler_handle *handle;

#define S (&subjects[subject])

/* --- the table --- */

struct function {
	const char *name;
	/* Outputs other than *@total and the buffer: the size of each in
	 * bytes. */
	unsigned outputs;
	size_t sizes[OUTPUTS_MAX];
	size_t element; /* 0: no buffer */
	bool is_text;
	bool has_id; /* the call must fail for NEVER and GONE */
	enum shim_result (*call)(void **out, uint32_t count, uint32_t *total,
				 void *buffer);
};

/* Rows of the table: B has a buffer, O has none. */
#define B(name, ...) \
	static enum shim_result call_##name(void **out, uint32_t count, \
					    uint32_t *total, void *buffer) \
	{ \
		(void)out; \
		return name(__VA_ARGS__); \
	}
#define O(name, ...) \
	static enum shim_result call_##name(void **out, uint32_t count, \
					    uint32_t *total, void *buffer) \
	{ \
		(void)count, (void)total, (void)buffer; \
		return name(__VA_ARGS__); \
	}

B(shim_image_info, S->image, out[0], out[1], out[2], out[3], count, total,
  buffer)
B(shim_image_build_id, S->image, count, total, buffer)
B(shim_function_name, S->function, count, total, buffer)
B(shim_function_demangled_name, S->function, count, total, buffer)
B(shim_function_aliases, S->function, count, total, buffer)
B(shim_function_ranges, S->function, count, total, buffer)
B(shim_function_lines, S->function, count, total, buffer)
B(shim_function_file, S->function, count, total, buffer)
B(shim_function_template_arguments, S->function, count, total, buffer)
B(shim_thread_info, S->thread, out[0], out[1], count, total, buffer)
B(shim_runtime_info, out[0], out[1], out[2], count, total, buffer)
B(shim_process_info, out[0], count, total, buffer)
O(shim_image_from_address, S->address, out[0])
O(shim_function_from_address, S->address, out[0])
O(shim_function_from_address2, S->address, out[0])
O(shim_function_find, S->address, out[0])
O(shim_function_info, S->function, out[0], out[1])
O(shim_function_code, S->function, out[0], out[1])
O(shim_function_source, S->function, out[0])
O(shim_image_enumerate, out[0])
O(shim_function_enumerate, S->image, out[0])
O(shim_thread_enumerate, out[0])
O(shim_thread_current, out[0])
O(shim_thread_data, handle, out[0])
O(shim_get_event_mask, handle, out[0])
O(shim_get_event_mask2, handle, out[0], out[1])
O(shim_profiler_get_sample_mode, handle, out[0], out[1])
O(shim_get_sample_counts, out[0])
O(shim_get_allocation_counts, out[0])

static shim_type type;
static const char *const printed = "k\xc3\xa4se \xf0\x9f\x90\x9f";

B(shim_get_parameter_info, S->function, 0, out[0], count, total, buffer)
B(shim_get_type_info, type, out[0], out[1], count, total, buffer)
B(shim_get_type_tree, type, count, total, buffer)
B(shim_print_value, type, &printed, 0, count, total, buffer)
O(shim_get_parameter_count, S->function, out[0])
O(shim_get_result_type, S->function, out[0])

/* A suspended coroutine: its stack does not change. */
static ucontext_t waiting;

B(shim_stack_addresses, &waiting, count, total, buffer)
B(shim_stack_parts, &waiting, count, total, buffer)
B(shim_stack_calls, &waiting, 0, count, total, buffer)
B(shim_stack_functions, &waiting, count, total, buffer)

static struct shim_enum *enumeration;

O(shim_enum_count, enumeration, out[0])
O(shim_enum_remaining, enumeration, out[0])
O(shim_enum_clone, enumeration, out[0])

#define TEXT	  true
#define ARRAY	  false
#define ROW(name) #name, .call = call_##name

static const struct function functions[] = {
	{ ROW(shim_image_info), .outputs = 4,
	  .sizes = { sizeof(void *), sizeof(size_t), sizeof(intptr_t), 4 },
	  .element = 1, .is_text = TEXT, .has_id = true },
	{ ROW(shim_image_build_id), .element = 1, .has_id = true },
	{ ROW(shim_function_name), .element = 1, .is_text = TEXT,
	  .has_id = true },
	{ ROW(shim_function_demangled_name), .element = 1, .is_text = TEXT,
	  .has_id = true },
	{ ROW(shim_function_aliases), .element = 1, .is_text = TEXT,
	  .has_id = true },
	{ ROW(shim_function_ranges), .element = sizeof(struct shim_code_range),
	  .has_id = true },
	{ ROW(shim_function_lines), .element = sizeof(struct shim_line),
	  .has_id = true },
	{ ROW(shim_function_file), .element = 1, .is_text = TEXT,
	  .has_id = true },
	{ ROW(shim_function_template_arguments), .element = 1, .is_text = TEXT,
	  .has_id = true },
	{ ROW(shim_get_parameter_info), .outputs = 1, .sizes = { 8 },
	  .element = 1, .is_text = TEXT, .has_id = true },
	{ ROW(shim_get_type_info), .outputs = 2, .sizes = { 4, 8 },
	  .element = 1, .is_text = TEXT },
	{ ROW(shim_get_type_tree), .element = 1 },
	{ ROW(shim_print_value), .element = 1, .is_text = TEXT },
	{ ROW(shim_get_parameter_count), .outputs = 1, .sizes = { 4 },
	  .has_id = true },
	{ ROW(shim_get_result_type), .outputs = 1, .sizes = { 8 },
	  .has_id = true },
	{ ROW(shim_function_source), .outputs = 1, .sizes = { 4 } },
	{ ROW(shim_stack_addresses), .element = sizeof(uintptr_t) },
	{ ROW(shim_stack_calls), .element = sizeof(uintptr_t) },
	{ ROW(shim_stack_functions), .element = sizeof(shim_function) },
	{ ROW(shim_stack_parts), .element = sizeof(shim_function) },
	{ ROW(shim_thread_info), .outputs = 2,
	  .sizes = { 4, sizeof(uintptr_t) }, .element = 1, .is_text = TEXT,
	  .has_id = true },
	{ ROW(shim_runtime_info), .outputs = 3, .sizes = { 2, 2, 2 },
	  .element = 1, .is_text = TEXT },
	{ ROW(shim_process_info), .outputs = 1, .sizes = { 4 }, .element = 1,
	  .is_text = TEXT },
	{ ROW(shim_image_from_address), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_function_from_address), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_function_from_address2), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_function_find), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_function_info), .outputs = 2, .sizes = { 8, 8 },
	  .has_id = true },
	{ ROW(shim_function_code), .outputs = 2, .sizes = { 8, 4 },
	  .has_id = true },
	{ ROW(shim_image_enumerate), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_function_enumerate), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_thread_enumerate), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_thread_current), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_thread_data), .outputs = 1, .sizes = { 8 } },
	{ ROW(shim_get_event_mask), .outputs = 1, .sizes = { 4 } },
	{ ROW(shim_get_event_mask2), .outputs = 2, .sizes = { 4, 4 } },
	{ ROW(shim_profiler_get_sample_mode), .outputs = 2, .sizes = { 4, 4 } },
	{ ROW(shim_get_allocation_counts), .outputs = 1,
	  .sizes = { sizeof(struct shim_allocation_counts) } },
	{ ROW(shim_get_sample_counts), .outputs = 1,
	  .sizes = { sizeof(struct shim_sample_counts) } },
	{ ROW(shim_enum_count), .outputs = 1, .sizes = { 4 } },
	{ ROW(shim_enum_remaining), .outputs = 1, .sizes = { 4 } },
	{ ROW(shim_enum_clone), .outputs = 1, .sizes = { 8 } },
};

#define FUNCTIONS (sizeof(functions) / sizeof(*functions))

/* All functions with an output. */
#define EACH(f) \
	(const struct function *f = functions; f < functions + FUNCTIONS; f++)

/* --- before each test --- */

static void load(void **library, shim_function *function)
{
	*library = dlopen(PLUGIN, RTLD_NOW);
	cr_assert(holds(*library != NULL), "%s", dlerror());
	*function = (shim_function)dlsym(*library, "plugin_function");
	image_look_again();
}

static void *end_at_once(void *id)
{
	*(shim_thread *)id = thread_get()->id;
	return NULL;
}

static ucontext_t starter;
static int (*switch_to)(ucontext_t *, const ucontext_t *);

static void wait_for_ever(void)
{
	switch_to(&waiting, &starter);
}

static void start_waiting(void)
{
	static char stack[65536];

	/* libc's own function: a sanitizer's version leaves frames that cannot
	 * be unwound. */
	switch_to = (int (*)(ucontext_t *, const ucontext_t *))dlsym(
		dlopen("libc.so.6", RTLD_NOW), "swapcontext");
	getcontext(&waiting);
	waiting.uc_stack.ss_sp = stack;
	waiting.uc_stack.ss_size = sizeof(stack);
	makecontext(&waiting, wait_for_ever, 0);
	switch_to(&starter, &waiting);
}

/* Otherwise the next library may be loaded at the address of one that is gone. */
static void keep_free(const void *address)
{
	uintptr_t page = (uintptr_t)address & ~4095ul;

	cr_assert(eq(ptr,
		     mmap((void *)page, 4096, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
			  0),
		     (void *)page));
}

/* Exported because it has a row of its own. */
static void set_up(void)
{
	struct thread *self;
	void *library;
	pthread_t thread;

	handle = shim_profiler_create(NULL);
	shim_profiler_enable_sampling(handle);
	symbols_enable();
	image_look_again();
	self = thread_get();
	cr_assert(holds(self != NULL));
	/* The state of a thread in a callback. */
	self->state |= THREAD_CALLBACK | THREAD_MAY_BLOCK;

	subjects[GOOD].function = (shim_function)utf8;
	subjects[GOOD].address = (const char *)utf8 + 1;
	subjects[GOOD].thread = self->id;
	cr_assert(eq(int,
		     shim_image_from_address((const void *)utf8,
					     &subjects[GOOD].image),
		     SHIM_OK));

	subjects[NEVER].image = subjects[GOOD].image + (1ull << 32);
	subjects[NEVER].function = 0xdead000;
	subjects[NEVER].thread = self->id + (1ull << 40);
	subjects[NEVER].address = (const void *)0xdead000;

	pthread_create(&thread, NULL, end_at_once, &subjects[GONE].thread);
	pthread_join(thread, NULL);
	load(&library, &subjects[GONE].function);
	subjects[GONE].address = (const void *)subjects[GONE].function;
	cr_assert(eq(int,
		     shim_image_from_address(subjects[GONE].address,
					     &subjects[GONE].image),
		     SHIM_OK));
	dlclose(library);
	keep_free(subjects[GONE].address);
	image_look_again();

	cr_assert(eq(int, shim_image_enumerate(&enumeration), SHIM_OK));
	cr_assert(eq(int,
		     shim_get_result_type((shim_function)takes_text, &type),
		     SHIM_OK));
	start_waiting();
	subject = GOOD;
}

/* --- outputs --- */

struct outputs {
	unsigned char bytes[OUTPUTS_MAX][OUTPUT_SIZE_MAX];
	void *out[OUTPUTS_MAX];
	uint32_t total;
};

/* Clears all outputs; those in @missing become NULL. */
static void prepare(const struct function *f, struct outputs *o,
		    unsigned missing)
{
	memset(o->bytes, CANARY, sizeof(o->bytes));
	memset(&o->total, CANARY, sizeof(o->total));
	for (unsigned i = 0; i < OUTPUTS_MAX; i++)
		o->out[i] = i < f->outputs && !(missing & 1u << i) ?
				    o->bytes[i] :
				    NULL;
}

static bool is_untouched(const void *memory, size_t size)
{
	const unsigned char *bytes = memory;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != CANARY)
			return false;
	return true;
}

/* Each call of such a function makes a new enumeration. */
static bool makes_enumeration(const struct function *f)
{
	return strstr(f->name, "enumerate") || strstr(f->name, "clone");
}

static void dispose(const struct function *f, const struct outputs *o)
{
	struct shim_enum *made;

	memcpy(&made, o->bytes[0], sizeof(made));
	if (makes_enumeration(f) && o->out[0])
		shim_enum_destroy(made);
}

static unsigned char buffer[BUFFER_SIZE], whole[BUFFER_SIZE];

/* Reads *@total, and the whole answer into @whole, in two calls. */
static uint32_t read_whole(const struct function *f)
{
	struct outputs o;
	uint32_t total;

	prepare(f, &o, 0);
	cr_assert(eq(int, f->call(o.out, 0, &o.total, NULL), SHIM_OK), "%s",
		  f->name);
	total = o.total;
	cr_assert(holds(total * f->element <= BUFFER_SIZE), "%s: %u", f->name,
		  total);
	cr_assert(eq(int, f->call(o.out, total, &o.total, whole), SHIM_OK),
		  "%s", f->name);
	cr_assert(eq(u32, o.total, total), "%s", f->name);
	return total;
}

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The number of bytes of @buffer that must equal @whole, given @count and the
 * cut. */
static size_t check_cut(const struct function *f, uint32_t count)
{
	size_t at = count - 1;

	while (is_continuation(whole[at]))
		at--;
	cr_expect(holds(buffer[at] == '\0'), "%s: %u: no NUL at %zu", f->name,
		  count, at);
	cr_expect(holds(is_untouched(buffer + at + 1, BUFFER_SIZE - at - 1)),
		  "%s: %u: written behind the NUL", f->name, count);
	return at;
}

static void check_fill(const struct function *f, uint32_t total, uint32_t count)
{
	size_t fill = (count < total ? count : total) * f->element;

	if (f->is_text && count > 0 && count < total)
		fill = check_cut(f, count);
	else
		cr_expect(
			holds(is_untouched(buffer + fill, BUFFER_SIZE - fill)),
			"%s: %u of %u: written behind", f->name, count, total);
	cr_expect(holds(memcmp(buffer, whole, fill) == 0),
		  "%s: %u of %u: content", f->name, count, total);
}

/* Rows C-8 to C-11, C-13 to C-16, C-19, C-20. */
Test(conventions, a_buffer_of_any_size_is_filled_as_far_as_it_goes,
     .init = set_up)
{
	for
		EACH(f)
		{
			uint32_t total;

			if (!f->element)
				continue;
			total = read_whole(f);
			cr_expect(holds(!f->is_text || total == 0 ||
					whole[total - 1] == '\0'),
				  "%s: no NUL", f->name);
			for (uint32_t count = 0; count <= total + 3; count++) {
				struct outputs o;

				prepare(f, &o, 0);
				memset(buffer, CANARY, sizeof(buffer));
				cr_expect(eq(int,
					     f->call(o.out, count, &o.total,
						     buffer),
					     SHIM_OK),
					  "%s: %u", f->name, count);
				cr_expect(eq(u32, o.total, total), "%s: %u",
					  f->name, count);
				check_fill(f, total, count);
			}
		}
}

/* The tests above prove something only if the answers are not empty. */
Test(conventions, the_answers_are_those_of_the_function, .init = set_up)
{
	struct shim_line *lines = (struct shim_line *)whole;

	for
		EACH(f)
		{
			uint32_t total;

			if (!f->element)
				continue;
			total = read_whole(f);
			if (strstr(f->name, "template"))
				continue;
			cr_expect(holds(total > (f->is_text ? 1u : 0u)),
				  "%s: empty", f->name);
			if (strstr(f->name, "function_name"))
				cr_expect(holds(
					strcmp((char *)whole, UTF8_NAME) == 0));
			if (strstr(f->name, "aliases"))
				cr_expect(holds(
					total ==
					sizeof(UTF8_NAME) +
						sizeof("zz_a_longer_name_\xc3\xb6\xc3\xb6")));
			if (strstr(f->name, "file"))
				cr_expect(holds(strstr((char *)whole,
						       "test_conventions.c")));
			if (strstr(f->name, "lines"))
				cr_expect(holds(lines[0].line > 0 &&
						lines[0].start == 0));
		}
}

/* Row C-16: no elements are no failure. */
Test(conventions, nothing_to_tell_is_ok_and_a_total_of_0, .init = set_up)
{
	char few[8];
	uint32_t total;

	for (uint32_t count = 0; count <= sizeof(few); count += 4) {
		memset(few, CANARY, sizeof(few));
		total = 77;
		/* The function is no template. */
		cr_expect(eq(int,
			     shim_function_template_arguments(
				     subjects[GOOD].function, count, &total,
				     count ? few : NULL),
			     SHIM_OK));
		cr_expect(eq(u32, total, 0));
		for (unsigned i = 0; i < sizeof(few); i++)
			cr_expect(holds((unsigned char)few[i] == CANARY));
	}
}

/* Rows C-12, C-26, C-28. */
Test(conventions, no_buffer_goes_with_no_size, .init = set_up)
{
	for
		EACH(f)
		{
			struct outputs o;

			if (!f->element)
				continue;
			prepare(f, &o, 0);
			cr_expect(eq(int, f->call(o.out, 1, &o.total, NULL),
				     SHIM_E_INVALIDARG),
				  "%s", f->name);
			cr_expect(holds(is_untouched(o.bytes, sizeof(o.bytes))),
				  "%s", f->name);
			cr_expect(
				holds(is_untouched(&o.total, sizeof(o.total))),
				"%s", f->name);
		}
}

/* Rows C-23 to C-25, C-27. */
Test(conventions, every_output_may_be_left_out, .init = set_up)
{
	for
		EACH(f)
		{
			unsigned parameters = f->outputs + (f->element ? 2 : 0);
			struct outputs all;
			uint32_t total = f->element ? read_whole(f) : 0;

			if (parameters < 2)
				continue;
			prepare(f, &all, 0);
			cr_expect(eq(int,
				     f->call(all.out, total, &all.total, whole),
				     SHIM_OK),
				  "%s", f->name);
			for (unsigned missing = 0; missing < 1u << parameters;
			     missing++) {
				bool has_total = !(missing & 1u << f->outputs);
				bool has_buffer = !(missing & 2u << f->outputs);
				struct outputs o;

				prepare(f, &o, missing);
				memset(buffer, CANARY, sizeof(buffer));
				cr_expect(
					eq(int,
					   f->call(o.out,
						   has_buffer ? total : 0,
						   has_total ? &o.total : NULL,
						   has_buffer ? buffer : NULL),
					   SHIM_OK),
					"%s: without %x", f->name, missing);
				for (unsigned i = 0; i < f->outputs; i++)
					cr_expect(
						holds(missing & 1u << i ?
							      is_untouched(
								      o.bytes[i],
								      OUTPUT_SIZE_MAX) :
							      memcmp(o.bytes[i],
								     all.bytes
									     [i],
								     OUTPUT_SIZE_MAX) ==
								      0),
						"%s: without %x: %u", f->name,
						missing, i);
				cr_expect(holds(!f->element || !has_total ||
						o.total == total),
					  "%s: without %x", f->name, missing);
				cr_expect(
					holds(!f->element || !has_buffer ||
					      memcmp(buffer, whole,
						     total * f->element) == 0),
					"%s: without %x", f->name, missing);
			}
		}
}

/* The function writes exactly the size of an output's type. */
Test(conventions, outputs_are_as_wide_as_they_are_declared, .init = set_up)
{
	for
		EACH(f)
		{
			struct outputs o;

			prepare(f, &o, 0);
			cr_expect(eq(int, f->call(o.out, 0, &o.total, NULL),
				     SHIM_OK),
				  "%s", f->name);
			for (unsigned i = 0; i < f->outputs; i++)
				cr_expect(
					holds(!is_untouched(o.bytes[i],
							    f->sizes[i]) &&
					      is_untouched(
						      o.bytes[i] + f->sizes[i],
						      OUTPUT_SIZE_MAX -
							      f->sizes[i])),
					"%s: output %u", f->name, i);
			dispose(f, &o);
		}
}

/* Row C-24. */
Test(conventions, the_only_output_must_be_there, .init = set_up)
{
	for
		EACH(f)
		{
			struct outputs o;

			if (f->outputs != 1 || f->element)
				continue;
			prepare(f, &o, 1);
			cr_expect(eq(int, f->call(o.out, 0, NULL, NULL),
				     SHIM_E_INVALIDARG),
				  "%s", f->name);
		}
}

/* Rows C-28, C-29, C-34, P-8. */
Test(conventions, a_failure_writes_nothing, .init = set_up)
{
	for
		EACH(f)
		{
			for (subject = NEVER; subject <= GONE; subject++) {
				enum shim_result r;
				struct outputs o;

				if (!f->has_id)
					continue;
				prepare(f, &o, 0);
				memset(buffer, CANARY, sizeof(buffer));
				r = f->call(o.out, sizeof(buffer) / 64,
					    &o.total, buffer);
				cr_expect(eq(int, r,
					     subject == GONE ?
						     SHIM_E_DATAINCOMPLETE :
						     SHIM_E_INVALIDARG),
					  "%s: %s", f->name,
					  subject == GONE ? "gone" : "never");
				cr_expect(holds(is_untouched(o.bytes,
							     sizeof(o.bytes)) &&
						is_untouched(&o.total, 4) &&
						is_untouched(buffer,
							     sizeof(buffer))),
					  "%s", f->name);
			}
			subject = GOOD;
		}
}

Test(conventions, nothing_is_an_id_like_no_other, .init = set_up)
{
	memset(&subjects[GOOD], 0, sizeof(subjects[GOOD]));
	for
		EACH(f)
		{
			struct outputs o;

			if (!f->has_id)
				continue;
			prepare(f, &o, 0);
			cr_expect(eq(int, f->call(o.out, 0, &o.total, NULL),
				     SHIM_E_INVALIDARG),
				  "%s", f->name);
		}
}

Test(conventions, an_address_in_no_function_is_in_none, .init = set_up)
{
	shim_function function;
	shim_image image;

	cr_expect(eq(
		int,
		shim_function_from_address(subjects[NEVER].address, &function),
		SHIM_E_FAIL));
	cr_expect(eq(
		int,
		shim_function_from_address2(subjects[NEVER].address, &function),
		SHIM_E_FAIL));
	cr_expect(eq(int,
		     shim_image_from_address(subjects[NEVER].address, &image),
		     SHIM_E_FAIL));
	cr_expect(eq(
		int,
		shim_function_from_address(subjects[GONE].address, &function),
		SHIM_E_DATAINCOMPLETE));
	/* An address inside a function is not its id. */
	cr_expect(eq(int,
		     shim_function_name((shim_function)utf8 + 1, 0, NULL, NULL),
		     SHIM_E_INVALIDARG));
}

/* The situation of a profiler that wants no symbols. */
Test(conventions, symbols_that_were_not_read_are_not_yet_available,
     .init = set_up)
{
	struct image_entry *image;
	shim_function function;
	uint32_t total = 7;

	image_pin();
	image = image_find((uintptr_t)utf8);
	image->symbols = NULL;
	image_unpin();
	cr_expect(eq(int,
		     shim_function_name((shim_function)utf8, 0, &total, NULL),
		     SHIM_E_NOT_YET_AVAILABLE));
	cr_expect(eq(u32, total, 7));
	cr_expect(eq(
		int,
		shim_function_from_address((const char *)utf8 + 1, &function),
		SHIM_E_NOT_YET_AVAILABLE));
	cr_expect(eq(int, shim_function_info((shim_function)utf8, NULL, NULL),
		     SHIM_OK));
	cr_expect(eq(
		int,
		shim_function_from_address2((const char *)utf8 + 1, &function),
		SHIM_OK));
	cr_expect(holds(function == (shim_function)utf8));
	cr_expect(eq(int,
		     shim_function_name((shim_function)utf8, 0, &total, NULL),
		     SHIM_OK));
}

/* --- ids at random --- */

static uint64_t random_state = 88172645463325252ull;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	return random_state ^= random_state << 17;
}

/* A random number, a valid id, or a number near one. */
static uint64_t random_id(void)
{
	uint64_t n = next_random();

	switch (n & 7) {
	case 0: return n;
	case 1: return n >> 40;
	case 2: return subjects[n >> 3 & 1].image ^ 1ull << (n >> 10 & 63);
	case 3: return subjects[GOOD].thread ^ 1ull << (n >> 10 & 63);
	case 4: return (uintptr_t)utf8 + (n >> 44) - (1u << 19);
	case 5: return subjects[GONE].function + (n >> 50) - 8192;
	case 6: return (uintptr_t)&n + (n >> 48);
	default: return (uintptr_t)dlopen + (n >> 45) - (1u << 18);
	}
}

static bool reads_files(const struct function *f)
{
	return strstr(f->name, "lines") || strstr(f->name, "file") ||
	       strstr(f->name, "template") || strstr(f->name, "demangled") ||
	       strstr(f->name, "aliases") || strstr(f->name, "address2") ||
	       strstr(f->name, "thread_info");
}

/* In seconds of processor time: with sanitizers, a million calls take much longer. */
#define SECONDS_MAX 10

/* Row C-29. */
Test(conventions, a_million_ids_at_random_crash_nothing, .init = set_up,
     .timeout = 600)
{
	const clock_t end = clock() + SECONDS_MAX * CLOCKS_PER_SEC;

	for (unsigned n = 0; n < 1000000 && (n < 10000 || clock() < end);) {
		for
			EACH(f)
			{
				struct outputs o;
				enum shim_result r;

				if (makes_enumeration(f) ||
				    (reads_files(f) && n % 512 > 16))
					continue;
				subject = GOOD;
				subjects[GOOD].image = random_id();
				subjects[GOOD].function = random_id();
				subjects[GOOD].thread = random_id();
				subjects[GOOD].address = (const void *)
					random_id();
				prepare(f, &o, 0);
				r = f->call(o.out, f->element ? 64 : 0,
					    &o.total,
					    f->element ? buffer : NULL);
				cr_assert(holds(SHIM_SUCCEEDED(r) ||
						is_untouched(o.bytes,
							     sizeof(o.bytes))),
					  "%s", f->name);
				n++;
			}
	}
}

Test(conventions, handles_of_enumerations_at_random_crash_nothing,
     .init = set_up)
{
	for (unsigned n = 0; n < 20000; n++) {
		struct shim_enum *bogus = (struct shim_enum *)random_id();
		struct shim_enum *copy;
		uint32_t number = 7;
		uint64_t id;

		cr_expect(eq(int, shim_enum_next(bogus, 1, &id, &number),
			     SHIM_E_INVALIDARG));
		cr_expect(eq(int, shim_enum_skip(bogus, 1), SHIM_E_INVALIDARG));
		cr_expect(eq(int, shim_enum_reset(bogus), SHIM_E_INVALIDARG));
		cr_expect(eq(int, shim_enum_clone(bogus, &copy),
			     SHIM_E_INVALIDARG));
		cr_expect(eq(int, shim_enum_count(bogus, &number),
			     SHIM_E_INVALIDARG));
		cr_expect(eq(int, shim_enum_remaining(bogus, &number),
			     SHIM_E_INVALIDARG));
		cr_expect(eq(u32, number, 7));
		shim_enum_destroy(bogus);
	}
	shim_enum_destroy(NULL);
}

/* --- enumerations --- */

/* Rows C-30 to C-33. */
Test(conventions, an_enumeration_is_walked_by_any_step, .init = set_up)
{
	uint32_t all, left, fetched;
	uint64_t one, *ids, *again;

	cr_assert(eq(int, shim_enum_count(enumeration, &all), SHIM_OK));
	cr_assert(holds(all > 3));
	ids = __builtin_alloca((all + 1) * sizeof(*ids));
	again = __builtin_alloca((all + 1) * sizeof(*ids));

	cr_expect(eq(int, shim_enum_next(enumeration, 2, ids, NULL),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_enum_next(enumeration, 1, NULL, &fetched),
		     SHIM_E_INVALIDARG));
	cr_expect(eq(int, shim_enum_next(enumeration, 0, ids, NULL), SHIM_OK));
	fetched = 7;
	cr_expect(eq(int, shim_enum_next(enumeration, 0, ids, &fetched),
		     SHIM_OK));
	cr_expect(eq(u32, fetched, 0));

	cr_expect(eq(int, shim_enum_next(enumeration, all + 1, ids, &fetched),
		     SHIM_S_FALSE));
	cr_expect(eq(u32, fetched, all));
	cr_expect(eq(int, shim_enum_remaining(enumeration, &left), SHIM_OK));
	cr_expect(eq(u32, left, 0));
	one = 7;
	cr_expect(eq(int, shim_enum_next(enumeration, 1, &one, NULL),
		     SHIM_S_FALSE));
	cr_expect(holds(one == 7));

	cr_expect(eq(int, shim_enum_reset(enumeration), SHIM_OK));
	for (uint32_t i = 0; i < all; i++) {
		cr_expect(eq(int, shim_enum_next(enumeration, 1, &one, NULL),
			     SHIM_OK));
		cr_expect(holds(one == ids[i]));
	}
	cr_expect(eq(int, shim_enum_reset(enumeration), SHIM_OK));
	cr_expect(eq(int, shim_enum_next(enumeration, 2, again, &fetched),
		     SHIM_OK));
	cr_expect(eq(int, shim_enum_skip(enumeration, 1), SHIM_OK));
	cr_expect(eq(int, shim_enum_remaining(enumeration, &left), SHIM_OK));
	cr_expect(eq(u32, left, all - 3));
	cr_expect(eq(int, shim_enum_count(enumeration, &left), SHIM_OK));
	cr_expect(eq(u32, left, all));
	cr_expect(eq(int, shim_enum_skip(enumeration, all), SHIM_S_FALSE));
	cr_expect(eq(int, shim_enum_remaining(enumeration, &left), SHIM_OK));
	cr_expect(eq(u32, left, 0));
}

/* Rows C-32, C-35. */
Test(conventions, a_copy_of_an_enumeration_has_its_position_and_its_own_life,
     .init = set_up)
{
	struct shim_enum *copy;
	uint64_t id, same;
	uint32_t left;

	shim_enum_skip(enumeration, 2);
	cr_assert(eq(int, shim_enum_clone(enumeration, &copy), SHIM_OK));
	cr_assert(eq(int, shim_enum_next(enumeration, 1, &id, NULL), SHIM_OK));
	shim_enum_remaining(enumeration, &left);
	shim_enum_destroy(enumeration);
	cr_expect(eq(int, shim_enum_reset(enumeration), SHIM_E_INVALIDARG));
	shim_enum_destroy(enumeration);
	cr_assert(eq(int, shim_enum_next(copy, 1, &same, NULL), SHIM_OK));
	cr_expect(holds(id == same));
	shim_enum_destroy(copy);
}

/* Counts pages, not mappings: the system merges neighbours. */
static long count_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	cr_assert(eq(int, fscanf(file, "%ld", &pages), 1));
	fclose(file);
	return pages;
}

Test(conventions, enumerations_are_given_back, .init = set_up)
{
	long before = count_pages();

	for (unsigned i = 0; i < 5000; i++) {
		struct shim_enum *made[3];

		cr_assert(eq(int, shim_thread_enumerate(&made[0]), SHIM_OK));
		cr_assert(eq(int, shim_enum_clone(made[0], &made[1]), SHIM_OK));
		for (unsigned k = 0; k < 2; k++)
			shim_enum_destroy(made[k]);
	}
	cr_expect(holds(count_pages() < before + 1000));
}

Test(conventions, there_are_as_many_enumerations_as_there_is_room,
     .init = set_up)
{
	static struct shim_enum *made[4096];
	enum shim_result r = SHIM_OK;
	unsigned n = 0;

	while (r == SHIM_OK && n < 4096)
		r = shim_thread_enumerate(&made[n++]);
	cr_expect(eq(int, r, SHIM_E_OUTOFMEMORY));
	cr_expect(holds(made[n - 1] == NULL));
	shim_enum_destroy(made[0]);
	cr_expect(eq(int, shim_thread_enumerate(&made[0]), SHIM_OK));
}

static uint64_t find_in(struct shim_enum *list, uint64_t wanted)
{
	uint64_t id;

	while (shim_enum_next(list, 1, &id, NULL) == SHIM_OK)
		if (id == wanted)
			return id;
	return 0;
}

Test(conventions, threads_are_listed_while_they_run, .init = set_up)
{
	shim_thread current = 0;
	struct shim_enum *list;

	cr_assert(eq(int, shim_thread_current(&current), SHIM_OK));
	cr_expect(holds(current == subjects[GOOD].thread));
	cr_assert(eq(int, shim_thread_enumerate(&list), SHIM_OK));
	cr_expect(holds(find_in(list, current) == current));
	shim_enum_reset(list);
	cr_expect(holds(find_in(list, subjects[GONE].thread) == 0));
	shim_enum_destroy(list);

	thread_current->state |= THREAD_ENDED;
	cr_assert(eq(int, shim_thread_enumerate(&list), SHIM_OK));
	cr_expect(holds(find_in(list, current) == 0),
		  "an ended thread is listed");
	thread_current->state ^= THREAD_ENDED | THREAD_OWN;
	cr_assert(eq(int, shim_thread_enumerate(&list), SHIM_OK));
	cr_expect(holds(find_in(list, current) == 0),
		  "our own thread is listed");
	cr_expect(eq(int, shim_thread_current(&current),
		     SHIM_E_NOT_MANAGED_THREAD));
}

Test(conventions, a_thread_has_the_name_it_has_now, .init = set_up)
{
	char name[16] = "";
	uint32_t tid = 0;

	pthread_setname_np(pthread_self(), "new name");
	cr_assert(eq(int,
		     shim_thread_info(subjects[GOOD].thread, &tid, NULL, 16,
				      NULL, name),
		     SHIM_OK));
	cr_expect(eq(str, name, "new name"));
	cr_expect(eq(u32, tid, (uint32_t)gettid()));
}

Test(conventions, without_descriptors_a_thread_has_its_first_name,
     .init = set_up)
{
	char first[16] = "", name[16] = "";
	struct rlimit limit, none;
	enum shim_result result;

	pthread_getname_np(pthread_self(), first, 16);
	pthread_setname_np(pthread_self(), "new name");
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){ 0, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	result = shim_thread_info(subjects[GOOD].thread, NULL, NULL, 16, NULL,
				  name);
	/* Criterion takes some. */
	setrlimit(RLIMIT_NOFILE, &limit);
	cr_assert(eq(int, result, SHIM_OK));
	cr_expect(eq(str, name, first));
}

/* --- while the answers change --- */

static bool stop;

static void *come_and_go(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		shim_function function;
		void *library;

		load(&library, &function);
		dlclose(library);
		image_look_again();
	}
	return unused;
}

static void check_image(shim_image image)
{
	static char path[BUFFER_SIZE];
	struct shim_enum *list;
	uint32_t total = 0;
	uint64_t function;
	enum shim_result r = shim_image_info(image, NULL, NULL, NULL, NULL,
					     sizeof(path), &total, path);

	cr_expect(holds(r == SHIM_OK || r == SHIM_E_DATAINCOMPLETE), "%s",
		  shim_result_name(r));
	cr_expect(holds(r != SHIM_OK || strlen(path) + 1 == total));
	r = shim_function_enumerate(image, &list);
	cr_expect(holds(r == SHIM_OK || r == SHIM_E_DATAINCOMPLETE), "%s",
		  shim_result_name(r));
	if (r != SHIM_OK)
		return;
	for (unsigned i = 0;
	     i < 50 && shim_enum_next(list, 1, &function, NULL) == SHIM_OK;
	     i++) {
		r = shim_function_name(function, sizeof(path), &total, path);
		/* Another image may have been loaded there by now. */
		cr_expect(holds(r == SHIM_OK || r == SHIM_E_DATAINCOMPLETE ||
				r == SHIM_E_INVALIDARG || r == SHIM_E_FAIL),
			  "%s", shim_result_name(r));
		cr_expect(holds(r != SHIM_OK || strlen(path) + 1 == total));
	}
	shim_enum_destroy(list);
}

/* Row C-18: a caller asks for the total and then for that many elements. */
static unsigned ask_until_it_fits(shim_thread thread, const char *const *names,
				  unsigned growths, char *name)
{
	uint32_t total = 0, count = 0;
	unsigned passes = 0;

	do {
		count = total;
		cr_assert(eq(int,
			     shim_thread_info(thread, NULL, NULL, count, &total,
					      count ? name : NULL),
			     SHIM_OK));
		/* As many as fit, with a NUL. */
		cr_expect(holds(count == 0 || strnlen(name, count) < count));
		if (passes < growths)
			pthread_setname_np(pthread_self(), names[passes]);
		passes++;
	} while (total > count);
	cr_expect(eq(u32, total, (uint32_t)strlen(name) + 1));
	return passes;
}

Test(conventions, a_total_that_grows_after_the_first_pass_is_told_by_the_next,
     .init = set_up)
{
	static const char *const names[] = { "longer", "longest_of_them" };
	shim_thread self;
	char name[64];

	cr_assert(eq(int, shim_thread_current(&self), SHIM_OK));
	for (unsigned growths = 0; growths <= 2; growths++) {
		pthread_setname_np(pthread_self(), "one");
		cr_expect(eq(uint,
			     ask_until_it_fits(self, names, growths, name),
			     2 + growths));
		cr_expect(eq(str, name,
			     (char *)(growths ? names[growths - 1] : "one")));
	}
}

/* Row C-18. */
Test(conventions, what_grows_between_two_passes_is_asked_for_again,
     .init = set_up, .timeout = 600)
{
	unsigned rounds = getenv("CHECK_ALL") ? 200 : 60;
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, come_and_go, NULL);
	for (unsigned round = 0; round < rounds; round++) {
		struct shim_enum *list;
		uint32_t count;
		uint64_t id;

		cr_assert(eq(int, shim_image_enumerate(&list), SHIM_OK));
		cr_assert(eq(int, shim_enum_count(list, &count), SHIM_OK));
		cr_expect(holds(count > 3 && count < 100));
		while (shim_enum_next(list, 1, &id, NULL) == SHIM_OK)
			check_image(id);
		shim_enum_destroy(list);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

Test(conventions, an_id_is_never_used_twice, .init = set_up)
{
	shim_image last = 0;

	for (unsigned i = 0; i < 100; i++) {
		shim_function function;
		shim_image image = 0;
		void *library;

		load(&library, &function);
		shim_function_info(function, &image, NULL);
		cr_expect(holds(image > last), "%llx after %llx",
			  (unsigned long long)image, (unsigned long long)last);
		last = image;
		dlclose(library);
		image_look_again();
	}
}

/* Row C-17. */
Test(conventions, a_buffer_that_is_too_small_grows_once, .init = set_up)
{
	unsigned char *memory = NULL;
	uint32_t count = 0;

	for
		EACH(f)
		{
			uint32_t total = f->element ? read_whole(f) : 0;
			unsigned passes = 0;
			enum shim_result r;
			struct outputs o;

			if (f->element != 1 || total == 0)
				continue;
			prepare(f, &o, 0);
			free(memory);
			memory = NULL;
			count = 0;
			SHIM_QUERY_GROW(r, memory, count, o.total,
					(passes++, f->call(o.out, count,
							   &o.total, memory)));
			cr_expect(eq(int, r, SHIM_OK), "%s", f->name);
			cr_expect(eq(u32, passes, 2), "%s", f->name);
			cr_expect(eq(u32, count, total), "%s", f->name);
			cr_expect(holds(memcmp(memory, whole, total) == 0),
				  "%s", f->name);
			passes = 0;
			SHIM_QUERY_GROW(r, memory, count, o.total,
					(passes++, f->call(o.out, count,
							   &o.total, memory)));
			cr_expect(eq(u32, passes, 1), "%s: again", f->name);
		}
	free(memory);
}

static enum shim_result tell_too_many(uint32_t *total)
{
	*total = UINT32_MAX;
	return SHIM_OK;
}

Test(conventions, without_memory_a_buffer_stays_as_it_is, .init = set_up)
{
	struct {
		char bytes[1 << 24];
	} *large = NULL;
	uint32_t count = 0, total;
	enum shim_result r;

	SHIM_QUERY_GROW(r, large, count, total, tell_too_many(&total));
	cr_expect(eq(int, r, SHIM_E_OUTOFMEMORY));
	cr_expect(eq(u32, count, 0));
	cr_expect(holds(large == NULL));
	SHIM_QUERY_GROW(r, large, count, total,
			(total = 1, SHIM_E_NOT_YET_AVAILABLE));
	cr_expect(eq(int, r, SHIM_E_NOT_YET_AVAILABLE));
	cr_expect(holds(large == NULL));
}

/* --- signals --- */

Test(conventions, signals_that_are_not_to_be_had_are_refused, .init = set_up)
{
	static const int others[] = { -1,      0,	65,	 1 << 30,
				      SIGKILL, SIGSTOP, SIGSEGV, SIGTRAP,
				      32,      33,	60,	 64 };

	for (unsigned i = 0; i < sizeof(others) / sizeof(*others); i++)
		cr_expect(eq(int,
			     shim_profiler_enable_signal(handle, others[i]),
			     SHIM_E_INVALIDARG),
			  "%d", others[i]);
	cr_expect(eq(int, shim_profiler_enable_signal(NULL, SIGUSR1),
		     SHIM_E_INVALIDARG));
	cr_expect(
		eq(int, shim_profiler_enable_signal(handle, SIGUSR1), SHIM_OK));
	cr_expect(
		eq(int, shim_profiler_enable_signal(handle, SIGUSR1), SHIM_OK));
}

/* --- names of results (row C-40) --- */

Test(conventions, every_result_has_its_name_and_text, .init = set_up)
{
#define SHIM_DEFINE_RESULT(name, value, text) \
	cr_expect(eq(str, (char *)shim_result_name(name), #name)); \
	cr_expect(eq(str, (char *)shim_result_text(name), text)); \
	cr_expect(eq(u32, (uint32_t)name, value));
#include <shim/results.def>
	SHIM_CLR_RESULTS(SHIM_DEFINE_RESULT)
#undef SHIM_DEFINE_RESULT
	cr_expect(holds(shim_result_name(12345) == NULL));
	cr_expect(holds(shim_result_text(12345) == NULL));
}
