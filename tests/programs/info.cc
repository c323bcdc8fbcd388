/*
 * Asks shim everything about the functions of this program and prints the answers; the
 * test knows them from other tools.  With INFO_LIBRARY it loads that library, asks
 * about it, unloads it and asks again.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "info_weak.h"

#define KEEP __attribute__((noinline))

namespace shapes {
struct point {
	int x, y;
};

template <typename T> KEEP T twice(T value)
{
	return value + value;
}

template <int N, bool B> KEEP int number(int value)
{
	return B ? value + N : value - N;
}

template <typename... T> KEEP int pack(T... values)
{
	return (int)sizeof...(values);
}

template <typename T, unsigned N> struct table {
	T cells[N];
	KEEP T *at(unsigned i)
	{
		return &cells[i % N];
	}
	template <typename U> KEEP U as(unsigned i)
	{
		return (U)cells[i % N];
	}
};
}

template <typename T> KEEP int pointer(T value)
{
	return value != nullptr;
}

namespace {
KEEP int hidden(int value)
{
	return value * 3;
}
}

extern "C" {
KEEP int plain(int value)
{
	return value + 1;
}
int other_name(int value) __attribute__((alias("plain"), nothrow));
__attribute__((weak, alias("plain"), nothrow)) int weak_name(int value);
}

/* Its address is that of an entry of the linkage table. */
#if defined(__x86_64__) && !defined(__clang__)
__attribute__((target_clones("avx2", "default")))
#endif
KEEP int chosen(int value)
{
	return value + 5;
}

/* gcc moves the throwing code into a cold part. */
KEEP int splits(int value, const char *text)
{
	if (__builtin_expect(value == 12345, 0)) {
		fprintf(stderr, "%s\n", text);
		for (int i = 0; i < value; i++)
			fputs(text, stderr);
		abort();
	}
	return value * 7;
}

static int use(int value)
{
	shapes::point where = { 1, 2 };
	shapes::table<long, 4> table = {};

	value += shapes::twice(value);
	value += (int)shapes::twice(2.5);
	value += shapes::number<42, true>(value);
	value += shapes::number<-7, false>(value);
	value += shapes::pack(1, 'a', &where);
	value += (int)*table.at(3);
	value += table.as<short>(2);
	value += pointer<const shapes::point *>(&where);
	value += pointer<int (*)(int)>(plain);
	value += chosen(value);
	value += hidden(value) + plain(value) + other_name(value);
	return value + splits(value, "cold");
}

/* --- printing --- */

typedef enum shim_result (*text_call)(shim_function, uint32_t, uint32_t *,
				      char *);

static void print_text(const char *what, text_call call, shim_function function)
{
	uint32_t total = 0;
	enum shim_result r = call(function, 0, &total, nullptr);

	printf("\t%s ", what);
	if (r != SHIM_OK) {
		printf("!%s", shim_result_name(r));
		return;
	}
	std::vector<char> text(total + 1);
	r = call(function, total, nullptr, text.data());
	for (uint32_t i = 0; i + 1 < total; i++)
		putchar(text[i] ? text[i] : '\1');
	if (r != SHIM_OK)
		printf("!%s", shim_result_name(r));
}

static void print_ranges(shim_function function, uintptr_t bias)
{
	struct shim_code_range ranges[32];
	uint32_t total = 0;
	enum shim_result r = shim_function_ranges(function, 32, &total, ranges);

	printf("\tranges ");
	if (r != SHIM_OK)
		printf("!%s", shim_result_name(r));
	for (uint32_t i = 0; r == SHIM_OK && i < total; i++)
		printf("%s%" PRIxPTR "+%zx", i ? "," : "",
		       ranges[i].start - bias, ranges[i].size);
}

static void print_lines(shim_function function)
{
	static struct shim_line lines[10000];
	uint32_t total = 0;
	enum shim_result r = shim_function_lines(function, 10000, &total, lines);

	printf("\tlines ");
	if (r != SHIM_OK)
		printf("!%s", shim_result_name(r));
	for (uint32_t i = 0; r == SHIM_OK && i < total; i++)
		printf("%s%u@%x-%x", i ? "," : "", lines[i].line,
		       lines[i].start, lines[i].end);
}

static void print_function(shim_function function)
{
	shim_image image = 0;
	uint64_t offset = 0;
	intptr_t bias = 0;
	const void *start;
	uint32_t size = 0;

	shim_function_info(function, &image, &offset);
	shim_image_info(image, nullptr, nullptr, &bias, nullptr, 0, nullptr,
			nullptr);
	shim_function_code(function, &start, &size);
	printf("function %" PRIx64 "\tsize %x", offset, size);
	print_text("name", shim_function_name, function);
	print_text("aliases", shim_function_aliases, function);
	print_text("demangled", shim_function_demangled_name, function);
	print_ranges(function, (uintptr_t)bias);
	print_text("file", shim_function_file, function);
	print_lines(function);
	print_text("arguments", shim_function_template_arguments, function);
	putchar('\n');
}

static bool print_image(shim_image image)
{
	const void *base = nullptr;
	unsigned char id[64];
	uint32_t flags = 0, total = 0;
	char path[4096];
	size_t size = 0;
	intptr_t bias = 0;
	enum shim_result r = shim_image_info(image, &base, &size, &bias, &flags,
					     sizeof(path), nullptr, path);

	if (r != SHIM_OK) {
		printf("image !%s\n", shim_result_name(r));
		return false;
	}
	shim_image_build_id(image, sizeof(id), &total, id);
	printf("image %s\tbias %" PRIxPTR "\tflags %x\tid ", path,
	       (uintptr_t)bias, flags);
	for (uint32_t i = 0; i < total; i++)
		printf("%02x", id[i]);
	putchar('\n');
	return true;
}

static void print_functions(shim_image image)
{
	struct shim_enum *functions;
	uint64_t function;

	if (!print_image(image) ||
	    shim_function_enumerate(image, &functions) != SHIM_OK)
		return;
	while (shim_enum_next(functions, 1, &function, nullptr) == SHIM_OK)
		print_function(function);
	shim_enum_destroy(functions);
}

static bool is_in_enumeration(shim_image image)
{
	struct shim_enum *images;
	uint64_t id;
	bool found = false;

	if (shim_image_enumerate(&images) != SHIM_OK)
		return false;
	while (shim_enum_next(images, 1, &id, nullptr) == SHIM_OK)
		found = found || id == image;
	shim_enum_destroy(images);
	return found;
}

static void load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);
	void *function = handle ? dlsym(handle, "plugin_function") : nullptr;
	shim_function found = 0;
	shim_image image = 0;
	enum shim_result r;
	char name[64] = "";

	if (!function) {
		printf("cannot load: %s\n", dlerror());
		return;
	}
	r = shim_function_from_address2((char *)function + 1, &found);
	printf("loaded %s %d\n", shim_result_name(r),
	       found == (shim_function)function);
	r = shim_function_info(found, &image, nullptr);
	printf("listed %s %d\n", shim_result_name(r), is_in_enumeration(image));
	print_functions(image);
	dlclose(handle);
	r = shim_image_info(image, nullptr, nullptr, nullptr, nullptr, 0,
			    nullptr, nullptr);
	printf("gone image %s %d\n", shim_result_name(r),
	       is_in_enumeration(image));
	r = shim_function_name(found, sizeof(name), nullptr, name);
	printf("gone function %s '%s'\n", shim_result_name(r), name);
	r = shim_function_lines(found, 0, nullptr, nullptr);
	printf("gone lines %s\n", shim_result_name(r));
	r = shim_function_from_address(function, &found);
	printf("gone address %s\n", shim_result_name(r));
}

/* Removes this program's file and gives its name to another. */
static void replace(const char *other)
{
	std::string path(4096, '\0');

	path.resize(readlink("/proc/self/exe", &path[0], path.size()));
	unlink(path.c_str());
	if (symlink(other, path.c_str()) != 0)
		perror("symlink");
}

static const char *library;
static bool is_done;

static void ask(struct shim_profiler *)
{
	shim_image self = 0;
	uint32_t total = 0, pid = 0;
	char text[512], path[4096];

	is_done = true;
	if (getenv("INFO_REPLACE"))
		replace(getenv("INFO_REPLACE"));
	shim_image_from_address((void *)use, &self);
	if (library) {
		load(library);
		return;
	}
	shim_process_info(&pid, sizeof(path), nullptr, path);
	printf("process %d %s\n", pid == (uint32_t)getpid(), path);
	shim_runtime_info(nullptr, nullptr, nullptr, sizeof(text), &total, text);
	printf("runtime %s\n", text);
	print_functions(self);
}

__attribute__((constructor)) static void begin()
{
	library = getenv("INFO_LIBRARY");
	if (shim_profiler_create)
		shim_profiler_on_runtime_initialized(
			shim_profiler_create(nullptr), ask);
}

int main(int argc, char **)
{
	if (!is_done)
		puts("no runtime_initialized");
	return use(argc) == 0;
}
