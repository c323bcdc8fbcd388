/*
 * The code of marks.  Depends on the processor: arch/.../marks.c.
 */
#ifndef SHIM_MARK_CODE_H
#define SHIM_MARK_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum mark_state {
	MARK_OFF,
	MARK_ON,
	MARK_OTHER, /* no compiler's code, or changed by another tool */
};

/* The kinds of events whose marks have stubs: those of enum plan_event. */
#define MARK_EVENTS 3

/* --- XRay's sleds --- */

#define MARK_SIZE_MAX  16
#define XRAY_SLED_SIZE 11

/* Whether the processor's sleds are known. */
bool xray_is_known(void);

enum mark_state xray_state(unsigned event, const unsigned char *code);
/* Whether LLVM's runtime, or a tool on it, has switched the sled on. */
bool xray_is_llvms(const unsigned char *code);

/* The distance from the sled at @address to where the call in it returns to. */
uint8_t xray_end(unsigned event, uintptr_t address, uintptr_t function);

/*
 * Makes the sled at @address call the veneer of its event when it is on; it stays off.
 * @code: its bytes, of which only those change that are not executed while it is off.  False
 * if the distances do not fit.
 */
bool xray_prepare(unsigned event, unsigned char *code, uintptr_t address,
		  uintptr_t function, uintptr_t veneers);

/* Changes the one byte of a prepared sled that switches it. */
void xray_switch(unsigned event, unsigned char *code, bool on);

/* --- stubs --- */

/* Code near an image, which begins at a page: veneers that sleds call, which jump to where
 * the words of @slots point.  There is one for each event, and one for sleds at entries of
 * each depth. */
#define VENEERS_SIZE (2u * 4096)
#define SLED_DEPTHS  2 /* at the function's beginning, and behind endbr64 */
#define VENEER_SLOTS (MARK_EVENTS + SLED_DEPTHS)
void veneers_put(unsigned char *code, const void *slots);

/* In this code, *(rsp) is the return address into the sled.  At @offset, the bytes that were
 * pushed since the sled. */
size_t veneers_pushed(size_t offset);

/* The size in bytes of the vector registers that may have arguments. */
uint32_t mark_vector_size(void);

#endif
