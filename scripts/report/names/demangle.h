/* Demangles C++ names, with limits. */
#ifndef REPORT_NAMES_DEMANGLE_H
#define REPORT_NAMES_DEMANGLE_H

const char *demangle_here(const char *name);

#endif
