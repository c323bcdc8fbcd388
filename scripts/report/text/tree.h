/* Prints report --tree. */
#ifndef REPORT_TEXT_TREE_H
#define REPORT_TEXT_TREE_H

struct layout;

void tree_print(const struct layout *layout);

#endif
