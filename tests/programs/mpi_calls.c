/* MPI without an instrumented function: its calls are known from the arguments. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int i, rank, size, value = 1, sum,
			   times = argc > 1 ? atoi(argv[1]) : 10;
	MPI_Request request[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (i = 0; i < times; i++) {
		int from = -1;

		MPI_Irecv(&from, 1, MPI_INT, (rank + size - 1) % size, 7,
			  MPI_COMM_WORLD, &request[0]);
		MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, 7,
			  MPI_COMM_WORLD, &request[1]);
		MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
		if (from != (rank + size - 1) % size)
			return 1;
		MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 8, &from, 1,
			     MPI_INT, (rank + size - 1) % size, 8,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (from != (rank + size - 1) % size)
			return 2;
	}
	MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	printf("sum %d\n", sum);
	return sum == size ? 0 : 3;
}
