/*
 * Where the assembly of any processor finds what it needs of struct thread and
 * struct plan, in bytes; dispatch.c asserts it.
 */
#ifndef SHIM_ASM_OFFSETS_H
#define SHIM_ASM_OFFSETS_H

#define LAYOUT_THREAD_STATE	  12
#define LAYOUT_THREAD_FRAME	  16
#define LAYOUT_THREAD_DISPATCHING 24
#define LAYOUT_THREAD_DISPATCH_SP 32
#define LAYOUT_THREAD_ERRNO	  40
#define LAYOUT_THREAD_ROOMY_LOW	  48
#define LAYOUT_THREAD_ROOMY_SIZE  56

#define LAYOUT_PLAN_SINGLE 0
#define LAYOUT_PLAN_ENTRY  24
#define LAYOUT_PLAN_CHAINS 32

/* PLAN_UNWINDING */
#define LAYOUT_UNWINDING 4

/* The place in code_cache_fronts that an address has. */
#define LAYOUT_FRONT_FACTOR 0x9e3779b1
#define LAYOUT_FRONT_SHIFT  20

/* The same for leaves_front, and the bit that says "unless a pad runs". */
#define LAYOUT_LEAVES_SHIFT 20
#define LAYOUT_LEAVES_BIT   63

/* A bit of the state. */
#define LAYOUT_THREAD_SHARED 32

#endif
