/*
 * The terminal as a screen: rows of cells that are drawn from left to right, and keys.
 * Text of strangers is escaped as in every other output for people.
 */
#ifndef REPORT_SCREEN_TERMINAL_H
#define REPORT_SCREEN_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* What a row, or a cell, looks like.  Each look differs by more than its colour. */
enum look {
	LOOK_PLAIN,
	LOOK_NAME,    /* of the recording, on top */
	LOOK_HEADING, /* titles of columns */
	LOOK_CHOSEN,  /* the row with the cursor */
	LOOK_STRONG,
	LOOK_FAINT,
	LOOK_STATUS, /* the line of keys and questions */
};

/* A row that is being drawn. */
struct row {
	int y, x;
	enum look look;
	bool is_full; /* no more numbers */
};

/* Dies with @message if standard input or output is no terminal. */
void terminal_need(const char *message);

/*
 * terminal_begin - take the terminal
 *
 * @wants_color: whether colours may be used; NO_COLOR and a terminal without colours are
 * respected.  Messages wait until terminal_end(); die() restores the terminal.
 */
void terminal_begin(const char *verb, bool wants_color);
void terminal_end(void);

int terminal_rows(void);
int terminal_columns(void);

struct row row_begin(int y, enum look look);
/* A cell of @width columns and a blank; aligned left with @width < 0. */
void row_cell(struct row *row, const char *text, int width);
/* The same of a number in front of a name.  On a narrow terminal the last numbers of a row, which
 * matter least, are left out, so that there is room for the name. */
void row_number(struct row *row, const char *text, int width);
/* The same, aligned left; of a longer text both ends are drawn. */
void row_ends(struct row *row, const char *text, int width);
/* Draws text to the end of the row, which is cut by an ellipsis. */
void row_text(struct row *row, const char *text);
void row_text_as(struct row *row, const char *text, enum look look);
void row_skip(struct row *row, int columns);
/* The columns that are left. */
int row_left(const struct row *row);
/* The rest of the row becomes blank. */
void row_end(struct row *row);

/* Shows what was drawn. */
void terminal_show(void);

/* The next key, as ncurses numbers it; ERR after @wait milliseconds (-1: no limit), or
 * when @fd (-1: none) has data. */
int terminal_key(int wait, int fd);

/*
 * terminal_ask - let the user edit a line at the bottom
 *
 * @text has @size bytes and may begin with a text.  False: the user left with Escape.
 */
bool terminal_ask(const char *question, char *text, size_t size);

#endif
