/* Stands in for otf2.c where OTF2's library was missing at build time. */
#include "base/messages.h"
#include "export/format.h"

static void otf2_refuse(const char *path, struct lanes *lanes)
{
	(void)path;
	(void)lanes;
	die("export otf2: shim-report was built without OTF2's library "
	    "(Debian: libopen-trace-format2-dev; build again)");
}

EXPORT_FORMAT(otf2) = {
	.name = "otf2",
	.extension = "",
	.description = "left out: OTF2's library was missing at build time",
	.has_no_threads = true,
	.write_trace = otf2_refuse,
};
