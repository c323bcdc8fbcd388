/* Chooses the contents of a report. */
#ifndef REPORT_MODEL_CHOOSE_H
#define REPORT_MODEL_CHOOSE_H

struct model;
struct options;
struct recording;

/* Reads calls, or samples if there are no calls or the user asked for
 * samples. */
void model_read(struct model *model, struct recording *recording,
		const struct options *options, const char *path);

/* Reads calls, or samples if there are no calls.  If there are both, @samples
 * (if not NULL) gets the samples. */
void choose_build(struct model *model, struct model *samples,
		  struct recording *recording, const struct options *options);

/* The same for the recording at @path, or the newest one. */
void choose_read(struct model *model, struct model *samples,
		 struct recording *recording, const struct options *options,
		 const char *path);

/* Shows memory if the user asked for it, at record time or now. */
void choose_memory(const struct model *model, struct options *options);

/* The same for waits. */
void choose_locks(const struct model *model, struct options *options);

/* The same for exceptions. */
void choose_exceptions(const struct model *model, struct options *options);

/* Dies if --sort needs data that were not recorded. */
void choose_check_sort(const struct model *model,
		       const struct options *options);

/* A text report has room for a table of each. */
void choose_all(const struct model *model, struct options *options);

#endif
