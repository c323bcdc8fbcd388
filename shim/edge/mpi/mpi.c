/*
 * libshim-mpi.so: calls of MPI as functions of the call tree.
 *
 * Each wrapper stands in front of one function and calls its PMPI_ twin.  This file is
 * compiled with -finstrument-functions, so a wrapper is recorded like any other function.
 *
 * OpenMPI and MPICH have different types for communicators, requests and so on: pointers
 * or int.  The wrappers pass the registers and the stack slots on as they are, so they
 * need no header of MPI, and serve both.  If a profiler records messages, the notes below
 * tell it about them; only messages.c looks at what the arguments mean.
 *
 * Fortran's functions call those of C: MPI_Send in MPICH, PMPI_Send in OpenMPI and in half of
 * MPICH's module mpi_f08.  So the PMPI_ functions of this file are wrappers, too, but only
 * for callers in the libraries for Fortran.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "edge/mpi/messages.h"

#define OUR	     __attribute__((no_instrument_function))
#define EXPORT	     __attribute__((visibility("default")))
#define FAILED	     16 /* MPI_ERR_OTHER of OpenMPI; any error ends the job */
#define PARAMETERS0  void
#define PARAMETERS1  long a
#define PARAMETERS2  PARAMETERS1, long b
#define PARAMETERS3  PARAMETERS2, long c
#define PARAMETERS4  PARAMETERS3, long d
#define PARAMETERS5  PARAMETERS4, long e
#define PARAMETERS6  PARAMETERS5, long f
#define PARAMETERS7  PARAMETERS6, long g
#define PARAMETERS8  PARAMETERS7, long h
#define PARAMETERS9  PARAMETERS8, long i
#define PARAMETERS10 PARAMETERS9, long j
#define PARAMETERS12 PARAMETERS10, long k, long l
#define ARGUMENTS0
#define ARGUMENTS1  a
#define ARGUMENTS2  ARGUMENTS1, b
#define ARGUMENTS3  ARGUMENTS2, c
#define ARGUMENTS4  ARGUMENTS3, d
#define ARGUMENTS5  ARGUMENTS4, e
#define ARGUMENTS6  ARGUMENTS5, f
#define ARGUMENTS7  ARGUMENTS6, g
#define ARGUMENTS8  ARGUMENTS7, h
#define ARGUMENTS9  ARGUMENTS8, i
#define ARGUMENTS10 ARGUMENTS9, j
#define ARGUMENTS12 ARGUMENTS10, k, l

/* The program may have loaded MPI where only its own symbols are searched. */
static OUR void *find(void *where, const char *name)
{
	static const char *const libraries[] = { "libmpi.so.40", "libmpi.so.12",
						 "libmpich.so.12" };
	void *found = dlsym(where, name), *library;
	size_t i;

	for (i = 0; !found && i < sizeof(libraries) / sizeof(*libraries); i++) {
		library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			found = dlsym(library, name);
	}
	return found;
}

OUR void *mpi_find(const char *name)
{
	return find(RTLD_NEXT, name);
}

/* A program may have a copy, which is then the only one in use. */
OUR void *mpi_find_object(const char *name)
{
	return find(RTLD_DEFAULT, name);
}

/* --- Fortran --- */

static uintptr_t fortran_begin, fortran_size;

static OUR int has_fortran(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strncmp(name, "libmpi_mpifh", 12) == 0 || /* also -gfortran */
	       strncmp(name, "libmpichfort.so", 15) == 0;
}

static OUR int take_fortran(struct dl_phdr_info *object, size_t size,
			    void *unused)
{
	uintptr_t end = 0;

	(void)size;
	(void)unused;
	if (!has_fortran(object->dlpi_name))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD)
			end = segment->p_vaddr + segment->p_memsz;
	}
	fortran_begin = object->dlpi_addr;
	__atomic_store_n(&fortran_size, end, __ATOMIC_RELEASE);
	return 1;
}

/* A program that is linked to the library has it before its first call of MPI. */
static __attribute__((constructor)) OUR void find_fortran(void)
{
	dl_iterate_phdr(take_fortran, NULL);
}

static inline OUR int is_fortran(const void *caller)
{
	return (uintptr_t)caller - fortran_begin <
	       __atomic_load_n(&fortran_size, __ATOMIC_ACQUIRE);
}

/*
 * The notes: what to do before the call, where it may replace an argument, and after it
 * went well (@r is 0).
 */
#define BEFORE_INIT
#define AFTER_INIT  messages_begin();
#define BEFORE_SEND messages_send(b, c, d, e, f);
#define AFTER_SEND
#define BEFORE_RECV messages_receive_begins(&receive, &g);
#define AFTER_RECV  messages_received(&receive, f, g);
#define BEFORE_IRECV
#define AFTER_IRECV messages_receive_posted(d, f, g);
#define BEFORE_SENDRECV \
	messages_send(b, c, d, e, k); \
	messages_receive_begins(&receive, &l);
#define AFTER_SENDRECV messages_received(&receive, k, l);
#define BEFORE_SENDRECV_REPLACE \
	messages_send(b, c, d, e, h); \
	messages_receive_begins(&receive, &i);
#define AFTER_SENDRECV_REPLACE messages_received(&receive, h, i);
#define BEFORE_MPROBE
#define AFTER_MPROBE messages_probed(a, c, d);
#define BEFORE_IMPROBE
#define AFTER_IMPROBE \
	if (*(int *)d) \
		messages_probed(a, c, e);
#define BEFORE_MRECV \
	messages_receive_begins(&receive, &e); \
	receive.message = messages_message(d);
#define AFTER_MRECV   messages_probed_received(receive.message, e);
#define BEFORE_IMRECV receive.message = messages_message(d);
#define AFTER_IMRECV  messages_probed_posted(receive.message, e);
#define BEFORE_WAIT   messages_completing(&done, 1, a, &b);
#define AFTER_WAIT \
	messages_completed(&done, 0, 1, b); \
	messages_completion_ends(&done);
#define BEFORE_WAITALL messages_completing(&done, a, b, &c);
#define AFTER_WAITALL \
	messages_completed(&done, 0, a, c); \
	messages_completion_ends(&done);
#define BEFORE_WAITANY messages_completing(&done, a, b, &d);
#define AFTER_WAITANY \
	messages_completed(&done, *(int *)c, *(int *)c + 1, d); \
	messages_completion_ends(&done);
#define BEFORE_WAITSOME messages_completing(&done, a, b, &e);
#define AFTER_WAITSOME \
	messages_completed_some(&done, *(int *)c, d, e); \
	messages_completion_ends(&done);
#define BEFORE_TEST messages_completing(&done, 1, a, &c);
#define AFTER_TEST \
	messages_completed(&done, 0, *(int *)b ? 1 : 0, c); \
	messages_completion_ends(&done);
#define BEFORE_TESTALL messages_completing(&done, a, b, &d);
#define AFTER_TESTALL \
	messages_completed(&done, 0, *(int *)c ? a : 0, d); \
	messages_completion_ends(&done);
#define BEFORE_TESTANY messages_completing(&done, a, b, &e);
#define AFTER_TESTANY \
	if (*(int *)d) \
		messages_completed(&done, *(int *)c, *(int *)c + 1, e); \
	messages_completion_ends(&done);
#define BEFORE_START messages_started(1, a);
#define AFTER_START
#define BEFORE_STARTALL messages_started(a, b);
#define AFTER_STARTALL
#define BEFORE_REQUEST_FREE messages_request_free(a);
#define AFTER_REQUEST_FREE
#define BEFORE_SEND_INIT
#define AFTER_SEND_INIT messages_send_init(b, c, d, e, f, g);
#define BEFORE_RECV_INIT
#define AFTER_RECV_INIT messages_receive_init(f, g);

#define BEFORE_COMM_2
#define AFTER_COMM_2 messages_new_communicator(b);
#define BEFORE_COMM_3
#define AFTER_COMM_3 messages_new_communicator(c);
#define BEFORE_COMM_4
#define AFTER_COMM_4 messages_new_communicator(d);
#define BEFORE_COMM_5
#define AFTER_COMM_5 messages_new_communicator(e);
#define BEFORE_COMM_6
#define AFTER_COMM_6 messages_new_communicator(f);
#define BEFORE_COMM_9
#define AFTER_COMM_9 messages_new_communicator(i);
#define BEFORE_COMM_10
#define AFTER_COMM_10	 messages_new_communicator(j);
#define BEFORE_COMM_FREE messages_free_communicator(a);
#define AFTER_COMM_FREE

#define ALL(kind, comm, sent, received) \
	messages_collective(how, SHIM_COLLECTIVE_##kind, comm, -1, sent, \
			    received)
#define ROOTED(kind, comm, root, sent, received) \
	messages_collective(how, SHIM_COLLECTIVE_##kind, comm, root, sent, \
			    received)
#define IF_ROOT(comm, root, bytes) (messages_is_root(comm, root) ? (bytes) : 0)
#define IF_OTHER(comm, root, bytes) \
	(messages_is_other(comm, root) ? (bytes) : 0)
#define IF_MEMBER(comm, root, bytes) \
	(messages_is_member(comm, root) ? (bytes) : 0)
#define UNLESS_IN_PLACE(buffer, bytes, otherwise) \
	(messages_is_in_place(buffer) ? (otherwise) : (bytes))
#define BYTES	    messages_bytes
#define BYTES_ALL   messages_bytes_of_all
#define BYTES_GROUP messages_bytes_of_group
#define BYTES_OF    messages_bytes_of
#define BYTES_OWN   messages_own_bytes

#define BEFORE_BARRIER
#define AFTER_BARRIER ALL(BARRIER, a, 0, 0);
#define BEFORE_BCAST
#define AFTER_BCAST \
	ROOTED(BCAST, e, d, IF_ROOT(e, d, BYTES(b, c)), \
	       IF_OTHER(e, d, BYTES(b, c)));
#define BEFORE_GATHER
#define AFTER_GATHER \
	ROOTED(GATHER, h, g, \
	       IF_MEMBER(h, g, UNLESS_IN_PLACE(a, BYTES(b, c), 0)), \
	       IF_ROOT(h, g, BYTES_ALL(e, f, h)));
#define BEFORE_GATHERV
#define AFTER_GATHERV \
	ROOTED(GATHER, i, h, \
	       IF_MEMBER(i, h, UNLESS_IN_PLACE(a, BYTES(b, c), 0)), \
	       IF_ROOT(i, h, BYTES_OF(e, g, i)));
#define BEFORE_SCATTER
#define AFTER_SCATTER \
	ROOTED(SCATTER, h, g, IF_ROOT(h, g, BYTES_ALL(b, c, h)), \
	       IF_MEMBER(h, g, UNLESS_IN_PLACE(d, BYTES(e, f), 0)));
#define BEFORE_SCATTERV
#define AFTER_SCATTERV \
	ROOTED(SCATTER, i, h, IF_ROOT(i, h, BYTES_OF(b, d, i)), \
	       IF_MEMBER(i, h, UNLESS_IN_PLACE(e, BYTES(f, g), 0)));
#define BEFORE_ALLGATHER
#define AFTER_ALLGATHER \
	ALL(ALLGATHER, g, UNLESS_IN_PLACE(a, BYTES(b, c), BYTES(e, f)), \
	    BYTES_ALL(e, f, g));
#define BEFORE_ALLGATHERV
#define AFTER_ALLGATHERV \
	ALL(ALLGATHER, h, UNLESS_IN_PLACE(a, BYTES(b, c), BYTES_OWN(e, g, h)), \
	    BYTES_OF(e, g, h));
#define BEFORE_ALLTOALL
#define AFTER_ALLTOALL \
	ALL(ALLTOALL, g, \
	    UNLESS_IN_PLACE(a, BYTES_ALL(b, c, g), BYTES_ALL(e, f, g)), \
	    BYTES_ALL(e, f, g));
#define BEFORE_ALLTOALLV
#define AFTER_ALLTOALLV \
	ALL(ALLTOALL, i, \
	    UNLESS_IN_PLACE(a, BYTES_OF(b, d, i), BYTES_OF(f, h, i)), \
	    BYTES_OF(f, h, i));
#define BEFORE_ALLTOALLW
#define AFTER_ALLTOALLW \
	ALL(ALLTOALL, i, \
	    UNLESS_IN_PLACE(a, messages_bytes_of_types(b, d, i), \
			    messages_bytes_of_types(f, h, i)), \
	    messages_bytes_of_types(f, h, i));
#define BEFORE_REDUCE
#define AFTER_REDUCE \
	ROOTED(REDUCE, g, f, IF_MEMBER(g, f, BYTES(c, d)), \
	       IF_ROOT(g, f, BYTES(c, d)));
#define BEFORE_ALLREDUCE
#define AFTER_ALLREDUCE ALL(ALLREDUCE, f, BYTES(c, d), BYTES(c, d));
#define BEFORE_REDUCE_SCATTER
#define AFTER_REDUCE_SCATTER \
	ALL(REDUCE_SCATTER, f, messages_bytes_of_own_group(c, d, f), \
	    BYTES_OWN(c, d, f));
#define BEFORE_REDUCE_SCATTER_BLOCK
#define AFTER_REDUCE_SCATTER_BLOCK \
	ALL(REDUCE_SCATTER, f, BYTES_GROUP(c, d, f), BYTES(c, d));
#define BEFORE_SCAN
#define AFTER_SCAN ALL(SCAN, f, BYTES(c, d), BYTES(c, d));
#define BEFORE_EXSCAN
#define AFTER_EXSCAN ALL(EXSCAN, f, BYTES(c, d), BYTES(c, d));

#define BEFORE_PUT
#define AFTER_PUT messages_window(d, BYTES(b, c), 0);
#define BEFORE_GET
#define AFTER_GET messages_window(d, 0, BYTES(b, c));
#define BEFORE_GET_ACCUMULATE
#define AFTER_GET_ACCUMULATE messages_window(g, BYTES(b, c), BYTES(e, f));
#define BEFORE_FETCH
#define AFTER_FETCH messages_window(d, BYTES(1, c), BYTES(1, c));
#define BEFORE_SWAP
#define AFTER_SWAP messages_window(e, BYTES(1, d), BYTES(1, d));

#define BEFORE_READ	messages_file_begins(&receive, &e);
#define AFTER_READ	messages_file(0, messages_status_bytes(e));
#define BEFORE_WRITE	messages_file_begins(&receive, &e);
#define AFTER_WRITE	messages_file(messages_status_bytes(e), 0);
#define BEFORE_READ_AT	messages_file_begins(&receive, &f);
#define AFTER_READ_AT	messages_file(0, messages_status_bytes(f));
#define BEFORE_WRITE_AT messages_file_begins(&receive, &f);
#define AFTER_WRITE_AT	messages_file(messages_status_bytes(f), 0);
/* With a request: as many bytes as are asked for. */
#define BEFORE_IREAD
#define AFTER_IREAD messages_file(0, BYTES(c, d));
#define BEFORE_IWRITE
#define AFTER_IWRITE messages_file(BYTES(c, d), 0);
#define BEFORE_IREAD_AT
#define AFTER_IREAD_AT messages_file(0, BYTES(d, e));
#define BEFORE_IWRITE_AT
#define AFTER_IWRITE_AT messages_file(BYTES(d, e), 0);

/* What a note keeps between BEFORE and AFTER. */
union kept {
	struct receive receive;
	struct completion completion;
};

#define receive kept.receive
#define done	kept.completion

/* Two threads may both find the function: it is the same. */
#define FIND(name, count) \
	static int (*real)(PARAMETERS##count); \
	int (*call)(PARAMETERS##count) = __atomic_load_n(&real, \
							 __ATOMIC_RELAXED); \
\
	if (!call) { \
		call = (int (*)(PARAMETERS##count))mpi_find("PMPI_" #name); \
		__atomic_store_n(&real, call, __ATOMIC_RELAXED); \
	}

#define FOR_FORTRAN(name, count) \
	int own_##name(PARAMETERS##count) \
		__attribute__((alias("MPI_" #name), visibility("hidden"))); \
	EXPORT int PMPI_##name(PARAMETERS##count); \
	EXPORT OUR int PMPI_##name(PARAMETERS##count) \
	{ \
		FIND(name, count) \
		if (is_fortran(__builtin_return_address(0))) \
			return own_##name(ARGUMENTS##count); \
		return call ? call(ARGUMENTS##count) : FAILED; \
	}

#define MPI(name, count) \
	EXPORT int MPI_##name(PARAMETERS##count); \
	EXPORT int MPI_##name(PARAMETERS##count) \
	{ \
		FIND(name, count) \
		return call ? call(ARGUMENTS##count) : FAILED; \
	} \
	FOR_FORTRAN(name, count)

#define NOTED_AS(kind, name, count, note) \
	EXPORT int MPI_##name(PARAMETERS##count); \
	EXPORT int MPI_##name(PARAMETERS##count) \
	{ \
		const enum shim_message_kind how = kind; \
		union kept kept; \
		bool is_told = messages_wanted(); \
		int r; \
		FIND(name, count) \
\
		(void)kept; \
		(void)how; \
		if (!call) \
			return FAILED; \
		if (is_told) { \
			BEFORE_##note \
		} \
		r = call(ARGUMENTS##count); \
		if (is_told && r == 0) { \
			AFTER_##note \
		} \
		return r; \
	} \
	FOR_FORTRAN(name, count)

#define NOTED(name, count, note) \
	NOTED_AS(SHIM_MESSAGE_COLLECTIVE, name, count, note)
/* A collective operation with a request.  Its parameters are those of the one without, and
 * the request. */
#define BEGUN(name, count, note) \
	NOTED_AS(SHIM_MESSAGE_TRANSFER, name, count, note)
#include "functions.def"
