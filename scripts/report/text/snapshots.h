/* Prints heap snapshots. */
#ifndef REPORT_TEXT_SNAPSHOTS_H
#define REPORT_TEXT_SNAPSHOTS_H

struct layout;

/* snapshots.c */
void snapshots_print(const struct layout *layout);

#endif
