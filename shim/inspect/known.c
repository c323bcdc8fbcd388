/*
 * A prototype is a text: the type of the result, then type and name of each parameter.
 * Parameters behind the last one, as those of printf, are not described.
 */
#include "inspect/known.h"

#include "image/image.h"
#include "inspect/prototype.h"
#include "os/sys.h"
#include "os/text.h"
#include "runtime/state.h"

#include <shim/banned.h>

#define VALUES_MAX 8
#define NAME_SIZE  24

/* --- types --- */

static const struct type {
	char letter;
	uint8_t kind, size, format;
	const char *name;
	uint8_t inner_kind, inner_size; /* of what a pointer points to */
	const char *inner;
} types[] = {
	{ 'v', SHIM_TYPE_VOID, 0, 0, "void", 0, 0, NULL },
	{ 'i', SHIM_TYPE_SIGNED, 4, 0, "int", 0, 0, NULL },
	{ 'u', SHIM_TYPE_UNSIGNED, 4, 0, "unsigned int", 0, 0, NULL },
	{ 'l', SHIM_TYPE_SIGNED, 8, 0, "long", 0, 0, NULL },
	{ 'z', SHIM_TYPE_UNSIGNED, 8, 0, "size_t", 0, 0, NULL },
	{ 'd', SHIM_TYPE_FLOAT, 8, SHIM_TYPETREE_BINARY64, "double", 0, 0,
	  NULL },
	{ 'p', SHIM_TYPE_POINTER, 8, 0, "void *", SHIM_TYPE_VOID, 0, "void" },
	{ 's', SHIM_TYPE_POINTER, 8, 0, "const char *", SHIM_TYPE_CHARACTER, 1,
	  "char" },
};

static const struct type *type_of(char letter)
{
	const struct type *type = types;

	while (type->letter != letter)
		type++;
	return type;
}

/* --- prototypes --- */

static const struct {
	const char *name, *text;
} prototypes[] = {
	{ "abs", "i i value" },
	{ "accept", "i i socket,p address,p length" },
	{ "access", "i s path,i mode" },
	{ "atof", "d s text" },
	{ "atoi", "i s text" },
	{ "atol", "l s text" },
	{ "bind", "i i socket,p address,u length" },
	{ "calloc", "p z count,z size" },
	{ "chdir", "i s path" },
	{ "close", "i i fd" },
	{ "closedir", "i p directory" },
	{ "connect", "i i socket,p address,u length" },
	{ "cos", "d d x" },
	{ "dup", "i i fd" },
	{ "dup2", "i i fd,i to" },
	{ "exit", "v i status" },
	{ "exp", "d d x" },
	{ "fclose", "i p file" },
	{ "feof", "i p file" },
	{ "fflush", "i p file" },
	{ "fgetc", "i p file" },
	{ "fgets", "p p buffer,i size,p file" },
	{ "fmod", "d d x,d y" },
	{ "fopen", "p s path,s mode" },
	{ "fopen64", "p s path,s mode" },
	{ "fputc", "i i character,p file" },
	{ "fputs", "i s text,p file" },
	{ "fread", "z p buffer,z size,z count,p file" },
	{ "free", "v p block" },
	{ "fseek", "i p file,l offset,i whence" },
	{ "fsync", "i i fd" },
	{ "ftell", "l p file" },
	{ "fwrite", "z p buffer,z size,z count,p file" },
	{ "getc", "i p file" },
	{ "getenv", "s s name" },
	{ "getpid", "i " },
	{ "getppid", "i " },
	{ "isatty", "i i fd" },
	{ "kill", "i i pid,i signal" },
	{ "listen", "i i socket,i backlog" },
	{ "log", "d d x" },
	{ "lseek", "l i fd,l offset,i whence" },
	{ "lseek64", "l i fd,l offset,i whence" },
	{ "malloc", "p z size" },
	{ "memchr", "p p block,i byte,z size" },
	{ "memcmp", "i p a,p b,z size" },
	{ "memcpy", "p p to,p from,z size" },
	{ "memmove", "p p to,p from,z size" },
	{ "memset", "p p block,i byte,z size" },
	{ "mkdir", "i s path,u mode" },
	{ "mmap", "p p address,z size,i protection,i flags,i fd,l offset" },
	{ "mmap64", "p p address,z size,i protection,i flags,i fd,l offset" },
	{ "munmap", "i p address,z size" },
	{ "open", "i s path,i flags" },
	{ "open64", "i s path,i flags" },
	{ "openat", "i i directory,s path,i flags" },
	{ "openat64", "i i directory,s path,i flags" },
	{ "opendir", "p s path" },
	{ "poll", "i p fds,z count,i timeout" },
	{ "pow", "d d x,d y" },
	{ "pread", "l i fd,p buffer,z size,l offset" },
	{ "pread64", "l i fd,p buffer,z size,l offset" },
	{ "printf", "i s format" },
	{ "puts", "i s text" },
	{ "pwrite", "l i fd,p buffer,z size,l offset" },
	{ "pwrite64", "l i fd,p buffer,z size,l offset" },
	{ "qsort", "v p array,z count,z size,p compare" },
	{ "raise", "i i signal" },
	{ "read", "l i fd,p buffer,z size" },
	{ "readdir", "p p directory" },
	{ "readlink", "l s path,p buffer,z size" },
	{ "realloc", "p p block,z size" },
	{ "recv", "l i socket,p buffer,z size,i flags" },
	{ "rename", "i s path,s to" },
	{ "rmdir", "i s path" },
	{ "send", "l i socket,p buffer,z size,i flags" },
	{ "setenv", "i s name,s value,i overwrite" },
	{ "sin", "d d x" },
	{ "sleep", "u u seconds" },
	{ "snprintf", "i p buffer,z size,s format" },
	{ "socket", "i i domain,i type,i protocol" },
	{ "sqrt", "d d x" },
	{ "stat", "i s path,p status" },
	{ "stat64", "i s path,p status" },
	{ "strcasecmp", "i s a,s b" },
	{ "strcat", "p s to,s from" },
	{ "strchr", "s s text,i character" },
	{ "strcmp", "i s a,s b" },
	{ "strcpy", "p p to,s from" },
	{ "strdup", "s s text" },
	{ "strerror", "s i error" },
	{ "strlen", "z s text" },
	{ "strncmp", "i s a,s b,z size" },
	{ "strncpy", "p p to,s from,z size" },
	{ "strrchr", "s s text,i character" },
	{ "strstr", "s s text,s part" },
	{ "strtod", "d s text,p end" },
	{ "strtol", "l s text,p end,i base" },
	{ "strtoul", "z s text,p end,i base" },
	{ "system", "i s command" },
	{ "time", "l p time" },
	{ "unlink", "i s path" },
	{ "usleep", "i u microseconds" },
	{ "waitpid", "i i pid,p status,i options" },
	{ "write", "l i fd,p buffer,z size" },
};

static const char *find_prototype(const char *name)
{
	for (unsigned i = 0; i < sizeof(prototypes) / sizeof(*prototypes); i++)
		if (text_equal(prototypes[i].name, name))
			return prototypes[i].text;
	return NULL;
}

/* --- functions --- */

struct known {
	uintptr_t function;
	const char *prototype; /* NULL: none */
};

static struct known *functions;
static size_t room, count;

static const struct known *find(uintptr_t function)
{
	ASSERT_LOCKED();
	for (size_t i = 0; i < count; i++)
		if (functions[i].function == function)
			return &functions[i];
	return NULL;
}

bool known_has(uintptr_t function)
{
	return find(function) != NULL;
}

void known_add(uintptr_t function, const char *name)
{
	size_t more = room ? 2 * room : 256;
	void *memory;

	if (find(function))
		return;
	/* Without memory, its arguments are unavailable. */
	if (count == room) {
		struct known *before = functions;

		if (sys_map(more * sizeof(*functions), &memory) < 0)
			return;
		functions = memory;
		for (size_t i = 0; i < count; i++)
			functions[i] = before[i];
		if (before)
			sys_unmap(before, room * sizeof(*before));
		room = more;
	}
	functions[count++] = (struct known){ function, find_prototype(name) };
}

static void forget(uintptr_t start, uintptr_t end)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (functions[i].function < start ||
		    functions[i].function >= end)
			functions[kept++] = functions[i];
	count = kept;
}

SUBSCRIBE(image_went, forget);

/* --- answers --- */

struct tree {
	struct typetree_value head;
	struct shim_typetree tree;
	struct shim_typetree_node nodes[2];
	char text[40];
	char name[NAME_SIZE];
};

struct question {
	enum helper_verb verb;
	uintptr_t function;
	void (*take)(const struct debuginfo_answer *answer, void *argument);
	void *argument;
};

static uint32_t put_text(char *text, uint32_t at, const char *from)
{
	for (; *from; from++)
		text[at++] = *from;
	text[at] = '\0';
	return at + 1;
}

/* The name ends with a comma or a NUL. */
static void put_tree(struct tree *to, const struct type *type, const char *name)
{
	uint32_t length = 0, used;

	*to = (struct tree){ .tree.size = offsetof(struct tree, name) -
					  offsetof(struct tree, tree),
			     .tree.node_count = type->inner ? 2 : 1 };
	/* The text follows the nodes. */
	char *text = (char *)&to->nodes[to->tree.node_count];

	to->nodes[0] = (struct shim_typetree_node){ .size = type->size,
						    .name = 1,
						    .kind = type->kind,
						    .format = type->format };
	used = put_text(text, 1, type->name);
	if (type->inner) {
		to->nodes[0].inner = 1;
		to->nodes[1] = (struct shim_typetree_node){
			.size = type->inner_size,
			.name = used,
			.kind = type->inner_kind,
		};
		used = put_text(text, used, type->inner);
	}
	to->tree.text_size = used;
	for (; name[length] && name[length] != ',' && length < NAME_SIZE - 1;
	     length++)
		to->name[length] = name[length];
	to->head.size = sizeof(*to);
	to->head.name_size = length + 1;
}

static void put_prototype(struct prototype_value *to, const struct type *type)
{
	*to = (struct prototype_value){
		.size = type->size,
		.kind = type->size ? PROTOTYPE_REGISTERS : PROTOTYPE_NOTHING,
		.classes = { type->size == 0	 ? PROTOTYPE_NO_CLASS :
			     type->letter == 'd' ? PROTOTYPE_SSE :
						   PROTOTYPE_INTEGER },
	};
}

/* The parameter after this one, or the end. */
static const char *next_parameter(const char *at)
{
	while (*at && *at != ',')
		at++;
	return *at ? at + 1 : at;
}

static int answer_locked(void *argument)
{
	static struct prototype_value values[VALUES_MAX];
	static struct tree trees[VALUES_MAX];
	const struct question *question = argument;
	const struct known *known = find(question->function);
	struct debuginfo_answer answer = { .data = values };
	const char *at;

	if (!known || !known->prototype)
		return 0;
	put_prototype(&values[0], type_of(known->prototype[0]));
	put_tree(&trees[0], type_of(known->prototype[0]), "");
	answer.count = 1;
	for (at = known->prototype + 2; *at && answer.count < VALUES_MAX;
	     at = next_parameter(at)) {
		put_prototype(&values[answer.count], type_of(at[0]));
		put_tree(&trees[answer.count++], type_of(at[0]), at + 2);
	}
	if (question->verb == HELPER_SIGNATURE) {
		answer.data = trees;
		answer.count *= sizeof(trees[0]);
	}
	question->take(&answer, question->argument);
	return 1;
}

bool known_answer(enum helper_verb verb, uintptr_t function,
		  void (*take)(const struct debuginfo_answer *answer,
			       void *argument),
		  void *argument)
{
	struct question question = { verb, function, take, argument };

	return count > 0 &&
	       (verb == HELPER_PROTOTYPE || verb == HELPER_SIGNATURE) &&
	       state_call_locked(answer_locked, &question) == 1;
}
