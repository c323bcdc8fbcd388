/*
 * What the wrappers of mpi.c tell about messages.  Arguments are as the program has
 * passed them: a handle, a number or an address, of any MPI.
 */
#ifndef SHIM_EDGE_MPI_MESSAGES_H
#define SHIM_EDGE_MPI_MESSAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <shim/message.h>

/* The function of MPI with this name; NULL: there is none. */
void *mpi_find(const char *name);
/* The variable of MPI with this name; NULL: there is none. */
void *mpi_find_object(const char *name);

/* Whether a profiler records messages; otherwise nothing below may be called. */
bool messages_wanted(void);

/* --- communicators --- */

void messages_begin(void); /* MPI is initialized */
/* @comm points to the handle of a communicator, which is new, or about to be freed. */
void messages_new_communicator(long comm);
void messages_free_communicator(long comm);

/* --- messages from one process to another --- */

void messages_send(long count, long type, long peer, long tag, long comm);

#define STATUS_BYTES 24 /* of the larger status */
/* Statuses on the stack, which take the place of those that the program ignores. */
#define STATUSES 16

/* A receive that blocks. */
struct receive {
	uint32_t order;
	uint64_t message; /* the handle of a probed message */
	char status[STATUS_BYTES];
};

/* Before the call.  *@status is replaced if the program ignores it. */
void messages_receive_begins(struct receive *receive, long *status);
void messages_received(const struct receive *receive, long comm, long status);

/* --- requests --- */

/* @request points to the handle of a request. */
void messages_receive_posted(long source, long comm, long request);
void messages_send_init(long count, long type, long peer, long tag, long comm,
			long request);
void messages_receive_init(long comm, long request);
void messages_started(long count, long requests);
void messages_request_free(long request);

/* Receives that a call may complete. */
struct completion {
	uint64_t count; /* 0: the call completes no receive */
	uint64_t *handles;
	void *large; /* memory for @handles and statuses, or NULL */
	uint64_t large_size;
	uint64_t few[STATUSES];
	char statuses[STATUSES * STATUS_BYTES];
};

/* Before the call.  *@status, of up to @count requests, is replaced if the program ignores
 * it. */
void messages_completing(struct completion *completion, long count,
			 long requests, long *status);
/* After it: the requests @first up to @last have been completed, and their statuses are
 * at @status. */
void messages_completed(struct completion *completion, long first, long last,
			long status);
/* The requests whose @count indices are at @indices. */
void messages_completed_some(struct completion *completion, long count,
			     long indices, long status);
void messages_completion_ends(struct completion *completion);

/* --- messages that were found by probing --- */

/* @message points to the handle of a message. */
void messages_probed(long source, long comm, long message);
/* Before the call that receives it; returns the handle. */
uint64_t messages_message(long message);
/* The message has been received, or a request for it has been made. */
void messages_probed_received(uint64_t message, long status);
void messages_probed_posted(uint64_t message, long request);

/* --- collectives --- */

/* After the call; @how is SHIM_MESSAGE_COLLECTIVE, or SHIM_MESSAGE_TRANSFER if a request ends
 * the operation.  @type is looked at only with a count. */
void messages_collective(enum shim_message_kind how, enum shim_collective kind,
			 long comm, long root, uint64_t sent,
			 uint64_t received);
/* What this process is in an operation with a root: the root; one of those that the root
 * serves; one of those that give to it or get from it, which may be the root itself.
 * Between two groups, the root's group has no such members. */
bool messages_is_root(long comm, long root);
bool messages_is_other(long comm, long root);
bool messages_is_member(long comm, long root);
bool messages_is_in_place(long buffer);
/* Bytes of @count items; for all members, those of the other group if there are two; for
 * all members of the own group. */
uint64_t messages_bytes(long count, long type);
uint64_t messages_bytes_of_all(long count, long type, long comm);
uint64_t messages_bytes_of_group(long count, long type, long comm);
/* The same of the members' counts in an array. */
uint64_t messages_bytes_of(long counts, long type, long comm);
uint64_t messages_bytes_of_own_group(long counts, long type, long comm);
uint64_t messages_bytes_of_types(long counts, long types, long comm);
uint64_t messages_own_bytes(long counts, long type, long comm);

/* --- windows and files --- */

/* After the call.  @target: whose window. */
void messages_window(long target, uint64_t sent, uint64_t received);
void messages_file(uint64_t sent, uint64_t received);
/* Before a call that reads or writes; *@status is replaced if the program ignores it. */
void messages_file_begins(struct receive *receive, long *status);
uint64_t messages_status_bytes(long status);

#endif
