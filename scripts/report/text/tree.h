/* report --tree. */
#ifndef REPORT_TEXT_TREE_H
#define REPORT_TEXT_TREE_H

struct page;

void tree_print(const struct page *page);

#endif
