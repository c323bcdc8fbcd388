/* profrun tui: reads the recording as the report does, and shows it on the screen. */
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "base/messages.h"
#include "command/screen.h"
#include "model/choose.h"
#include "model/hits.h"
#include "model/model.h"
#include "model/options.h"
#include "read/recording.h"
#include "screen/tui.h"

int tui(const struct options *options, const char *path)
{
	struct recording recording;
	struct model model, samples = { .recording = NULL };
	struct tui tui = { .model = &model, .options = options };

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		die("tui needs a terminal; profrun report prints tables");
	recording_open(&recording, path ? path : recording_find(),
		       options->pid);
	tui.has_hits = hits_are_there(&recording);
	recording.is_read_again = true;
	choose_build(&model, &samples, &recording, options);
	if (samples.recording)
		tui.samples = &samples;
	if (!model.calls && !model.open && !model.has_memory)
		die("%s: nothing was recorded that could be shown; profrun "
		    "report says why",
		    recording.path);
	progress_end();
	tui_run(&tui);
	return 0;
}
