/* Moves through a list by the keys that pagers and editors have. */
#include <curses.h>
#include <stdbool.h>
#include <stdint.h>

#include "screen/list.h"

void list_fit(struct list *list, uint32_t rows)
{
	if (list->chosen >= list->count)
		list->chosen = list->count ? list->count - 1 : 0;
	if (rows == 0)
		rows = 1;
	if (list->first > list->chosen)
		list->first = list->chosen;
	if (list->chosen - list->first >= rows)
		list->first = list->chosen - rows + 1;
	/* No empty rows below the end. */
	if (list->count <= rows)
		list->first = 0;
	else if (list->first > list->count - rows)
		list->first = list->count - rows;
}

static void move_by(struct list *list, int64_t rows)
{
	int64_t to = (int64_t)list->chosen + rows;

	if (to >= (int64_t)list->count)
		to = (int64_t)list->count - 1;
	list->chosen = to > 0 ? (uint32_t)to : 0;
}

bool list_key(struct list *list, int key, uint32_t rows)
{
	switch (key) {
	case KEY_DOWN:
	case 'j': move_by(list, 1); break;
	case KEY_UP:
	case 'k': move_by(list, -1); break;
	case KEY_NPAGE:
	case ' ': move_by(list, rows); break;
	case KEY_PPAGE: move_by(list, -(int64_t)rows); break;
	case KEY_HOME:
	case 'g': list->chosen = 0; break;
	case KEY_END:
	case 'G': move_by(list, list->count); break;
	default: return false;
	}
	list_fit(list, rows);
	return true;
}
