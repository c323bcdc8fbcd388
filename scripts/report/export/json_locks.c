/* Exports waits for locks as part of the JSON report. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "base/numbers.h"
#include "export/json_locks.h"
#include "export/paths.h"
#include "model/locks.h"
#include "model/model.h"
#include "model/options.h"

static void put_waits(struct json *json, const struct waits *waits)
{
	json_key_count(json, "waits", waits->waits);
	json_key_count(json, "waited_ns", whole(waits->time));
	json_key_count(json, "max_ns", whole(waits->max));
	json_key_count(json, "failures", waits->failures);
	json_key_count(json, "refusals", waits->refusals);
	json_key_count(json, "open", waits->open);
}

static void put_waiter(struct json *json, const struct model *model,
		       const struct options *options,
		       const struct waiter *waiter)
{
	json_object(json);
	put_waits(json, &waiter->waits);
	json_key(json, "path");
	path_json(json, model, options, waiter->path);
	json_key(json, "holder");
	path_json(json, model, options, waiter->holder);
	json_close_object(json);
}

static void put_lock(struct json *json, const struct model *model,
		     const struct options *options, const struct lock *lock)
{
	char address[SHORT_TEXT];
	uint32_t i;

	snprintf(address, sizeof(address), "0x%" PRIx64, lock->address);
	json_object(json);
	json_key_text(json, "name", lock->name);
	json_key_text(json, "kind", lock_kinds[lock->kind]);
	json_key_text(json, "object", lock->object);
	json_key_text(json, "address", address);
	put_waits(json, &lock->waits);
	json_key_array(json, "waiters");
	for (i = 0; i < lock->count; i++) {
		json_line(json, 1);
		put_waiter(json, model, options,
			   &model->locks->waiters[lock->first + i]);
	}
	json_close_array(json);
	json_close_object(json);
}

void locks_json(struct json *json, const struct model *model,
		const struct options *options)
{
	const struct locks *locks = model->locks;
	uint32_t i;

	json_line(json, 0);
	json_key_object(json, "waiting");
	put_waits(json, &locks->all);
	json_close_object(json);
	json_line(json, 0);
	json_key_array(json, "locks");
	for (i = 0; i < locks->lock_count; i++) {
		json_line(json, 0);
		put_lock(json, model, options, &locks->locks[i]);
	}
	json_close_array(json);
}
