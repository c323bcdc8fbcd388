/*
 * The separate file with the symbols of a stripped object, as gdb finds it: by the build-id
 * in /usr/lib/debug/.build-id; otherwise by the name that the object has for it
 * (.gnu_debuglink), in its directory, in .debug there, and below /usr/lib/debug.  Some
 * distributions put the symbols that are not in .dynsym into a file inside of the object.
 */
#ifndef SHIM_ELF_DEBUG_H
#define SHIM_ELF_DEBUG_H

struct elf_file;
struct image_entry;

/* Opens the debug file of @image, whose own file is @file.  It must have the image's
 * build-id, or without one the checksum that @file has.  Returns 0 or -errno. */
int elf_open_debug(const struct image_entry *image, const struct elf_file *file,
		   struct elf_file *debug);

/* Opens the file in the section .gnu_debugdata of @file.  Returns 0 or -errno.  State lock
 * held. */
int elf_open_inner(const struct elf_file *file, struct elf_file *inner);

#endif
