/*
 * For tests that include a source: functions that this source names, and the tested ones do not
 * call.
 */
#ifndef NOT_CALLED_H
#define NOT_CALLED_H

/* A call ends the test. */
#define NOT_CALLED(name) \
	__asm__(".text\n.globl " #name "\n" #name ": .byte 0x0f, 0x0b")

#endif
