/*
 * The tables.  A run is known by its host, process and start, so that adding it again
 * changes nothing.  Runs of several jobs may be added at the same time: SQLite locks
 * the file for each transaction.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sqlite3.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/messages.h"
#include "base/text.h"
#include "history/store.h"
#include "model/functions.h"
#include "model/model.h"
#include "read/process.h"
#include "read/recording.h"

#define VERSION "1" /* of the tables */
#define WAIT_MS 60000

struct store {
	const char *path;
	sqlite3 *database;
};

static _Noreturn void die_of(const struct store *store)
{
	die("%s: %s", store->path, sqlite3_errmsg(store->database));
}

static void run(const struct store *store, const char *sql)
{
	if (sqlite3_exec(store->database, sql, NULL, NULL, NULL) != SQLITE_OK)
		die_of(store);
}

static sqlite3_stmt *prepare(const struct store *store, const char *sql)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(store->database, sql, -1, &statement, NULL) !=
	    SQLITE_OK)
		die_of(store);
	return statement;
}

/* Whether there is a row. */
static bool step(const struct store *store, sqlite3_stmt *statement)
{
	int result = sqlite3_step(statement);

	if (result != SQLITE_ROW && result != SQLITE_DONE)
		die_of(store);
	return result == SQLITE_ROW;
}

static void bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	sqlite3_bind_text(statement, at, text, -1, SQLITE_TRANSIENT);
}

static const char *column_text(sqlite3_stmt *statement, int at)
{
	const char *text = (const char *)sqlite3_column_text(statement, at);

	return keep_format("%s", text ? text : "");
}

/* The answer to a query of one text; NULL: none. */
static const char *ask(const struct store *store, const char *sql)
{
	sqlite3_stmt *statement = prepare(store, sql);
	const char *text = step(store, statement) ? column_text(statement, 0) :
						    NULL;

	sqlite3_finalize(statement);
	return text;
}

static void make_tables(const struct store *store)
{
	run(store,
	    "begin immediate;"
	    "create table if not exists run (id integer primary key,"
	    " key text unique not null, version text not null,"
	    " recording text not null, program text not null,"
	    " started_ns integer not null, time_ns real not null);"
	    "create table if not exists function (id integer primary key,"
	    " name text not null, mangled text not null, object text not null,"
	    " unique (mangled, object));"
	    "create table if not exists figure (function integer not null,"
	    " run integer not null, calls integer not null,"
	    " self_ns real not null, total_ns real not null,"
	    " primary key (function, run)) without rowid;"
	    "pragma user_version = " VERSION ";"
	    "commit");
}

struct store *store_open(const char *path, bool is_for_adding)
{
	struct store *store = allocate(1, sizeof(*store));
	const char *version;

	store->path = path;
	if (!is_for_adding && access(path, F_OK) != 0 && errno == ENOENT)
		die("%s: no such database: profrun history add makes it (or --db "
		    "FILE)",
		    path);
	if (sqlite3_open_v2(path, &store->database,
			    is_for_adding ?
				    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE :
				    SQLITE_OPEN_READONLY,
			    NULL) != SQLITE_OK)
		die_of(store);
	sqlite3_busy_timeout(store->database, WAIT_MS);
	version = ask(store, "pragma user_version");
	if (is_for_adding && !strcmp(version, "0") &&
	    !ask(store, "select name from sqlite_master"))
		make_tables(store);
	else if (strcmp(version, VERSION))
		die("%s: no database of profrun history, or one of another "
		    "version",
		    path);
	return store;
}

void store_close(struct store *store)
{
	sqlite3_close(store->database);
	free(store);
}

/* --- adding --- */

static const char *program_of(const struct model *model)
{
	const char *program = process_string(&model->recording->processes[0],
					     "program");

	/* Runs of all programs would be added to a history of none. */
	if (!program)
		die("%s: its program is not known, because its meta is damaged",
		    model->recording->path);
	return base_name(program);
}

static void check_program(const struct store *store, const struct model *model)
{
	const char *other = ask(store, "select program from run limit 1");

	if (other && strcmp(other, program_of(model)))
		die("%s: of %s, but %s has runs of %s: use another --db",
		    model->recording->path, program_of(model), store->path,
		    other);
}

/* Returns the number of the run; 0: it is there already. */
static int64_t add_run(const struct store *store, const char *version,
		       const struct model *model)
{
	const struct process *process = &model->recording->processes[0];
	const char *host = process_string(process, "host");
	sqlite3_stmt *statement = prepare(
		store, "insert or ignore into run (key, version, recording,"
		       " program, started_ns, time_ns)"
		       " values (?, ?, ?, ?, ?, ?)");

	bind_text(statement, 1,
		  keep_format("%s/%u/%" PRIu64 "/%" PRIu64, host ? host : "",
			      process->pid, process->meta.start_real_ns,
			      process->meta.first_clock));
	bind_text(statement, 2, version);
	bind_text(statement, 3, model->recording->path);
	bind_text(statement, 4, program_of(model));
	sqlite3_bind_int64(statement, 5, (int64_t)process->meta.start_real_ns);
	sqlite3_bind_double(statement, 6, model->time);
	step(store, statement);
	sqlite3_finalize(statement);
	return sqlite3_changes(store->database) ?
		       sqlite3_last_insert_rowid(store->database) :
		       0;
}

static void add_figure(const struct store *store, sqlite3_stmt *define,
		       sqlite3_stmt *add, int64_t number,
		       const struct function *function)
{
	bind_text(define, 1, function->name);
	bind_text(define, 2, function->mangled);
	bind_text(define, 3, object_name(function));
	step(store, define);
	sqlite3_reset(define);
	bind_text(add, 1, function->mangled);
	bind_text(add, 2, object_name(function));
	sqlite3_bind_int64(add, 3, number);
	sqlite3_bind_int64(add, 4, (int64_t)function->sums.calls);
	sqlite3_bind_double(add, 5, function->sums.self);
	sqlite3_bind_double(add, 6, function->sums.total);
	step(store, add);
	sqlite3_reset(add);
}

/* Functions of one name and object are one: their times are added. */
static void add_figures(const struct store *store, int64_t number,
			const struct model *model)
{
	sqlite3_stmt *define = prepare(
		store, "insert or ignore into function (name, mangled, object)"
		       " values (?, ?, ?)");
	sqlite3_stmt *add = prepare(
		store,
		"insert into figure (function, run, calls, self_ns, total_ns)"
		" values ((select id from function where mangled = ?1"
		" and object = ?2), ?3, ?4, ?5, ?6)"
		" on conflict do update set calls = calls + ?4,"
		" self_ns = self_ns + ?5, total_ns = total_ns + ?6");
	uint32_t i;

	for (i = 0; i < model->function_count; i++)
		if (model->functions[i].sums.calls ||
		    model->functions[i].sums.open)
			add_figure(store, define, add, number,
				   &model->functions[i]);
	sqlite3_finalize(define);
	sqlite3_finalize(add);
}

void store_begin(struct store *store)
{
	run(store, "begin immediate");
}

void store_commit(struct store *store)
{
	run(store, "commit");
}

bool store_add(struct store *store, const char *version,
	       const struct model *model)
{
	int64_t number;

	check_program(store, model);
	number = add_run(store, version, model);
	if (number)
		add_figures(store, number, model);
	return number != 0;
}

/* --- reading --- */

void store_read_runs(struct store *store, struct store_runs *runs)
{
	sqlite3_stmt *statement = prepare(
		store, "select id, version, time_ns, program,"
		       " min(started_ns) over (partition by version) as first"
		       " from run order by first, version, started_ns, id");
	const char *version;

	*runs = (struct store_runs){ .program = "" };
	while (step(store, statement)) {
		struct store_version *last =
			runs->version_count ?
				&runs->versions[runs->version_count - 1] :
				NULL;
		uint32_t room = runs->room;

		version = (const char *)sqlite3_column_text(statement, 1);
		if (!last || !version || strcmp(last->name, version)) {
			GROW(runs->versions, runs->version_count,
			     runs->version_room);
			last = &runs->versions[runs->version_count++];
			*last = (struct store_version){
				column_text(statement, 1), runs->count, 0
			};
			runs->program = column_text(statement, 3);
		}
		GROW(runs->ids, runs->count, runs->room);
		GROW(runs->times, runs->count, room);
		runs->ids[runs->count] = sqlite3_column_int64(statement, 0);
		runs->times[runs->count++] = sqlite3_column_double(statement,
								   2);
		last->count++;
	}
	sqlite3_finalize(statement);
}

void store_free_runs(struct store_runs *runs)
{
	free(runs->ids);
	free(runs->times);
	free(runs->versions);
}

struct store_function *store_functions(struct store *store, const char *name,
				       uint32_t *count)
{
	struct store_function *functions = NULL;
	uint32_t room = 0;
	sqlite3_stmt *statement = prepare(
		store, "select id, name, object,"
		       " sum(self_ns) / (select count(*) from run) as mean"
		       " from function join figure on figure.function = id"
		       " where ?1 is null or name = ?1 or mangled = ?1"
		       " or substr(name, 1, length(?1) + 1) = ?1 || '('"
		       " group by id order by mean desc, id");

	if (name)
		bind_text(statement, 1, name);
	*count = 0;
	while (step(store, statement)) {
		GROW(functions, *count, room);
		functions[(*count)++] = (struct store_function){
			.id = sqlite3_column_int64(statement, 0),
			.name = column_text(statement, 1),
			.object = column_text(statement, 2),
			.mean_ns = sqlite3_column_double(statement, 3),
		};
	}
	sqlite3_finalize(statement);
	return functions;
}

void store_read_times(struct store *store, const struct store_runs *runs,
		      int64_t function, bool is_total, double *times)
{
	sqlite3_stmt *statement = prepare(
		store, is_total ? "select run, total_ns from figure"
				  " where function = ?" :
				  "select run, self_ns from figure"
				  " where function = ?");
	struct map by_id = { 0 };
	uint32_t i;

	for (i = 0; i < runs->count; i++) {
		times[i] = 0;
		map_add(&by_id, (uint64_t)runs->ids[i], i);
	}
	sqlite3_bind_int64(statement, 1, function);
	while (step(store, statement)) {
		i = map_get(&by_id,
			    (uint64_t)sqlite3_column_int64(statement, 0));
		if (i != NONE)
			times[i] = sqlite3_column_double(statement, 1);
	}
	map_free(&by_id);
	sqlite3_finalize(statement);
}
