#!/usr/bin/env python3
"""contexts.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Calls every public function from every context (Appendix C of the specification).  The
table is generated from the headers: a module calls each function in each of ten places,
and the result must match the function's contract.
"""
import os
import re
import subprocess

import shimtest
from shimtest import compile, expect, expect_equal, new_directory, run, test

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
INCLUDE = os.path.join(TOP, 'include')

# All headers that declare functions.
HEADERS = [name for name in sorted(
    f[:-2] for f in os.listdir(os.path.join(INCLUDE, 'shim'))
    if f.endswith('.h')) if re.search(r'^SHIM_API\b', open(os.path.join(
        INCLUDE, 'shim', name + '.h')).read(), re.M)]

INCLUDES = '\n'.join('#include <shim/%s.h>' % header for header in HEADERS)

# Results that an allowed call must not return, and the results of a forbidden one.
SEQUENCE, INIT, DETACHING = '80131363', '80131356', '80131367'
CONTRACT_ERRORS = {SEQUENCE, INIT, DETACHING}

PLACES = ['init', 'callback', 'quiet callback', 'slow hook', 'fast hook',
          'mapper', 'signal handler', 'own thread', 'program', 'detaching']

# Where each class may be called, and the result of a call elsewhere.
ALLOWED = {
    'INIT': {'init'},
    'ASYNC': set(PLACES) - {'detaching'},
    'SYNC': {'init', 'callback', 'quiet callback', 'slow hook', 'mapper',
             'own thread'},
    'MAY_BLOCK': {'init', 'callback', 'slow hook', 'mapper', 'own thread'},
}
# "also the program, outside of callbacks", says their docstring. shim cannot
# distinguish a signal handler or a fast hook from the program.
PROGRAM = {'shim_profiler_load', 'shim_profiler_destroy',
           'shim_profiler_quiesce', 'shim_profiler_detach'}
# These need the context of a slow hook (row E-50).
SLOW_HOOK_ONLY = re.compile(
    'shim_get_function_(enter|leave|tailcall)3_info|shim_get_value_reason|'
    'shim_get_frame_instance')
REFUSED = {'INIT': INIT, 'SYNC': SEQUENCE, 'MAY_BLOCK': SEQUENCE}

# Their result cannot be compared, or the call would end the test.
NO_RESULT = {'const char *', 'void', 'void *', 'size_t'}
WITHOUT_RESULT = {'shim_enum_destroy', 'shim_profiler_api_version'}
HANDLES_THAT_STAY = {'shim_profiler_destroy', 'shim_profiler_detach',
                     'shim_profiler_quiesce'}


LOCALS = '''
	enum shim_lost cause __attribute__((unused));
	uintptr_t low = 0, high = 0;
	uint64_t length = 0;
	char name[16];
	void *memory __attribute__((unused));
	size_t size __attribute__((unused));
'''

# The functions of <shim/record.h> return an object: the test checks whether it is
# valid.
VALUES = {
    'shim_record_open': '(a_record = shim_record_open("contexts", &memory, &size,'
                        ' &cause)) != NULL',
    'shim_record_grow': 'shim_record_grow(a_record, 8, &size, &cause) != NULL',
    'shim_record_write': 'shim_record_write(a_record, 0, "x", 1, &cause)',
    'shim_record_lost': '(shim_record_lost(SHIM_LOST_MEMORY), true)',
    'shim_record_lost_other': '(shim_record_lost_other(SHIM_LOST_ALLOCATIONS,'
                              ' SHIM_LOST_MEMORY, 1), true)',
    'shim_record_log': '(shim_record_log("a line"), true)',
    'shim_memory_map': '(a_page = shim_memory_map(4096)) != NULL && !*a_page',
    'shim_memory_discard': '(*a_page = 1, shim_memory_discard(a_page, 4096),'
                         ' !*a_page)',
    'shim_memory_read': 'shim_memory_read(&size, &low, sizeof(size)) &&'
                        ' !shim_memory_read(&size, (void *)8, 1)',
    'shim_thread_id': 'shim_thread_id() == (uint32_t)syscall(SYS_gettid)',
    'shim_thread_is_alive': 'shim_thread_is_alive(shim_thread_id())',
    'shim_thread_name': '(shim_thread_name(name), *name != 0)',
    'shim_thread_watch': '(shim_thread_watch(), true)',
    'shim_stack_find': '(shim_stack_find((uintptr_t)&low, &low, &high),'
                       ' low < (uintptr_t)&low && (uintptr_t)&low < high)',
    'shim_image_note': '(shim_image_note((shim_function)on_block), true)',
    'shim_signals_block': '(shim_signals_restore(shim_signals_block()), true)',
    'shim_signals_restore': '(shim_signals_restore(shim_signals_block()), true)',
    'shim_clock_coarse': 'shim_clock_coarse(&length) == NULL || length > 0',
    'shim_clock_of_coarse': 'shim_clock_coarse(&length) == NULL ||'
                            ' shim_clock_of_coarse(*shim_clock_coarse(&length))',
    'shim_clock_is_closed': '!shim_clock_is_closed()',
    'shim_record_meta': 'shim_record_meta() != NULL',
    'shim_block_walk': 'shim_block_walk(on_block, NULL) != SHIM_E_UNEXPECTED',
}


class Function:
    def __init__(self, result, name, parameters, contract):
        self.result, self.name, self.contract = result, name, contract
        self.parameters = parameters


def declarations():
    """Every SHIM_API function of the headers, as Function."""
    found = []
    for header in HEADERS:
        text = open(os.path.join(INCLUDE, 'shim', header + '.h')).read()
        text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
        text = re.sub(r'^#define(.*\\\n)*.*$', '', text, flags=re.M)
        for part in re.findall(r'SHIM_API\s([^;]*);', text):
            part = ' '.join(part.split())
            match = re.match(
                r'(.*?)\b(shim_\w+)\s*\((.*)\)\s*(?:noexcept )?SHIM_(\w+)$',
                part)
            if not match:
                raise shimtest.Failed('no contract: ' + part)
            found.append(Function(match.group(1).strip(), match.group(2),
                                  split(match.group(3)), match.group(4)))
    return found


def split(parameters):
    """Splits at commas outside of parentheses, without the SHIM_ words."""
    parts, depth, part = [], 0, ''
    for c in parameters + ',':
        if c == ',' and depth == 0:
            parts.append(part.strip())
            part = ''
            continue
        depth += {'(': 1, ')': -1}.get(c, 0)
        part += c
    parts = [re.sub(r'SHIM_OUT_SIZE_IS\([^)]*\)|SHIM_(IN|OUT|OUT_OPT)\b', '',
                    p).strip() for p in parts]
    return [p for p in parts if p and p != 'void']


def argument(function, parameter):
    """A value for the parameter: a valid one if possible."""
    kind = parameter.rsplit(' ', 1)[0] if '(*' not in parameter else 'call'
    pointer = '*' in parameter
    if 'struct shim_profiler_handle' in parameter:
        return 'NULL' if function.name in HANDLES_THAT_STAY else 'a_handle'
    if not pointer and 'shim_function' == kind:
        return '(shim_function)contexts_target'
    if not pointer and kind == 'shim_image':
        return 'an_image'
    if not pointer and kind == 'shim_thread':
        return 'a_thread'
    if function.name == 'shim_profiler_load' and 'description' in parameter:
        return '""'
    if re.search(r'\b(mask|low)$', parameter) and not pointer:
        return 'SHIM_MONITOR_ALL & ~SHIM_MONITOR_IMMUTABLE'
    if parameter.startswith('const void *'):
        return '(const void *)contexts_target'
    if re.search(r'\b(count|size)$', parameter) and not pointer:
        return '0'
    return '0'


MODULE = r'''
@INCLUDES@
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct shim_profiler_handle *a_handle, *slow_handle, *mapper_handle, *leaving;
static shim_image an_image;
static shim_thread a_thread;
static volatile const char *now;	/* the place that is tested next */
static int file = -1;

int contexts_target;

static const char *const init = "init", *const callback = "callback",
	*const quiet = "quiet callback", *const slow = "slow hook",
	*const fast = "fast hook", *const in_mapper = "mapper",
	*const in_signal = "signal handler", *const own = "own thread",
	*const program = "program", *const detaching = "detaching";

static void tell(const char *name, const char *place, unsigned result)
{
	char line[160];
	int n = snprintf(line, sizeof(line), "%s|%s|%08x\n", name, place,
			 result);

	if (write(file, line, (size_t)n) < 0)
		abort();
}

static struct shim_record *a_record;
static char *a_page;

static enum shim_result on_block(const struct shim_block *block, void *unused)
{
	(void)block; (void)unused;
	return SHIM_OK;
}

static void try_all(const char *place)
{
@LOCALS@
@CALLS@
}

/* Calls the function once, in the place @place. */
static void try_in(const char *place)
{
	if (now != place)
		return;
	now = NULL;
	try_all(place);
}

static void on_callback(struct shim_profiler *p, shim_thread t, const char *n)
{
	(void)p; (void)t; (void)n;
	try_in(callback);
}

static void on_quiet(struct shim_profiler *p, uintptr_t sp)
{
	(void)p; (void)sp;
	try_in(quiet);
}

static void on_enter_slow(union shim_function_or_client f, shim_elt_info i)
{
	(void)f; (void)i;
	try_in(slow);
}

static void on_enter(union shim_function_or_client f)
{
	(void)f;
	try_in(fast);
}

static uintptr_t map(shim_function function, int *hook)
{
	(void)hook;
	try_in(in_mapper);
	return function;
}

static volatile int own_is_done;

static void run_own(void *unused)
{
	(void)unused;
	try_in(own);
	own_is_done = 1;
}

static void on_detached(struct shim_profiler *p)
{
	(void)p;
	try_in(detaching);
}

/* The program calls this from main or from a signal handler.  "" prepares for the next
 * place; any other text is the caller's place. */
static void step(const char *place)
{
	static const char *const next[] = { callback, quiet, slow, fast,
					    in_mapper };

	if (!strcmp(place, "own")) {
		now = own;
		shim_profiler_load("", NULL, 0);
		return;
	}
	if (!strcmp(place, in_signal)) {
		now = in_signal;
		try_in(in_signal);
		return;
	}
	if (!strcmp(place, program)) {
		now = program;
		try_in(program);
		return;
	}
	if (!strcmp(place, "detach")) {
		now = detaching;
		if (shim_profiler_detach(leaving, 1) != SHIM_OK)
			abort();
		return;
	}
	now = next[place[0] - '0'];
}

static void on_started(struct shim_profiler *p)
{
	void (**hand)(const char *) = dlsym(RTLD_DEFAULT, "contexts_step");

	(void)p;
	if (!hand)
		abort();
	*hand = step;
	now = own;
	if (shim_thread_create(run_own, NULL) != SHIM_OK)
		abort();
	while (!own_is_done)
		usleep(1000);
}

SHIM_PROFILER_MODULE(contexts)
{
	const char *name = strchr(description, ':');

	file = open_file(name + 1);
	a_handle = shim_profiler_create(NULL);
	shim_profiler_on_runtime_initialized(a_handle, on_started);
	shim_profiler_on_thread_name(a_handle, on_callback);
	shim_profiler_on_frames_unwound(a_handle, on_quiet);
	shim_profiler_set_enter_leave_function_hooks3(a_handle, on_enter, NULL, NULL);
	slow_handle = shim_profiler_create(NULL);
	shim_profiler_set_event_mask(slow_handle, SHIM_MONITOR_ENTERLEAVE |
					 SHIM_ENABLE_FRAME_INFO);
	shim_profiler_set_enter_leave_function_hooks3_with_info(slow_handle,
						       on_enter_slow, NULL,
						       NULL);
	mapper_handle = shim_profiler_create(NULL);
	shim_profiler_set_enter_leave_function_hooks3(mapper_handle, on_enter, NULL,
					     NULL);
	shim_profiler_set_function_id_mapper(mapper_handle, map);
	leaving = shim_profiler_create(NULL);
	shim_profiler_on_detach_succeeded(leaving, on_detached);
	now = init;
	try_in(init);
	return SHIM_OK;
}
'''

OPEN = r'''
#include <fcntl.h>

static int open_file(const char *name)
{
	return open(name, O_WRONLY | O_CREAT | O_APPEND, 0600);
}
'''


def module_source(functions):
    calls = []
    for function in functions:
        if function.name in WITHOUT_RESULT:
            continue
        if function.name in VALUES:
            calls.append('\ttell("%s", place, %s ? 0 : 1);' % (
                function.name, VALUES[function.name]))
            continue
        arguments = ', '.join(argument(function, p)
                              for p in function.parameters)
        call = '%s(%s)' % (function.name, arguments)
        if function.name == 'shim_profiler_create':
            # The function returns no result code: it returns a handle or NULL.
            calls.append('\t{ struct shim_profiler_handle *h = %s; tell("%s", place, '
                         'h ? 0 : place == detaching ? 0x%s : 0x%s); }' % (
                             call, function.name, DETACHING, INIT))
            continue
        if function.result in NO_RESULT:
            calls.append('\t%s;\n\ttell("%s", place, 0);' % (
                call, function.name))
            continue
        calls.append('\ttell("%s", place, (unsigned)%s);' % (
            function.name, call))
    text = MODULE.replace('@CALLS@', '\n'.join(calls))
    text = text.replace('@LOCALS@', LOCALS)
    text = text.replace('@INCLUDES@', INCLUDES)
    return text.replace('static struct shim_profiler_handle *a_handle',
                        OPEN + '\nstatic struct shim_profiler_handle *a_handle', 1)


def expected(function, place):
    allowed = ALLOWED[function.contract]
    if function.name in PROGRAM:
        allowed = allowed | {'program', 'signal handler', 'fast hook'}
    if SLOW_HOOK_ONLY.match(function.name):
        allowed = {'slow hook'}
    if place in allowed:
        return 'allowed'
    return DETACHING if place == 'detaching' else REFUSED[function.contract]


def results(functions):
    directory = new_directory('contexts')
    source = os.path.join(directory, 'contexts.c')
    module = os.path.join(directory, 'libshim-profiler-contexts.so')
    out = os.path.join(directory, 'results')
    with open(source, 'w') as file:
        file.write(module_source(functions))
    done = subprocess.run(
        ['cc', '-shared', '-fPIC', '-O1', '-g', '-I', INCLUDE, source, '-o',
         module], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, done.stdout.decode())
    host = compile('contexts_host.cc', 'gcc', '-O1', flags=['-rdynamic'])
    done = run([host], new_directory('recording'), 'contexts:' + out,
               SHIM_MODULE_PATH=directory)
    expect_equal((done.status, done.stderr, done.stdout), (0, '', 'done\n'),
                 'the program')
    table = {}
    for line in open(out):
        name, place, result = line.strip().split('|')
        table.setdefault(name, {})[place] = result
    return table


@test
def every_function_answers_as_its_contract_says_from_everywhere():
    functions = declarations()
    table = results(functions)
    wrong, count = [], 0
    for function in functions:
        if function.name in WITHOUT_RESULT:
            continue
        row = table.get(function.name, {})
        for place in PLACES:
            got, want = row.get(place), expected(function, place)
            if function.name in VALUES:
                want = '00000000'
            elif function.result in NO_RESULT:
                want = 'allowed'
            good = got is not None and (
                got not in CONTRACT_ERRORS if want == 'allowed' else
                got == want)
            count += 1
            if not good:
                wrong.append('%s (%s) in %s: got %s, wanted %s' % (
                    function.name, function.contract, place, got, want))
    expect(count > 400, 'only %d calls' % count)
    expect(not wrong, '\n'.join(wrong))
    print('# %d functions in %d places' % (len(table), len(PLACES)))


# Calls every async function with valid arguments from a signal handler that interrupts
# arbitrary code.
HANDLER = r'''
@INCLUDES@
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct shim_profiler_handle *a_handle;
static shim_image an_image;
static shim_thread a_thread;
static char buffer[4096];
int contexts_target;

static enum shim_result on_block(const struct shim_block *block, void *unused)
{
	(void)block; (void)unused;
	return SHIM_OK;
}

static void step(const char *place)
{
	uint32_t total;
@LOCALS@
	(void)place;
	shim_thread_current(&a_thread);
	shim_image_from_address((void *)step, &an_image);
	shim_image_info(an_image, NULL, NULL, NULL, NULL, sizeof(buffer),
			&total, buffer);
	shim_function_name((shim_function)step, sizeof(buffer), &total, buffer);
	shim_function_name((shim_function)malloc, sizeof(buffer), &total,
			   buffer);
@CALLS@
}

static void on_started(struct shim_profiler *p)
{
	void (**hand)(const char *) = dlsym(RTLD_DEFAULT, "contexts_step");

	(void)p;
	*hand = step;
}

SHIM_PROFILER_MODULE(handler)
{
	a_handle = shim_profiler_create(NULL);
	shim_profiler_enable_symbols(a_handle);
	shim_profiler_enable_sampling(a_handle);
	shim_profiler_on_runtime_initialized(a_handle, on_started);
	return SHIM_OK;
}
'''


@test
def async_functions_may_interrupt_anything():
    seconds = os.environ.get('ASYNC_SECONDS', '4')
    calls = []
    for function in declarations():
        # These would create a file on each call, or memory that is never freed.
        if re.match('shim_record_(open|grow|write)|shim_memory_(map|discard)$',
                    function.name):
            continue
        if function.contract == 'ASYNC' and function.name in VALUES:
            calls.append('\tif (!(%s))\n\t\tabort();' % VALUES[function.name])
        elif function.contract == 'ASYNC':
            calls.append('\t%s(%s);' % (function.name, ', '.join(
                argument(function, p) for p in function.parameters)))
    # Row M-10: the setters that are generated from events.def.
    with open(os.path.join(INCLUDE, 'shim', 'events.def')) as file:
        for name in re.findall(r'^SHIM_DEFINE_EVENT\((\w+)', file.read(), re.M):
            calls.append('\tshim_profiler_on_%s(a_handle, NULL);' % name)
    expect(len(calls) > 60, 'only %d functions' % len(calls))
    directory = new_directory('handler')
    source = os.path.join(directory, 'handler.c')
    with open(source, 'w') as file:
        file.write(HANDLER.replace('@CALLS@', '\n'.join(calls))
                   .replace('@LOCALS@', LOCALS)
                   .replace('@INCLUDES@', INCLUDES))
    done = subprocess.run(
        ['cc', '-shared', '-fPIC', '-O1', '-g', '-I', INCLUDE, source, '-o',
         os.path.join(directory, 'libshim-profiler-handler.so')],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(done.returncode == 0, done.stdout.decode())
    plugin = compile('plugin.c', 'gcc', '-O1', ['-shared', '-fPIC'],
                     name='interrupted_plugin.so')
    host = compile('interrupted_by_api.c', 'gcc', '-O1', ['-rdynamic'])
    # If a handler waits for the code that it interrupted, the run never ends.
    done = run([host, plugin, seconds], new_directory('recording'),
               'calltree;handler', timeout=int(seconds) + 60,
               SHIM_MODULE_PATH=directory)
    expect_equal((done.status, done.stderr), (0, ''), 'the program')
    ticks = int(re.match(r'(\d+) interruptions\n$', done.stdout).group(1))
    expect(ticks > 100 * int(seconds), 'only %d interruptions' % ticks)
    print('# %d functions in each of %d interruptions' % (len(calls), ticks))


@test
def the_headers_are_read_whole():
    functions = {f.name for f in declarations()}
    text = ''.join(open(os.path.join(INCLUDE, 'shim', h + '.h')).read()
                   for h in HEADERS)
    expect_equal(len(functions),
                 text.count('SHIM_API ') + text.count('SHIM_API\n') - 2,
                 'functions (without the definition of SHIM_API and that of '
                 'the setters)')


if __name__ == '__main__':
    shimtest.main()
