/*
 * Messages of MPI in all the ways that libshim-mpi.so looks at, for 3 processes.  What is
 * received, and its status, is checked: the wrappers may pass statuses of their own.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MANY 40

static int rank, size, next, before;

static void check(int is, int line)
{
	if (is)
		return;
	fprintf(stderr, "rank %d: line %d\n", rank, line);
	MPI_Abort(MPI_COMM_WORLD, 9);
}
#define CHECK(is) check(is, __LINE__)

static void check_status(const MPI_Status *status, int tag, int count)
{
	int is;

	MPI_Get_count(status, MPI_INT, &is);
	CHECK(status->MPI_SOURCE == before && status->MPI_TAG == tag &&
	      is == count);
}

/* 1 message of 4 bytes by each rank */
static void one(void)
{
	MPI_Status status;
	MPI_Request request;
	int in = -1;

	MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
		  &request);
	MPI_Send(&rank, 1, MPI_INT, next, 1, MPI_COMM_WORLD);
	MPI_Wait(&request, &status);
	CHECK(in == before && request == MPI_REQUEST_NULL);
	check_status(&status, 1, 1);
}

/* 40 of 8 bytes, of equal tag, whose statuses are ignored */
static void many(void)
{
	static int in[MANY][2], out[MANY][2];
	MPI_Request requests[2 * MANY];

	for (int i = 0; i < MANY; i++)
		MPI_Irecv(in[i], 2, MPI_INT, before, 2, MPI_COMM_WORLD,
			  &requests[i]);
	for (int i = 0; i < MANY; i++) {
		out[i][0] = i;
		MPI_Isend(out[i], 2, MPI_INT, next, 2, MPI_COMM_WORLD,
			  &requests[MANY + i]);
	}
	MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++)
		CHECK(in[i][0] == i);
}

/* 2 of 12 bytes, completed by any, some and test; 1 to nobody */
static void others(void)
{
	int in[2][3], out[3] = { 1, 2, 3 }, index = -1, count = 0, flag = 0;
	int indices[2];
	MPI_Request requests[2];
	MPI_Status status;

	MPI_Irecv(in[0], 3, MPI_INT, before, 3, MPI_COMM_WORLD, &requests[0]);
	MPI_Irecv(in[1], 3, MPI_INT, before, 4, MPI_COMM_WORLD, &requests[1]);
	MPI_Send(out, 3, MPI_INT, next, 3, MPI_COMM_WORLD);
	MPI_Send(out, 3, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
	MPI_Waitany(2, requests, &index, &status);
	CHECK(index == 0);
	check_status(&status, 3, 3);
	MPI_Send(out, 3, MPI_INT, next, 4, MPI_COMM_WORLD);
	MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
	CHECK(count == 1 && indices[0] == 1);
	MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
	CHECK(flag);
}

/* 3 of 4 bytes by a persistent request, 1 of 16 that is probed, 1 both ways */
static void more(void)
{
	int out = rank, in = -1, four[4] = { 0 }, got[4];
	MPI_Request requests[2];
	MPI_Message message;
	MPI_Status status;

	MPI_Recv_init(&in, 1, MPI_INT, before, 5, MPI_COMM_WORLD, &requests[0]);
	MPI_Send_init(&out, 1, MPI_INT, next, 5, MPI_COMM_WORLD, &requests[1]);
	for (int i = 0; i < 3; i++) {
		out = rank + i;
		MPI_Startall(2, requests);
		MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
		CHECK(in == before + i);
	}
	MPI_Request_free(&requests[0]);
	MPI_Request_free(&requests[1]);
	MPI_Isend(four, 4, MPI_INT, next, 6, MPI_COMM_WORLD, &requests[0]);
	MPI_Mprobe(before, 6, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
	MPI_Mrecv(got, 4, MPI_INT, &message, &status);
	check_status(&status, 6, 4);
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
	MPI_Sendrecv(&rank, 1, MPI_INT, next, 7, &in, 1, MPI_INT, before, 7,
		     MPI_COMM_WORLD, &status);
	check_status(&status, 7, 1);
}

/* Rank 2 is in a communicator of its own: the others exchange 1 message of 4 bytes. */
static void apart(void)
{
	MPI_Comm part, copy;
	int in = -1, own;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 2, -rank, &part);
	MPI_Comm_dup(part, &copy);
	MPI_Comm_rank(copy, &own);
	if (rank != 2)
		MPI_Sendrecv(&rank, 1, MPI_INT, 1 - own, 8, &in, 1, MPI_INT,
			     1 - own, 8, copy, MPI_STATUS_IGNORE);
	CHECK(rank == 2 || in == 1 - rank);
	MPI_Barrier(copy);
	MPI_Comm_free(&copy);
	MPI_Comm_free(&part);
}

/* given, taken: 4 4, 12 0 or 0 4 (root), 4 12, 4 4 */
static void together(void)
{
	int in[3], out[3] = { 7, 8, 9 }, sum;

	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	CHECK(sum == 3);
	MPI_Scatter(out, 1, MPI_INT, in, 1, MPI_INT, 1, MPI_COMM_WORLD);
	CHECK(in[0] == 7 + rank);
	in[rank] = rank;
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 1, MPI_INT,
		      MPI_COMM_WORLD);
	CHECK(in[0] == 0 && in[1] == 1 && in[2] == 2);
	MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
}

/* 2 operations with a request: 8 given, 8 taken */
static void begun(void)
{
	int out[2] = { rank, 1 }, in[2];
	MPI_Request requests[2];

	MPI_Iallreduce(out, in, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
		       &requests[0]);
	MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	CHECK(in[0] == 3 && in[1] == 3);
}

/* 3 accesses: 4 + 4 given, 8 taken; 1 to nobody */
static void windows(void)
{
	int memory[4] = { 10 + rank, 0, 0, 0 }, in[2] = { 0 }, one = 1;
	MPI_Win window;

	MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL,
		       MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Get(in, 2, MPI_INT, before, 0, 2, MPI_INT, window);
	MPI_Put(&rank, 1, MPI_INT, next, 2, 1, MPI_INT, window);
	MPI_Put(&rank, 1, MPI_INT, MPI_PROC_NULL, 2, 1, MPI_INT, window);
	MPI_Accumulate(&one, 1, MPI_INT, next, 3, 1, MPI_INT, MPI_SUM, window);
	MPI_Win_fence(0, window);
	CHECK(in[0] == 10 + before && memory[2] == before && memory[3] == 1);
	MPI_Win_free(&window);
}

/* 20 bytes written; 12, and 4 of 16 at the end, read */
static void files(void)
{
	int out[5] = { 1, 2, 3, 4, 5 }, in[4];
	char name[40];
	MPI_File file;

	snprintf(name, sizeof(name), "file.%d", rank);
	MPI_File_open(MPI_COMM_SELF, name,
		      MPI_MODE_CREATE | MPI_MODE_RDWR |
			      MPI_MODE_DELETE_ON_CLOSE,
		      MPI_INFO_NULL, &file);
	MPI_File_write(file, out, 5, MPI_INT, MPI_STATUS_IGNORE);
	MPI_File_read_at(file, 4, in, 3, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(in[0] == 2 && in[2] == 4);
	MPI_File_read_at(file, 16, in, 4, MPI_INT, MPI_STATUS_IGNORE);
	CHECK(in[0] == 5);
	MPI_File_close(&file);
}

/*
 * Between the ranks 0 and 1, and rank 2; given, taken: 0 8 or 8 0 (rank 2); 0 4 (rank 0),
 * nothing, or 4 0 (rank 2); 4 4 or 4 8 (rank 2).  1 message of 4 bytes from rank 0 to
 * rank 2, 1 from there to rank 1
 */
static void joined(void)
{
	int root, in[3], two[2] = { rank, 7 };
	MPI_Comm part, both;

	MPI_Comm_split(MPI_COMM_WORLD, rank == 2, rank, &part);
	MPI_Intercomm_create(part, 0, MPI_COMM_WORLD, rank == 2 ? 0 : 2, 9,
			     &both);
	MPI_Bcast(two, 2, MPI_INT, rank == 2 ? MPI_ROOT : 0, both);
	CHECK(two[0] == 2);
	root = rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0;
	MPI_Gather(&rank, 1, MPI_INT, in, 1, MPI_INT, root, both);
	CHECK(rank != 0 || in[0] == 2);
	MPI_Allgather(&rank, 1, MPI_INT, in, 1, MPI_INT, both);
	CHECK(in[0] == (rank == 2 ? 0 : 2));
	if (rank != 1)
		MPI_Send(&rank, 1, MPI_INT, rank == 0 ? 0 : 1, 11, both);
	if (rank != 0)
		MPI_Recv(in, 1, MPI_INT, 0, 11, both, MPI_STATUS_IGNORE);
	CHECK(rank == 0 || in[0] == (rank == 2 ? 0 : 2));
	MPI_Comm_free(&both);
	MPI_Comm_free(&part);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size == 3);
	next = (rank + 1) % size;
	before = (rank + size - 1) % size;
	one();
	many();
	others();
	more();
	apart();
	MPI_Barrier(MPI_COMM_WORLD);
	together();
	begun();
	windows();
	files();
	joined();
	MPI_Finalize();
	return 0;
}
