/*
 * Exceptions: by type, where they are thrown, and where those are caught.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

/* A node, while it is placed; then all of one type, path and catcher. */
struct part {
	uint32_t process, file;
	uint64_t node, catcher_node;	/* the program's addresses */
	uint32_t type;			/* number of its name */
	uint32_t path, catcher;		/* NONE: unknown */
	bool is_throw;			/* else these were caught */
	uint64_t count;
};

/* Of one type, or thrown in one path: parts[first..first + count). */
struct thrown {
	uint32_t type, path;
	uint64_t throws, catches;
	uint32_t first, count;
};

struct exceptions {
	struct part *parts;
	uint32_t part_count, part_room;
	struct names types;		/* as std::type_info has them */
	struct thrown *of_types;	/* first and count are of throwers */
	uint32_t type_count;
	struct thrown *throwers;
	uint32_t thrower_count;
	uint64_t throws, catches;
};

#define UNKNOWN_TYPE "(unknown type)"

/* --- reading --- */

/* "3Foo" is Foo: there is a symbol of this kind for each type. */
static const char *type_name(const char *name)
{
	static const char prefix[] = "typeinfo for ";
	const char *text = demangle(keep_format("_ZTI%s", name));

	return strncmp(text, prefix, strlen(prefix)) ? name :
	       text + strlen(prefix);
}

static void list_file(struct model *model, uint32_t process, uint32_t number)
{
	const struct tree_file *file =
		&model->recording->processes[process].files[number];
	struct exceptions *exceptions = model->exceptions;
	struct shim_throw_node node;
	const char *type;
	uint32_t i;

	for (i = 0; i < file->throw_count; i++) {
		memcpy(&node, file->data + file->throws[i], sizeof(node));
		if (node.count == 0)
			continue;
		type = calltree_type(file, node.type);
		GROW(exceptions->parts, exceptions->part_count,
		     exceptions->part_room);
		exceptions->parts[exceptions->part_count++] = (struct part){
			.process = process,
			.file = number,
			.node = node.node,
			.catcher_node = node.catcher,
			.type = names_add(&exceptions->types,
					  type ? type : ""),
			.path = NONE,
			.catcher = NONE,
			.is_throw = node.catcher == 0,
			.count = node.count,
		};
	}
}

void exceptions_list(struct model *model, uint32_t number)
{
	const struct process *process = &model->recording->processes[number];
	uint32_t i;

	if (!model->exceptions && process_has_profile(process, "exceptions"))
		model->exceptions = allocate(1, sizeof(*model->exceptions));
	for (i = 0; model->exceptions && i < process->file_count; i++)
		list_file(model, number, i);
}

/* The first part of that file, or of one behind it: they are in that order. */
static uint32_t find_parts(const struct exceptions *exceptions,
			   uint32_t process, uint32_t file)
{
	uint32_t low = 0, high = exceptions->part_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct part *part = &exceptions->parts[middle];

		if (part->process < process ||
		    (part->process == process && part->file < file))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void exceptions_place(struct model *model, uint32_t process, uint32_t number)
{
	const struct tree_file *file =
		&model->recording->processes[process].files[number];
	struct exceptions *exceptions = model->exceptions;
	uint32_t i, end;

	if (!exceptions)
		return;
	end = find_parts(exceptions, process, number + 1);
	for (i = find_parts(exceptions, process, number); i < end; i++) {
		struct part *part = &exceptions->parts[i];

		part->path = calltree_find_path(file, part->node);
		part->catcher = calltree_find_path(file, part->catcher_node);
	}
}

/* --- adding up --- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Throws come before what became of them. */
static int compare_parts(const void *left, const void *right)
{
	const struct part *a = left, *b = right;

	if (a->type != b->type)
		return compare(a->type, b->type);
	if (a->path != b->path)
		return compare(a->path, b->path);
	if (a->is_throw != b->is_throw)
		return a->is_throw ? -1 : 1;
	return compare(a->catcher, b->catcher);
}

static void merge_parts(struct exceptions *exceptions)
{
	struct part *parts = exceptions->parts;
	uint32_t i, n = 0;

	if (exceptions->part_count)
		qsort(parts, exceptions->part_count, sizeof(*parts),
		      compare_parts);
	for (i = 0; i < exceptions->part_count; i++) {
		if (n > 0 && !compare_parts(&parts[n - 1], &parts[i]))
			parts[n - 1].count += parts[i].count;
		else
			parts[n++] = parts[i];
	}
	exceptions->part_count = n;
}

static void add(struct thrown *thrown, const struct part *part)
{
	*(part->is_throw ? &thrown->throws : &thrown->catches) += part->count;
}

static void find_throwers(struct exceptions *exceptions)
{
	struct thrown *thrower = NULL;
	uint32_t i;

	exceptions->throwers = allocate(exceptions->part_count,
					sizeof(*thrower));
	for (i = 0; i < exceptions->part_count; i++) {
		const struct part *part = &exceptions->parts[i];

		if (!thrower || thrower->type != part->type ||
		    thrower->path != part->path) {
			thrower = &exceptions->throwers[
				exceptions->thrower_count++];
			*thrower = (struct thrown){ .type = part->type,
						    .path = part->path,
						    .first = i };
		}
		add(thrower, part);
		thrower->count++;
		*(part->is_throw ? &exceptions->throws :
		  &exceptions->catches) += part->count;
	}
}

static int compare_thrown(const void *left, const void *right)
{
	const struct thrown *a = left, *b = right;

	if (a->throws != b->throws)
		return compare(b->throws, a->throws);
	if (a->catches != b->catches)
		return compare(b->catches, a->catches);
	return a->type != b->type ? compare(a->type, b->type) :
				    compare(a->path, b->path);
}

static int compare_by_type(const void *left, const void *right)
{
	const struct thrown *a = left, *b = right;

	return a->type != b->type ? compare(a->type, b->type) :
				    compare_thrown(left, right);
}

static int compare_catchers(const void *left, const void *right)
{
	const struct part *a = left, *b = right;

	if (a->is_throw != b->is_throw)
		return a->is_throw ? -1 : 1;
	return a->count != b->count ? compare(b->count, a->count) :
				      compare(a->catcher, b->catcher);
}

static void find_types(struct exceptions *exceptions)
{
	struct thrown *type = NULL, *thrower = exceptions->throwers;
	uint32_t i;

	exceptions->of_types = allocate(exceptions->types.count, sizeof(*type));
	if (exceptions->thrower_count)
		qsort(thrower, exceptions->thrower_count, sizeof(*thrower),
		      compare_by_type);
	for (i = 0; i < exceptions->thrower_count; i++, thrower++) {
		if (!type || type->type != thrower->type) {
			type = &exceptions->of_types[exceptions->type_count++];
			*type = (struct thrown){ .type = thrower->type,
						 .first = i };
		}
		type->throws += thrower->throws;
		type->catches += thrower->catches;
		type->count++;
		qsort(&exceptions->parts[thrower->first], thrower->count,
		      sizeof(struct part), compare_catchers);
	}
	if (exceptions->type_count)
		qsort(exceptions->of_types, exceptions->type_count,
		      sizeof(*type), compare_thrown);
}

void exceptions_measure(struct model *model)
{
	if (!model->exceptions)
		return;
	merge_parts(model->exceptions);
	find_throwers(model->exceptions);
	find_types(model->exceptions);
}

/* --- the table --- */

static const char *name_of(const struct exceptions *exceptions, uint32_t type,
			   const struct options *options)
{
	const char *name = exceptions->types.text[type];

	return !*name ? NULL : options->mangled ? name : type_name(name);
}

static void print_counts(const struct page *page, uint64_t throws,
			 uint64_t catches)
{
	char text[SHORT_TEXT];

	fprintf(page->out, "%10s ", throws ? human_count(text, throws) : "");
	fprintf(page->out, "%10s  ", catches ? human_count(text, catches) : "");
}

static void print_thrower(const struct page *page, const struct thrown *thrower)
{
	const struct part *part =
		&page->model->exceptions->parts[thrower->first];
	uint32_t i;

	print_counts(page, thrower->throws, thrower->catches);
	fputs("  thrown in ", page->out);
	path_print(page, thrower->path);
	fputc('\n', page->out);
	for (i = 0; i < thrower->count; i++, part++) {
		if (part->is_throw)
			continue;
		print_counts(page, 0, part->count);
		fputs("    caught in ", page->out);
		path_print(page, part->catcher);
		fputc('\n', page->out);
	}
}

static void print_head(const struct page *page)
{
	const struct exceptions *exceptions = page->model->exceptions;
	char throws[SHORT_TEXT], catches[SHORT_TEXT];

	fprintf(page->out, "  %s exceptions were thrown, %s caught\n",
		human_count(throws, exceptions->throws),
		human_count(catches, exceptions->catches));
}

void exceptions_print(const struct page *page)
{
	const struct exceptions *exceptions = page->model->exceptions;
	uint32_t i, n, rows = page_rows(page, 30, exceptions->type_count);
	const char *name;

	print_head(page);
	if (!exceptions->type_count)
		return;
	fprintf(page->out, "\n%s%10s %10s  type%s  (by thrown)\n",
		page->color ? "\033[1m" : "", "thrown", "caught",
		page->color ? "\033[m" : "");
	for (i = 0; i < rows; i++) {
		const struct thrown *type = &exceptions->of_types[i];

		print_counts(page, type->throws, type->catches);
		name = name_of(exceptions, type->type, page->options);
		put_text(page->out, name ? name : UNKNOWN_TYPE);
		fputc('\n', page->out);
		for (n = 0; n < type->count; n++)
			print_thrower(page,
				      &exceptions->throwers[type->first + n]);
	}
	page_left_out(page, rows, exceptions->type_count);
}

/* --- for programs --- */

static void put_counts(FILE *out, const struct thrown *thrown)
{
	fprintf(out, "\"throws\":%" PRIu64 ",\"catches\":%" PRIu64,
		thrown->throws, thrown->catches);
}

static void put_thrower(FILE *out, const struct model *model,
			const struct options *options,
			const struct thrown *thrower)
{
	const struct part *part = &model->exceptions->parts[thrower->first];
	const char *comma = "";
	uint32_t i;

	fputc('{', out);
	put_counts(out, thrower);
	fputs(",\"path\":", out);
	path_json(out, model, options, thrower->path);
	fputs(",\"catchers\":[", out);
	for (i = 0; i < thrower->count; i++, part++) {
		if (part->is_throw)
			continue;
		fprintf(out, "%s{\"catches\":%" PRIu64 ",\"path\":", comma,
			part->count);
		path_json(out, model, options, part->catcher);
		fputc('}', out);
		comma = ",";
	}
	fputs("]}", out);
}

void exceptions_json(FILE *out, const struct model *model,
		     const struct options *options)
{
	const struct exceptions *exceptions = model->exceptions;
	uint32_t i, n;

	fprintf(out, ",\n\"throws\":%" PRIu64 ",\"catches\":%" PRIu64
		",\n\"exceptions\":[", exceptions->throws, exceptions->catches);
	for (i = 0; i < exceptions->type_count; i++) {
		const struct thrown *type = &exceptions->of_types[i];

		fputs(i ? ",\n{\"type\":" : "\n{\"type\":", out);
		put_json(out, name_of(exceptions, type->type, options));
		fputc(',', out);
		put_counts(out, type);
		fputs(",\"throwers\":[", out);
		for (n = 0; n < type->count; n++) {
			fputs(n ? ",\n " : "\n ", out);
			put_thrower(out, model, options,
				    &exceptions->throwers[type->first + n]);
		}
		fputs("]}", out);
	}
	fputc(']', out);
}

static void put_row(FILE *out, const struct model *model,
		    const struct options *options, const struct part *part)
{
	put_csv(out, name_of(model->exceptions, part->type, options));
	fputc(',', out);
	path_csv(out, model, options, part->path);
	fputc(',', out);
	path_csv(out, model, options, part->catcher);
	fprintf(out, part->is_throw ? ",%" PRIu64 ",\r\n" : ",,%" PRIu64 "\r\n",
		part->count);
}

/* A row for what a path throws, and one for each place where that is caught. */
void exceptions_csv(FILE *out, const struct model *model,
		    const struct options *options)
{
	const struct exceptions *exceptions = model->exceptions;
	uint32_t i, n, k;

	fputs("type,path,catcher,throws,catches\r\n", out);
	for (i = 0; i < exceptions->type_count; i++)
		for (n = 0; n < exceptions->of_types[i].count; n++) {
			const struct thrown *thrower = &exceptions->throwers[
				exceptions->of_types[i].first + n];

			for (k = 0; k < thrower->count; k++)
				put_row(out, model, options,
					&exceptions->parts[thrower->first + k]);
		}
}
