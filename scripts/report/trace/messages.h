/* The messages of a parallel job: who sent to whom, and who waited for whom. */
#ifndef REPORT_TRACE_MESSAGES_H
#define REPORT_TRACE_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <shim/message.h>

struct trace;
struct trace_event;

/* A process's part in a message or in a collective operation. */
struct message_end {
	uint32_t thread; /* number in trace->threads */
	uint32_t site;	 /* the call that sends or receives; NONE: unknown */
	double begin_ns; /* this call began */
	double end_ns; /* SEND: it ended; others: when the message was there */
	uint64_t sent, received; /* bytes */
};

/* A message that was received. */
struct message {
	struct message_end from, to;
	int32_t tag;
};

enum message_wait_kind {
	WAIT_LATE_SENDER,   /* a receive began before the message was sent */
	WAIT_LATE_RECEIVER, /* a send waited until the receive began */
	WAIT_COLLECTIVE,    /* another process came later */
};

struct message_wait {
	enum message_wait_kind kind;
	uint32_t thread, site; /* who waited, in which call */
	uint32_t late;	       /* thread of the process that was late */
	double from_ns, to_ns;
};

/* What the processes have sent and received, whether it was paired or not. */
struct message_sums {
	uint64_t sends, sent; /* messages; bytes */
	uint64_t receives, received;
	uint64_t collectives, given, taken; /* operations; bytes */
	struct {
		uint64_t count, given, taken;
	} transfers[SHIM_TRANSFERS];
};

/* A call that is a collective operation. */
struct collective_call {
	uint32_t thread;
	double begin_ns;
};

struct messages {
	struct collective_call
		*collectives; /* of one group; by thread and time */
	uint32_t collective_count;
	struct message *all; /* by time of sending */
	uint32_t count;
	struct message_wait *waits; /* by thread and time */
	uint32_t wait_count;
	struct message_sums *sums;	    /* by process */
	uint64_t lone_sends, lone_receives; /* messages with one end */
	/* messages that were there before they were sent, and by how much at most:
	 * what the clocks are wrong by */
	uint64_t reversed;
	double reversed_ns;
};

/*
 * trace_find_messages - pair what the processes of a job have sent and received
 *
 * From then on, readers give the waits as gaps (trace_gap_text).  A job is read
 * once more; other recordings have no messages.  Returns NULL if there are none;
 * the result belongs to @trace.
 */
const struct messages *trace_find_messages(struct trace *trace);
void trace_messages_free(struct messages *messages);

/* Whether @event, an ENTER, begins a collective operation of one group; @messages may be
 * NULL. */
bool trace_is_collective(const struct messages *messages,
			 const struct trace_event *event);

/* "rank 2", or the name of the process if it has no rank. */
const char *trace_rank_name(const struct trace *trace, uint32_t thread);

/* "barrier"; by enum shim_collective. */
const char *trace_collective_name(int32_t kind);
/* "windows"; by enum shim_transfer. */
const char *trace_transfer_name(int32_t kind);

/* "sends to rank 2: 8 bytes, tag 5"; the text is valid until the next call. */
const char *trace_message_text(const struct trace_event *event);

#endif
