/*
 * Offsets in bytes of the fields of struct thread and struct plan that assembly
 * uses, for all processors; dispatch.c asserts them.
 */
#ifndef SHIM_ASM_OFFSETS_H
#define SHIM_ASM_OFFSETS_H

#define LAYOUT_THREAD_STATE		 12
#define LAYOUT_THREAD_FRAME		 16
#define LAYOUT_THREAD_DISPATCHING	 24
#define LAYOUT_THREAD_DISPATCH_SP	 32
#define LAYOUT_THREAD_ERRNO		 40
#define LAYOUT_THREAD_CALLBACK_ROOM_LOW	 48
#define LAYOUT_THREAD_CALLBACK_ROOM_SIZE 56

#define LAYOUT_PLAN_SINGLE 0
#define LAYOUT_PLAN_ENTRY  24
#define LAYOUT_PLAN_CHAINS 32

/* PLAN_UNWINDING */
#define LAYOUT_UNWINDING 4

/* The hash of an address, its index in code_cache_fronts. */
#define LAYOUT_FRONT_FACTOR 0x9e3779b1
#define LAYOUT_FRONT_SHIFT  20

/* The hash for leaves_front.  The bit means "returns unless a landing pad runs". */
#define LAYOUT_LEAVES_SHIFT 20
#define LAYOUT_LEAVES_BIT   63

/* THREAD_SHARED, a bit of the thread's state. */
#define LAYOUT_THREAD_SHARED 32

#endif
