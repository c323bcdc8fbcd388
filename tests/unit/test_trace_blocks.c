/*
 * When short records may be written: the limit of a trace's block.
 */
#include "trace/trace_blocks.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#define END 0x100000

static struct trace trace;

static struct trace *begin(void)
{
	trace = (struct trace){ .cursor = END - 4096, .end = END };
	trace_is_off = false;
	return &trace;
}

/* In all ways in which a trace writes no short records. */
static void check_limit(void (*set)(struct trace *trace), bool is_unmuted)
{
	set(begin());
	cr_expect(gt(u64, trace.limit, trace.cursor));
	cr_expect(lt(u64, trace.limit, END));
	begin()->is_paused = true;
	set(&trace);
	cr_expect(zero(u64, trace.limit), "paused");
	begin()->is_lost = true;
	set(&trace);
	cr_expect(zero(u64, trace.limit), "lost");
	begin()->is_copying = true;
	set(&trace);
	cr_expect(zero(u64, trace.limit), "copying");
	begin();
	trace_is_off = true;
	set(&trace);
	cr_expect(zero(u64, trace.limit), "off");
	begin()->muted_at = &trace;
	set(&trace);
	cr_expect(eq(int, trace.limit > 0, is_unmuted), "muted");
	cr_expect(eq(int, trace.muted_at == NULL, is_unmuted));
}

Test(trace_blocks, a_trace_that_is_on_writes_short_records)
{
	check_limit(trace_set_limit, false);
}

Test(trace_blocks,
     a_trace_that_was_muted_writes_short_records_again_if_it_is_on)
{
	check_limit(trace_unmute, true);
}

/* A signal handler between has begun another block. */
Test(trace_blocks, the_limit_of_another_block_stays)
{
	begin()->muted_at = &trace;
	trace.limit = 77;
	trace_unmute(&trace);
	cr_expect(eq(u64, trace.limit, 77));
}
