/*
 * Images: the objects that the program has loaded.  shim records when each image is
 * loaded and unloaded, so that the report can name an address that another image has
 * used before.  It keeps a list of images in memory.
 *
 * Readers take no lock, but pin the list (image_pin).  shim removes an unloaded image
 * from the list, but reuses its entry only when no thread reads.  A reader that never
 * ends (its thread was killed, or left the code by a jump) costs only memory.
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
	shim_image
		logged_id;  /* the id that the log names for missing symbols */
	uint32_t path_size; /* with the NUL */
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
	uintptr_t frames;  /* .eh_frame_hdr; 0: none */
	bool is_of_go;	   /* Go's linker has made it */
	bool may_go;	   /* another thread may unload it */
	bool is_early;	   /* only early scans have found it */
	bool has_hooks;	   /* shim has found calls of hooks in its code */
	bool is_looked_at; /* coverage.h has searched it */
	bool is_opened; /* inspect/debuginfo_prefetch.h has opened its file */
};

/* Compares the memory map with the list of images.  Records the difference, notifies
 * subscribers, and raises image_unloaded to built-in profilers.  Returns 0 or -errno.
 * State lock held. */
int image_scan(void);

/* Whether the last scan lacked memory for a new list.  State lock held. */
bool image_lacks_memory(void);

/*
 * Fills @entry with the image at @address, but does not record the image and notifies
 * no subscriber, because the program may not be ready for that.  Returns 0; -ENOENT if
 * no image covers @address; -errno.  State lock held.
 */
int image_describe(uintptr_t address, struct image_entry *entry);

/* As image_scan, without the state lock held. */
void image_look_again(void);

/* Objects with code that the loader has loaded, by their addresses. */
#define IMAGE_OBJECTS_MAX 24
struct image_objects {
	uint32_t count;
	struct {
		uintptr_t start, end;
	} objects[IMAGE_OBJECTS_MAX];
};

/* As image_look_again, after the loader has loaded these objects and has not loaded or
 * unloaded any other since the last scan.  Since Linux 6.11 only their mappings are read. */
void image_look_for_added(const struct image_objects *added);

/* The program opens an object.  If it is @unseen, the caller does not scan:
 * image_look_for, or the next scan, will find the object.  A scan comes before any
 * object is closed. */
void image_opening(bool unseen);
bool image_is_unseen(void);

/* An opened object that defines @symbol must be scanned for at once.  image_expected returns
 * that symbol, or NULL. */
void image_expect(const char *symbol);
const char *image_expected(void);

/* Scans if shim knows no image at @address, unless an earlier scan found none there. */
void image_look_for(uintptr_t address);

/*
 * As image_look_for, for an unwinder: the scan is early, as all scans in signal handlers of
 * shim are.  The constructors of an image may be running then, and the calling thread, or
 * the one that loads the image, may be at any instruction of it.  A scan that is not early
 * follows: after the dlopen, or at the first call of a hook in the image.
 */
void image_look_for_walk(uintptr_t address);
/* Whether early scans have found images that no other scan has seen yet.  Async. */
bool image_has_early(void);
/* Whether the scan that runs, or was the last one, is early.  State lock held. */
bool image_scan_is_early(void);

/* Raises the pending events of loaded and unloaded images to modules.  The caller must
 * be at a place where shim may call modules: it holds no lock, and the program is
 * between two instructions of its own. */
void image_raise_pending(void);

/* Stores the last image that is loaded now.  @handle, created before main, will get the
 * events of the images up to it when it is ready (profiler_catches_up). */
struct shim_profiler_handle;
void image_note_came(struct shim_profiler_handle *handle);

/*
 * An image was loaded.  @image is NULL if all entries are in use.  @may_go: another
 * thread may unload it at any time.  State lock held, here and in the topics below.
 */
struct image_facts;
TOPIC(image_came, struct image_entry *image, const struct image_facts *facts,
      bool may_go);
/* The image at [@start, @end) was unloaded. */
TOPIC(image_went, uintptr_t start, uintptr_t end);
/* A scan is complete. */
TOPIC(images_scanned, void);
/* A forked child is about to scan. */
TOPIC(images_fork, void);
/* A forked child still has this image. */
TOPIC(image_forked_as_well, struct image_entry *image);
/* A forked child has scanned; @is_complete: without an error. */
TOPIC(images_forked, bool is_complete);

/*
 * Makes sure that modules got image_loaded of @id: raises it, or waits for the thread
 * that raises it.  Returns false after a second, because the other thread may wait for
 * a lock that the calling thread holds (the loader's, in a destructor).
 */
bool image_was_told(shim_image id);

/* Called before and after dlclose.  Between the calls, an address may already belong to an
 * object that another thread has just loaded.  If the loader has unloaded nothing
 * (@is_changed) and nobody has asked image_is_closing(), there is no scan. */
void image_closing(void);
void image_closed(bool is_changed);
/* Whether a thread is between these calls; who asks may wait for the scan that follows.
 * State lock held: while it is held, no thread begins a dlclose. */
bool image_is_closing(void);

/* In a forked child: writes all images into its own recording. */
void image_forked(void);

/* Writes all images into another recording of this process (record_renew), after a scan.
 * Returns 0 or -errno.  State lock held. */
int image_renew(void);

/* --- reading; async --- */

/* Results of the functions below are valid until image_unpin. */
void image_pin(void);
void image_unpin(void);

/* Whether @address is in libshim.so itself.  Async. */
bool image_is_ours(uintptr_t address);

/* The image that covers @address, or NULL. */
struct image_entry *image_find(uintptr_t address);
/* Whether an image that is now unloaded covered @address. */
bool image_was_at(uintptr_t address);
/* The image of @id, or NULL; sets *@has_been if an image has or had this id. */
struct image_entry *image_get(shim_image id, bool *has_been);
/* Stores the images in *@images, sorted by address, and returns their number.  The id of an
 * image may become 0 at any time. */
uint32_t image_list(struct image_entry *const **images);

#endif
