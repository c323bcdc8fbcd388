/* Waits for locks in the report for programs. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/numbers.h"
#include "base/text.h"
#include "export/json_locks.h"
#include "export/paths.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/options.h"

static void put_waits(FILE *out, const struct waits *waits)
{
	fprintf(out,
		"\"waits\":%" PRIu64 ",\"waited_ns\":%" PRIu64
		",\"max_ns\":%" PRIu64 ",\"failures\":%" PRIu64
		",\"refusals\":%" PRIu64 ",\"open\":%" PRIu64,
		waits->waits, whole(waits->time), whole(waits->max),
		waits->failures, waits->refusals, waits->open);
}

static void put_lock(FILE *out, const struct model *model,
		     const struct options *options, const struct lock *lock)
{
	const struct waiter *waiter = &model->locks->waiters[lock->first];
	uint32_t i;

	fputs("{\"name\":", out);
	put_json(out, lock->name);
	fprintf(out, ",\"kind\":\"%s\",\"object\":", lock_kinds[lock->kind]);
	put_json(out, lock->object);
	fprintf(out, ",\"address\":\"0x%" PRIx64 "\",", lock->address);
	put_waits(out, &lock->waits);
	fputs(",\"waiters\":[", out);
	for (i = 0; i < lock->count; i++, waiter++) {
		fputs(i ? ",\n {" : "\n {", out);
		put_waits(out, &waiter->waits);
		fputs(",\"path\":", out);
		path_json(out, model, options, waiter->path);
		fputs(",\"holder\":", out);
		path_json(out, model, options, waiter->holder);
		fputc('}', out);
	}
	fputs("]}", out);
}

void locks_json(FILE *out, const struct model *model,
		const struct options *options)
{
	const struct locks *locks = model->locks;
	uint32_t i;

	fputs(",\n\"waiting\":{", out);
	put_waits(out, &locks->all);
	fputs("},\n\"locks\":[", out);
	for (i = 0; i < locks->lock_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		put_lock(out, model, options, &locks->locks[i]);
	}
	fputc(']', out);
}
