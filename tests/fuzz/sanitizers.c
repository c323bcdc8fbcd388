/* Settings of the sanitizers: they report only this program's errors, with a
 * status of their own. */
const char *__asan_default_options(void)
{
	return "detect_leaks=0:allocator_may_return_null=1:exitcode=99:"
	       "quarantine_size_mb=4";
}

const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1:halt_on_error=1:exitcode=99";
}
