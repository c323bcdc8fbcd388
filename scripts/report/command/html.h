/* The page of a recording. */
#ifndef REPORT_COMMAND_HTML_H
#define REPORT_COMMAND_HTML_H

struct options;

/* Writes the page of recording @path, or of the newest one if @path is NULL.
 * Returns the exit status. */
int html_page(struct options *options, const char *path);

#endif
