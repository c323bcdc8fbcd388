/*
 * The code of marks.  Depends on the processor: arch/.../marks.c.
 */
#ifndef SHIM_MARK_CODE_H
#define SHIM_MARK_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mark_state {
	MARK_OFF,   /* the compiler's placeholder */
	MARK_IDLE,  /* off, and cheaper than that */
	MARK_READY, /* off, prepared, and cheaper than that */
	MARK_ON,
	MARK_OTHER, /* no compiler's code, or changed by another tool */
};

/* The kinds of events whose marks have stubs: those of enum plan_event. */
#define MARK_EVENTS 3

/* --- XRay's sleds --- */

#define MARK_SIZE_MAX  16
#define XRAY_SLED_SIZE 11
#define XRAY_BEHIND    2 /* bytes behind a sled that xray_condition() reads */

struct xray_sled {
	unsigned event;
	uint8_t jump;	   /* xray_condition() */
	uintptr_t counter; /* what it calls instead of a veneer, or 0 */
	uintptr_t address, function;
};

/* Whether the processor's sleds are known. */
bool xray_is_known(void);

/* Not 0: the jump behind the sled of a tail call depends on the flags, and this is its
 * condition. */
uint8_t xray_condition(const unsigned char *behind);

enum mark_state xray_state(const struct xray_sled *sled,
			   const unsigned char *code);
/* Whether LLVM's runtime, or a tool on it, has switched the sled on. */
bool xray_is_llvms(const unsigned char *code);

/* The distance from the sled to where the call in it returns to. */
uint8_t xray_end(const struct xray_sled *sled);

/*
 * Makes the sled call the veneer of its event when it is on; it stays off.
 * @code: its bytes, of which only those change that are not executed while it is off.  False
 * if the distances do not fit.
 */
bool xray_prepare(const struct xray_sled *sled, unsigned char *code,
		  uintptr_t veneers);

/* Whether the sled can have a counter, while it is MARK_READY or on. */
bool xray_counts(const struct xray_sled *sled);
/* Which of the veneers for SLED_DEPTHS a sled at an entry calls. */
unsigned xray_depth(const struct xray_sled *sled);

/* Changes the one byte of a prepared sled that switches it. */
void xray_switch(const struct xray_sled *sled, unsigned char *code, bool on);

/* Changes the first one or two bytes to the compiler's: the others may then be written. */
void xray_release(const struct xray_sled *sled, unsigned char *code);

/* Whether a sled that is not prepared can be MARK_IDLE, where code can be changed two bytes at
 * a time. */
bool xray_idles(const struct xray_sled *sled);
/* Changes its first two bytes between MARK_OFF and MARK_IDLE.  False if the other bytes are not
 * the compiler's. */
bool xray_idle(unsigned char *code, bool idle);

/* --- stubs --- */

/* Code near an image, which begins at a page: veneers that sleds call, which jump to where
 * the words of @slots point.  Sleds that push the distance to their function call the one of
 * their event; sleds at entries of each depth, at tail calls, and before conditional jumps
 * have their own. */
#define VENEERS_SIZE	 (2u * 4096)
#define SLED_DEPTHS	 2 /* at the function's beginning, and behind endbr64 */
#define VENEER_ENTRY	 MARK_EVENTS
#define VENEER_TAILCALL	 (VENEER_ENTRY + SLED_DEPTHS)
#define VENEER_CONDITION (VENEER_TAILCALL + 1)
#define VENEER_SLOTS	 (VENEER_CONDITION + 1)
void veneers_put(unsigned char *code, const void *slots);

/* In this code, *(rsp) is the return address into the sled.  At @offset, the bytes that were
 * pushed since the sled. */
size_t veneers_pushed(size_t offset);
#define MARK_CALL_SIZE 5
/* What the copy of the code at @address calls; 0: it is no call. */
uintptr_t mark_calls(const unsigned char *code, uintptr_t address);

/* The size in bytes of the vector registers that may have arguments. */
uint32_t mark_vector_size(void);

#endif
