/*
 * Writes messages as MPI records.  OTF2 wants all communicators and their members;
 * every process tells its rank in each of its own.
 *
 * OTF2 3.0 has a definition for communicators that join two groups, which python3-otf2 3.0
 * cannot read.  So they are communicators of all members, those of the first side first.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <otf2/otf2.h>
#include <shim/format.h>
#include <shim/message.h>

#include "base/map.h"
#include "base/memory.h"
#include "export/otf2_archive.h"
#include "export/otf2_messages.h"
#include "read/recording.h"
#include "trace/messages.h"
#include "trace/trace.h"

/* A member of so large a communicator is not known, or the record is damaged. */
#define MEMBERS_MAX 10000000u

enum group { GROUP_LOCATIONS, GROUPS }; /* those of communicators follow */

void otf2_messages_begin(struct otf2_messages *messages,
			 struct otf2_archive *archive,
			 const struct trace *trace)
{
	uint32_t i, count = trace->recording->process_count;

	*messages = (struct otf2_messages){ .archive = archive,
					    .trace = trace };
	messages->location = allocate(count, sizeof(*messages->location));
	for (i = 0; i < count; i++)
		messages->location[i] = NONE;
}

void otf2_messages_end(struct otf2_messages *messages)
{
	uint32_t i;

	for (i = 0; i < messages->count; i++) {
		free(messages->all[i].sides[0].processes);
		free(messages->all[i].sides[1].processes);
	}
	free(messages->all);
	free(messages->location);
	map_free(&messages->of_id);
}

/* --- communicators --- */

static uint32_t communicator_of(struct otf2_messages *messages,
				const struct shim_trace_message *message)
{
	uint32_t number = map_add(&messages->of_id, message->communicator,
				  messages->count);

	if (number < messages->count)
		return number;
	GROW(messages->all, messages->count, messages->room);
	messages->all[messages->count++] = (struct otf2_communicator){
		.id = message->communicator,
		.is_joined = message->side != 0,
	};
	return number;
}

static void enlarge(struct otf2_members *members, uint32_t size)
{
	uint32_t *processes = allocate(size, sizeof(*processes));
	uint32_t i;

	for (i = 0; i < size; i++)
		processes[i] = i < members->size ? members->processes[i] : NONE;
	free(members->processes);
	*members = (struct otf2_members){ size, processes };
}

static bool is_valid(const struct shim_trace_message *message)
{
	return message->side <= 2 && message->size > 0 &&
	       message->size <= MEMBERS_MAX && message->rank < message->size &&
	       message->kind >= SHIM_MESSAGE_MEMBER &&
	       message->kind <= SHIM_MESSAGE_COLLECTIVE;
}

/* Whether @message has a partner that may be a member.  Members of the other side may have
 * told nothing, so its size may not be known. */
static bool has_partner(struct otf2_communicator *communicator,
			const struct shim_trace_message *message)
{
	struct otf2_members *other =
		&communicator
			 ->sides[communicator->is_joined && message->side == 1];
	uint32_t peer = (uint32_t)message->peer;

	if (communicator->is_joined && peer >= other->size &&
	    peer < MEMBERS_MAX)
		enlarge(other, peer + 1);
	return peer < other->size;
}

bool otf2_messages_take(struct otf2_messages *messages,
			const struct trace_event *event, uint32_t location)
{
	const struct shim_trace_message *message = event->message;
	uint32_t process = messages->trace->threads[event->thread].process;
	struct otf2_communicator *communicator;
	struct otf2_members *own;
	uint32_t number;

	if (!is_valid(message))
		return false;
	number = communicator_of(messages, message);
	communicator = &messages->all[number];
	if (communicator->is_joined != (message->side != 0))
		return false;
	own = &communicator->sides[message->side == 2];
	if (own->size < message->size &&
	    (own->size == 0 || communicator->is_joined))
		enlarge(own, message->size);
	if (own->size < message->size ||
	    (own->size > message->size && !communicator->is_joined))
		return false;
	own->processes[message->rank] = process;
	if (messages->location[process] == NONE)
		messages->location[process] = location;
	return message->kind != SHIM_MESSAGE_MEMBER &&
	       (message->kind == SHIM_MESSAGE_COLLECTIVE ||
		has_partner(communicator, message));
}

/* --- records --- */

void otf2_messages_enter(struct otf2_messages *messages, OTF2_EvtWriter *writer,
			 OTF2_TimeStamp time)
{
	otf2_check(messages->archive,
		   OTF2_EvtWriter_MpiCollectiveBegin(writer, NULL, time));
}

static OTF2_CollectiveOp operation_of(int32_t kind)
{
	static const OTF2_CollectiveOp operations[SHIM_COLLECTIVES] = {
		[SHIM_COLLECTIVE_BARRIER] = OTF2_COLLECTIVE_OP_BARRIER,
		[SHIM_COLLECTIVE_BCAST] = OTF2_COLLECTIVE_OP_BCAST,
		[SHIM_COLLECTIVE_GATHER] = OTF2_COLLECTIVE_OP_GATHER,
		[SHIM_COLLECTIVE_SCATTER] = OTF2_COLLECTIVE_OP_SCATTER,
		[SHIM_COLLECTIVE_ALLGATHER] = OTF2_COLLECTIVE_OP_ALLGATHER,
		[SHIM_COLLECTIVE_ALLTOALL] = OTF2_COLLECTIVE_OP_ALLTOALL,
		[SHIM_COLLECTIVE_REDUCE] = OTF2_COLLECTIVE_OP_REDUCE,
		[SHIM_COLLECTIVE_ALLREDUCE] = OTF2_COLLECTIVE_OP_ALLREDUCE,
		[SHIM_COLLECTIVE_REDUCE_SCATTER] =
			OTF2_COLLECTIVE_OP_REDUCE_SCATTER,
		[SHIM_COLLECTIVE_SCAN] = OTF2_COLLECTIVE_OP_SCAN,
		[SHIM_COLLECTIVE_EXSCAN] = OTF2_COLLECTIVE_OP_EXSCAN,
	};

	return kind >= 0 && kind < SHIM_COLLECTIVES ?
		       operations[kind] :
		       OTF2_COLLECTIVE_OP_BARRIER;
}

void otf2_messages_put(struct otf2_messages *messages, OTF2_EvtWriter *writer,
		       const struct trace_event *event, OTF2_TimeStamp time)
{
	const struct shim_trace_message *message = event->message;
	OTF2_CommRef communicator = communicator_of(messages, message);
	/* The partner is on the other side. */
	uint32_t peer = (uint32_t)message->peer +
			(message->side == 1 ? message->size : 0);
	OTF2_ErrorCode code;

	if (message->kind == SHIM_MESSAGE_SEND)
		code = OTF2_EvtWriter_MpiSend(
			writer, NULL, time, peer, communicator,
			(uint32_t)message->tag, message->sent);
	else if (message->kind == SHIM_MESSAGE_RECEIVE)
		code = OTF2_EvtWriter_MpiRecv(
			writer, NULL, time, peer, communicator,
			(uint32_t)message->tag, message->received);
	else
		code = OTF2_EvtWriter_MpiCollectiveEnd(
			writer, NULL, time, operation_of(message->tag),
			communicator,
			message->peer < 0 ? OTF2_COLLECTIVE_ROOT_NONE :
					    (uint32_t)message->peer,
			message->sent, message->received);
	otf2_check(messages->archive, code);
}

/* --- definitions --- */

static bool lacks_members(const struct otf2_members *members)
{
	uint32_t rank;

	for (rank = 0; rank < members->size; rank++)
		if (members->processes[rank] == NONE)
			return true;
	return false;
}

bool otf2_messages_need_unseen(const struct otf2_messages *messages)
{
	uint32_t i;

	for (i = 0; i < messages->count; i++)
		if (lacks_members(&messages->all[i].sides[0]) ||
		    lacks_members(&messages->all[i].sides[1]))
			return true;
	return false;
}

static void define_group(struct otf2_messages *messages, OTF2_GroupRef group,
			 const char *name, OTF2_GroupType type,
			 const uint64_t *members, uint32_t count)
{
	otf2_check(messages->archive,
		   OTF2_GlobalDefWriter_WriteGroup(
			   messages->archive->definitions, group,
			   otf2_text(messages->archive, name), type,
			   OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, count,
			   members));
}

/* Stores the places of @known among the locations; @place has them by process. */
static void take_places(uint64_t *members, const struct otf2_members *known,
			const uint32_t *place, uint32_t unseen)
{
	uint32_t rank;

	for (rank = 0; rank < known->size; rank++) {
		uint32_t process = known->processes[rank];

		members[rank] = process == NONE ? unseen : place[process];
	}
}

static const char *name_of(const struct otf2_communicator *communicator,
			   uint32_t number)
{
	uint32_t first = communicator->sides[0].size;
	uint32_t second = communicator->sides[1].size;

	if (communicator->is_joined)
		return keep_format("communicator %u of %u and %u processes",
				   number, first, second);
	return number ? keep_format("communicator %u of %u processes", number,
				    first) :
			"MPI_COMM_WORLD";
}

/* @place: by process, its place among the locations; the last of all is that of unseen ranks. */
static void define_communicator(struct otf2_messages *messages, uint32_t number,
				const uint32_t *place, uint32_t unseen)
{
	const struct otf2_communicator *communicator = &messages->all[number];
	const struct otf2_members *sides = communicator->sides;
	uint32_t size = sides[0].size + sides[1].size;
	uint64_t *members = allocate(size, sizeof(*members));
	const char *name = name_of(communicator, number);

	take_places(members, &sides[0], place, unseen);
	take_places(members + sides[0].size, &sides[1], place, unseen);
	define_group(messages, GROUPS + number, name,
		     OTF2_GROUP_TYPE_COMM_GROUP, members, size);
	otf2_check(messages->archive,
		   OTF2_GlobalDefWriter_WriteComm(
			   messages->archive->definitions, number,
			   otf2_text(messages->archive, name), GROUPS + number,
			   OTF2_UNDEFINED_COMM, OTF2_COMM_FLAG_NONE));
	free(members);
}

void otf2_messages_define(struct otf2_messages *messages, const uint32_t *order,
			  uint32_t count, uint32_t unseen)
{
	uint64_t *locations = allocate(count + 1, sizeof(*locations));
	uint32_t *place = allocate(messages->trace->recording->process_count,
				   sizeof(*place));
	uint32_t i, used = 0, others;

	if (!messages->count) {
		free(locations);
		free(place);
		return;
	}
	for (i = 0; i < count; i++)
		if (messages->location[order[i]] != NONE) {
			place[order[i]] = used;
			locations[used++] = messages->location[order[i]];
		}
	others = used;
	if (unseen != NONE)
		locations[used++] = unseen;
	otf2_check(messages->archive,
		   OTF2_GlobalDefWriter_WriteParadigm(
			   messages->archive->definitions, OTF2_PARADIGM_MPI,
			   otf2_text(messages->archive, "MPI"),
			   OTF2_PARADIGM_CLASS_PROCESS));
	define_group(messages, GROUP_LOCATIONS, "MPI",
		     OTF2_GROUP_TYPE_COMM_LOCATIONS, locations, used);
	for (i = 0; i < messages->count; i++)
		define_communicator(messages, i, place, others);
	free(locations);
	free(place);
}
