/* A list that is longer than the screen: the chosen row, and the rows that are shown. */
#ifndef REPORT_SCREEN_LIST_H
#define REPORT_SCREEN_LIST_H

#include <stdbool.h>
#include <stdint.h>

struct list {
	uint32_t count;
	uint32_t chosen; /* below @count, or 0 */
	uint32_t first;	 /* the row on top */
};

/* Keeps the chosen row in sight in @rows rows, after anything changed. */
void list_fit(struct list *list, uint32_t rows);
/* Moves the cursor; false: @key is none that does. */
bool list_key(struct list *list, int key, uint32_t rows);

#endif
