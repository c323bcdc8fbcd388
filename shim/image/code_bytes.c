/* The program's code without the traps of shim: see code_bytes.h. */
#include "image/code_bytes.h"

#include "os/sys.h"

#include <shim/banned.h>

void code_bytes_restore(uintptr_t address, unsigned char *copy, size_t size)
{
	NOTIFY(code_copied, address, copy, size);
}

int code_bytes_read(uintptr_t address, void *to, size_t size)
{
	int r = sys_peek((const void *)address, to, size);

	if (r == 0)
		code_bytes_restore(address, to, size);
	return r;
}
