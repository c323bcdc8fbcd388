/*
 * The objects the program has loaded: recorded when they come and when they go,
 * so that the report can name every address whatever was there later, and kept
 * in memory for whoever asks.
 *
 * Readers take no lock.  They say that they read (image_pin); what has gone is
 * no longer found at once, but its memory is used again only when nobody reads.
 * A reader that never ends, killed or left by a jump, costs memory, no more.
 */
#ifndef SHIM_IMAGE_H
#define SHIM_IMAGE_H

#include "runtime/subscribe.h"

#include <shim/shim.h>
#include <stdbool.h>

struct symbols;
struct shim_image_record;

#define IMAGE_PATH_SIZE 2048
#define IMAGE_BUILD_ID_SIZE 64

struct image_entry {
	shim_image id;	      /* 0: it has gone, or never was */
	uintptr_t start, end; /* end may grow */
	uintptr_t bias;
	uint64_t device, inode;
	uint32_t flags; /* enum shim_image_flags */
	uint32_t build_id_size;
	unsigned char build_id[IMAGE_BUILD_ID_SIZE];
	struct symbols *symbols; /* see symbols.h; NULL: not read yet */
	shim_image told;	 /* in the log that it has none */
	uint32_t path_size;	 /* with the NUL */
	char path[IMAGE_PATH_SIZE];

	/* image.c's */
	uint32_t index;
	uint64_t made; /* how many ids this place has had */
	uint32_t scan; /* the last one that saw it */
	uint32_t status;
	struct shim_image_record *record; /* NULL: it did not fit */
	uint64_t came;		/* the order in which images came */
	uint64_t load_notice;	/* in which order modules are told; */
	uint64_t unload_notice; /* 0: nothing to tell */
	uint32_t generation;
	uintptr_t frames; /* what dispatch/call_sites.h wants of it */
	bool may_go;
	bool has_hooks;	   /* its code calls them, as far as is known */
	bool is_looked_at; /* coverage.h's */
	bool is_opened;	   /* inspect/debuginfo_prefetch.h's */
};

/* Compares what is loaded with what is known; records the difference, binds
 * the hooks of what is new, and tells our own profilers what is gone.  State
 * lock held. */
int image_scan(void);

/* The last scan has found images that are not listed, without memory for a longer
 * list.  State lock held. */
bool image_lacks_memory(void);

/*
 * What is mapped at @address, as an image that nobody else is told of: its program
 * may not be ready yet.  0; -ENOENT if that is no image.  State lock held.
 */
int image_describe(uintptr_t address, struct image_entry *entry);

/* The same for who does not hold the lock. */
void image_look_again(void);

/* Something is being opened.  What is @unseen will not be looked at when it is
 * there, but by image_look_for, and before anything is closed. */
void image_opening(bool unseen);
bool image_is_unseen(void);

/* Looks again if no image is known at @address and one may be. */
void image_look_for(uintptr_t address);

/* Tells modules what came and went since.  Only where they may be called: no
 * lock is held, and the program is between two instructions of its own. */
void image_raise_pending(void);

/* A profiler that is set up before main is told of the images that are there, too:
 * of those that had come when @handle was ready for events. */
struct shim_profiler_handle;
void image_note_came(struct shim_profiler_handle *handle);

/*
 * For rooms above, with the state lock held.  An image came: @image is NULL if there
 * is no room for it; @may_go: another thread may unload it while we look.
 */
struct image_facts;
TOPIC(image_came, struct image_entry *image, const struct image_facts *facts,
      bool may_go);
/* The one that was at [@start, @end) went. */
TOPIC(image_went, uintptr_t start, uintptr_t end);
/* All that came and went is known. */
TOPIC(images_scanned, void);
/* In a forked child: before images are looked at, for each that is still there, and
 * then, with whether they could be looked at. */
TOPIC(images_fork, void);
TOPIC(image_forked_as_well, struct image_entry *image);
TOPIC(images_forked, bool is_complete);

/*
 * Whether modules have been told that @id came: if not, they are told now, or,
 * if another thread is at it, waited for.  A second at most: it may want what
 * the calling thread has (the loader's lock, in a destructor); then false.
 */
bool image_was_told(shim_image id);

/* Around dlclose: 1 before, 0 after.  Between the two an address may already
 * belong to what another thread has just loaded. */
void image_closing(int begins);
/* Is someone between the two?  State lock held: whoever wants to begin waits.
 */
bool image_is_closing(void);

/* In a forked child: writes all of them into its own recording. */
void image_forked(void);

/* --- reading; async --- */

/* What the functions below return stays until image_unpin. */
void image_pin(void);
void image_unpin(void);

/* Whether @address is in libshim.so itself.  Async. */
bool image_is_ours(uintptr_t address);

/* The image that covers @address, or NULL. */
struct image_entry *image_find(uintptr_t address);
/* Whether an image that has gone covered it. */
bool image_was_at(uintptr_t address);
/* The image of @id, or NULL and whether there was one. */
struct image_entry *image_get(shim_image id, bool *has_been);
/* Their number; images[] are in the order of their addresses.  An id may have
 * become 0 since. */
uint32_t image_list(struct image_entry *const **images);

#endif
