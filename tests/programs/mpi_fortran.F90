! Messages of MPI from Fortran, for 2 processes: each rank sends 2 messages, 8 and 4 bytes,
! and takes part in an allreduce of 4 bytes.  -DF08: by the module mpi_f08.
#ifdef F08
#define MODULE_OF_MPI mpi_f08
#define REQUEST type(MPI_Request)
#define STATUS type(MPI_Status) :: status
#define SOURCE status%MPI_SOURCE
#else
#define MODULE_OF_MPI mpi
#define REQUEST integer
#define STATUS integer :: status(MPI_STATUS_SIZE)
#define SOURCE status(MPI_SOURCE)
#endif

subroutine exchange(rank)
    use MODULE_OF_MPI
    implicit none
    integer, intent(in) :: rank
    integer :: other, ierr, sent, got, in(2), out(2)
    REQUEST :: requests(2)
    STATUS

    other = 1 - rank
    out = [rank, 7]
    call MPI_Irecv(in, 2, MPI_INTEGER, other, 5, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Isend(out, 2, MPI_INTEGER, other, 5, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    sent = rank
    call MPI_Sendrecv(sent, 1, MPI_INTEGER, other, 6, got, 1, MPI_INTEGER, MPI_ANY_SOURCE, &
                      6, MPI_COMM_WORLD, status, ierr)
    if (in(1) /= other .or. got /= other .or. SOURCE /= other) &
        call MPI_Abort(MPI_COMM_WORLD, 9, ierr)
    call MPI_Allreduce(MPI_IN_PLACE, sent, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (sent /= 1) call MPI_Abort(MPI_COMM_WORLD, 9, ierr)
end subroutine exchange

program mpi_fortran
    use MODULE_OF_MPI
    implicit none
    integer :: rank, ierr

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call exchange(rank)
    call MPI_Finalize(ierr)
end program mpi_fortran
