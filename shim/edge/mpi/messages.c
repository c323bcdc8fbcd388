/*
 * Messages of MPI: who sends to whom, how much, and on which communicator.
 *
 * This file knows two binary interfaces, that of OpenMPI and that of MPICH and its kin:
 * their statuses, constants and sizes of handles.  All else is asked of MPI, by the PMPI
 * functions, which take handles as the program has passed them.
 *
 * A communicator gets a number without a message of ours: a hash of its members' ranks in
 * MPI_COMM_WORLD, and how many communicators of the same members were there before.  All
 * members create such communicators in the same order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "edge/mpi/messages.h"
#include "edge/mpi/table.h"

#define MPICH_WORLD 0x44000000l
#define FIRST_HASH  0xcbf29ce484222325ull
#define HASH_FACTOR 0x100000001b3ull

static struct abi {
	bool is_openmpi;
	long world;
	long in_place, status_ignore;
	int proc_null, root;
	uint64_t status_bytes;
	int (*type_size)(long type, int *size);
	int (*comm_rank)(long comm, int *rank);
	int (*comm_size)(long comm, int *size);
	int (*comm_remote_size)(long comm, int *size);
	int (*comm_group)(long comm, long *group);
	int (*comm_test_inter)(long comm, int *flag);
	int (*comm_remote_group)(long comm, long *group);
	int (*group_size)(long group, int *size);
	int (*group_translate_ranks)(long from, int count, const int *ranks,
				     long to, int *translated);
	int (*group_free)(long *group);
} abi;
static char abi_state; /* 0: not known; 1: there; 2: no MPI that is known */
static uint32_t order;
static uint32_t table_version = 1; /* changes with the communicators; 0: none */

static void find_abi(struct abi *found)
{
	void *world = mpi_find_object("ompi_mpi_comm_world");

	*found = (struct abi){
		.is_openmpi = world != NULL,
		.world = world ? (long)world : MPICH_WORLD,
		.in_place = world ? 1 : -1,
		.status_ignore = world ? 0 : 1,
		.proc_null = world ? -2 : -1,
		.root = world ? -4 : -3,
		.status_bytes = world ? 24 : 20,
		.type_size = (int (*)(long, int *))mpi_find("PMPI_Type_size"),
		.comm_rank = (int (*)(long, int *))mpi_find("PMPI_Comm_rank"),
		.comm_size = (int (*)(long, int *))mpi_find("PMPI_Comm_size"),
		.comm_remote_size = (int (*)(long, int *))mpi_find(
			"PMPI_Comm_remote_size"),
		.comm_group = (int (*)(long, long *))mpi_find(
			"PMPI_Comm_group"),
		.comm_test_inter = (int (*)(long, int *))mpi_find(
			"PMPI_Comm_test_inter"),
		.comm_remote_group = (int (*)(long, long *))mpi_find(
			"PMPI_Comm_remote_group"),
		.group_size = (int (*)(long, int *))mpi_find("PMPI_Group_size"),
		.group_translate_ranks = (int (*)(
			long, int, const int *, long,
			int *))mpi_find("PMPI_Group_translate_ranks"),
		.group_free = (int (*)(long *))mpi_find("PMPI_Group_free"),
	};
}

static bool is_complete(const struct abi *found)
{
	return found->type_size && found->comm_rank && found->comm_size &&
	       found->comm_remote_size && found->comm_group &&
	       found->comm_test_inter && found->comm_remote_group &&
	       found->group_size && found->group_translate_ranks &&
	       found->group_free;
}

/* Two threads may both find it: it is the same. */
static bool find_mpi(void)
{
	struct abi found;

	find_abi(&found);
	if (is_complete(&found))
		abi = found;
	__atomic_store_n(&abi_state, is_complete(&found) ? 1 : 2,
			 __ATOMIC_RELEASE);
	return is_complete(&found);
}

bool messages_wanted(void)
{
	char state;

	if (!shim_message_emit || shim_message_emit(NULL) != SHIM_OK)
		return false;
	state = __atomic_load_n(&abi_state, __ATOMIC_ACQUIRE);
	return state ? state == 1 : find_mpi();
}

/* --- handles and statuses --- */

static uint64_t handle_at(long handles, long number)
{
	const uint32_t *small = (const uint32_t *)handles;
	const uint64_t *large = (const uint64_t *)handles;

	return abi.is_openmpi ? large[number] : small[number];
}

/* A handle that was passed by value: the upper half of the register of an int is not
 * defined. */
static uint64_t value_of(long handle)
{
	return abi.is_openmpi ? (uint64_t)handle : (uint32_t)handle;
}

struct seen {
	int source, tag;
	uint64_t bytes;
	bool is_cancelled;
};

static struct seen read_status(long status, long number)
{
	const char *at = (const char *)status +
			 (uint64_t)number * abi.status_bytes;
	struct seen seen;
	int words[5];
	uint64_t size;

	memcpy(words, at, sizeof(words));
	if (abi.is_openmpi) {
		memcpy(&size, at + 16, sizeof(size));
		return (struct seen){ words[0], words[1], size, words[3] != 0 };
	}
	seen = (struct seen){ .source = words[2], .tag = words[3] };
	seen.bytes = (uint32_t)words[0] | (uint64_t)((uint32_t)words[1] >> 1)
						  << 32;
	seen.is_cancelled = words[1] & 1;
	return seen;
}

uint64_t messages_bytes(long count, long type)
{
	int size;

	if ((int)count <= 0 || abi.type_size(type, &size) != 0 || size < 0)
		return 0;
	return (uint64_t)(int)count * (uint64_t)size;
}

/* --- communicators --- */

static uint64_t hash_ranks(const int *ranks, int count)
{
	uint64_t hash = FIRST_HASH;

	for (int i = 0; i < count; i++)
		hash = (hash ^ (uint32_t)ranks[i]) * HASH_FACTOR;
	return hash;
}

/* Stores the ranks in MPI_COMM_WORLD; @memory has room for twice as many. */
static uint64_t hash_members(long group, int *memory, int count)
{
	int *world = memory + count;
	uint64_t hash = 0;
	long all = 0;

	for (int i = 0; i < count; i++)
		memory[i] = i;
	if (abi.comm_group(abi.world, &all) != 0)
		return 0;
	if (abi.group_translate_ranks(group, count, memory, all, world) == 0)
		hash = hash_ranks(world, count);
	abi.group_free(&all);
	return hash;
}

static uint64_t hash_group(long group)
{
	int count = 0, error = errno;
	uint64_t hash = 0, size;
	void *memory;

	if (abi.group_size(group, &count) != 0 || count <= 0)
		return 0;
	size = 2 * sizeof(int) * (uint64_t)count;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	errno = error;
	if (memory == MAP_FAILED)
		return 0;
	hash = hash_members(group, memory, count);
	munmap(memory, size);
	return hash;
}

static uint64_t hash_of(long comm, int (*find)(long comm, long *group))
{
	uint64_t hash;
	long group = 0;

	if (find(comm, &group) != 0)
		return 0;
	hash = hash_group(group);
	abi.group_free(&group);
	return hash;
}

static void tell_member(const struct communicator *comm)
{
	struct shim_message message = {
		.kind = SHIM_MESSAGE_MEMBER,
		.side = (uint16_t)comm->side,
		.communicator = comm->id,
		.size = comm->size,
		.rank = comm->rank,
		.peer = -1,
	};

	shim_message_emit(&message);
}

static struct communicator add_communicator(long handle)
{
	struct handle known = { 0 };
	struct communicator *comm = &known.comm;
	uint64_t hash = hash_of(handle, abi.comm_group), other;
	int size = 0, rank = 0, peers = 0, is_joined = 0;

	abi.comm_size(handle, &size);
	abi.comm_rank(handle, &rank);
	abi.comm_test_inter(handle, &is_joined);
	comm->size = (uint32_t)size;
	comm->rank = (uint32_t)rank;
	comm->peers = comm->size;
	if (is_joined) {
		abi.comm_remote_size(handle, &peers);
		comm->peers = (uint32_t)peers;
		other = hash_of(handle, abi.comm_remote_group);
		comm->side = hash < other ? 1 : 2;
		hash = hash < other ? hash * 31 + other : other * 31 + hash;
	}
	comm->id = hash * 31 + table_count(hash);
	table_set(HANDLE_COMMUNICATOR, value_of(handle), &known);
	tell_member(comm);
	return *comm;
}

static struct communicator find_communicator(long handle)
{
	struct handle known;

	return table_find(HANDLE_COMMUNICATOR, value_of(handle), &known) ?
		       known.comm :
		       add_communicator(handle);
}

/* A thread uses one communicator many times. */
static struct communicator communicator_of(long handle)
{
	static __thread struct {
		uint32_t version;
		long handle;
		struct communicator comm;
	} last __attribute__((tls_model("initial-exec")));
	uint32_t version = __atomic_load_n(&table_version, __ATOMIC_ACQUIRE);

	if (last.version != version || last.handle != handle) {
		last.version = 0;
		last.comm = find_communicator(handle);
		last.handle = handle;
		last.version = version;
	}
	return last.comm;
}

/* Handles are used again. */
static void forget_last(void)
{
	__atomic_add_fetch(&table_version, 1, __ATOMIC_ACQ_REL);
}

void messages_begin(void)
{
	communicator_of(abi.world);
}

/* MPI_COMM_NULL, of a process that is no member, has no rank. */
static bool is_null(long comm)
{
	static void *null;

	if (!abi.is_openmpi)
		return comm == 0x04000000;
	if (!null)
		null = mpi_find_object("ompi_mpi_comm_null");
	return (void *)comm == null || comm == 0;
}

void messages_new_communicator(long comm)
{
	long handle = (long)handle_at(comm, 0);

	forget_last();
	if (!is_null(handle))
		add_communicator(handle);
}

void messages_free_communicator(long comm)
{
	forget_last();
	table_remove(HANDLE_COMMUNICATOR, handle_at(comm, 0));
}

/* --- telling --- */

static void tell_send(const struct communicator *comm, int peer, int tag,
		      uint64_t bytes)
{
	struct shim_message message = {
		.kind = SHIM_MESSAGE_SEND,
		.side = (uint16_t)comm->side,
		.tag = tag,
		.communicator = comm->id,
		.size = comm->size,
		.rank = comm->rank,
		.peer = peer,
		.sent = bytes,
	};

	shim_message_emit(&message);
}

/* A status without a sender is of MPI_PROC_NULL, or of a request that was not active. */
static void tell_receive(const struct communicator *comm, uint32_t place,
			 const struct seen *seen)
{
	struct shim_message message = {
		.kind = SHIM_MESSAGE_RECEIVE,
		.side = (uint16_t)comm->side,
		.tag = seen->tag,
		.communicator = comm->id,
		.size = comm->size,
		.rank = comm->rank,
		.peer = seen->source,
		.order = place,
		.received = seen->bytes,
	};

	if (seen->source >= 0 && !seen->is_cancelled)
		shim_message_emit(&message);
}

static uint32_t next_order(void)
{
	return __atomic_fetch_add(&order, 1, __ATOMIC_RELAXED);
}

/* --- messages from one process to another --- */

void messages_send(long count, long type, long peer, long tag, long comm)
{
	struct communicator known;

	if ((int)peer < 0)
		return;
	known = communicator_of(comm);
	tell_send(&known, (int)peer, (int)tag, messages_bytes(count, type));
}

void messages_receive_begins(struct receive *receive, long *status)
{
	receive->order = next_order();
	if (*status == abi.status_ignore)
		*status = (long)receive->status;
}

void messages_received(const struct receive *receive, long comm, long status)
{
	struct communicator known = communicator_of(comm);
	struct seen seen = read_status(status, 0);

	tell_receive(&known, receive->order, &seen);
}

/* --- requests --- */

void messages_receive_posted(long source, long comm, long request)
{
	struct handle handle = { .order = next_order() };

	if ((int)source == abi.proc_null)
		return;
	handle.comm = communicator_of(comm);
	table_set(HANDLE_REQUEST, handle_at(request, 0), &handle);
}

void messages_send_init(long count, long type, long peer, long tag, long comm,
			long request)
{
	struct handle handle = { .is_send = true,
				 .is_persistent = true,
				 .peer = (int)peer,
				 .tag = (int)tag };

	if ((int)peer < 0)
		return;
	handle.comm = communicator_of(comm);
	handle.bytes = messages_bytes(count, type);
	table_set(HANDLE_REQUEST, handle_at(request, 0), &handle);
}

void messages_receive_init(long comm, long request)
{
	struct handle handle = { .comm = communicator_of(comm),
				 .is_persistent = true };

	table_set(HANDLE_REQUEST, handle_at(request, 0), &handle);
}

void messages_started(long count, long requests)
{
	struct handle known;

	for (long i = 0; i < (int)count; i++) {
		uint64_t value = handle_at(requests, i);

		if (!table_find(HANDLE_REQUEST, value, &known))
			continue;
		if (known.is_send) {
			tell_send(&known.comm, known.peer, known.tag,
				  known.bytes);
			continue;
		}
		known.order = next_order();
		table_set(HANDLE_REQUEST, value, &known);
	}
}

void messages_request_free(long request)
{
	table_remove(HANDLE_REQUEST, handle_at(request, 0));
}

static void *take_memory(struct completion *completion, uint64_t size)
{
	int error = errno;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	errno = error;
	if (memory == MAP_FAILED)
		return NULL;
	completion->large = memory;
	completion->large_size = size;
	return memory;
}

void messages_completing(struct completion *completion, long count,
			 long requests, long *status)
{
	uint64_t all = (uint64_t)(int)count;
	char *place = completion->statuses;

	completion->count = 0;
	completion->large = NULL;
	completion->handles = completion->few;
	if ((int)count <= 0 || !table_has_requests())
		return;
	if (all > STATUSES) {
		completion->handles = take_memory(completion,
						  all * (8 + STATUS_BYTES));
		if (!completion->handles)
			return;
		place = (char *)(completion->handles + all);
	}
	for (uint64_t i = 0; i < all; i++)
		completion->handles[i] = handle_at(requests, (long)i);
	completion->count = all;
	if (*status == abi.status_ignore)
		*status = (long)place;
}

static void complete(uint64_t request, long status, long number)
{
	struct handle known;
	struct seen seen;

	if (!table_find(HANDLE_REQUEST, request, &known) || known.is_send)
		return;
	seen = read_status(status, number);
	tell_receive(&known.comm, known.order, &seen);
	if (!known.is_persistent)
		table_remove(HANDLE_REQUEST, request);
}

void messages_completed(struct completion *completion, long first, long last,
			long status)
{
	for (long i = (int)first;
	     i >= 0 && i < (int)last && (uint64_t)i < completion->count; i++)
		complete(completion->handles[i], status, i - (int)first);
}

void messages_completed_some(struct completion *completion, long count,
			     long indices, long status)
{
	const int *index = (const int *)indices;

	for (long i = 0; i < (int)count; i++)
		if (index[i] >= 0 && (uint64_t)index[i] < completion->count)
			complete(completion->handles[index[i]], status, i);
}

void messages_completion_ends(struct completion *completion)
{
	if (completion->large)
		munmap(completion->large, completion->large_size);
}

/* --- messages that were found by probing --- */

void messages_probed(long source, long comm, long message)
{
	struct handle handle = { .order = next_order() };

	if ((int)source == abi.proc_null)
		return;
	handle.comm = communicator_of(comm);
	table_set(HANDLE_MESSAGE, handle_at(message, 0), &handle);
}

uint64_t messages_message(long message)
{
	return handle_at(message, 0);
}

void messages_probed_received(uint64_t message, long status)
{
	struct handle known;
	struct seen seen;

	if (!table_find(HANDLE_MESSAGE, message, &known))
		return;
	seen = read_status(status, 0);
	tell_receive(&known.comm, known.order, &seen);
	table_remove(HANDLE_MESSAGE, message);
}

void messages_probed_posted(uint64_t message, long request)
{
	struct handle known;

	if (!table_find(HANDLE_MESSAGE, message, &known))
		return;
	table_set(HANDLE_REQUEST, handle_at(request, 0), &known);
	table_remove(HANDLE_MESSAGE, message);
}

/* --- collectives --- */

void messages_collective(enum shim_message_kind how, enum shim_collective kind,
			 long comm, long root, uint64_t sent, uint64_t received)
{
	struct communicator known = communicator_of(comm);
	bool is_begun = how == SHIM_MESSAGE_TRANSFER;
	struct shim_message message = {
		.kind = (uint16_t)how,
		.side = (uint16_t)known.side,
		.tag = is_begun ? (int)SHIM_TRANSFER_COLLECTIVE : (int)kind,
		.communicator = known.id,
		.size = known.size,
		.rank = known.rank,
		.peer = (int)root,
		.order = is_begun ? kind : 0,
		.sent = sent,
		.received = received,
	};

	/* Between two groups, one process is the root of the other group's. */
	if (known.side)
		message.peer = -1;
	shim_message_emit(&message);
}

bool messages_is_root(long comm, long root)
{
	struct communicator known = communicator_of(comm);

	return known.side ? (int)root == abi.root :
			    known.rank == (uint32_t)root;
}

bool messages_is_other(long comm, long root)
{
	struct communicator known = communicator_of(comm);

	return known.side ? (int)root >= 0 : known.rank != (uint32_t)root;
}

bool messages_is_member(long comm, long root)
{
	return !communicator_of(comm).side || (int)root >= 0;
}

bool messages_is_in_place(long buffer)
{
	return buffer == abi.in_place;
}

uint64_t messages_bytes_of_all(long count, long type, long comm)
{
	return messages_bytes(count, type) * communicator_of(comm).peers;
}

uint64_t messages_bytes_of_group(long count, long type, long comm)
{
	return messages_bytes(count, type) * communicator_of(comm).size;
}

static uint64_t sum_bytes(long counts, uint32_t members, long type)
{
	const int *count = (const int *)counts;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < members; i++)
		sum += (uint64_t)count[i];
	return sum * messages_bytes(1, type);
}

uint64_t messages_bytes_of(long counts, long type, long comm)
{
	return sum_bytes(counts, communicator_of(comm).peers, type);
}

uint64_t messages_bytes_of_own_group(long counts, long type, long comm)
{
	return sum_bytes(counts, communicator_of(comm).size, type);
}

uint64_t messages_bytes_of_types(long counts, long types, long comm)
{
	struct communicator known = communicator_of(comm);
	const int *count = (const int *)counts;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < known.peers; i++)
		bytes += messages_bytes(count[i], (long)handle_at(types, i));
	return bytes;
}

uint64_t messages_own_bytes(long counts, long type, long comm)
{
	const int *count = (const int *)counts;

	return messages_bytes(count[communicator_of(comm).rank], type);
}

/* --- windows and files --- */

static void tell_transfer(enum shim_transfer kind, int peer, uint64_t sent,
			  uint64_t received)
{
	struct shim_message message = {
		.kind = SHIM_MESSAGE_TRANSFER,
		.tag = kind,
		.peer = peer,
		.sent = sent,
		.received = received,
	};

	shim_message_emit(&message);
}

void messages_window(long target, uint64_t sent, uint64_t received)
{
	if ((int)target >= 0)
		tell_transfer(SHIM_TRANSFER_WINDOW, (int)target, sent,
			      received);
}

void messages_file(uint64_t sent, uint64_t received)
{
	tell_transfer(SHIM_TRANSFER_FILE, -1, sent, received);
}

void messages_file_begins(struct receive *receive, long *status)
{
	if (*status == abi.status_ignore)
		*status = (long)receive->status;
}

uint64_t messages_status_bytes(long status)
{
	return read_status(status, 0).bytes;
}
