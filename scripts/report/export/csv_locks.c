/* Exports waits for locks as CSV: a row for each path that waited for a
 * lock. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/numbers.h"
#include "base/text.h"
#include "export/csv_locks.h"
#include "export/paths.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/options.h"

static void put_row(FILE *out, const struct model *model,
		    const struct options *options, const struct lock *lock,
		    const struct waiter *waiter)
{
	const struct waits *waits = &waiter->waits;

	put_csv(out, lock->name);
	fprintf(out, ",%s,", lock_kinds[lock->kind]);
	put_csv(out, lock->object);
	fprintf(out, ",0x%" PRIx64 ",", lock->address);
	path_csv(out, model, options, waiter->path);
	fputc(',', out);
	path_csv(out, model, options, waiter->holder);
	fprintf(out,
		",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
		",%" PRIu64 "\r\n",
		waits->waits, whole(waits->time), whole(waits->max),
		waits->failures, waits->refusals, waits->open);
}

void locks_csv(FILE *out, const struct model *model,
	       const struct options *options)
{
	const struct locks *locks = model->locks;
	uint32_t i, n;

	fputs("lock,kind,object,address,path,holder,waits,waited_ns,max_ns,"
	      "failures,refusals,open\r\n",
	      out);
	for (i = 0; i < locks->lock_count; i++)
		for (n = 0; n < locks->locks[i].count; n++)
			put_row(out, model, options, &locks->locks[i],
				&locks->waiters[locks->locks[i].first + n]);
}
