/* profrun doctor: checks whether profiling works here, and with a given program. */
#ifndef RUN_DOCTOR_H
#define RUN_DOCTOR_H

/* Returns the status: 0 if there is no problem. */
int doctor(const char *library, const char *report, int words, char **word);

/* The probe that doctor() runs with the library preloaded: it calls the hooks. */
int doctor_probe(void);

#endif
