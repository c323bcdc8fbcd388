/*
 * debuginfo FILE RUNS [SEED [DIRECTORY]]: tests libshim-debuginfo.so with
 * damaged debug information.  Each run damages a copy of FILE, an ELF file, and
 * asks everything about each of its functions and some of its calls.  A process
 * of its own does that, and aborts if an answer breaks a rule on which
 * libshim.so relies.  Counts the ends of these processes.  Files that made one
 * crash, or take long, are put into DIRECTORY.
 *
 * The damage of a run depends only on SEED and the number of the run.
 */
#define _GNU_SOURCE
#include "../../shim/inspect/callsite.h"
#include "../../shim/inspect/debuginfo/debuginfo.h"
#include "../../shim/print/print.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern const struct debuginfo shim_debuginfo;

#define SECONDS_MAX   4
#define FUNCTIONS_MAX 4096
/* size of the stack that libshim.so provides */
#define STACK_SIZE (1u << 20)

#define CALLS_MAX 3 /* limit for a function */

struct call {
	uint64_t site, callee;
};

struct function {
	uint64_t start, size;
	struct call calls[CALLS_MAX];
	unsigned call_count;
};

/* The original file, and its damaged copy. */
static unsigned char *original, *damaged;
static size_t size;
static struct function functions[FUNCTIONS_MAX];
static size_t function_count;
static const unsigned char *build_id;
static uint32_t build_id_size;

/* --- reading --- */

static void die(const char *what) __attribute__((noreturn));

static void die(const char *what)
{
	fprintf(stderr, "debuginfo: %s\n", what);
	exit(2);
}

static void read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	long end = 0;

	if (!file || fseek(file, 0, SEEK_END) != 0 || (end = ftell(file)) < 0)
		die("cannot read the file");
	size = (size_t)end;
	original = malloc(size);
	damaged = malloc(size);
	rewind(file);
	if (!original || !damaged || fread(original, 1, size, file) != size)
		die("cannot read the file");
	fclose(file);
	if (size < sizeof(Elf64_Ehdr) ||
	    memcmp(original, ELFMAG, SELFMAG) != 0 ||
	    original[EI_CLASS] != ELFCLASS64)
		die("not an ELF file of 64 bits");
}

static const Elf64_Shdr *sections(size_t *count)
{
	const Elf64_Ehdr *header = (const void *)original;

	*count = header->e_shnum;
	return (const void *)(original + header->e_shoff);
}

static void find_build_id(const Elf64_Shdr *section)
{
	const Elf64_Nhdr *note = (const void *)(original + section->sh_offset);

	if (section->sh_type != SHT_NOTE || note->n_type != NT_GNU_BUILD_ID ||
	    note->n_namesz != 4)
		return;
	build_id = (const unsigned char *)(note + 1) + 4;
	build_id_size = note->n_descsz;
}

static void find_functions(const Elf64_Shdr *section)
{
	const Elf64_Sym *symbols = (const void *)(original +
						  section->sh_offset);

	if (section->sh_type != SHT_SYMTAB)
		return;
	for (size_t i = 0; i < section->sh_size / sizeof(*symbols); i++)
		if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC &&
		    symbols[i].st_size > 0 && function_count < FUNCTIONS_MAX)
			functions[function_count++] = (struct function){
				.start = symbols[i].st_value,
				.size = symbols[i].st_size,
			};
}

static bool begins_function(uint64_t address)
{
	for (size_t i = 0; i < function_count; i++)
		if (functions[i].start == address)
			return true;
	return false;
}

/* Finds code in the file that looks like a call of the function (x86-64
 * only). */
static void find_calls(struct function *function, const unsigned char *code)
{
	for (uint64_t i = 0;
	     i + 5 <= function->size && function->call_count < CALLS_MAX; i++) {
		uint64_t site = function->start + i + 5;
		int32_t distance;

		memcpy(&distance, code + i + 1, sizeof(distance));
		if (code[i] == 0xe8 &&
		    begins_function(site + (uint64_t)(int64_t)distance))
			function->calls[function->call_count++] = (struct call){
				site,
				site + (uint64_t)(int64_t)distance,
			};
	}
}

static void find_calls_in(const Elf64_Shdr *section)
{
	if (section->sh_type != SHT_PROGBITS ||
	    !(section->sh_flags & SHF_EXECINSTR))
		return;
	for (size_t i = 0; i < function_count; i++)
		if (functions[i].start >= section->sh_addr &&
		    functions[i].start + functions[i].size <=
			    section->sh_addr + section->sh_size)
			find_calls(&functions[i], original +
							  section->sh_offset +
							  functions[i].start -
							  section->sh_addr);
}

/* --- damage --- */

static uint64_t state;

static uint64_t random_number(uint64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % below;
}

/* Sections that the reader reads, and those that say where they are. */
static bool is_read(const char *name)
{
	return strncmp(name, ".debug", 6) == 0 ||
	       strcmp(name, ".eh_frame") == 0;
}

/* An operation without an operand; a constant, if it is alone. */
static bool is_operation(const unsigned char *at)
{
	return (*at >= DW_OP_and && *at <= DW_OP_xor) || *at == DW_OP_deref ||
	       (at[-1] == 1 && *at >= DW_OP_lit0 && *at <= DW_OP_lit31);
}

/* From here on, replaces each byte that looks like an operation of an
 * expression. */
static void damage_operations(unsigned char *at, size_t room)
{
	for (size_t i = 1; i < room; i++)
		if (is_operation(at + i) && random_number(4) == 0)
			at[i] = (unsigned char)(DW_OP_and +
						random_number(DW_OP_xor + 1 -
							      DW_OP_and));
}

static void damage_bytes(unsigned char *at, size_t room)
{
	static const uint64_t odd[] = {
		0,	    ~0ull,	0x7f, 0x80,    0xff,
		0x7fffffff, 0x80000000, 1,    0x10000, 0x7fffffffffffffff
	};
	size_t first = random_number(room), length = 1 + random_number(8);
	uint64_t number = odd[random_number(sizeof(odd) / sizeof(odd[0]))];

	if (length > room - first)
		length = room - first;
	switch (random_number(7)) {
	case 6:
		damage_operations(at + first,
				  room - first < 2000 ? room - first : 2000);
		break;
	case 0: at[first] ^= (unsigned char)(1u << random_number(8)); break;
	case 1: at[first] = (unsigned char)random_number(256); break;
	case 2: memcpy(at + first, &number, length); break;
	case 3: at[first] = (unsigned char)(at[first] + 1); break;
	case 4: /* bytes from elsewhere in the section */
		memmove(at + first, at + random_number(room - length + 1),
			length);
		break;
	case 5: memset(at + first, 0, length); break;
	}
}

static void damage_section(void)
{
	const Elf64_Ehdr *header = (const void *)original;
	size_t count;
	const Elf64_Shdr *all = sections(&count), *section;
	const char *names = (const char *)original +
			    all[header->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < 1000; i++) {
		section = &all[random_number(count)];
		if (section->sh_type == SHT_NOBITS || section->sh_size == 0 ||
		    !is_read(names + section->sh_name))
			continue;
		damage_bytes(damaged + section->sh_offset, section->sh_size);
		return;
	}
}

/* Damages the copy; returns its remaining size. */
static size_t damage(void)
{
	const Elf64_Ehdr *header = (const void *)original;
	size_t count;
	unsigned times = 1 + (unsigned)random_number(8);

	sections(&count);
	memcpy(damaged, original, size);
	while (times-- > 0)
		damage_section();
	switch (random_number(20)) {
	case 0: return random_number(size);
	case 1:
		damage_bytes(damaged + header->e_shoff,
			     count * sizeof(Elf64_Shdr));
		break;
	case 2: damage_bytes(damaged, sizeof(*header)); break;
	}
	return size;
}

/* --- inquiries --- */

static unsigned char looked_at;
static unsigned *answered; /* shared with the processes of the runs */

/* All memory of an answer must be readable. */
static void look(const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		looked_at ^= ((const unsigned char *)data)[i];
}

/* A rule on which libshim.so relies without a check. */
static void claim(bool is_so)
{
	if (!is_so)
		abort();
}

/* The depth of the stack of numbers is not counted when libshim.so follows
 * these steps. */
static void look_at_steps(const struct callsite_value *value)
{
	int depth = 0;

	for (unsigned i = 0; i < value->count; i++) {
		const struct callsite_step *step = &value->steps[i];

		claim(step->operation <= CALLSITE_NOT);
		switch (step->operation) {
		case CALLSITE_CONSTANT:
		case CALLSITE_REGISTER:
		case CALLSITE_SP: claim(++depth <= CALLSITE_DEPTH_MAX); break;
		case CALLSITE_LOAD:
			claim(step->number > 0 && step->number <= 8);
			/* fall through */
		case CALLSITE_NEGATE:
		case CALLSITE_NOT: claim(depth > 0); break;
		default: claim(--depth > 0);
		}
	}
	claim(depth == 1);
}

static void look_at_callsite(const struct debuginfo_answer *answer)
{
	const struct callsite *callsite = answer->data;

	look(callsite, sizeof(*callsite));
	claim(answer->count == 1 && callsite->count <= CALLSITE_VALUES_MAX);
	for (uint32_t i = 0; i < callsite->count; i++) {
		const struct callsite_value *value = &callsite->values[i];

		claim(value->count > 0 && value->count <= CALLSITE_STEPS_MAX &&
		      value->size <= 8);
		look_at_steps(value);
	}
}

static void look_at_types(const struct debuginfo_answer *answer)
{
	const unsigned char *at = answer->data;
	uint64_t left = answer->count;

	look(at, left);
	while (left > 0) {
		const struct typetree_value *value = (const void *)at;
		const struct shim_typetree *tree = typetree_of(value);

		claim(left >= sizeof(*value) + sizeof(*tree) &&
		      value->size <= left && value->size % 8 == 0 &&
		      value->size >= sizeof(*value) + sizeof(*tree));
		claim((uint64_t)tree->size + value->name_size <=
			      value->size - sizeof(*value) &&
		      value->name_size > 0 &&
		      typetree_name_of(value)[value->name_size - 1] == '\0');
		/* libshim.so checks these itself, but damage of the file does
		 * not excuse an error. */
		claim(print_is_valid(tree, tree->size));
		at += value->size;
		left -= value->size;
	}
}

static void look_at_variables(const struct debuginfo_answer *answer)
{
	const struct variables *all = answer->data;
	const char *bytes = answer->data;

	look(all, all->size);
	claim(all->count <= VARIABLES_MAX &&
	      all->parameter_count <= all->count && all->steps <= all->size);
	for (uint32_t i = 0; i < all->count; i++) {
		const struct variable *variable = &all->variables[i];
		const void *last = variables_steps(all, variable) +
				   variable->step_count;

		claim((const char *)last <= bytes + all->size);
		claim(variable->name < all->size &&
		      memchr(bytes + variable->name, '\0',
			     all->size - variable->name));
	}
}

static void ask(debuginfo_call *call, const struct debuginfo_question *question,
		void (*look_at)(const struct debuginfo_answer *answer),
		size_t element_size)
{
	struct debuginfo_answer answer = { .count = 0 };

	if (call(question, &answer) != 0)
		return;
	if (look_at)
		look_at(&answer);
	else
		look(answer.data, answer.count * element_size);
	++*answered;
}

static void ask_about_calls(struct debuginfo_question *question,
			    const struct function *function)
{
	for (unsigned i = 0; i < function->call_count; i++) {
		question->site = function->calls[i].site;
		question->callee = function->calls[i].callee;
		ask(shim_debuginfo.callsite, question, look_at_callsite, 0);
		question->callee = 0;
		ask(shim_debuginfo.callsite, question, look_at_callsite, 0);
		ask(shim_debuginfo.locals, question, look_at_variables, 0);
	}
}

/* Counts the names, which end within it. */
static uint32_t count_names(const struct debuginfo_lines *lines)
{
	uint32_t names = 0;

	for (uint32_t i = 0; i < lines->files_size; i++)
		names += lines->files[i] == '\0';
	return names;
}

static void ask_line_table(const char *path)
{
	struct debuginfo_question question = {
		.image = 1,
		.path = path,
		.build_id = build_id,
		.build_id_size = build_id_size,
		.range_count = 1,
		.ranges = { { 0, UINT32_MAX } },
	};
	struct debuginfo_answer answer = { .count = 0 };
	const struct debuginfo_lines *lines;

	if (shim_debuginfo.linetable(&question, &answer) != 0)
		return;
	lines = answer.data;
	look(lines->rows, lines->row_count * sizeof(*lines->rows));
	look(lines->files, lines->files_size);
	claim(count_names(lines) == lines->file_count);
	for (uint64_t i = 0; i < lines->row_count; i++) {
		const struct debuginfo_row *row = &lines->rows[i];

		if (row->file >= lines->file_count ||
		    (i > 0 && row->address < row[-1].address))
			abort();
	}
	++*answered;
}

/* Asks about all names in the file, as if each function had been inlined where
 * it calls. */
static void ask_about_inlined(struct debuginfo_question *question,
			      const struct function *function)
{
	static const char names[] = "main\0ask\0look\0die\0add\0find\0";

	question->inlined = names;
	question->inlined_size = sizeof(names) - 1;
	for (unsigned i = 0; i < function->call_count; i++) {
		question->site = function->calls[i].site;
		ask(shim_debuginfo.prototype, question, NULL,
		    sizeof(struct prototype_value));
	}
	question->inlined = NULL;
}

static void open_ahead(const char *path)
{
	struct debuginfo_question question = {
		.image = 1,
		.path = path,
		.build_id = build_id,
		.build_id_size = build_id_size,
	};
	struct debuginfo_answer answer = { .count = 0 };

	shim_debuginfo.open(&question, &answer);
}

static void ask_everything(const char *path)
{
	if (random_number(2))
		open_ahead(path);
	ask_line_table(path);
	for (size_t i = 0; i < function_count; i++) {
		struct debuginfo_question question = {
			.image = 1,
			.path = path,
			.build_id = build_id,
			.build_id_size = build_id_size,
			.range_count = 1,
			.ranges = { { functions[i].start, functions[i].size } },
		};

		ask(shim_debuginfo.prototype, &question, NULL,
		    sizeof(struct prototype_value));
		ask(shim_debuginfo.signature, &question, look_at_types, 0);
		ask(shim_debuginfo.lines, &question, NULL, 16);
		ask(shim_debuginfo.file, &question, NULL, 1);
		ask(shim_debuginfo.template_arguments, &question, NULL, 1);
		ask_about_calls(&question, &functions[i]);
		ask_about_inlined(&question, &functions[i]);
	}
}

/* --- runs --- */

static void write_file(int fd, size_t left)
{
	if (ftruncate(fd, 0) != 0 || pwrite(fd, damaged, left, 0) < 0)
		die("cannot write the damaged file");
}

static int run(const char *path)
{
	int status;
	pid_t child = fork();

	if (child < 0)
		die("cannot fork");
	if (child == 0) {
		struct rlimit none = { 0, 0 };
#ifndef __SANITIZE_ADDRESS__
		struct rlimit helper = { STACK_SIZE, STACK_SIZE };

		setrlimit(RLIMIT_STACK, &helper);
#endif
		setrlimit(RLIMIT_CORE, &none);
		alarm(SECONDS_MAX);
		shim_debuginfo.start();
		ask_everything(path);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return status;
}

static void save(const char *directory, unsigned number, size_t left,
		 const char *how)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.%u", directory, how, number);
	file = fopen(path, "wb");
	if (!file || fwrite(damaged, 1, left, file) != left)
		die("cannot save a file");
	fclose(file);
}

int main(int argc, char **argv)
{
	unsigned runs = argc > 2 ? (unsigned)atoi(argv[2]) : 0, ended = 0;
	uint64_t seed = argc > 3 ? (uint64_t)atoll(argv[3]) : 1;
	unsigned crashed = 0, stopped = 0, long_ones = 0;
	size_t count;
	char path[64];
	int fd;

	if (runs == 0)
		die("usage: debuginfo FILE RUNS [SEED [DIRECTORY]]");
	read_file(argv[1]);
	for (size_t i = 0; i < (sections(&count), count); i++) {
		find_build_id(&sections(&count)[i]);
		find_functions(&sections(&count)[i]);
	}
	if (function_count == 0)
		die("the file has no functions");
	for (size_t i = 0; i < count; i++)
		find_calls_in(&sections(&count)[i]);
	answered = mmap(NULL, sizeof(*answered), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answered == MAP_FAILED)
		die("no memory");
	fd = memfd_create("damaged", 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	for (unsigned i = 0; i < runs; i++) {
		int status;
		size_t left;

		state = seed * 1000003 + i;
		random_number(2);
		left = damage();
		write_file(fd, left);
		status = run(path);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			ended++;
		} else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
			long_ones++;
			if (argc > 4)
				save(argv[4], i, left, "long");
		} else {
			if (WIFSIGNALED(status))
				crashed++;
			else
				stopped++; /* stopped by a sanitizer */
			if (argc > 4)
				save(argv[4], i, left, "crash");
		}
	}
	printf("%u runs over %zu functions, %u answers: %u ended, %u crashed, %u "
	       "were found wrong by a sanitizer, %u took over %d s\n",
	       runs, function_count, *answered, ended, crashed, stopped,
	       long_ones, SECONDS_MAX);
	/* A run that takes long does so inside libdw: libshim.so ends such a
	 * process. */
	return stopped + crashed > 0;
}
