/*
 * Images: the objects that the program has loaded.  Each is recorded when it is loaded
 * and when it is unloaded, so that the report can name an address that was used again
 * later.  A list of them is kept in memory.
 *
 * Readers take no lock, but pin the list (image_pin).  An unloaded image is no longer
 * found, but its entry is reused only when no thread reads.  A reader that never ends
 * (its thread was killed, or left by a jump) costs only memory.
 */
#ifndef SHIM_IMAGE_H
#define SHIM_IMAGE_H

#include "runtime/subscribe.h"

#include <shim/shim.h>
#include <stdbool.h>

struct symbols;
struct shim_image_record;

#define IMAGE_PATH_SIZE	    2048
#define IMAGE_BUILD_ID_SIZE 64

struct image_entry {
	shim_image id;	      /* 0: unloaded, or unused */
	uintptr_t start, end; /* @end may grow */
	uintptr_t bias;
	uint64_t device, inode;
	uint32_t flags; /* enum shim_image_flags */
	uint32_t build_id_size;
	unsigned char build_id[IMAGE_BUILD_ID_SIZE];
	struct symbols *symbols; /* see symbols.h; NULL: not read yet */
	shim_image logged_id;	 /* the id for which the log says it has none */
	uint32_t path_size;	 /* with the NUL */
	char path[IMAGE_PATH_SIZE];

	/* for image.c */
	uint32_t index;
	uint64_t made; /* number of ids that this entry has had */
	uint32_t scan; /* the last scan that found it */
	uint32_t status;
	struct shim_image_record *record; /* NULL: no room in the file */
	uint64_t came;			  /* the order of loading */
	uint64_t load_notice;		  /* the order of events for modules; */
	uint64_t unload_notice;		  /* 0: no event to raise */
	uint32_t generation;
	uintptr_t frames;  /* .eh_frame_hdr; 0: it has none */
	bool may_go;	   /* another thread may unload it */
	bool has_hooks;	   /* its code is known to call hooks */
	bool is_looked_at; /* for coverage.h */
	bool is_opened;	   /* for inspect/debuginfo_prefetch.h */
};

/* Compares the memory map with the list of images.  Records the difference, notifies
 * subscribers, and raises image_unloaded to built-in profilers.  Returns 0 or -errno.
 * State lock held. */
int image_scan(void);

/* Whether the last scan lacked memory for a new list.  State lock held. */
bool image_lacks_memory(void);

/*
 * Describes the image at @address in @entry, without recording it or notifying
 * subscribers: its program may not be ready yet.  Returns 0; -ENOENT if no image is
 * there; -errno.  State lock held.
 */
int image_describe(uintptr_t address, struct image_entry *entry);

/* As image_scan, without the state lock held. */
void image_look_again(void);

/* The program opens an object.  If it is @unseen, no scan follows: image_look_for will
 * find the object, or a scan before any object is closed. */
void image_opening(bool unseen);
bool image_is_unseen(void);

/* Scans if no image is known at @address and there may be one. */
void image_look_for(uintptr_t address);

/* Raises the pending events of loaded and unloaded images to modules.  Only where
 * modules may be called: no lock is held, and the program is between two instructions
 * of its own. */
void image_raise_pending(void);

/* Notes the images that are loaded now: @handle, created before main, will get their
 * events when it is ready (profiler_catches_up). */
struct shim_profiler_handle;
void image_note_came(struct shim_profiler_handle *handle);

/*
 * For rooms above, with the state lock held.  An image was loaded.  @image is NULL if
 * there is no room for an entry; @may_go: another thread may unload it at any time.
 */
struct image_facts;
TOPIC(image_came, struct image_entry *image, const struct image_facts *facts,
      bool may_go);
/* The image at [@start, @end) was unloaded. */
TOPIC(image_went, uintptr_t start, uintptr_t end);
/* A scan is complete. */
TOPIC(images_scanned, void);
/* In a forked child: before the scan; for each image that is still loaded; and after
 * the scan, with its success. */
TOPIC(images_fork, void);
TOPIC(image_forked_as_well, struct image_entry *image);
TOPIC(images_forked, bool is_complete);

/*
 * Makes sure that image_loaded of @id was raised to modules: raises it, or waits for
 * the thread that does.  Waits for a second at most, then returns false: the other
 * thread may wait for a lock of the calling thread (the loader's, in a destructor).
 */
bool image_was_told(shim_image id);

/* Around dlclose: 1 before, 0 after.  Between the two, an address may already belong
 * to an object that another thread has just loaded. */
void image_closing(int begins);
/* Whether a thread is between the two.  State lock held: until it is released, no
 * thread can begin. */
bool image_is_closing(void);

/* In a forked child: writes all images into its own recording. */
void image_forked(void);

/* --- reading; async --- */

/* Results of the functions below are valid until image_unpin. */
void image_pin(void);
void image_unpin(void);

/* Whether @address is in libshim.so itself.  Async. */
bool image_is_ours(uintptr_t address);

/* The image that covers @address, or NULL. */
struct image_entry *image_find(uintptr_t address);
/* Whether an image that was unloaded covered @address. */
bool image_was_at(uintptr_t address);
/* The image of @id, or NULL; *@has_been tells whether there was one. */
struct image_entry *image_get(shim_image id, bool *has_been);
/* Returns the number of images; *@images gets them in the order of their addresses.
 * An id may have become 0 since. */
uint32_t image_list(struct image_entry *const **images);

#endif
