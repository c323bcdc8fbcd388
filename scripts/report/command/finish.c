/* Ends a verb that has shown a recording: completes its output and finds its
 * exit status. */
#include "base/messages.h"
#include "base/output.h"
#include "command/finish.h"
#include "model/coverage.h"
#include "model/model.h"
#include "read/files.h"
#include "read/recording.h"

int finish(const struct model *model)
{
	bool is_empty = !model->calls && !model->open && !model->has_times &&
			!model->has_memory && !model->locks &&
			!model->exceptions &&
			!coverage_is_there(model->recording);
	int status = is_empty && warning_count() ? 1 : 0;

	output_close();
	if (is_empty && open_failure())
		warn("%s: no %s was read: %s", model->recording->path,
		     model->is_sampled ? "sample" : "call", open_failure());
	else if (is_empty)
		warn("%s: no %s was recorded", model->recording->path,
		     model->is_sampled ? "sample" : "call");
	return status;
}
