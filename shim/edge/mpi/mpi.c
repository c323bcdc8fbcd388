/*
 * libshim-mpi.so: calls of MPI as functions of the call tree.
 *
 * Each wrapper stands in front of one function and calls its PMPI_ twin.  This file is
 * compiled with -finstrument-functions, so a wrapper is recorded like any other function.
 *
 * OpenMPI and MPICH have different types for communicators, requests and so on: pointers
 * or int.  The wrappers look at no argument.  They pass the registers and the stack slots
 * on as they are, so they need no header of MPI, and serve both.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

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
static OUR void *find(const char *name)
{
	static const char *const libraries[] = { "libmpi.so.40", "libmpi.so.12",
						 "libmpich.so.12" };
	void *found = dlsym(RTLD_NEXT, name), *library;
	size_t i;

	for (i = 0; !found && i < sizeof(libraries) / sizeof(*libraries); i++) {
		library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			found = dlsym(library, name);
	}
	return found;
}

/* Two threads may both find the function: it is the same. */
#define MPI(name, count) \
	EXPORT int MPI_##name(PARAMETERS##count); \
	EXPORT int MPI_##name(PARAMETERS##count) \
	{ \
		static int (*real)(PARAMETERS##count); \
		int (*call)(PARAMETERS##count) = __atomic_load_n( \
			&real, __ATOMIC_RELAXED); \
\
		if (!call) { \
			call = (int (*)(PARAMETERS##count))find( \
				"PMPI_" #name); \
			__atomic_store_n(&real, call, __ATOMIC_RELAXED); \
		} \
		return call ? call(ARGUMENTS##count) : FAILED; \
	}
#include "functions.def"
