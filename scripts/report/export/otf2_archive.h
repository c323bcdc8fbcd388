/* An OTF2 archive that is being written, by the format's own library. */
#ifndef REPORT_EXPORT_OTF2_ARCHIVE_H
#define REPORT_EXPORT_OTF2_ARCHIVE_H

#include <stdint.h>
#include <otf2/otf2.h>

#include "base/names.h"

#define RECENT_TEXTS 16384

/* A text of which many may differ, and its number. */
struct recent_text {
	char *text;
	size_t room;
	OTF2_StringRef number;
};

struct otf2_archive {
	const char *path;
	OTF2_Archive *archive;
	OTF2_GlobalDefWriter *definitions;
	OTF2_MarkerWriter *markers;
	struct names texts;
	uint32_t *numbers; /* by number in @texts */
	uint32_t number_room;
	OTF2_StringRef text_count;
	struct recent_text *recent; /* by hash; bounds the memory */
};

/* Begins an archive below the directory @path, which exists. */
void otf2_archive_begin(struct otf2_archive *archive, const char *path);
/* Writes the event and definition files; all writers of events are closed. */
void otf2_archive_end(struct otf2_archive *archive, uint64_t locations);
/* Gives up, removes the unfinished directory and dies if @code is an error. */
void otf2_check(const struct otf2_archive *archive, OTF2_ErrorCode code);
/* Gives up because of errno. */
_Noreturn void otf2_give_up(const struct otf2_archive *archive);

/* The number of @text, which is defined when it is new.  The second function
 * serves texts like arguments: it may give equal texts different numbers, and
 * keeps few of them. */
OTF2_StringRef otf2_text(struct otf2_archive *archive, const char *text);
OTF2_StringRef otf2_passing_text(struct otf2_archive *archive,
				 const char *text);

#endif
