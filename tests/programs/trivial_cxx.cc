/*
 * trivial_cxx CALLS LENGTH - trivial.c in C++
 */
#include "trivial.c"
