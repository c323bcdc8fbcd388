/*
 * Replaces libshim-debuginfo.so: a reader of debug information that fails as FAULT
 * says.
 */
#include "../../shim/inspect/debuginfo/debuginfo.h"

#include <errno.h>
#include <stdlib.h>

enum { CRASH = 1, LOOP, OVERFLOW, ABORT };

static volatile int counter = FAULT;

static void start(void)
{
}

static uint64_t abandoned;

static void abandon(uint64_t image)
{
	abandoned = image;
}

static int recurse(int n)
{
	volatile char room[1000];

	room[0] = (char)n;
	if (counter == 0)
		return 0;
	return recurse(n + 1) + room[0];
}

static int prototype(const struct debuginfo_question *question,
		     struct debuginfo_answer *answer)
{
	(void)answer;
	if (question->image == abandoned)
		return -ENOENT;
	switch (counter) {
	case CRASH: *(volatile int *)8 = 1; break;
	case OVERFLOW: return recurse(0);
	case ABORT: abort();
	case LOOP:
		while (counter)
			;
	}
	return 0;
}

extern const struct debuginfo shim_debuginfo;
const struct debuginfo shim_debuginfo = {
	.version = DEBUGINFO_VERSION,
	.start = start,
	.prototype = prototype,
	.abandon = abandon,
};
