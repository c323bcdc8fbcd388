/* Prints a function's instructions with their samples. */
#ifndef REPORT_TEXT_ANNOTATE_CODE_H
#define REPORT_TEXT_ANNOTATE_CODE_H

struct annotated;
struct annotation;
struct layout;

void annotate_code_print(const struct layout *layout,
			 const struct annotation *annotation,
			 const struct annotated *annotated);

#endif
