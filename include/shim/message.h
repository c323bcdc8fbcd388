/*
 * Messages between processes: what a library for messages tells about each of
 * its calls, so that the timeline shows who waited for whom.
 *
 * libshim-mpi.so does it for MPI.  The library that calls this is not linked to
 * shim: without shim, and without a profiler that records messages, nothing
 * happens.  -p trace records them; any profiler can set a callback for the
 * event `messaged` of <shim/events.def>.
 *
 * Example: process 0 of 2 sends 8 bytes to process 1.
 *
 *     #include <shim/message.h>
 *
 *     void tell(void);
 *     void tell(void)
 *     {
 *             struct shim_message message = {
 *                     .kind = SHIM_MESSAGE_SEND,
 *                     .communicator = 1,
 *                     .size = 2,
 *                     .rank = 0,
 *                     .peer = 1,
 *                     .sent = 8,
 *             };
 *
 *             if (shim_message_emit)
 *                     shim_message_emit(&message);
 *     }
 */
#ifndef SHIM_MESSAGE_H
#define SHIM_MESSAGE_H

#include <shim/shim.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum shim_message_kind {
	/* The process is a member of a communicator, which it may use later. */
	SHIM_MESSAGE_MEMBER = 1,
	SHIM_MESSAGE_SEND = 2,	     /* emitted when sending begins */
	SHIM_MESSAGE_RECEIVE = 3,    /* emitted when the message is there */
	SHIM_MESSAGE_COLLECTIVE = 4, /* emitted when the operation has ended */
	/* Data for which no process waits in this call; emitted when the call has
	 * ended. */
	SHIM_MESSAGE_TRANSFER = 5,
};

enum shim_transfer {
	/* A collective operation that a request ends later. */
	SHIM_TRANSFER_COLLECTIVE = 0,
	SHIM_TRANSFER_WINDOW = 1, /* to or from the memory of another process */
	SHIM_TRANSFER_FILE = 2,
	SHIM_TRANSFERS
};

enum shim_collective {
	SHIM_COLLECTIVE_BARRIER = 0,
	SHIM_COLLECTIVE_BCAST = 1,
	SHIM_COLLECTIVE_GATHER = 2,
	SHIM_COLLECTIVE_SCATTER = 3,
	SHIM_COLLECTIVE_ALLGATHER = 4,
	SHIM_COLLECTIVE_ALLTOALL = 5,
	SHIM_COLLECTIVE_REDUCE = 6,
	SHIM_COLLECTIVE_ALLREDUCE = 7,
	SHIM_COLLECTIVE_REDUCE_SCATTER = 8,
	SHIM_COLLECTIVE_SCAN = 9,
	SHIM_COLLECTIVE_EXSCAN = 10,
	SHIM_COLLECTIVES
};

struct shim_message {
	uint16_t kind; /* enum shim_message_kind */
	/* 0: all members are in one group.  1, 2: the communicator joins two
	 * groups, and this process is in the first or second; @peer is a rank of
	 * the other group. */
	uint16_t side;
	/* COLLECTIVE: enum shim_collective; TRANSFER: enum shim_transfer */
	int32_t tag;
	/* a number that all its members have, and no other communicator */
	uint64_t communicator;
	uint32_t size; /* members of the communicator, or of this side */
	uint32_t rank; /* of this process, in the communicator */
	/* SEND: to; RECEIVE: from; COLLECTIVE: root; of a window: whose; -1: none */
	int32_t peer;
	/* RECEIVE: receives of equal sender and tag take the messages in this
	 * order; it may wrap.  TRANSFER of a COLLECTIVE: enum shim_collective */
	uint32_t order;
	uint64_t sent;	   /* bytes; SEND, COLLECTIVE, TRANSFER */
	uint64_t received; /* bytes; RECEIVE, COLLECTIVE, TRANSFER */
};

/*
 * shim_message_emit - record that the calling thread sends or receives
 *
 * Call it in the function that sends or receives, which is the function that
 * waits: a RECEIVE and a COLLECTIVE belong to the innermost open call.
 * @message may be NULL, to ask whether messages are recorded.
 *
 * Returns SHIM_OK; SHIM_S_FALSE if no profiler records messages;
 * SHIM_E_INVALIDARG if @message->kind is unknown.
 *
 * Contract: async.  Cost: one load if no profiler records messages; 50 ns in a
 * trace.  CLR: none.  Mono: none.
 */
SHIM_API enum shim_result
shim_message_emit(SHIM_IN const struct shim_message *message) SHIM_ASYNC;
#ifndef SHIM_MARKS_ARE_HERE
#pragma weak shim_message_emit
#endif

#ifdef __cplusplus
}
#endif
#endif
