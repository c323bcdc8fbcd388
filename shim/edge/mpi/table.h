/* What is known of the handles of MPI: communicators, requests and probed messages. */
#ifndef SHIM_EDGE_MPI_TABLE_H
#define SHIM_EDGE_MPI_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum handle_kind { HANDLE_COMMUNICATOR = 1, HANDLE_REQUEST, HANDLE_MESSAGE };

struct communicator {
	uint64_t id;
	uint32_t size, rank;
	uint32_t peers; /* members of the other side; @size without one */
	uint32_t side;	/* as in struct shim_message */
};

struct handle {
	uint64_t key; /* 0: unused */
	struct communicator comm;
	uint32_t order;	    /* of a receive */
	bool is_send;	    /* a request for sending, which is persistent */
	bool is_persistent; /* it stays when it is completed */
	int32_t peer, tag;  /* of such a request */
	uint64_t bytes;
};

/* Copies what is known of a handle.  False: nothing. */
bool table_find(enum handle_kind kind, uint64_t value, struct handle *found);
/* Adds or replaces; without memory, nothing. */
void table_set(enum handle_kind kind, uint64_t value,
	       const struct handle *handle);
void table_remove(enum handle_kind kind, uint64_t value);
/* Whether any request is known. */
bool table_has_requests(void);

/* How often this was called before with @hash. */
uint64_t table_count(uint64_t hash);

#endif
