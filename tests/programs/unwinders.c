/*
 * Compares shim's unwinder with libunwind: walks the stack of each sample with both, and
 * appends the differences to the file that the arguments name when the program ends.
 *
 * A difference is the last frame that both have, its callee, and the callers that they
 * found; "end" if one found none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <shim/sampling.h>
#include <shim/stack.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH 1024
#define WRONG 64
#define HZ    20000

struct difference {
	uintptr_t callee, frame, ours, theirs; /* 0: none */
	unsigned long times;
};

static unsigned long walks, frames, same, differ, ours_cut, theirs_cut, skipped;
static struct difference differences[WRONG];
static int busy;
static const char *path;

static void note(const struct difference *found)
{
	for (unsigned i = 0; i < WRONG; i++) {
		struct difference *d = &differences[i];

		if (d->times > 0 &&
		    (d->callee != found->callee || d->frame != found->frame ||
		     !d->ours != !found->ours || !d->theirs != !found->theirs))
			continue;
		if (d->times == 0)
			*d = *found;
		d->times++;
		return;
	}
}

static void compare(const uintptr_t *ours, uint32_t our_count,
		    const uintptr_t *theirs, uint32_t their_count)
{
	uint32_t i = 0;

	while (i < our_count && i < their_count && ours[i] == theirs[i])
		i++;
	frames += i;
	if (i == our_count && i == their_count) {
		same++;
		return;
	}
	differ++;
	note(&(struct difference){ .callee = i > 1 ? ours[i - 2] : 0,
				   .frame = i > 0 ? ours[i - 1] : 0,
				   .ours = i < our_count ? ours[i] : 0,
				   .theirs = i < their_count ? theirs[i] : 0 });
}

/* One thread at a time compares: the choice of the unwinder is the process's. */
static void hit(struct shim_profiler *profiler, uintptr_t ip,
		const void *context, uint32_t weight)
{
	static uintptr_t ours[DEPTH], theirs[DEPTH];
	uint32_t our_count = 0, their_count = 0;
	enum shim_result our_result, their_result;

	(void)profiler, (void)ip, (void)weight;
	if (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) {
		__atomic_add_fetch(&skipped, 1, __ATOMIC_RELAXED);
		return;
	}
	shim_stack_set_unwinder(SHIM_UNWINDER_OWN);
	our_result = shim_stack_addresses(context, DEPTH, &our_count, ours);
	shim_stack_set_unwinder(SHIM_UNWINDER_LIBUNWIND);
	their_result = shim_stack_addresses(context, DEPTH, &their_count,
					    theirs);
	walks++;
	ours_cut += our_result != SHIM_OK;
	theirs_cut += their_result != SHIM_OK;
	compare(ours, our_count, theirs, their_count);
	__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}

static void print_place(FILE *out, uintptr_t address)
{
	Dl_info info = { 0 };

	if (address == 0)
		fprintf(out, " end");
	else if (dladdr((void *)(address - 1), &info))
		fprintf(out, " %s+0x%lx(%s)", info.dli_fname,
			address - (uintptr_t)info.dli_fbase,
			info.dli_sname ? info.dli_sname : "?");
	else
		fprintf(out, " 0x%lx", address);
}

static void end(struct shim_profiler *profiler)
{
	FILE *out = fopen(path, "a");

	(void)profiler;
	while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE))
		usleep(1000);
	if (!out)
		return;
	fprintf(out,
		"walks %lu frames %lu same %lu differ %lu cut %lu %lu skipped %lu\n",
		walks, frames, same, differ, ours_cut, theirs_cut, skipped);
	for (unsigned i = 0; i < WRONG && differences[i].times > 0; i++) {
		fprintf(out, "  %lu of", differences[i].times);
		print_place(out, differences[i].callee);
		fprintf(out, " <-");
		print_place(out, differences[i].frame);
		fprintf(out, ": ours");
		print_place(out, differences[i].ours);
		fprintf(out, ", theirs");
		print_place(out, differences[i].theirs);
		fprintf(out, "\n");
	}
	fclose(out);
}

SHIM_PROFILER_MODULE(unwinders)
{
	struct shim_profiler_handle *handle = shim_profiler_create(NULL);

	path = strchr(description, ':');
	if (!path || *++path == '\0')
		return SHIM_E_INVALIDARG;
	shim_profiler_on_sample_hit(handle, hit);
	shim_profiler_on_runtime_shutdown_end(handle, end);
	shim_stack_set_unwinder(SHIM_UNWINDER_LIBUNWIND);
	if (shim_profiler_enable_sampling(handle) != SHIM_OK)
		return SHIM_E_FAIL;
	return shim_profiler_set_sample_mode(handle, SHIM_SAMPLE_THREAD, HZ);
}
