/*
 * Reads the settings from the environment: from libc's, or, before libc's constructor
 * has run, from the stack, where the kernel has stored it.  If shim was attached to a
 * running program, the settings come with the request: its environment was read long
 * ago, and other threads may be changing it.
 */
#include "runtime/config.h"

#include "os/sys.h"
#include "os/text.h"
#include "runtime/log.h"

#include <stddef.h>
#include <stdint.h>

#include <shim/banned.h>

extern char **environ;
/* glibc lets it point to what the kernel has stored: the number of arguments, the
 * arguments, a NULL, and the environment. */
extern void *__libc_stack_end __attribute__((weak));

/* The kernel limits all arguments to 6 MiB, so there are fewer than this. */
#define ARGUMENTS_MAX (1u << 22)

struct config config = {
#define OPTION(name, size, value, help)
#define LONG_OPTION(name, help) .name = "",
#include "runtime/config.def"
#undef OPTION
#undef LONG_OPTION
};

bool config_is_complete(void)
{
	return environ != NULL;
}

/* The settings of a request, in the form of an environment; NULL: there is none. */
static char **requested;

int config_take(const char *settings)
{
	size_t size = 0, count = 0;
	char *copy, **list;
	void *memory;
	int r;

	for (const char *at = settings; *at; at += text_length(at) + 1)
		count++;
	while (settings[size] || settings[size + 1])
		size++;
	size += 2;
	r = sys_map(size + (count + 1) * sizeof(*list), &memory);
	if (r < 0)
		return r;
	list = memory;
	copy = (char *)(list + count + 1);
	for (size_t i = 0; i < size; i++)
		copy[i] = settings[i];
	for (size_t i = 0; i < count; i++) {
		list[i] = copy;
		copy += text_length(copy) + 1;
	}
	requested = list;
	return 0;
}

/* The environment.  environ is NULL until libc's constructor has run. */
static char **variables(void)
{
	const uintptr_t *stack = &__libc_stack_end ? __libc_stack_end : NULL;

	if (requested)
		return requested;
	if (environ || !stack || stack[0] > ARGUMENTS_MAX ||
	    stack[1 + stack[0]] != 0)
		return environ;
	return (char **)(stack + 2 + stack[0]);
}

const char *config_variable(const char *name)
{
	for (char **entry = variables(); entry && *entry; entry++) {
		const char *value = text_after(*entry, name);

		if (value && *value == '=')
			return value + 1;
	}
	return NULL;
}

/* "SHIM_NAME" for "name". */
static void variable_name(const char *name, struct text *text)
{
	text_add(text, "SHIM_");
	for (; *name; name++) {
		char c = *name >= 'a' && *name <= 'z' ? (char)(*name - 32) :
							*name;

		text_add_part(text, &c, 1);
	}
}

static void read_option(const char *name, char *place, size_t size,
			const char *value)
{
	char memory[64];
	struct text variable, copy;
	const char *given;

	text_init(&variable, memory, sizeof(memory));
	variable_name(name, &variable);
	given = config_variable(memory);
	text_init(&copy, place, size);
	text_add(&copy, given && *given ? given : value);
	if (copy.cut) {
		log_setting("%s is too long: shim uses the default", memory);
		text_init(&copy, place, size);
		text_add(&copy, value);
	}
}

static const char *read_long_option(const char *name)
{
	struct text variable;
	const char *given;
	char memory[64];

	text_init(&variable, memory, sizeof(memory));
	variable_name(name, &variable);
	given = config_variable(memory);
	return given ? given : "";
}

static bool is_known(const char *variable, size_t length)
{
	char memory[64];
	struct text name;

#define LONG_OPTION(option, help) \
	text_init(&name, memory, sizeof(memory)); \
	variable_name(#option, &name); \
	if (name.length == length && text_after(variable, memory)) \
		return true;
#define OPTION(option, size, value, help) LONG_OPTION(option, help)
#include "runtime/config.def"
#undef OPTION
#undef LONG_OPTION
	return false;
}

/* An unknown variable SHIM_... is most often a typing error. */
static void report_unknown(void)
{
	for (char **entry = variables(); entry && *entry; entry++) {
		size_t length = 0;
		char memory[64];
		struct text name;

		if (!text_after(*entry, "SHIM_"))
			continue;
		while ((*entry)[length] && (*entry)[length] != '=')
			length++;
		if (is_known(*entry, length) ||
		    text_after(*entry, "SHIM_LIB")) /* profrun's own */
			continue;
		text_init(&name, memory, sizeof(memory));
		text_add_part(&name, *entry, length);
		log_setting("%s is not a setting of shim: it is ignored",
			    memory);
	}
}

int config_renew(const char *settings)
{
	int r = config_take(settings);

	if (r < 0)
		return r;
	read_option("dir", config.dir, sizeof(config.dir), "");
	if (config_variable("SHIM_PROFILE"))
		read_option("profile", config.profile, sizeof(config.profile),
			    "");
	if (config_variable("SHIM_FILTER"))
		config.filter = read_long_option("filter");
	read_option("control", config.control, sizeof(config.control),
		    config.control[0] == '1' ? "1" : "");
	return 0;
}

void config_read(void)
{
#define OPTION(name, size, value, help) \
	read_option(#name, config.name, size, value);
#define LONG_OPTION(name, help) config.name = read_long_option(#name);
#include "runtime/config.def"
#undef OPTION
#undef LONG_OPTION
	/* profrun sets it.  The program, or one that it executes, may change directory. */
	if (config.dir[0] && config.dir[0] != '/')
		log_setting("SHIM_DIR is no absolute path: it is ignored");
	report_unknown();
}

/* The length of the profiler's name in "NAME[:ARGUMENTS]". */
static size_t name_length(const char *item)
{
	size_t length = 0;

	while (item[length] && item[length] != ':' && item[length] != ';')
		length++;
	return length;
}

static bool has_profiler(const char *item)
{
	size_t length = name_length(item);
	const char *at = config.profile;

	while (*at) {
		size_t i = 0;

		while (i < length && at[i] == item[i])
			i++;
		if (i == length && name_length(at) == length)
			return true;
		while (*at && *at != ';')
			at += at[0] == '\\' && at[1] ? 2 : 1;
		at += *at == ';';
	}
	return false;
}

/* Another thread may be reading the list, so its end moves last. */
bool config_add_profiler(const char *item)
{
	size_t used = text_length(config.profile), begin = used + (used > 0);
	struct text text;

	if (has_profiler(item) || begin + 1 >= sizeof(config.profile))
		return false;
	text_init(&text, config.profile + begin,
		  sizeof(config.profile) - begin);
	for (; *item; item++) {
		if (*item == ';' || *item == '\\')
			text_add(&text, "\\");
		text_add_part(&text, item, 1);
	}
	if (text.cut) {
		config.profile[begin] = '\0';
		return false;
	}
	if (used > 0)
		__atomic_store_n(&config.profile[used], ';', __ATOMIC_RELEASE);
	return true;
}
