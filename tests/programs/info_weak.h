/*
 * Weak declarations for programs that use shim and also run without it.
 */
#ifndef INFO_WEAK_H
#define INFO_WEAK_H

#pragma weak shim_result_name
#pragma weak shim_profiler_create
#pragma weak shim_profiler_on_runtime_initialized
#pragma weak shim_enum_next
#pragma weak shim_enum_destroy
#pragma weak shim_image_enumerate
#pragma weak shim_image_info
#pragma weak shim_image_build_id
#pragma weak shim_image_from_address
#pragma weak shim_function_enumerate
#pragma weak shim_function_from_address
#pragma weak shim_function_from_address2
#pragma weak shim_function_info
#pragma weak shim_function_name
#pragma weak shim_function_aliases
#pragma weak shim_function_demangled_name
#pragma weak shim_function_code
#pragma weak shim_function_ranges
#pragma weak shim_function_lines
#pragma weak shim_function_file
#pragma weak shim_function_template_arguments
#pragma weak shim_process_info
#pragma weak shim_runtime_info

#include <shim/info.h>

#endif
