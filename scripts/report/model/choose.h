/* What of a recording is shown. */
#ifndef REPORT_MODEL_CHOOSE_H
#define REPORT_MODEL_CHOOSE_H

struct model;
struct options;
struct recording;

/* Calls, or samples if there are no calls or they are asked for. */
void model_read(struct model *model, struct recording *recording,
		const struct options *options, const char *path);

/* Calls, or samples if there are no calls.  Both: @samples gets the latter, if it is not
 * NULL. */
void choose_build(struct model *model, struct model *samples,
		  struct recording *recording, const struct options *options);

/* The same of the recording at @path, or of the newest one. */
void choose_read(struct model *model, struct model *samples,
		 struct recording *recording, const struct options *options,
		 const char *path);

/* Memory is shown if it is what was asked for, when the program ran or now. */
void choose_memory(const struct model *model, struct options *options);

/* Waits, in the same way. */
void choose_locks(const struct model *model, struct options *options);

/* And exceptions. */
void choose_exceptions(const struct model *model, struct options *options);

/* Dies if --sort asks for what was not recorded. */
void choose_check_sort(const struct model *model,
		       const struct options *options);

/* Text has room for a table of each. */
void choose_all(const struct model *model, struct options *options);

#endif
