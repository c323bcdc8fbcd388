/* The texts for the reasons why a value is unavailable.  shim and the report share
 * them. */
#include <shim/values.h>
#include <stddef.h>

#include <shim/banned.h>

const char *shim_unavailable_text(int reason)
{
	static const char *const texts[] = {
		[SHIM_AVAILABLE] = "available",
		[SHIM_UNAVAILABLE_NONE] = "none",
		[SHIM_UNAVAILABLE_NO_DEBUG_INFORMATION] =
			"no debug information",
		[SHIM_UNAVAILABLE_NOT_UNDERSTOOD] = "not understood",
		[SHIM_UNAVAILABLE_OPTIMIZED_OUT] = "optimized out",
		[SHIM_UNAVAILABLE_CLOBBERED] = "overwritten",
		[SHIM_UNAVAILABLE_INLINED] = "inlined",
		[SHIM_UNAVAILABLE_NOT_RETURNED] = "does not return here",
		[SHIM_UNAVAILABLE_CODE] = "the code is not understood",
		[SHIM_UNAVAILABLE_NOT_YET] = "not made yet",
	};

	return reason >= 0 && (size_t)reason <
				       sizeof(texts) / sizeof(texts[0]) ?
		       texts[reason] :
		       NULL;
}
