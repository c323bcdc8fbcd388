/* The log cuts long lines: there are as many lines as it takes. */
#include "sources/left_out.h"

#include "image/image.h"
#include "os/text.h"
#include "runtime/log.h"

#include <stdbool.h>

#include <shim/banned.h>

/* A line goes on up to here; its last reason fits behind it. */
#define LINE_GOES_ON 180
#define NAME_SHOWN   80

void left_out_say(const char *option, const char *path,
		  const char *const *reasons, const uint32_t *counts,
		  unsigned count)
{
	const char *name = text_base(path);
	size_t shown = text_length(name);
	char line[256];
	struct text text = { .length = 0 };

	for (unsigned i = 0; i < count; i++) {
		if (counts[i] == 0 || !reasons[i])
			continue;
		if (text.length > LINE_GOES_ON) {
			log_line("%s", line);
			text.length = 0;
		}
		if (text.length == 0) {
			text_init(&text, line, sizeof(line));
			text_add(&text, option);
			text_add(&text, ": left in ");
			text_add_part(&text, name,
				      shown < NAME_SHOWN ? shown : NAME_SHOWN);
			text_add(&text, ": ");
		} else {
			text_add(&text, ", ");
		}
		text_add_number(&text, counts[i]);
		text_add(&text, " ");
		text_add(&text, reasons[i]);
	}
	if (text.length > 0)
		log_line("%s", line);
}

void left_out_say_marks(uintptr_t start, uint32_t count, const char *why)
{
	struct image_entry *entry;
	char number[24];
	struct text text;

	if (count == 0)
		return;
	image_pin();
	entry = image_find(start);
	text_init(&text, number, sizeof(number));
	text_add_number(&text, count);
	log_line("%s: %s %s", entry ? entry->path : "an object", number, why);
	image_unpin();
}
