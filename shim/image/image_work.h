/* The time that shim's own work on images takes. */
#ifndef SHIM_IMAGE_WORK_H
#define SHIM_IMAGE_WORK_H

/* Between these two calls, which nest, the calling thread looks at images or changes their
 * code.  This takes long, and says nothing about the cost of calls: the recording has its
 * processor time apart, and samples leave it out.  State lock held. */
void image_work_begins(void);
void image_work_ends(void);

#endif
