/*
 * An instrumented library whose hooks are the program's.  With HOOKS it has its own,
 * which are used if the loader searches the library first.
 */
int outside(int depth);
int outside_calls(void);

#define QUIET __attribute__((no_instrument_function))

static int calls;

#ifdef HOOKS
void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

QUIET void __cyg_profile_func_enter(void *function, void *site)
{
	(void)function;
	(void)site;
	calls++;
}

QUIET void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}
#endif

int outside(int depth)
{
	return depth == 0 ? 0 : 1 + outside(depth - 1);
}

QUIET int outside_calls(void)
{
	return calls;
}
