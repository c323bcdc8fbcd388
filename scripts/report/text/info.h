/* profrun info. */
#ifndef REPORT_TEXT_INFO_H
#define REPORT_TEXT_INFO_H

#include <stdio.h>

struct model;

void info_print(FILE *out, struct model *model);

#endif
