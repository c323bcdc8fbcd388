/*
 * Prints the functions of libshim that an object of the process calls through its slots,
 * of those that take locks or memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const families[] = {
	"pthread_mutex_", "pthread_rwlock_", "pthread_cond_", "pthread_spin_",
	"sem_",		  "malloc",	     "calloc",	      "realloc",
	"free",		  "posix_memalign",  "aligned_alloc",
};

static int is_asked_for(const char *name)
{
	for (unsigned i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (!strncmp(name, families[i], strlen(families[i])))
			return 1;
	return 0;
}

static void look_at(const struct link_map *map)
{
	const ElfW(Sym) *symbols = NULL;
	const char *strings = NULL;
	const ElfW(Rela) *slots = NULL;
	size_t size = 0;

	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag; entry++)
		switch (entry->d_tag) {
		case DT_SYMTAB: symbols = (void *)entry->d_un.d_ptr; break;
		case DT_STRTAB: strings = (void *)entry->d_un.d_ptr; break;
		case DT_JMPREL: slots = (void *)entry->d_un.d_ptr; break;
		case DT_PLTRELSZ: size = entry->d_un.d_val; break;
		}
	if ((uintptr_t)symbols < map->l_addr)
		return; /* the loader has not relocated the vdso's section */
	for (size_t i = 0; i < size / sizeof(*slots); i++) {
		const char *name = strings +
				   symbols[slots[i].r_info >> 32].st_name;
		void *at = *(void **)(map->l_addr + slots[i].r_offset);
		Dl_info info;

		if (is_asked_for(name) && dladdr(at, &info) &&
		    strstr(info.dli_fname, "libshim.so"))
			printf("%s calls %s of %s\n", map->l_name, name,
			       info.dli_fname);
	}
}

static void look_at_all(void)
{
	const struct link_map *map = _r_debug.r_map;

	for (; map; map = map->l_next)
		if (!strstr(map->l_name, "libshim.so"))
			look_at(map);
}

static void use(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
	static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
	void *volatile block = malloc(10);
	sem_t semaphore;

	block = realloc(block, 1000);
	free(block);
	sem_init(&semaphore, 0, 1);
	sem_wait(&semaphore);
	pthread_mutex_lock(&mutex);
	pthread_cond_signal(&condition);
	pthread_mutex_unlock(&mutex);
	pthread_rwlock_rdlock(&rwlock);
	pthread_rwlock_unlock(&rwlock);
}

int main(void)
{
	use();
	look_at_all();
	return 0;
}
