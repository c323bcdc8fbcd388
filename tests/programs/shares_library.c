/* A function in a library, for shares.c. */
#define _GNU_SOURCE
#include "shares.h"

void library(void);

void library(void)
{
	COMPUTE(4);
}
