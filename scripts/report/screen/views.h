/* The views of profrun tui, for struct tui_views, and what they have in common. */
#ifndef REPORT_SCREEN_VIEWS_H
#define REPORT_SCREEN_VIEWS_H

#include <stdbool.h>
#include <stdint.h>

struct function;
struct model;
struct row;
struct screen;
struct tui;
struct view;

struct view *functions_view(struct tui *tui);
struct view *tree_view(struct tui *tui, struct model *model, uint32_t root,
		       bool callers);
struct view *function_view(struct tui *tui, uint32_t function);
struct view *threads_view(struct tui *tui);
struct view *source_view(struct tui *tui, uint32_t function,
			 struct screen *screen);

/* Keys that lead from every view to the first ones; false: @key is none. */
bool tui_key(struct screen *screen, struct tui *tui, int key);
#define TUI_KEYS "1 functions 2 tree 3 callers 4 threads"
#define TUI_HELP \
	"\n1         all functions\n" \
	"2         the call tree, from the threads' first functions down\n" \
	"3         all functions, with their callers below them\n" \
	"4         threads\n"

/* Draws the name, in short if the row is, and its place if there is room. */
void draw_function(struct row *row, struct function *function,
		   const struct tui *tui);
/* The same, with a note behind the name. */
void draw_noted_function(struct row *row, struct function *function,
			 const struct tui *tui, const char *note);

#endif
