/* The messages of a job as MPI records of OTF2, with communicators. */
#ifndef REPORT_EXPORT_OTF2_MESSAGES_H
#define REPORT_EXPORT_OTF2_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <otf2/otf2.h>

#include "base/map.h"
#include "export/otf2_archive.h"
#include "trace/trace.h"

struct otf2_members {
	uint32_t size;
	uint32_t *processes; /* by rank, or NONE */
};

/* A communicator, whose members are learned from their own messages.  One that joins two
 * groups has two sides. */
struct otf2_communicator {
	uint64_t id;
	bool is_joined;
	struct otf2_members sides[2];
};

struct otf2_messages {
	struct otf2_archive *archive;
	const struct trace *trace;
	struct map of_id;
	struct otf2_communicator *all;
	uint32_t count, room;
	/* by process: the location of its first message, or NONE */
	uint32_t *location;
};

void otf2_messages_begin(struct otf2_messages *messages,
			 struct otf2_archive *archive,
			 const struct trace *trace);
/* A collective operation begins. */
void otf2_messages_enter(struct otf2_messages *messages, OTF2_EvtWriter *writer,
			 OTF2_TimeStamp time);
/* Whether a MESSAGE has a record; takes what it tells of its communicator. */
bool otf2_messages_take(struct otf2_messages *messages,
			const struct trace_event *event, uint32_t location);
/* Writes the record of such a message. */
void otf2_messages_put(struct otf2_messages *messages, OTF2_EvtWriter *writer,
		       const struct trace_event *event, OTF2_TimeStamp time);
/*
 * Writes the definitions.  Processes whose number @order has are in its order.
 * @unseen is a location that stands for members which have told nothing; it is
 * used if otf2_messages_need_unseen().
 */
bool otf2_messages_need_unseen(const struct otf2_messages *messages);
void otf2_messages_define(struct otf2_messages *messages, const uint32_t *order,
			  uint32_t count, uint32_t unseen);
void otf2_messages_end(struct otf2_messages *messages);

#endif
