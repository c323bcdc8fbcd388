/* Patterns of names: few enough to compare each import with all of them. */
#include "sources/libcall_names.h"

#include "os/text.h"

#include <stdbool.h>

#include <shim/banned.h>

/* A name that ends with '*' stands for all that begin so. */
static const struct {
	const char *name;
	enum libcall_left left;
} names[] = {
	{ "setjmp", LIBCALL_RETURNS },
	{ "_setjmp", LIBCALL_RETURNS },
	{ "sigsetjmp", LIBCALL_RETURNS },
	{ "__sigsetjmp", LIBCALL_RETURNS },
	{ "savectx", LIBCALL_RETURNS },
	{ "vfork", LIBCALL_RETURNS },
	{ "__vfork", LIBCALL_RETURNS },
	{ "clone", LIBCALL_RETURNS },
	{ "__clone", LIBCALL_RETURNS },
	{ "getcontext", LIBCALL_RETURNS },
	{ "setcontext", LIBCALL_RETURNS },
	{ "swapcontext", LIBCALL_RETURNS },
	{ "makecontext", LIBCALL_RETURNS },
	{ "longjmp", LIBCALL_RETURNS },
	{ "_longjmp", LIBCALL_RETURNS },
	{ "siglongjmp", LIBCALL_RETURNS },
	{ "__longjmp_chk", LIBCALL_RETURNS },
	{ "pthread_exit", LIBCALL_RETURNS },
	{ "thrd_exit", LIBCALL_RETURNS },
	{ "_exit", LIBCALL_RETURNS },
	{ "_Exit", LIBCALL_RETURNS },
	{ "execl", LIBCALL_RETURNS },
	{ "execle", LIBCALL_RETURNS },
	{ "execlp", LIBCALL_RETURNS },
	{ "execv", LIBCALL_RETURNS },
	{ "execve", LIBCALL_RETURNS },
	{ "execveat", LIBCALL_RETURNS },
	{ "execvp", LIBCALL_RETURNS },
	{ "execvpe", LIBCALL_RETURNS },
	{ "fexecve", LIBCALL_RETURNS },
	{ "_Unwind_*", LIBCALL_RETURNS },
	{ "__cxa_throw", LIBCALL_RETURNS },
	{ "__cxa_rethrow", LIBCALL_RETURNS },
	{ "__morestack*", LIBCALL_RETURNS },
	{ "__tls_get_addr", LIBCALL_ADDRESS }, /* keeps more registers */
	{ "_dl_*", LIBCALL_ADDRESS },
	{ "dl_iterate_phdr", LIBCALL_ADDRESS },
	{ "dladdr", LIBCALL_ADDRESS },
	{ "dladdr1", LIBCALL_ADDRESS },
	{ "dlclose", LIBCALL_ADDRESS },
	{ "dlerror", LIBCALL_ADDRESS },
	{ "dlinfo", LIBCALL_ADDRESS },
	{ "dlmopen", LIBCALL_ADDRESS },
	{ "dlopen", LIBCALL_ADDRESS },
	{ "dlsym", LIBCALL_ADDRESS },
	{ "dlvsym", LIBCALL_ADDRESS },
	{ "__asan_*", LIBCALL_ADDRESS },
	{ "__hwasan_*", LIBCALL_ADDRESS },
	{ "__lsan_*", LIBCALL_ADDRESS },
	{ "__msan_*", LIBCALL_ADDRESS },
	{ "__sanitizer_*", LIBCALL_ADDRESS },
	{ "__tsan_*", LIBCALL_ADDRESS },
	{ "__ubsan_*", LIBCALL_ADDRESS },
	{ "__cyg_profile_*", LIBCALL_COMPILER },
	{ "__fentry__", LIBCALL_COMPILER },
	{ "_mcount", LIBCALL_COMPILER },
	{ "mcount", LIBCALL_COMPILER },
	{ "__xray_*", LIBCALL_COMPILER },
	{ "__libc_start_main", LIBCALL_COMPILER },
	/* A program at a fixed address has its own slot for them, which the unwinder calls. */
	{ "__gcc_personality_*", LIBCALL_COMPILER },
	{ "__gxx_personality_*", LIBCALL_COMPILER },
	{ "__cxa_finalize", LIBCALL_COMPILER },
	{ "__gmon_start__", LIBCALL_COMPILER },
	{ "_ITM_*", LIBCALL_COMPILER },
};

static bool is_like(const char *pattern, const char *name)
{
	while (*pattern && *pattern != '*' && *pattern == *name)
		pattern++, name++;
	return *pattern == '*' || *pattern == *name;
}

enum libcall_left libcall_names_find(const char *name)
{
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (is_like(names[i].name, name))
			return names[i].left;
	return LIBCALL_TAKEN;
}
