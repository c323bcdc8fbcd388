/*
 * Changes the code of marks while threads run it.  A mark's source divides the change into
 * two steps: bytes that no thread executes, and then one byte.  Between them, all processors
 * are synchronized, so none executes the new byte with old ones behind it.  A mark that is on
 * leads elsewhere by one store, as calls do (dispatch/counted_sites.c).
 */
#include "sources/switch_marks.h"

#include "dispatch/patch.h"
#include "image/image.h"
#include "os/sys.h"

#include <errno.h>

#include <shim/banned.h>

static unsigned char buffer[PATCH_RUN_ROOM];

bool switch_wants(const struct source_mark *mark, bool is_on)
{
	return is_on && !mark->is_filtered &&
	       (!mark->is_throttled || mark->is_counted) && !mark->is_unusable;
}

/* Whether the mark is off, and has the compiler's code, which costs more than shim's. */
static bool shall_idle(const struct source_image *image,
		       const struct source_mark *mark)
{
	const struct source *source = source_of(mark->source);

	return source->idles && !mark->is_on && !mark->is_prepared &&
	       !mark->is_idle && !image->is_never_idle &&
	       source->idles(image, mark);
}

/* Whether the code that is prepared leads elsewhere. */
static bool is_other_code(const struct source_mark *mark)
{
	return mark->is_prepared && !source_of(mark->source)->is_fixed &&
	       mark->has_counter != mark->is_counted;
}

static bool differs(const struct source_image *image,
		    const struct source_mark *mark, enum switch_step step,
		    bool is_on)
{
	bool wanted = switch_wants(mark, is_on);

	if (mark->is_unusable)
		return false;
	switch (step) {
	case STEP_WAKE:
		return wanted &&
		       (mark->is_idle || (mark->is_on && is_other_code(mark)));
	case STEP_PREPARE:
		return wanted && !mark->is_on &&
		       (!mark->is_prepared || is_other_code(mark));
	case STEP_SWITCH:
		return wanted != mark->is_on ||
		       (!wanted && shall_idle(image, mark));
	default: return source_of(mark->source)->release;
	}
}

static size_t size_of(const struct source_mark *mark)
{
	return source_of(mark->source)->size;
}

/* Stores what STEP_PREPARE makes of the code; false if the mark cannot be used. */
static bool prepare_copy(const struct source_image *image,
			 const struct source_mark *mark,
			 const unsigned char *code, unsigned char *copy)
{
	size_t size = size_of(mark);

	for (size_t i = 0; i < size; i++)
		copy[i] = code[i];
	return source_of(mark->source)->prepare(image, mark, copy);
}

/* Whether the bytes that STEP_PREPARE writes are there.  Another tool may have replaced
 * them, and have switched the mark off again. */
static bool is_still_prepared(const struct source_image *image,
			      const struct source_mark *mark,
			      const unsigned char *code)
{
	unsigned char copy[MARK_SIZE_MAX];
	size_t size = size_of(mark);

	if (!prepare_copy(image, mark, code, copy))
		return false;
	for (size_t i = 0; i < size; i++)
		if (copy[i] != code[i])
			return false;
	return true;
}

/* Changes a mark between the compiler's code and an idle one, in memory and in the buffer. */
static int set_idle(struct source_image *image, struct source_mark *mark,
		    struct patch *patch, unsigned char *code, bool idle)
{
	unsigned char before[2] = { code[0], code[1] };
	int r = 0;

	if (source_of(mark->source)->idle(code, idle))
		r = patch_store_pair(patch, mark_address(image, mark), code);
	if (r == 0)
		return 0;
	code[0] = before[0];
	code[1] = before[1];
	/* What does not idle works, too. */
	if (!idle)
		return r;
	image->is_never_idle = true;
	return 0;
}

/* The place of the four bytes that tell where a mark leads, in its code. */
#define DISTANCE 1

/* Lets a mark that is on lead elsewhere, in memory and in the buffer.  False if more is to
 * change, or nothing may. */
static bool redirect(const struct source_image *image, struct source_mark *mark,
		     struct patch *patch, unsigned char *code)
{
	unsigned char copy[MARK_SIZE_MAX];
	uintptr_t at = mark_address(image, mark) + DISTANCE;
	size_t size = size_of(mark);
	uint32_t before, distance;

	if (!prepare_copy(image, mark, code, copy))
		return false;
	for (size_t i = 0; i < size; i++)
		if (copy[i] != code[i] && i - DISTANCE >= sizeof(distance))
			return false;
	__builtin_memcpy(&before, code + DISTANCE, sizeof(before));
	__builtin_memcpy(&distance, copy + DISTANCE, sizeof(distance));
	/* A thunk's word has let the mark count already. */
	if (distance != before &&
	    (!patch_is_one_store(at) || patch_store(patch, at, distance) < 0))
		return source_of(mark->source)->has_thunks && mark->is_counted;
	__builtin_memcpy(code + DISTANCE, &distance, sizeof(distance));
	mark->has_counter = mark->is_counted;
	return true;
}

static int release(struct source_image *image, struct source_mark *mark,
		   struct patch *patch, unsigned char *code, bool *any)
{
	unsigned char second = code[1];

	mark->is_unusable = 1;
	if (source_of(mark->source)->state(image, mark, code) == MARK_IDLE)
		return set_idle(image, mark, patch, code, false);
	source_of(mark->source)->release(image, mark, code);
	if (code[1] != second)
		return patch_store_pair(patch, mark_address(image, mark), code);
	*any = true;
	return 0;
}

/* Changes one mark in the buffer; *@any if that is to be written. */
static int change_mark(struct source_image *image, struct source_mark *mark,
		       enum switch_step step, struct patch *patch,
		       unsigned char *code, bool is_on, bool *any)
{
	const struct source *source = source_of(mark->source);
	enum mark_state state = source->state(image, mark, code);
	bool wanted = switch_wants(mark, is_on);

	/* Another tool, or a debugger, has changed it. */
	if (state == MARK_OTHER) {
		mark->is_unusable = 1;
		return 0;
	}
	switch (step) {
	case STEP_WAKE:
		if (!mark->is_on)
			return set_idle(image, mark, patch, code, false);
		if (redirect(image, mark, patch, code))
			return 0;
		source->change(image, mark, code, false);
		break;
	case STEP_PREPARE:
		mark->is_prepared = source->prepare(image, mark, code);
		mark->has_counter = mark->is_counted;
		mark->is_unusable = !mark->is_prepared;
		*any |= mark->is_prepared;
		return 0;
	case STEP_SWITCH:
		/* In a child, one that is ready may not be known as prepared. */
		if (!wanted && !mark->is_on)
			return state == MARK_OFF ? set_idle(image, mark, patch,
							    code, true) :
						   0;
		if (wanted && !is_still_prepared(image, mark, code)) {
			mark->is_unusable = 1;
			return 0;
		}
		source->change(image, mark, code, wanted);
		break;
	default: return release(image, mark, patch, code, any);
	}
	*any = true;
	return 0;
}

static void note_state(struct source_image *image, struct source_mark *mark,
		       enum mark_state state)
{
	image->on -= mark->is_on;
	mark->is_on = state == MARK_ON;
	mark->is_idle = state == MARK_IDLE;
	image->on += mark->is_on;
}

/* What the buffer, which has the code of a run, shows of a mark. */
static enum mark_state state_in(const struct source_image *image,
				const struct source_mark *mark,
				const struct patch_run *run)
{
	return source_of(mark->source)
		->state(image, mark,
			buffer + (mark_address(image, mark) - run->start));
}

static int write_run(struct source_image *image, struct patch *patch,
		     const struct patch_run *run, enum switch_step step,
		     bool is_on)
{
	int r = patch_read(run->start, buffer, run->size, image->may_go);
	bool any = false;

	if (r < 0)
		return r;
	for (uint32_t i = run->first; r == 0 && i <= run->last;
	     i = source_next_changed(image, i + 1)) {
		struct source_mark *mark = &image->marks[i];

		if (differs(image, mark, step, is_on))
			r = change_mark(image, mark, step, patch,
					buffer + (mark_address(image, mark) -
						  run->start),
					is_on, &any);
	}
	if (any && r == 0)
		r = patch_write(patch, run->start, buffer, run->size);
	if (r < 0 || step == STEP_PREPARE)
		return r;
	for (uint32_t i = run->first; i <= run->last;
	     i = source_next_changed(image, i + 1))
		note_state(image, &image->marks[i],
			   state_in(image, &image->marks[i], run));
	return 0;
}

static int write_marks(struct source_image *image, struct patch *patch,
		       enum switch_step step, bool is_on)
{
	struct patch_run run = { .size = 0 };
	int r = 0;

	for (uint32_t i = source_next_changed(image, image->changes.first);
	     r == 0 && i < image->changes.end;
	     i = source_next_changed(image, i + 1)) {
		const struct source_mark *mark = &image->marks[i];
		uintptr_t address = mark_address(image, mark);

		if (!differs(image, mark, step, is_on) ||
		    patch_run_extend(&run, i, address, size_of(mark)))
			continue;
		if (run.size > 0)
			r = write_run(image, patch, &run, step, is_on);
		run = (struct patch_run){ i, i, address, size_of(mark) };
	}
	if (r == 0 && run.size > 0)
		r = write_run(image, patch, &run, step, is_on);
	return r;
}

bool switch_changes(const struct source_image *image, enum switch_step step,
		    bool is_on)
{
	for (uint32_t i = source_next_changed(image, image->changes.first);
	     i < image->changes.end; i = source_next_changed(image, i + 1))
		if (differs(image, &image->marks[i], step, is_on))
			return true;
	return false;
}

int switch_marks(struct source_image *image, enum switch_step step, bool is_on,
		 bool *changed)
{
	struct patch patch;
	int r;

	if (!switch_changes(image, step, is_on))
		return 0;
	if (image->may_go && image_is_closing())
		return -EBUSY;
	patch_open(&patch, image->start, image->end);
	r = write_marks(image, &patch, step, is_on);
	patch_close(&patch);
	*changed = true;
	image->is_unwritable = r < 0;
	return r;
}

/* The marks from @first on whose code is read at once.  Between them is no page that may be
 * missing. */
static struct patch_run run_from(const struct source_image *image,
				 uint32_t first)
{
	const struct source_mark *mark = &image->marks[first];
	struct patch_run run = { first, first, mark_address(image, mark),
				 size_of(mark) };

	for (uint32_t i = first + 1; i < image->count; i++) {
		mark = &image->marks[i];
		if (!patch_run_extend(&run, i, mark_address(image, mark),
				      size_of(mark)))
			break;
	}
	return run;
}

int switch_read(struct source_image *image)
{
	uint32_t first = 0;

	while (first < image->count) {
		struct patch_run run = run_from(image, first);
		int r;

		r = sys_peek((const void *)run.start, buffer, run.size);
		if (r < 0)
			return r;
		for (uint32_t i = first; i <= run.last; i++) {
			struct source_mark *mark = &image->marks[i];
			enum mark_state state = state_in(image, mark, &run);

			mark->is_unusable = state == MARK_OTHER;
			note_state(image, mark, state);
		}
		first = run.last + 1;
	}
	return 0;
}
