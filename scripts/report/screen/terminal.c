/*
 * ncurses draws what changed.  This file alone knows it: the views draw rows of text.
 * Standard error is kept aside while the screen is there, because a message would be
 * written across it.
 */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* (It has macros for all capabilities of terminals.) */
#include <term.h>
#undef columns

#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "screen/terminal.h"

#define ESCAPE 27

/* Names shorter than this seldom tell functions apart. */
#define NAME_LEAST 12

enum { PAIR_NAME = 1, PAIR_HEADING, PAIR_STRONG };

static volatile sig_atomic_t is_on;
static bool has_utf8;
static pid_t owner;
static int kept_error = -1; /* standard error, until the end */

/* Messages wait in a file without a name, and are printed by terminal_end(). */
static void keep_messages(void)
{
	FILE *file = tmpfile();

	fflush(stderr);
	if (!file)
		return;
	kept_error = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	if (kept_error >= 0)
		dup2(fileno(file), STDERR_FILENO);
	fclose(file);
}

static void print_messages(void)
{
	char text[4096];
	ssize_t size;
	int messages;

	if (kept_error < 0)
		return;
	fflush(stderr);
	messages = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
	dup2(kept_error, STDERR_FILENO);
	close(kept_error);
	kept_error = -1;
	if (messages < 0)
		return;
	lseek(messages, 0, SEEK_SET);
	while ((size = read(messages, text, sizeof(text))) > 0)
		if (write(STDERR_FILENO, text, (size_t)size) != size)
			break;
	close(messages);
}

void terminal_end(void)
{
	if (!is_on)
		return;
	is_on = false;
	endwin();
	print_messages();
}

/* (Processes that this one starts have the handler, too, but no terminal.) */
static void leave_by_signal(int number)
{
	if (is_on && getpid() == owner)
		endwin();
	/* This time it ends the process. */
	raise(number);
}

/* ncurses itself serves SIGINT and SIGTERM only.  Signals that are ignored stay so: under
 * --live the keys that send them are the program's. */
static void leave_by_signals(void)
{
	static const int numbers[] = { SIGHUP,	SIGINT,	 SIGQUIT, SIGILL,
				       SIGBUS,	SIGFPE,	 SIGABRT, SIGSEGV,
				       SIGSYS,	SIGALRM, SIGTERM, SIGUSR1,
				       SIGUSR2, SIGXCPU };
	struct sigaction action = { .sa_handler = leave_by_signal,
				    .sa_flags = SA_RESETHAND },
			 before;
	size_t i;

	owner = getpid();
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (sigaction(numbers[i], NULL, &before) == 0 &&
		    before.sa_handler == SIG_DFL)
			sigaction(numbers[i], &action, NULL);
}

static void begin_colors(bool wants_color)
{
	const char *none = getenv("NO_COLOR");

	if (!wants_color || (none && *none) || !has_colors() ||
	    start_color() == ERR || use_default_colors() == ERR)
		return;
	init_pair(PAIR_NAME, COLOR_BLUE, -1);
	init_pair(PAIR_HEADING, COLOR_CYAN, -1);
	init_pair(PAIR_STRONG, COLOR_YELLOW, -1);
}

void terminal_need(const char *message)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		die("%s", message);
}

void terminal_begin(const char *verb, bool wants_color)
{
	const char *kind = getenv("TERM");

	setlocale(LC_CTYPE, "");
	has_utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	/* Escape is a key of its own: wait only as long as a slow line needs. */
	if (!getenv("ESCDELAY"))
		set_escdelay(50);
	leave_by_signals();
	if (!newterm(NULL, stdout, stdin))
		die("%s: the terminal '%s' (TERM) is not known", verb,
		    kind ? kind : "");
	is_on = true;
	die_after(terminal_end);
	atexit(terminal_end);
	keep_messages();
	if (!cursor_address)
		die("%s: the cursor of the terminal '%s' (TERM) cannot be moved",
		    verb, kind ? kind : "");
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	curs_set(0);
	begin_colors(wants_color);
}

int terminal_rows(void)
{
	return LINES;
}

int terminal_columns(void)
{
	return COLS;
}

static chtype attributes_of(enum look look)
{
	switch (look) {
	case LOOK_NAME: return A_BOLD | (chtype)COLOR_PAIR(PAIR_NAME);
	case LOOK_HEADING:
		return A_UNDERLINE | (chtype)COLOR_PAIR(PAIR_HEADING);
	case LOOK_CHOSEN: return A_REVERSE;
	case LOOK_STRONG: return A_BOLD | (chtype)COLOR_PAIR(PAIR_STRONG);
	case LOOK_FAINT: return A_DIM;
	case LOOK_STATUS: return A_REVERSE | A_DIM;
	default: return A_NORMAL;
	}
}

struct row row_begin(int y, enum look look)
{
	return (struct row){ .y = y, .look = look };
}

int row_left(const struct row *row)
{
	return row->x < COLS ? COLS - row->x : 0;
}

/* A terminal of another character set gets a ? for each character that it may lack. */
static void make_ascii(char *text)
{
	char *to = text;

	for (; *text; text++)
		if ((*text & 0xc0) != 0x80)
			*to++ = (*text & 0x80) ? '?' : *text;
	*to = '\0';
}

typedef void put_function(FILE *, const char *, size_t);

/* The text as it can be drawn in @columns; the caller frees it. */
static char *drawn(const char *text, int columns, put_function *put)
{
	char *made = NULL;
	size_t size;
	FILE *out = open_memstream(&made, &size);

	if (!out)
		die("no memory");
	if (columns > 0)
		put(out, text, (size_t)columns);
	fclose(out);
	if (!has_utf8)
		make_ascii(made);
	return made;
}

static void draw_by(put_function *put, struct row *row, const char *text,
		    int columns, enum look look)
{
	char *made;

	if (columns > row_left(row))
		columns = row_left(row);
	if (columns <= 0 || row->y >= LINES)
		return;
	made = drawn(text, columns, put);
	attrset((int)attributes_of(row->look == LOOK_CHOSEN ? row->look :
							      look));
	mvaddstr(row->y, row->x, made);
	row->x += (int)(has_utf8 ? text_columns(made) : strlen(made));
	free(made);
}

static void draw(struct row *row, const char *text, int columns, enum look look)
{
	draw_by(put_text_cut, row, text, columns, look);
}

void row_skip(struct row *row, int columns)
{
	if (columns > row_left(row))
		columns = row_left(row);
	if (columns <= 0 || row->y >= LINES)
		return;
	attrset((int)attributes_of(row->look));
	mvhline(row->y, row->x, ' ', columns);
	row->x += columns;
}

void row_cell(struct row *row, const char *text, int width)
{
	int used = (int)text_columns(text), most = width < 0 ? -width : width;

	if (width > 0)
		row_skip(row, most - used);
	draw(row, text, most, row->look);
	if (width < 0)
		row_skip(row, most - used);
	row_skip(row, 1);
}

void row_number(struct row *row, const char *text, int width)
{
	row->is_full |= row_left(row) - width - 1 < NAME_LEAST;
	if (!row->is_full)
		row_cell(row, text, width);
}

void row_ends(struct row *row, const char *text, int width)
{
	draw_by(put_text_ends, row, text, width, row->look);
	row_skip(row, width - (int)text_columns(text));
	row_skip(row, 1);
}

void row_text(struct row *row, const char *text)
{
	draw(row, text, row_left(row), row->look);
}

void row_text_as(struct row *row, const char *text, enum look look)
{
	draw(row, text, row_left(row), look);
}

void row_end(struct row *row)
{
	row_skip(row, row_left(row));
}

void terminal_show(void)
{
	refresh();
}

int terminal_key(int wait, int fd)
{
	struct pollfd sources[] = { { STDIN_FILENO, POLLIN, 0 },
				    { fd, POLLIN, 0 } };
	int key, found;

	/* (A key may wait in ncurses' own buffer.) */
	timeout(0);
	key = getch();
	if (key != ERR)
		return key;
	found = poll(sources, 2, wait);
	if (found < 0 && errno != EINTR)
		die("the terminal: %s", strerror(errno));
	key = getch();
	/* The terminal is gone. */
	if (key == ERR && found > 0 &&
	    (sources[0].revents & (POLLHUP | POLLERR | POLLNVAL)))
		die("the terminal was closed");
	return key;
}

bool terminal_ask(const char *question, char *text, size_t size)
{
	size_t length = strlen(text);
	struct row row;
	int key;

	for (;;) {
		row = row_begin(LINES - 1, LOOK_STATUS);
		row_text(&row, question);
		row_text(&row, text);
		row_text(&row, "_");
		row_end(&row);
		refresh();
		key = terminal_key(-1, -1);
		if (key == ESCAPE)
			return false;
		if (key == '\r' || key == '\n' || key == KEY_ENTER)
			return true;
		if ((key == KEY_BACKSPACE || key == 127 || key == '\b') &&
		    length > 0) {
			while (length > 0 && (text[--length] & 0xc0) == 0x80)
				continue;
			text[length] = '\0';
		} else if (key == 'U' - 64) { /* Control-U */
			text[length = 0] = '\0';
		} else if (key >= ' ' && key < 256 && key != 127 &&
			   length + 1 < size) {
			text[length++] = (char)key;
			text[length] = '\0';
		}
	}
}
