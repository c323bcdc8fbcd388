/*
 * The messages of a job as JSON: sums, who was late, and one object for each process.
 */
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "export/json_messages.h"
#include "model/functions.h"
#include "model/late_ranks.h"

static void put_late(struct json *json, const struct late_ranks *ranks,
		     const struct late_rank *late)
{
	const struct function *function =
		&ranks->model.functions[late->function];

	json_line(json, 0);
	json_object(json);
	json_key_text(json, "late", late_rank_name(ranks, late->late));
	json_key_text(json, "reason", late_reason(late->kind));
	json_key_text(json, "function", function->name);
	json_key_text(json, "object", object_name(function));
	json_key_count(json, "times", late->times);
	json_key_number(json, "waited_ns", late->waited_ns, 17);
	json_close_object(json);
}

static void put_transfers(struct json *json, const struct message_sums *sums,
			  int kind)
{
	static const char *const names[] = {
		[SHIM_TRANSFER_COLLECTIVE] = "begun",
		[SHIM_TRANSFER_WINDOW] = "windows",
		[SHIM_TRANSFER_FILE] = "files",
	};

	json_key_object(json, names[kind]);
	json_key_count(json, "transfers", sums->transfers[kind].count);
	json_key_count(json, "given", sums->transfers[kind].given);
	json_key_count(json, "taken", sums->transfers[kind].taken);
	json_close_object(json);
}

static void put_process(struct json *json, const struct late_ranks *ranks,
			uint32_t process)
{
	const struct message_sums *sums = &ranks->messages->sums[process];
	const struct rank_waits *waits = &ranks->processes[process];

	json_line(json, 0);
	json_object(json);
	json_key_text(json, "name", late_rank_name(ranks, process));
	json_key_count(json, "sends", sums->sends);
	json_key_count(json, "sent", sums->sent);
	json_key_count(json, "receives", sums->receives);
	json_key_count(json, "received", sums->received);
	json_key_count(json, "collectives", sums->collectives);
	json_key_count(json, "given", sums->given);
	json_key_count(json, "taken", sums->taken);
	for (int i = 0; i < SHIM_TRANSFERS; i++)
		put_transfers(json, sums, i);
	json_key_number(json, "waited_ns", waits->waited_ns, 17);
	json_key_number(json, "awaited_ns", waits->awaited_ns, 17);
	json_close_object(json);
}

void messages_json(FILE *out, const struct late_ranks *ranks)
{
	const struct messages *messages = ranks->messages;
	struct json json = json_begin(out);
	uint32_t i;

	json_object(&json);
	json_key_count(&json, "messages", messages->count);
	json_key_count(&json, "lone_sends", messages->lone_sends);
	json_key_count(&json, "lone_receives", messages->lone_receives);
	json_key_count(&json, "reversed", messages->reversed);
	json_key_number(&json, "reversed_ns", messages->reversed_ns, 17);
	json_line(&json, 0);
	json_key_array(&json, "late");
	for (i = 0; i < ranks->count; i++)
		put_late(&json, ranks, &ranks->all[i]);
	json_close_array(&json);
	json_line(&json, 0);
	json_key_array(&json, "ranks");
	for (i = 0; i < ranks->recording.process_count; i++)
		put_process(&json, ranks, i);
	json_close_array(&json);
	json_close_object(&json);
	json_end(&json);
}
