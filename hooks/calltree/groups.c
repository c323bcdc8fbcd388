/*
 * Calls of one function grouped by an argument: calltree:by=FUNCTION/ARGUMENT.
 *
 * Each node of such a function belongs to one group, which is a number.  Each file
 * describes each of its groups once.  Names choose the functions at their first calls;
 * later calls look the decision up.  A call of a chosen function takes the slow path,
 * where its argument can be read; all other calls pay nothing.
 *
 * All tables here only grow, and one store publishes an entry: a signal handler or
 * another thread finds a whole entry or none, and repeats the work at worst.
 */
#include "calltree/groups.h"

#include "path/opening.h"
#include "path/text.h"
#include "path/names.h"

#include <shim/info.h>
#include <shim/values.h>

#include <shim/banned.h>

#define BY_MAX	    8 /* times by-limit=8000 is a uint16_t */
#define LIMIT	    256
#define NAME_SIZE   256 /* of a linker name */
#define TARGETS_MAX 256
#define KEY_SIZE    16

struct by {
	char function[OPTION_TEXT_SIZE];
	char argument[OPTION_TEXT_SIZE];
	uint32_t position; /* of the argument, from 1 on; 0: by name */
	uint16_t unavailable, others; /* groups */
	uint32_t values;	      /* number of values that have a group */
	uint32_t spare;		      /* an unused number, or 0 */
	bool has_others;
};

static const struct path_client client;
static unsigned tree_slot; /* a bitmap of the groups that are described */

static struct by bys[BY_MAX];
static unsigned by_count;
static uint32_t limit = LIMIT;

/* Logs "by=FUNCTION/ARGUMENT: " and the message. */
static COLD void log_by(const struct by *by, const char *before,
			const char *name, const char *after)
{
	char memory[240];
	struct text text = { memory, memory + sizeof(memory) - 1 };

	add_text(&text, "by=");
	add_text(&text, by->function);
	add_text(&text, "/");
	add_text(&text, by->argument);
	add_text(&text, ": ");
	add_text(&text, before);
	add_text(&text, name);
	add_text(&text, after);
	*text.at = '\0';
	shim_record_log(memory);
}

/* --- options --- */

void groups_add(const struct option_value *value)
{
	struct by *by = &bys[by_count++];

	for (size_t i = 0; i < value->size; i++)
		by->function[i] = value->text[i];
	for (size_t i = 0; i < value->parameter_size; i++)
		by->argument[i] = value->parameter[i];
	by->position = (uint32_t)value->number;
	path_add_client(&client);
}

void groups_limit(uint32_t groups)
{
	limit = groups;
}

/* --- decisions about functions --- */

struct decisions {
	uint64_t mask;
	uint64_t used;
	/* The function in the lower 48 bits.  Above them 0: not decided; 1: not
	 * grouped; otherwise the number of its by= plus 2. */
	uint64_t slot[];
};

static struct decisions *decisions;

#define ADDRESS	       SHIM_NODE_ADDRESS
#define DECISION(what) ((uint64_t)((what) + 1) << 48)

/* @word receives the word that was read.  Meanwhile another thread may have stored a
 * decision about another function in the slot. */
static uint64_t *find_slot(struct decisions *in, shim_function function,
			   uint64_t *word)
{
	uint64_t i = (function >> 4) * 0x9e3779b97f4a7c15ull >> 20;

	for (;; i++) {
		uint64_t *slot = &in->slot[i & in->mask];

		*word = __atomic_load_n(slot, __ATOMIC_RELAXED);
		if (*word == 0 || (*word & ADDRESS) == function)
			return slot;
	}
}

static struct decisions *make_decisions(uint64_t count)
{
	struct decisions *made = shim_memory_map(sizeof(*made) +
						 count * sizeof(made->slot[0]));

	if (made)
		made->mask = count - 1;
	return made;
}

/* A decision that another thread stores in the old table meanwhile is made again. */
static struct decisions *decisions_with_room(void)
{
	struct decisions *old = __atomic_load_n(&decisions, __ATOMIC_ACQUIRE);
	struct decisions *larger;

	if (old && old->used * 2 <= old->mask)
		return old;
	larger = make_decisions(old ? (old->mask + 1) * 2 : 4096);
	if (!larger)
		return old && old->used + 16 < old->mask ? old : NULL;
	for (uint64_t i = 0; old && i <= old->mask; i++) {
		uint64_t word = old->slot[i], none;

		if (word == 0)
			continue;
		*find_slot(larger, word & ADDRESS, &none) = word;
		larger->used++;
	}
	__atomic_store_n(&decisions, larger, __ATOMIC_RELEASE);
	return larger;
}

static void store_decision(shim_function function, unsigned by)
{
	struct decisions *in = decisions_with_room();

	if (!in)
		return;
	for (;;) {
		uint64_t word, *slot = find_slot(in, function, &word);

		if (shim_local_cas(slot, (void *)word,
				   (void *)(function | DECISION(by)))) {
			__atomic_fetch_add(&in->used, word == 0,
					   __ATOMIC_RELAXED);
			return;
		}
	}
}

static COLD unsigned choose_by(shim_function function)
{
	char name[NAME_SIZE];
	enum shim_result r;
	unsigned by = 0;

	if (function & ~ADDRESS)
		return 0;
	shim_image_note(function);
	r = shim_function_name(function, sizeof(name), NULL, name);
	if (r == SHIM_E_NOT_YET_AVAILABLE)
		return 0;
	for (unsigned i = 0; r == SHIM_OK && i < by_count && !by; i++)
		if (path_is_named(name, bys[i].function))
			by = i + 1;
	store_decision(function, by);
	return by;
}

static unsigned find_by(shim_function function)
{
	struct decisions *in = __atomic_load_n(&decisions, __ATOMIC_ACQUIRE);
	uint64_t word = 0;

	if (in)
		find_slot(in, function, &word);
	if (LIKELY(word >> 48))
		return (unsigned)(word >> 48) - 1;
	return choose_by(function);
}

/* --- the argument of a function, and its type --- */

#define TARGET_GONE (~(shim_function)0) /* its image was unloaded */

struct target {
	shim_function function; /* stored last; or TARGET_GONE */
	unsigned by;
	uint32_t count, position; /* of parameters; from 0 on */
	shim_type type;
	uint32_t flags; /* for shim_print_value */
	bool is_plain;	/* its bytes are the whole value */
};

static struct target targets[TARGETS_MAX];
static uint32_t target_count;

static const struct target *find_target(unsigned by, shim_function function)
{
	uint32_t count = __atomic_load_n(&target_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < count && i < TARGETS_MAX; i++)
		if (__atomic_load_n(&targets[i].function, __ATOMIC_ACQUIRE) ==
			    function &&
		    targets[i].by == by)
			return &targets[i];
	return NULL;
}

/* Whether the type is "const char *" or similar, whose value is the string. */
static bool is_string(const char *type)
{
	static const char *const words[] = { "const ", "volatile ", "signed ",
					     "unsigned " };

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is_equal(type, words[i], length_of(words[i])))
			type += length_of(words[i]);
	return is_equal(type, "char *", sizeof("char *"));
}

static bool read_type(struct target *target)
{
	enum shim_type_kind kind;
	uint64_t size;
	char name[64] = "";

	if (shim_get_type_info(target->type, &kind, &size, sizeof(name), NULL,
			       name) != SHIM_OK)
		return false;
	target->flags = SHIM_PRINT_LONG;
	switch (kind) {
	case SHIM_TYPE_BOOL:
	case SHIM_TYPE_CHARACTER:
	case SHIM_TYPE_SIGNED:
	case SHIM_TYPE_UNSIGNED:
	case SHIM_TYPE_ENUM:
	case SHIM_TYPE_FLOAT:
		/* (Some bytes of a long double are padding.) */
		target->is_plain = size > 0 && size <= 8;
		return true;
	case SHIM_TYPE_POINTER:
		if (is_string(name))
			return true;
		target->flags = SHIM_PRINT_PLAIN;
		target->is_plain = true;
		return true;
	case SHIM_TYPE_MEMBER_POINTER:
		target->flags = SHIM_PRINT_PLAIN;
		return true;
	default: return true;
	}
}

static bool is_argument(const struct by *by, const struct target *target)
{
	char name[OPTION_TEXT_SIZE] = "";
	size_t size = length_of(by->argument);

	if (by->position)
		return target->position + 1 == by->position;
	return shim_get_parameter_info(target->function, target->position, NULL,
				       sizeof(name), NULL, name) == SHIM_OK &&
	       length_of(name) == size && is_equal(name, by->argument, size);
}

/* After this, calls of the function are not grouped. */
static COLD void give_up(const struct target *target, const char *before,
			 const char *name, const char *after)
{
	log_by(&bys[target->by - 1], before, name, after);
	store_decision(target->function, 0);
}

static COLD bool find_argument(struct target *target)
{
	const struct by *by = &bys[target->by - 1];
	enum shim_result r;

	r = shim_get_parameter_count(target->function, &target->count);
	if (r == SHIM_E_FUNCTION_NOT_IL)
		give_up(target,
			"debug information lacks the parameters "
			"of ",
			by->function,
			" (compile with -g): its calls are not grouped");
	if (r != SHIM_OK)
		return false;
	while (target->position < target->count && !is_argument(by, target))
		target->position++;
	if (target->position == target->count) {
		give_up(target, by->function, " has no parameter ",
			by->argument);
		return false;
	}
	return shim_get_parameter_info(target->function, target->position,
				       &target->type, 0, NULL,
				       NULL) == SHIM_OK &&
	       read_type(target);
}

/* An entry of a function that has gone, or a new one; NULL: all are in use. */
static struct target *claim_target(void)
{
	uint32_t number = __atomic_load_n(&target_count, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < number && i < TARGETS_MAX; i++) {
		shim_function gone = TARGET_GONE;

		if (__atomic_compare_exchange_n(&targets[i].function, &gone, 0,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return &targets[i];
	}
	if (number < TARGETS_MAX)
		number = __atomic_fetch_add(&target_count, 1, __ATOMIC_ACQ_REL);
	return number < TARGETS_MAX ? &targets[number] : NULL;
}

static COLD const struct target *make_target(unsigned by,
					     shim_function function)
{
	struct target draft = { .function = function, .by = by };
	struct target *target;

	if (!find_argument(&draft))
		return NULL;
	target = claim_target();
	if (!target)
		return NULL;
	draft.function = 0;
	*target = draft;
	__atomic_store_n(&target->function, function, __ATOMIC_RELEASE);
	return target;
}

static void on_image_gone(uintptr_t low, uintptr_t high, uint32_t generation)
{
	struct decisions *in = decisions;

	(void)generation;
	for (uint64_t i = 0; in && i <= in->mask; i++) {
		uint64_t function = in->slot[i] & ADDRESS;

		if (function >= low && function < high)
			in->slot[i] = function;
	}
	for (uint32_t i = 0; i < target_count && i < TARGETS_MAX; i++)
		if (targets[i].function >= low && targets[i].function < high)
			targets[i].function = TARGET_GONE;
}

/* --- groups --- */

struct group {
	uint64_t key[KEY_SIZE / 8]; /* is_plain: the bytes */
	uint32_t text_size;	    /* of the value's part of the text */
	uint16_t by;
	bool is_plain;
	struct shim_group_node node;
};

static struct group *groups; /* by number */
static uint32_t group_count; /* number of groups that fit */
static uint16_t *slots;	     /* a hash table of numbers */
static uint32_t slot_mask;

static uint64_t hash_of(const struct group *group)
{
	const char *value = group->node.text + group->node.text_size -
			    group->text_size;
	uint64_t hash = group->by;

	if (group->is_plain)
		return (hash ^ group->key[0]) * 0x9e3779b97f4a7c15ull;
	for (uint32_t i = 0; i < group->text_size; i++)
		hash = (hash ^ (unsigned char)value[i]) * 0x100000001b3ull;
	return hash * 0x9e3779b97f4a7c15ull;
}

static bool is_same(const struct group *a, const struct group *b)
{
	if (a->by != b->by || a->is_plain != b->is_plain)
		return false;
	if (a->is_plain)
		return a->key[0] == b->key[0];
	return a->node.text_size == b->node.text_size &&
	       is_equal(a->node.text, b->node.text, a->node.text_size);
}

static void begin_text(struct group *group, unsigned by)
{
	struct text text = { group->node.text,
			     group->node.text + SHIM_GROUP_TEXT / 2 };

	group->by = (uint16_t)by;
	group->text_size = 0;
	add_text(&text, bys[by - 1].argument);
	add_text(&text, "=");
	group->node.text_size = (uint32_t)(text.at - group->node.text);
}

static void add_value(struct group *group, const char *value)
{
	struct text text = { group->node.text + group->node.text_size,
			     group->node.text + SHIM_GROUP_TEXT };
	char *begin = text.at;

	add_text(&text, value);
	group->text_size += (uint32_t)(text.at - begin);
	group->node.text_size += (uint32_t)(text.at - begin);
}

static bool print_value(struct group *group, const struct target *target,
			const void *value)
{
	char text[SHIM_GROUP_TEXT];
	uint32_t room = SHIM_GROUP_TEXT - group->node.text_size - 3, total;

	if (shim_print_value(target->type, value, target->flags, room, &total,
			     text) != SHIM_OK)
		return false;
	add_value(group, text);
	if (total > room)
		add_value(group, "...");
	return true;
}

/* A number for one more value of @by; 0 if the limit is reached. */
static uint32_t take_number(struct by *by)
{
	uint32_t number = __atomic_exchange_n(&by->spare, 0, __ATOMIC_ACQ_REL);

	if (number)
		return number;
	number = __atomic_fetch_add(&by->values, 1, __ATOMIC_ACQ_REL);
	if (number < limit)
		return by->others + 1 + number;
	__atomic_fetch_sub(&by->values, 1, __ATOMIC_ACQ_REL);
	return 0;
}

/* Adds @group.  The search for a free slot begins at @at. */
static COLD uint16_t add_group(const struct group *group, uint64_t at)
{
	struct by *by = &bys[group->by - 1];
	uint32_t number = take_number(by);

	if (!number) {
		if (!__atomic_exchange_n(&by->has_others, true,
					 __ATOMIC_RELAXED))
			log_by(by,
			       "it has more values than the limit of groups "
			       "(by-limit=N): the rest is ",
			       by->argument, "=...");
		return by->others;
	}
	groups[number] = *group;
	groups[number].node.function = SHIM_NODE_GROUP | number;
	for (;; at++) {
		uint16_t *slot = &slots[at & slot_mask], found = 0;

		if (__atomic_compare_exchange_n(slot, &found, (uint16_t)number,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return (uint16_t)number;
		if (is_same(&groups[found], group)) {
			by->spare = number;
			return found;
		}
	}
}

/* Returns the number of @group, and sets *@at to its slot.  If the table does not
 * have the group, returns 0, and *@at is the empty slot where it belongs. */
static uint16_t find_group(const struct group *group, uint64_t *at)
{
	for (*at = hash_of(group) >> 20;; ++*at) {
		uint16_t number = __atomic_load_n(&slots[*at & slot_mask],
						  __ATOMIC_ACQUIRE);

		if (number == 0 || is_same(&groups[number], group))
			return number;
	}
}

static uint16_t group_of_value(const struct target *target, const void *value,
			       uint32_t size)
{
	struct group group = { .is_plain = target->is_plain };
	struct by *by = &bys[target->by - 1];
	uint64_t at;
	uint16_t number;

	begin_text(&group, target->by);
	if (group.is_plain && size > sizeof(group.key[0]))
		return by->unavailable;
	if (group.is_plain)
		__builtin_memcpy(group.key, value, size);
	else if (!print_value(&group, target, value))
		return by->unavailable;
	number = find_group(&group, &at);
	if (LIKELY(number))
		return number;
	if (group.is_plain && !print_value(&group, target, value))
		return by->unavailable;
	return add_group(&group, at);
}

/* The range of the argument's value; its start is 0 if the value is unavailable. */
static struct shim_argument_range find_value(const struct target *target,
					     shim_elt_info info)
{
	uint32_t size = (uint32_t)(sizeof(struct shim_argument_info) +
				   target->count *
					   sizeof(struct shim_argument_range));
	uint64_t memory[size / 8];
	struct shim_argument_info *arguments = (struct shim_argument_info *)
		memory;

	if (shim_get_function_enter3_info(target->function, info, NULL, &size,
					  arguments) != SHIM_OK ||
	    target->position >= arguments->ranges_count)
		return (struct shim_argument_range){ 0 };
	return arguments->ranges[target->position];
}

static uint16_t choose_group(unsigned by, shim_function function,
			     shim_elt_info info)
{
	const struct target *target = find_target(by, function);
	struct shim_argument_range value;

	if (!groups)
		return 0;
	if (info == 0)
		return bys[by - 1].unavailable;
	if (UNLIKELY(!target)) {
		target = make_target(by, function);
		if (!target)
			return find_by(function) ? bys[by - 1].unavailable : 0;
	}
	value = find_value(target, info);
	if (value.start == 0)
		return bys[by - 1].unavailable;
	return group_of_value(target, (const void *)value.start, value.length);
}

static bool describe(struct tree *tree, uint16_t group)
{
	uint8_t bit = (uint8_t)(1u << (group & 7)), *described;
	struct shim_group_node *node;

	if (!tree->slot[tree_slot])
		tree->slot[tree_slot] = shim_memory_map((UINT16_MAX + 1) / 8);
	described = tree->slot[tree_slot];
	if (described && (described[group >> 3] & bit))
		return true;
	node = tree_take(tree, sizeof(*node));
	if (!node)
		return false;
	node->text_size = groups[group].node.text_size;
	__builtin_memcpy(node->text, groups[group].node.text,
			 sizeof(node->text));
	__atomic_store_n(&node->function, SHIM_NODE_GROUP | group,
			 __ATOMIC_RELEASE);
	if (described)
		described[group >> 3] |= bit;
	return true;
}

/* --- start --- */

static uint16_t make_special(unsigned by, uint32_t number, const char *value)
{
	struct group *group = &groups[number];

	begin_text(group, by);
	add_value(group, value);
	group->node.function = SHIM_NODE_GROUP | number;
	return (uint16_t)number;
}

/* Makes for each by=: a group for unavailable values, one for the rest, and one per value. */
static bool make_groups(void)
{
	uint32_t size = 2;

	group_count = 1 + by_count * (limit + 2);
	while (size < 2 * group_count)
		size *= 2;
	slot_mask = size - 1;
	slots = shim_memory_map(size * sizeof(*slots));
	groups = shim_memory_map(group_count * sizeof(*groups));
	if (!slots || !groups) {
		groups = NULL;
		return false;
	}
	for (unsigned i = 0; i < by_count; i++) {
		uint32_t first = 1 + i * (limit + 2);

		bys[i].unavailable = make_special(i + 1, first, "?");
		bys[i].others = make_special(i + 1, first + 1, "...");
	}
	return true;
}

/* Logs each by= whose function does not exist now.  A library that is loaded later may
 * define it. */
static void look_for_functions(void)
{
	struct shim_enum *functions;
	bool found[BY_MAX] = { false };
	char name[NAME_SIZE];
	uint64_t function;

	if (shim_function_enumerate(0, &functions) != SHIM_OK)
		return;
	while (shim_enum_next(functions, 1, &function, NULL) == SHIM_OK) {
		if (shim_function_name(function, sizeof(name), NULL, name) !=
		    SHIM_OK)
			continue;
		for (unsigned i = 0; i < by_count; i++)
			found[i] |= path_is_named(name, bys[i].function);
	}
	shim_enum_destroy(functions);
	for (unsigned i = 0; i < by_count; i++)
		if (!found[i])
			log_by(&bys[i], "no function ", bys[i].function,
			       " in the program or its libraries at the start");
}

/* If several by= name one function, the first one is used. */
static void look_for_doubles(void)
{
	for (unsigned i = 0; i < by_count; i++)
		for (unsigned j = 0; j < i; j++)
			if (is_equal(bys[i].function, bys[j].function,
				     length_of(bys[i].function) + 1)) {
				log_by(&bys[i], "", bys[i].function,
				       " is grouped by another argument already");
				break;
			}
}

static void start_recording(void)
{
	struct shim_meta *meta = shim_record_meta();

	if (groups && meta)
		meta->version = SHIM_FORMAT_VERSION_GROUPS;
}

static void begin_groups(struct shim_profiler_handle *handle)
{
	tree_slot = path_add_slot();
	shim_profiler_enable_symbols(handle);
	shim_profiler_enable_values(handle);
	if (!make_groups()) {
		log_by(&bys[0], "no memory: nothing is grouped", "", "");
		return;
	}
	start_recording();
	look_for_doubles();
	look_for_functions();
}

/* --- calls --- */

/* The callers' time excludes the time to read the argument.  (It is rounded so that the
 * average is right.) */
static void subtract_reading(struct shim_node *node, uint64_t before)
{
	uint64_t units = node->start / SHIM_ASKING_UNIT -
			 before / SHIM_ASKING_UNIT;

	node->hits = units < UINT32_MAX - node->hits ?
			     node->hits + (uint32_t)units :
			     UINT32_MAX;
}

static bool is_grouped(shim_function function)
{
	return groups && find_by(function);
}

static bool enter(shim_function function, const void *site, uintptr_t sp,
		  shim_elt_info info)
{
	unsigned by = groups ? find_by(function) : 0;
	struct shim_node *node;
	uint64_t before;
	uint16_t group;

	if (!by)
		return false;
	before = tree_mode == COUNTS ? 0 : now();
	tree_begin_arguments(function, site, sp);
	group = choose_group(by, function, info);
	node = tree_enter_group(function, group, sp, NULL);
	if (node && group && tree_mode != COUNTS)
		subtract_reading(node, before);
	tree_end_own();
	return true;
}

static const struct path_client client = {
	.begin = begin_groups,
	.forked = start_recording,
	.image_gone = on_image_gone,
	.wants_arguments = is_grouped,
	.enter = enter,
	.describe_group = describe,
};
