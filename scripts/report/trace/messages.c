/*
 * Pairs the messages of a job.  Messages of one sender with one tag do not overtake each
 * other, so the sends of a communicator, sender, receiver and tag are paired with its
 * receives in order: sends by time, receives in the order in which they were made ready.
 * Collective operations are paired by their number on their communicator.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <shim/format.h>
#include <shim/message.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "read/process.h"
#include "read/recording.h"
#include "trace/gaps.h"
#include "trace/messages.h"
#include "trace/reader.h"
#include "trace/trace.h"

/* A send or a receive. */
struct half {
	uint64_t communicator;
	uint32_t side; /* of the receiver */
	int32_t from, to, tag;
	uint32_t order;
	struct message_end end;
};

/* A part in a collective operation. */
struct part {
	uint64_t communicator, number;
	uint32_t size, rank;
	int32_t kind, root;
	struct message_end end;
};

struct halves {
	struct half *all;
	uint32_t count, room;
};

struct open_call {
	uint32_t site;
	double begin_ns;
};

/* The open calls of one thread and track. */
struct calls {
	struct open_call *open;
	uint32_t count, room;
};

struct pairing {
	struct trace *trace;
	struct messages *messages;
	struct halves sends, receives;
	struct part *parts;
	uint32_t part_count, part_room;
	struct map
		numbers;  /* by communicator and thread's process: operations */
	uint64_t *number; /* how many, by the map's value */
	uint32_t number_count, number_room;
	uint32_t thread; /* whose calls are open, or NONE */
	struct map of_track;
	struct calls *tracks;
	uint32_t track_count, track_room;
	uint32_t first_open; /* the first send whose call may be open */
	uint32_t wait_room, message_room, collective_room;
	bool has_holes; /* calls of a process are missing */
};

/* --- open calls --- */

static void end_thread(struct pairing *pairing)
{
	while (pairing->track_count)
		free(pairing->tracks[--pairing->track_count].open);
	map_free(&pairing->of_track);
	pairing->of_track = (struct map){ 0 };
	pairing->first_open = pairing->sends.count;
	pairing->thread = NONE;
}

static struct calls *calls_of(struct pairing *pairing,
			      const struct trace_event *event)
{
	uint32_t number;

	if (pairing->thread != event->thread)
		end_thread(pairing);
	pairing->thread = event->thread;
	number = map_add(&pairing->of_track, event->track,
			 pairing->track_count);
	if (number == pairing->track_count) {
		GROW(pairing->tracks, pairing->track_count,
		     pairing->track_room);
		pairing->tracks[pairing->track_count++] = (struct calls){
			.count = 0
		};
	}
	return &pairing->tracks[number];
}

static void open_call(struct calls *calls, const struct trace_event *event)
{
	GROW(calls->open, calls->count, calls->room);
	calls->open[calls->count++] = (struct open_call){
		.site = event->site,
		.begin_ns = event->time_ns,
	};
}

/* Sends of this call end with it. */
static void close_call(struct pairing *pairing, struct calls *calls,
		       const struct trace_event *event)
{
	struct halves *sends = &pairing->sends;

	if (calls->count == 0)
		return;
	calls->count--;
	for (; pairing->first_open < sends->count; pairing->first_open++) {
		struct message_end *end = &sends->all[pairing->first_open].end;

		if (end->begin_ns < calls->open[calls->count].begin_ns)
			continue;
		end->end_ns = event->time_ns;
	}
}

/* --- reading --- */

static struct message_end end_of(const struct calls *calls,
				 const struct trace_event *event)
{
	const struct open_call *call = calls->count ?
					       &calls->open[calls->count - 1] :
					       NULL;

	return (struct message_end){
		.thread = event->thread,
		.site = call ? call->site : NONE,
		.begin_ns = call ? call->begin_ns : event->time_ns,
		.end_ns = event->time_ns,
		.sent = event->message->sent,
		.received = event->message->received,
	};
}

static void add_half(struct halves *halves, const struct half *half)
{
	GROW(halves->all, halves->count, halves->room);
	halves->all[halves->count++] = *half;
}

/* Between two groups, the receiver's side is the other one than the sender's. */
static void add_send(struct pairing *pairing, const struct message_end *end,
		     const struct shim_trace_message *message)
{
	add_half(&pairing->sends,
		 &(struct half){
			 .communicator = message->communicator,
			 .side = message->side ? 3u - message->side : 0,
			 .from = (int32_t)message->rank,
			 .to = message->peer,
			 .tag = message->tag,
			 .end = *end,
		 });
}

static void add_receive(struct pairing *pairing, const struct message_end *end,
			const struct shim_trace_message *message)
{
	add_half(&pairing->receives,
		 &(struct half){
			 .communicator = message->communicator,
			 .side = message->side,
			 .from = message->peer,
			 .to = (int32_t)message->rank,
			 .tag = message->tag,
			 .order = message->order,
			 .end = *end,
		 });
}

/* Operations of one process on one communicator have numbers. */
static uint64_t next_number(struct pairing *pairing, uint32_t process,
			    uint64_t communicator)
{
	uint32_t i = map_add(&pairing->numbers,
			     communicator * 0x9e3779b97f4a7c15ull + process,
			     pairing->number_count);

	if (i == pairing->number_count) {
		GROW(pairing->number, pairing->number_count,
		     pairing->number_room);
		pairing->number[pairing->number_count++] = 0;
	}
	return pairing->number[i]++;
}

static void add_part(struct pairing *pairing, const struct message_end *end,
		     const struct shim_trace_message *message)
{
	uint32_t process = pairing->trace->threads[end->thread].process;

	GROW(pairing->parts, pairing->part_count, pairing->part_room);
	pairing->parts[pairing->part_count++] = (struct part){
		.communicator = message->communicator,
		.number = next_number(pairing, process, message->communicator),
		.size = message->size,
		.rank = message->rank,
		.kind = message->tag,
		.root = message->peer,
		.end = *end,
	};
}

static void add_collective(struct pairing *pairing,
			   const struct message_end *end)
{
	struct messages *messages = pairing->messages;

	GROW(messages->collectives, messages->collective_count,
	     pairing->collective_room);
	messages->collectives[messages->collective_count++] =
		(struct collective_call){ end->thread, end->begin_ns };
}

static void add_message(struct pairing *pairing, const struct calls *calls,
			const struct trace_event *event)
{
	const struct shim_trace_message *message = event->message;
	uint32_t process = pairing->trace->threads[event->thread].process;
	struct message_sums *sums = &pairing->messages->sums[process];
	struct message_end end = end_of(calls, event);

	switch (message->kind) {
	case SHIM_MESSAGE_SEND:
		sums->sends++;
		sums->sent += message->sent;
		add_send(pairing, &end, message);
		break;
	case SHIM_MESSAGE_RECEIVE:
		sums->receives++;
		sums->received += message->received;
		add_receive(pairing, &end, message);
		break;
	case SHIM_MESSAGE_COLLECTIVE:
		sums->collectives++;
		sums->given += message->sent;
		sums->taken += message->received;
		add_collective(pairing, &end);
		/* Between two groups, not all members wait for all others. */
		if (message->side)
			break;
		add_part(pairing, &end, message);
		break;
	case SHIM_MESSAGE_TRANSFER:
		if (message->tag < 0 || message->tag >= SHIM_TRANSFERS)
			break;
		sums->transfers[message->tag].count++;
		sums->transfers[message->tag].given += message->sent;
		sums->transfers[message->tag].taken += message->received;
		break;
	default: break;
	}
}

static void read_file(struct pairing *pairing, uint32_t file)
{
	struct trace_reader *reader = trace_begin(
		pairing->trace, file,
		&(struct trace_range){ .doing = "pairing messages" });
	struct trace_event event;
	struct calls *calls;

	while (trace_next(reader, &event)) {
		calls = calls_of(pairing, &event);
		if (event.kind == TRACE_ENTER)
			open_call(calls, &event);
		else if (event.kind == TRACE_LEAVE)
			close_call(pairing, calls, &event);
		else if (event.kind == TRACE_MESSAGE)
			add_message(pairing, calls, &event);
		else if (event.kind == TRACE_PAUSE || event.kind == TRACE_LOST)
			pairing->has_holes = true;
	}
	end_thread(pairing);
	trace_end(reader);
}

/* --- messages --- */

static int compare_keys(const struct half *a, const struct half *b)
{
	if (a->communicator != b->communicator)
		return a->communicator < b->communicator ? -1 : 1;
	if (a->side != b->side)
		return a->side < b->side ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->tag < b->tag ? -1 : a->tag > b->tag;
}

static int compare_sends(const void *left, const void *right)
{
	const struct half *a = left, *b = right;
	int order = compare_keys(a, b);

	if (order)
		return order;
	return a->end.begin_ns < b->end.begin_ns ?
		       -1 :
		       a->end.begin_ns > b->end.begin_ns;
}

/* The numbers may wrap. */
static int compare_receives(const void *left, const void *right)
{
	const struct half *a = left, *b = right;
	int order = compare_keys(a, b);

	if (order)
		return order;
	return a->order == b->order		  ? 0 :
	       (int32_t)(a->order - b->order) < 0 ? -1 :
						    1;
}

static void add_wait(struct pairing *pairing, enum message_wait_kind kind,
		     const struct message_end *end, double to_ns, uint32_t late)
{
	struct messages *messages = pairing->messages;

	if (to_ns <= end->begin_ns || end->site == NONE)
		return;
	GROW(messages->waits, messages->wait_count, pairing->wait_room);
	messages->waits[messages->wait_count++] = (struct message_wait){
		.kind = kind,
		.thread = end->thread,
		.site = end->site,
		.late = late,
		.from_ns = end->begin_ns,
		.to_ns = to_ns,
	};
}

static void pair(struct pairing *pairing, const struct half *send,
		 const struct half *receive)
{
	struct messages *messages = pairing->messages;
	const struct message_end *from = &send->end, *to = &receive->end;

	GROW(messages->all, messages->count, pairing->message_room);
	messages->all[messages->count++] = (struct message){ *from, *to,
							     send->tag };
	if (to->end_ns < from->begin_ns) {
		messages->reversed++;
		messages->reversed_ns = fmax(messages->reversed_ns,
					     from->begin_ns - to->end_ns);
	}
	if (from->begin_ns > to->begin_ns)
		add_wait(pairing, WAIT_LATE_SENDER, to,
			 fmin(from->begin_ns, to->end_ns), from->thread);
	else if (to->begin_ns < from->end_ns)
		add_wait(pairing, WAIT_LATE_RECEIVER, from, to->begin_ns,
			 to->thread);
}

static void pair_all(struct pairing *pairing)
{
	struct halves *sends = &pairing->sends, *receives = &pairing->receives;
	struct messages *messages = pairing->messages;
	uint32_t s = 0, r = 0;
	int order;

	if (sends->count)
		qsort(sends->all, sends->count, sizeof(*sends->all),
		      compare_sends);
	if (receives->count)
		qsort(receives->all, receives->count, sizeof(*receives->all),
		      compare_receives);
	while (s < sends->count && r < receives->count) {
		order = compare_keys(&sends->all[s], &receives->all[r]);
		if (order == 0)
			pair(pairing, &sends->all[s++], &receives->all[r++]);
		else if (order < 0)
			s++;
		else
			r++;
	}
	messages->lone_sends = sends->count - messages->count;
	messages->lone_receives = receives->count - messages->count;
}

static int compare_messages(const void *left, const void *right)
{
	const struct message *a = left, *b = right;

	return a->from.begin_ns < b->from.begin_ns ?
		       -1 :
		       a->from.begin_ns > b->from.begin_ns;
}

/* --- collective operations --- */

static int compare_parts(const void *left, const void *right)
{
	const struct part *a = left, *b = right;

	if (a->communicator != b->communicator)
		return a->communicator < b->communicator ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Whether @part cannot end before @other has begun. */
static bool needs(const struct part *part, const struct part *other)
{
	switch (part->kind) {
	case SHIM_COLLECTIVE_BCAST:
	case SHIM_COLLECTIVE_SCATTER:
		return other->rank == (uint32_t)part->root;
	case SHIM_COLLECTIVE_GATHER:
	case SHIM_COLLECTIVE_REDUCE: return part->rank == (uint32_t)part->root;
	case SHIM_COLLECTIVE_SCAN:
	case SHIM_COLLECTIVE_EXSCAN: return other->rank < part->rank;
	default: return true;
	}
}

static bool is_prefix(const struct part *part)
{
	return part->kind == SHIM_COLLECTIVE_SCAN ||
	       part->kind == SHIM_COLLECTIVE_EXSCAN;
}

static const struct part *later(const struct part *a, const struct part *b)
{
	return !a || b->end.begin_ns > a->end.begin_ns ? b : a;
}

/* @parts are those of one operation, by rank. */
static void find_waits(struct pairing *pairing, const struct part *parts,
		       uint32_t count)
{
	const struct part *last = NULL, *root = NULL, *late;
	uint32_t i;

	for (i = 0; i < count; i++)
		if (parts[i].rank == (uint32_t)parts[i].root)
			root = &parts[i];
	for (i = 0; i < count && !is_prefix(parts); i++)
		last = later(last, &parts[i]);
	for (i = 0; i < count; i++) {
		if (is_prefix(parts) && i > 0)
			last = later(last, &parts[i - 1]);
		late = last;
		if (root && !needs(&parts[i], last))
			late = root;
		if (late && late != &parts[i] && needs(&parts[i], late))
			add_wait(pairing, WAIT_COLLECTIVE, &parts[i].end,
				 fmin(late->end.begin_ns, parts[i].end.end_ns),
				 late->end.thread);
	}
}

static bool is_same_operation(const struct part *a, const struct part *b)
{
	return a->communicator == b->communicator && a->number == b->number &&
	       a->kind == b->kind;
}

static void find_all_waits(struct pairing *pairing)
{
	uint32_t i, next;

	if (pairing->part_count)
		qsort(pairing->parts, pairing->part_count,
		      sizeof(*pairing->parts), compare_parts);
	for (i = 0; i < pairing->part_count; i = next) {
		next = i + 1;
		while (next < pairing->part_count &&
		       is_same_operation(&pairing->parts[i],
					 &pairing->parts[next]))
			next++;
		find_waits(pairing, &pairing->parts[i], next - i);
	}
}

static int compare_collectives(const void *left, const void *right)
{
	const struct collective_call *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->begin_ns < b->begin_ns ? -1 : a->begin_ns > b->begin_ns;
}

bool trace_is_collective(const struct messages *messages,
			 const struct trace_event *event)
{
	struct collective_call wanted = { event->thread, event->time_ns };

	return messages && messages->collective_count &&
	       bsearch(&wanted, messages->collectives,
		       messages->collective_count,
		       sizeof(*messages->collectives), compare_collectives);
}

/* --- waits --- */

/* The longest wait of a call comes first. */
static int compare_waits(const void *left, const void *right)
{
	const struct message_wait *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->from_ns != b->from_ns)
		return a->from_ns < b->from_ns ? -1 : 1;
	return a->to_ns > b->to_ns ? -1 : a->to_ns < b->to_ns;
}

/* A call that waits for several processes waits for the last one. */
static void keep_longest(struct messages *messages)
{
	struct message_wait *waits = messages->waits;
	uint32_t i, kept = 0;

	if (messages->wait_count)
		qsort(waits, messages->wait_count, sizeof(*waits),
		      compare_waits);
	for (i = 0; i < messages->wait_count; i++)
		if (kept == 0 || waits[kept - 1].thread != waits[i].thread ||
		    waits[kept - 1].from_ns != waits[i].from_ns)
			waits[kept++] = waits[i];
	messages->wait_count = kept;
}

static void show_waits(struct trace *trace, const struct messages *messages)
{
	static const uint32_t kinds[] = {
		[WAIT_LATE_SENDER] = GAP_LATE_SENDER,
		[WAIT_LATE_RECEIVER] = GAP_LATE_RECEIVER,
		[WAIT_COLLECTIVE] = GAP_COLLECTIVE,
	};
	struct trace_gap *gaps = allocate(messages->wait_count, sizeof(*gaps));
	uint32_t i;

	for (i = 0; i < messages->wait_count; i++) {
		const struct message_wait *wait = &messages->waits[i];
		const struct trace_thread *thread =
			&trace->threads[wait->thread];
		const struct process *process =
			&trace->recording->processes[thread->process];

		gaps[i] = (struct trace_gap){
			.part = process->part,
			.pid = process->pid,
			.tid = thread->tid,
			.kind = kinds[wait->kind],
			.late = trace_rank_name(trace, wait->late),
			.late_thread = wait->late,
			.from_ns = wait->from_ns,
			.to_ns = wait->to_ns,
		};
	}
	trace_gaps_add(trace, gaps, messages->wait_count);
	free(gaps);
}

/* --- all of it --- */

/* The oldest calls of a ring may be gone. */
static bool has_lost_blocks(const struct trace *trace)
{
	uint32_t i;

	for (i = 0; i < trace->file_count; i++)
		if (trace->files[i].calls_lost ||
		    (trace->files[i].block_count &&
		     trace->files[i].blocks[0].sequence > 1))
			return true;
	return false;
}

static bool is_job(const struct recording *recording)
{
	uint32_t i;

	for (i = 0; i < recording->process_count; i++)
		if (process_string(&recording->processes[i], "rank"))
			return true;
	return false;
}

static void pair_everything(struct pairing *pairing)
{
	pair_all(pairing);
	find_all_waits(pairing);
}

static void free_pairing(struct pairing *pairing)
{
	free(pairing->sends.all);
	free(pairing->receives.all);
	free(pairing->parts);
	free(pairing->number);
	free(pairing->tracks);
	map_free(&pairing->numbers);
	map_free(&pairing->of_track);
}

const struct messages *trace_find_messages(struct trace *trace)
{
	struct pairing pairing = { .trace = trace, .thread = NONE };
	struct messages *messages;
	uint32_t i, all;

	if (trace->messages || !is_job(trace->recording))
		return trace->messages;
	messages = allocate(1, sizeof(*messages));
	messages->sums = allocate(trace->recording->process_count,
				  sizeof(*messages->sums));
	pairing.messages = messages;
	for (i = 0; i < trace->file_count; i++)
		read_file(&pairing, i);
	progress_end();
	all = pairing.sends.count + pairing.receives.count + pairing.part_count;
	if (all && (pairing.has_holes || has_lost_blocks(trace)))
		warn("%s: calls are missing in the trace: messages are not "
		     "paired, and nobody is seen waiting for a rank",
		     trace->recording->path);
	else
		pair_everything(&pairing);
	free_pairing(&pairing);
	if (!all) {
		trace_messages_free(messages);
		return NULL;
	}
	if (messages->collective_count)
		qsort(messages->collectives, messages->collective_count,
		      sizeof(*messages->collectives), compare_collectives);
	if (messages->count)
		qsort(messages->all, messages->count, sizeof(*messages->all),
		      compare_messages);
	keep_longest(messages);
	show_waits(trace, messages);
	trace->messages = messages;
	return messages;
}

void trace_messages_free(struct messages *messages)
{
	if (!messages)
		return;
	free(messages->all);
	free(messages->collectives);
	free(messages->waits);
	free(messages->sums);
	free(messages);
}
