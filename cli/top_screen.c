/* SPDX-License-Identifier: MIT */
/* Owns the terminal: ncurses, keys, and a line of questions at the bottom. While no daemon answers, the screen says so,
 * and top asks again. */
#include <curses.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "cli/attr.h"
#include "cli/clean.h"
#include "cli/control.h"
#include "cli/top_screen.h"
#include "lib/clock.h"
#include "lib/plain.h"
#include "view/format.h"

#define SCREEN_ESCAPE   27
#define SCREEN_NO_KEY   0
#define SCREEN_REDRAW   12 /* Ctrl-L */
#define SCREEN_STEP     10 /* of a priority, by F7 and F8 */
#define SCREEN_LINE_MAX 1024u

enum screen_mode { SCREEN_NORMAL, SCREEN_SORT, SCREEN_KILL, SCREEN_HELP };
enum { SCREEN_PAIR_HEAD = 1, SCREEN_PAIR_BAD };

struct screen {
	struct gp_top top;
	struct gp_top_options options;
	enum screen_mode mode;
	uint64_t selected; /* pid; 0: none */
	uint32_t first;    /* line of the table at the top */
	bool has_state, colour;
	char message[512]; /* shown once, at the bottom */
};

static volatile sig_atomic_t screen_is_interrupted;

static void screen_interrupt(int number)
{
	(void)number;
	screen_is_interrupted = 1;
}

/* A line cut to the terminal's width. */
static void screen_line(int y, const char *text, attr_t attributes)
{
	char cut[SCREEN_LINE_MAX * 4 + 4];
	size_t width = COLS > 2 ? (size_t)COLS : 2;

	if (y < 0 || y >= LINES)
		return;
	gp_format_cut(text, width < SCREEN_LINE_MAX ? width : SCREEN_LINE_MAX, cut, sizeof(cut));
	if (gp_plain_is_needed()) {
		struct gp_plain plain = { .count = 0 };

		cut[gp_plain_text(&plain, cut, strlen(cut), cut)] = '\0';
	}
	attrset(attributes);
	move(y, 0);
	clrtoeol();
	addstr(cut);
	attrset(A_NORMAL);
}

static const struct gp_top_row *screen_selected(const struct screen *screen)
{
	for (uint32_t i = 0; i < screen->top.row_count; i++)
		if (screen->top.rows[i].client->pid == screen->selected)
			return &screen->top.rows[i];
	return NULL;
}

static void screen_footer(const struct screen *screen)
{
	const struct gp_top_row *row = screen_selected(screen);
	char text[SCREEN_LINE_MAX];

	if (screen->mode == SCREEN_SORT)
		(void)snprintf(
			text, sizeof(text),
			"sort by: 1 pid  2 priority  3 gpu  4 wait  5 pending  6 preemptions  7 inversions   (Esc: leave it)");
	else if (screen->mode == SCREEN_KILL && row)
		(void)snprintf(text, sizeof(text), "send SIGTERM to %s (pid %" PRIu64 ")?  y / n", row->client->name,
			       row->client->pid);
	else if (screen->message[0])
		(void)snprintf(text, sizeof(text), "%s", screen->message);
	else
		(void)snprintf(
			text, sizeof(text),
			"F6 sort  +/- order  Up/Down select  F7 more urgent  F8 less  F9 kill  Q queues  ? help  F10 quit");
	screen_line(LINES - 1, text, A_REVERSE);
}

static void screen_table(struct screen *screen, int y)
{
	struct gp_columns columns;
	char line[SCREEN_LINE_MAX], wanted[32];
	uint32_t room = LINES - 1 > y + 1 ? (uint32_t)(LINES - 2 - y) : 0;

	gp_top_columns(&screen->top, screen->options.with_queues, &columns);
	screen_line(y++, gp_columns_line(&columns, UINT32_MAX, line, sizeof(line)),
		    screen->colour ? (attr_t)COLOR_PAIR(SCREEN_PAIR_HEAD) | A_BOLD : A_REVERSE);
	if (screen->first + room > columns.row_count)
		screen->first = columns.row_count > room ? columns.row_count - room : 0;
	(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, screen->selected);
	for (uint32_t i = 0; i < room && screen->first + i < columns.row_count; i++) {
		uint32_t row = screen->first + i;
		const char *pid = columns.cells[(size_t)row * columns.column_count];

		screen_line(y++, gp_columns_line(&columns, row, line, sizeof(line)),
			    screen->selected && !strcmp(pid, wanted) ? A_STANDOUT : A_NORMAL);
	}
	gp_columns_fini(&columns);
}

static void screen_help(void)
{
	static const char *const lines[] = {
		"gpreempt top: keys",
		"",
		"  Up, Down   select a program",
		"  F7, F8     make it more, less urgent by 10, up to your ceiling (99: most urgent)",
		"  F9         send it SIGTERM; asks first",
		"  F6, + -    sort by another column; smallest or largest first",
		"  Q          show a line for each queue, or not",
		"  Ctrl-L     draw everything again",
		"  q, Esc     quit",
		"",
		"GPU%   share of time: a compute queue of the program had work and an open gate",
		"WAIT%  share of time: the program had work and all its gates were closed",
		"A dash means: unknown.",
		"",
		"Any key goes back to the programs.",
	};

	for (int i = 0; i < (int)(sizeof(lines) / sizeof(lines[0])); i++)
		screen_line(i, lines[i], i ? A_NORMAL : A_BOLD);
}

static void screen_draw(struct screen *screen)
{
	char line[SCREEN_LINE_MAX];
	int y = 0;

	erase();
	if (screen->mode == SCREEN_HELP) {
		screen_help();
	} else if (!screen->has_state) {
		screen_line(0, "gpreempt top: waiting for the daemon", A_BOLD);
	} else {
		screen_line(y++, gp_top_head_line(&screen->top, line, sizeof(line)), A_BOLD);
		for (uint32_t i = 0; i < screen->top.now.device_count && y < LINES - 4; i++) {
			const struct gp_state_device *device = screen->top.devices[i].device;
			bool bad = device->stopped == 1 || device->oversubscribed == 1;

			screen_line(y++, gp_top_device_line(&screen->top.devices[i], line, sizeof(line)),
				    bad ? screen->colour ? (attr_t)COLOR_PAIR(SCREEN_PAIR_BAD) | A_BOLD : A_BOLD :
					  A_NORMAL);
		}
		screen_table(screen, y + 1);
	}
	screen_footer(screen);
	refresh();
}

static void screen_look(struct screen *screen)
{
	struct gp_error error;
	struct gp_state state;
	bool is_refused;

	screen->message[0] = '\0';
	if (gp_state_ask(&state, NULL, NULL, &is_refused, &error)) {
		(void)snprintf(screen->message, sizeof(screen->message), "%s", error.text);
		return;
	}
	screen->has_state = !gp_top_take(&screen->top, &state);
}

/* One line up or down in the table. */
static void screen_select(struct screen *screen, int step)
{
	uint32_t count = screen->top.row_count, at = UINT32_MAX;

	for (uint32_t i = 0; i < count; i++)
		if (screen->top.rows[i].client->pid == screen->selected)
			at = i;
	if (!count)
		return;
	if (at == UINT32_MAX)
		at = 0;
	else if (step > 0 ? at + 1 < count : at > 0)
		at = step > 0 ? at + 1 : at - 1;
	screen->selected = screen->top.rows[at].client->pid;
	screen->first = step > 0 && at > screen->first ? screen->first + 1 : at < screen->first ? at : screen->first;
}

static void screen_urgency(struct screen *screen, int step)
{
	const struct gp_top_row *row = screen_selected(screen);
	struct gp_control_request request = { .verb = GP_CONTROL_SET, .queue_id = GP_CONTROL_ALL_QUEUES };
	struct gp_error error;
	bool is_refused;
	char *text = NULL;
	size_t size = 0;
	int priority;

	if (!row || !row->client->managed || row->client->priority > GP_ATTR_PRIORITY_MAX) {
		(void)snprintf(screen->message, sizeof(screen->message),
			       "select a program with an agent first (Up, Down)");
		return;
	}
	priority = (int)row->client->priority + step;
	priority = priority < 0 ? 0 : priority > GP_ATTR_PRIORITY_MAX ? GP_ATTR_PRIORITY_MAX : priority;
	request.pid = (int32_t)row->client->pid;
	request.attr.valid = GP_ATTR_PRIORITY;
	request.attr.priority = priority;
	if (gp_control_once(&request, &text, &size, &is_refused, &error))
		(void)snprintf(screen->message, sizeof(screen->message), "%s", error.text);
	else
		screen_look(screen);
	free(text);
}

static void screen_kill(struct screen *screen, int key)
{
	const struct gp_top_row *row = screen_selected(screen);

	screen->mode = SCREEN_NORMAL;
	if ((key != 'y' && key != 'Y') || !row || row->client->pid == GP_STATE_UNKNOWN ||
	    row->client->pid > INT32_MAX || row->client->pid < 2)
		return;
	if (kill((pid_t)row->client->pid, SIGTERM))
		(void)snprintf(screen->message, sizeof(screen->message), "pid %" PRIu64 ": %s", row->client->pid,
			       strerror(errno));
}

static void screen_order(struct screen *screen, bool ascending)
{
	screen->top.ascending = ascending;
	gp_top_sort(&screen->top);
}

/* false: the user leaves. */
static bool screen_key(struct screen *screen, int key)
{
	if (screen->mode == SCREEN_KILL) {
		screen_kill(screen, key);
		return true;
	}
	if (screen->mode == SCREEN_SORT) {
		screen->mode = SCREEN_NORMAL;
		if (key >= '1' && key < '1' + GP_TOP_SORT_COUNT) {
			screen->top.sort = (enum gp_top_sort)(key - '1');
			gp_top_sort(&screen->top);
		}
		return true;
	}
	if (screen->mode == SCREEN_HELP) {
		/* KEY_RESIZE is no key of the user, and neither is the silence between two looks. */
		if (key != KEY_RESIZE && key != ERR)
			screen->mode = SCREEN_NORMAL;
		return true;
	}
	switch (key) {
	case '?':
	case 'h': screen->mode = SCREEN_HELP; break;
	case 'q':
	case SCREEN_ESCAPE:
	case KEY_F(10): return false;
	case KEY_F(6): screen->mode = SCREEN_SORT; break;
	case KEY_F(7): screen_urgency(screen, SCREEN_STEP); break;
	case KEY_F(8): screen_urgency(screen, -SCREEN_STEP); break;
	case KEY_F(9): screen->mode = screen_selected(screen) ? SCREEN_KILL : SCREEN_NORMAL; break;
	case '+': screen_order(screen, true); break;
	case '-': screen_order(screen, false); break;
	case 'Q': screen->options.with_queues = !screen->options.with_queues; break;
	case SCREEN_REDRAW: clearok(curscr, TRUE); break;
	case KEY_UP: screen_select(screen, -1); break;
	case KEY_DOWN: screen_select(screen, 1); break;
	default: break; /* KEY_RESIZE too: what follows is a new drawing */
	}
	return true;
}

static bool screen_begin(struct screen *screen)
{
	const struct sigaction interrupt = { .sa_handler = screen_interrupt };

	setlocale(LC_ALL, "");
	/* The name of a locale that is not installed here still says UTF-8. */
	if (!gp_plain_is_needed() && MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	/* Ctrl-C leaves as q does. ncurses keeps a handler that it finds; its own would exit with status 1. */
	sigaction(SIGINT, &interrupt, NULL);
	if (!newterm(NULL, stdout, stdin))
		return false;
	/* Without the means to move the cursor the screen would be a heap of lines. */
	if (!tigetstr("cup")) {
		endwin();
		return false;
	}
	set_escdelay(25);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	screen->colour = screen->options.colour && has_colors();
	if (screen->colour) {
		start_color();
		use_default_colors();
		init_pair(SCREEN_PAIR_HEAD, COLOR_BLACK, COLOR_GREEN);
		init_pair(SCREEN_PAIR_BAD, COLOR_RED, -1);
	}
	return true;
}

/* Keys that the terminal's description lacks, and Alt, begin with Esc too. They do not end the screen, and what follows
 * their Esc is no key: it may be a q, or go to the shell. */
static int screen_get_key(int wait_ms)
{
	int key;

	timeout(wait_ms);
	key = getch();
	if (key != SCREEN_ESCAPE)
		return key;
	timeout(0);
	if (getch() == ERR)
		return key;
	while (getch() != ERR)
		;
	return SCREEN_NO_KEY;
}

int gp_top_screen(const struct gp_top_options *options)
{
	static struct screen screen;
	bool goes_on = true;

	screen.options = *options;
	if (!screen_begin(&screen)) {
		const char *term = getenv("TERM");

		fprintf(stderr, "gpreempt top: this terminal (TERM=%s) cannot show a screen; -b prints plain text\n",
			term ? term : "");
		return GP_CLI_FAILED;
	}
	gp_top_init(&screen.top);
	screen.top.sort = options->sort;
	screen.top.ascending = options->ascending;
	for (uint64_t i = 0; goes_on && (!options->iterations || i < options->iterations); i++) {
		uint64_t next_ms = gp_clock_ms() + options->interval_ms, now_ms;

		screen_look(&screen);
		while (goes_on && (now_ms = gp_clock_ms()) < next_ms) {
			int key;

			screen_draw(&screen);
			key = screen_get_key((int)(next_ms - now_ms));
			/* ERR: time is up, or a signal; without a terminal it comes at once and for ever. */
			if (key != ERR)
				goes_on = screen_key(&screen, key);
			else if (screen_is_interrupted || (gp_clock_ms() < next_ms && feof(stdin)))
				goes_on = false;
		}
	}
	endwin();
	gp_top_fini(&screen.top);
	return GP_CLI_OK;
}
