/* Describes how the program ended. */
#ifndef REPORT_READ_END_TEXT_H
#define REPORT_READ_END_TEXT_H

struct recording;

const char *end_text(const struct recording *recording);

#endif
