/* profrun doctor: does profiling work here, and with this program? */
#ifndef RUN_DOCTOR_H
#define RUN_DOCTOR_H

/* Returns the status: 0 if there is no problem. */
int doctor(const char *library, const char *report, int words, char **word);

/* What doctor() runs with the library preloaded: calls the hooks. */
int doctor_probe(void);

#endif
