"""profrun stack: stacks of running processes and of core files.

gdb says what is right: tests/programs/waits_in.c waits in known functions, so its frames
are the same whenever one looks.
"""
import ctypes
import json
import os
import re
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import time

import shimtest
from shimtest import (Skipped, compile, expect, expect_equal, need, new_directory, state_of,
                      test, until)

# In one process; nightly there are more.
MANY = min((40 if shimtest.ALL else 12) * os.cpu_count(), 640)
PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')


class Program:
    """waits_in.c, when all threads are where they stay."""

    def __init__(self, count, kind='sleep', family='gcc', flags=(), **more):
        self.process = subprocess.Popen(
            [compile('waits_in.c', family, '-O2', ['-g', '-pthread', *flags]), str(count),
             kind], stdout=subprocess.PIPE, **more)
        self.pid = self.process.pid
        expect_equal(self.process.stdout.readline(), b'ready\n', kind)
        while not self.sleeps([str(self.pid)] if kind in ('spin', 'wide') else
                              os.listdir('/proc/%d/task' % self.pid)):
            time.sleep(0.001)

    def sleeps(self, tasks):
        """Whether all these threads sleep.  They say that they are ready before that."""
        for task in tasks:
            if state_of('%d/task/%s' % (self.pid, task)) != 'S':
                return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def stack(*words, status=0, **more):
    done = subprocess.run([PROFRUN, 'stack', *map(str, words)], capture_output=True,
                          text=True, timeout=120, **more)
    expect_equal((done.returncode, done.stderr if status == 0 else ''), (status, ''),
                 words)
    return done.stderr if status else done.stdout


def frames(text):
    """{tid: [(name, line of waits_in.c or None, inlined)]}."""
    found = {}
    for line in text.splitlines():
        if line.startswith('thread '):
            thread = found.setdefault(int(line.split()[1]), [])
        match = re.match(r'  #\d+ +(\S.*?)(?: \[.*?(?: waits_in\.c:(\d+))?\])?( \(inlined\))?$',
                         line)
        if match:
            thread.append((match.group(1), int(match.group(2) or 0),
                           bool(match.group(3))))
    return found


def gdb(pid, *more):
    need('gdb')
    done = subprocess.run(['gdb', '-nx', '-batch', '-p', str(pid), *more,
                           '-ex', 'thread apply all backtrace'], capture_output=True,
                          text=True, timeout=120, stdin=subprocess.DEVNULL,
                          start_new_session=True,
                          env=dict(os.environ, DEBUGINFOD_URLS='', HOME='/nonexistent'))
    return done.stdout


def gdb_frames(text):
    """{tid: [(name, line of waits_in.c)]}, of the program's functions."""
    found = {}
    for line in text.splitlines():
        match = re.match(r'Thread .*\(LWP (\d+)\)', line)
        if match:
            thread = found.setdefault(int(match.group(1)), [])
        match = re.match(r'#\d+ +(?:0x[0-9a-f]+ in )?(\S+) .*waits_in\.c:(\d+)$', line)
        if match and found:
            thread.append((match.group(1), int(match.group(2))))
    return found


def ours(text):
    return {tid: [(name, line) for name, line, _ in calls if line]
            for tid, calls in frames(text).items()}


# Seen to fail with the return address instead of the byte before it, and with inlined
# functions left out.
@test
def functions_and_lines_of_sleeping_threads_are_those_of_gdb():
    for family in 'gcc', 'clang':
        for kind in 'sleep', 'handler':
            with Program(3, kind, family) as program:
                got = ours(stack(program.pid))
                wanted = gdb_frames(gdb(program.pid))
            expect_equal(len(got), 4, (family, kind))
            for tid, calls in wanted.items():
                expect(len(calls) >= (5 if tid != program.pid else 1), (kind, calls))
                expect_equal(got[tid], calls, (family, kind, tid))


@test
def a_thread_on_a_signal_stack_is_followed_to_where_the_signal_came():
    with Program(1, 'handler') as program:
        calls = [name for name, _, _ in frames(stack(program.pid))[
            max(frames(stack(program.pid)))]]
    handler = calls.index('<signal handler called>')
    expect_equal(calls[handler - 1], 'handle', calls)
    expect('wait_in_handler' in calls[handler:] and 'thread' in calls[handler:], calls)


# Deeper than what is copied.
@test
def a_deep_recursion_is_shown_to_its_end():
    with Program(1, 'deep') as program:
        found = frames(stack(program.pid))
    names = [name for name, _, _ in found[max(found)]]
    expect_equal(names.count('deep'), 20001, len(names))
    expect_equal(names[-4:-2], ['outer', 'thread'], names[-4:])


@test
def threads_that_run_have_all_their_frames():
    with Program(2, 'spin') as program:
        for _ in range(20 if shimtest.ALL else 6):
            found = frames(stack(program.pid))
            for tid, calls in found.items():
                if tid != program.pid:
                    expect_equal([name for name, _, _ in calls[:5]],
                                 ['rest', 'inlined', 'inner', 'outer', 'thread'], calls)
                    expect(calls[1][2] and not calls[2][2], calls)


@test
def functions_of_assembly_code_have_their_names():
    for more in [], ['-fno-toplevel-reorder']:
        process = subprocess.Popen(
            [compile('sizeless.c', 'gcc', '-O2', ['-g', *more], instrument=False)],
            stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()
            while sleeps_of(process.pid) == 0:
                time.sleep(0.01)
            names = [name for name, _, _ in frames(stack(process.pid))[process.pid]]
            expect_equal(names[names.index('pause') + 1:][:1], ['sizeless'], names)
        finally:
            process.kill()
            process.communicate()


# libc has such code around the system call of clone3().
@test
def code_without_a_table_has_its_caller():
    source = os.path.join(new_directory('bare'), 'bare.c')
    with open(source, 'w') as file:
        file.write('''
void bare(void);
__asm__(".globl bare\\n.type bare, @function\\n"
	"bare: mov $34, %eax\\nsyscall\\nret\\n.size bare, . - bare"); /* pause() */
__attribute__((noinline)) int calls(int n) { bare(); return n + 1; }
__attribute__((noinline)) int outer(int n) { return calls(n) + 1; }
int main(void) { return outer(1) + 1; }
''')
    for flags in ['-O2'], ['-O2', '-fno-omit-frame-pointer']:
        process = subprocess.Popen([compile(source, 'gcc', '-O2', flags, instrument=False)])
        try:
            while sleeps_of(process.pid) == 0:
                time.sleep(0.01)
            names = [name for name, _, _ in frames(stack(process.pid))[process.pid]]
        finally:
            process.kill()
            process.wait()
        expect_equal(names[:4], ['bare', 'calls', 'outer', 'main'], names)


# As at the end of libc's longjmp(), where the frame is the jump buffer.
@test
def the_stack_pointer_of_a_caller_may_be_in_a_register():
    source = os.path.join(new_directory('jumping'), 'jumping.c')
    with open(source, 'w') as file:
        file.write('''
extern long jumping(void *buffer);
__asm__(".globl jumping\\n.type jumping, @function\\n"
	"jumping: .cfi_startproc\\nmov (%rsp), %rdx\\nlea 8(%rsp), %r8\\nmov %rbp, %r9\\n"
	".cfi_def_cfa %rdi, 0\\n.cfi_register %rsp, %r8\\n.cfi_register %rbp, %r9\\n"
	".cfi_register %rip, %rdx\\nmov $-16, %rsp\\n1: jmp 1b\\n"
	".cfi_endproc\\n.size jumping, . - jumping");
static char buffer[200];
__attribute__((noinline)) long calls(long n) { return jumping(buffer) + n; }
__attribute__((noinline)) long outer(long n) { return calls(n) + 1; }
int main(void) { return (int)outer(1) + 1; }
''')
    for flags in ['-O2'], ['-O2', '-fno-omit-frame-pointer']:
        process = subprocess.Popen([compile(source, 'gcc', '-O2', flags, instrument=False)])
        try:
            names = []
            while names[:1] != ['jumping']:
                names = [name for name, _, _ in frames(stack(process.pid))[process.pid]]
        finally:
            process.kill()
            process.wait()
        expect_equal(names[:4], ['jumping', 'calls', 'outer', 'main'], names)


@test
def a_process_with_a_root_directory_of_its_own_has_names():
    if os.geteuid() != 0:
        raise Skipped('only root may change it')
    root = new_directory('root')
    program = compile('waits_in.c', 'gcc', '-O2',
                      ['-g', '-pthread', '-static', '-Wl,--eh-frame-hdr'])
    shutil.copy(program, os.path.join(root, 'program'))
    with subprocess.Popen(['/program', '1', 'sleep'], stdout=subprocess.PIPE,
                          preexec_fn=lambda: os.chroot(root)) as process:
        try:
            expect_equal(process.stdout.readline(), b'ready\n', 'start')
            found = frames(stack(process.pid))
        finally:
            process.kill()
    names = [name for name, _, _ in found[max(found)]]
    expect('outer' in names and 'main' in
           [name for name, _, _ in found[process.pid]], (names, found[process.pid]))


@test
def stacks_of_a_core_file_are_those_of_the_process():
    need('gdb')
    directory = new_directory('core')
    for kind in 'sleep', 'handler':
        core = os.path.join(directory, kind)
        with Program(3, kind) as program:
            alive = frames(stack(program.pid))
            gdb(program.pid, '-ex', 'generate-core-file ' + core)
        expect_equal(frames(stack(core)), alive, kind)


@test
def a_core_file_without_its_program_says_so():
    need('gdb')
    directory = new_directory('core')
    copy, core = os.path.join(directory, 'waits_in'), os.path.join(directory, 'core')
    shutil.copy(compile('waits_in.c', 'gcc', '-O2', ['-g', '-pthread']), copy)
    process = subprocess.Popen([copy, '1'], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        gdb(process.pid, '-ex', 'generate-core-file ' + core)
    finally:
        process.kill()
        process.communicate()
    os.remove(copy)
    done = subprocess.run([PROFRUN, 'stack', core], capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stderr)
    expect('is not there' in done.stderr, done.stderr)


@test
def damaged_core_files_end_with_a_message():
    need('gdb')
    directory = new_directory('core')
    core, cut = os.path.join(directory, 'core'), os.path.join(directory, 'cut')
    with Program(1) as program:
        gdb(program.pid, '-ex', 'generate-core-file ' + core)
    with open(core, 'rb') as file:
        whole = file.read()
    for size in 1, 16, 64, 100, 1000, 4096, len(whole) // 2, len(whole) - 1:
        with open(cut, 'wb') as file:
            file.write(whole[:size])
        done = subprocess.run([PROFRUN, 'stack', cut], capture_output=True, text=True)
        expect(done.returncode in (0, 1) and (done.returncode == 0 or
               done.stderr.startswith('profrun: ')), (size, done))


# Its end is missing where a limit or a full disk has ended it.
@test
def a_core_file_that_is_cut_off_says_so():
    need('gdb')
    core = os.path.join(new_directory('core'), 'core')
    with Program(1) as program:
        gdb(program.pid, '-ex', 'generate-core-file ' + core)
    with open(core, 'r+b') as file:
        whole = bytearray(file.read())
        start, = struct.unpack_from('<Q', whole, 32)
        count, = struct.unpack_from('<H', whole, 56)
        # The size in the file of a writable part (PT_LOAD) of memory.
        size = [at + 32 for at in range(start, start + 56 * count, 56)
                if struct.unpack_from('<II', whole, at) == (1, 6)][-1]
        struct.pack_into('<Q', whole, size, len(whole))
        file.seek(0)
        file.write(whole)
    done = subprocess.run([PROFRUN, 'stack', core], capture_output=True, text=True)
    expect_equal(done.returncode, 0, done)
    expect('is cut off: it has %d of ' % len(whole) in done.stderr, done)


@test
def open_calls_of_a_recording_stand_beside_the_frames():
    output = new_directory('recording')
    with Program(2, 'sleep', flags=['-finstrument-functions'],
                 env=shimtest.environment(output, 'calltree')) as program:
        text = stack(program.pid)
    lines = re.findall(r'  open calls, as recorded: (.*)', text)
    expect_equal(sorted(lines),
                 ['main'] + 2 * ['thread > outer > inner > inlined > rest > report_ready'
                                 .replace(' > report_ready', '')], text)
    expect(output in text.splitlines()[0], text)


@test
def equal_stacks_of_all_rounds_are_one_line():
    with Program(3) as program:
        text = stack(program.pid, '--every', '5ms', '--count', '20', '--folded')
    counts = {}
    for line in text.splitlines():
        path, count = line.rsplit(' ', 1)
        counts[path] = int(count)
    expect_equal(sorted(counts.values()), [20, 60], text)
    path = max(counts, key=counts.get)
    expect(';thread;outer;inner;inlined;rest' in ';' + path, path)


@test
def only_running_threads_if_that_is_asked_for():
    with Program(2, 'spin') as program:
        found = frames(stack(program.pid, '--running'))
        expect_equal(len(found), 2, found)
        expect(program.pid not in found, found)


def sleeps_of(pid):
    """How often the threads of a process have fallen asleep."""
    found = 0
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/status' % (pid, task)) as file:
            found += int(re.search(r'^voluntary_ctxt_switches:\s+(\d+)', file.read(),
                                   re.M).group(1))
    return found


@test
def a_round_goes_on_until_the_process_ends():
    with Program(1) as program:
        looking = subprocess.Popen([PROFRUN, 'stack', str(program.pid), '--every', '10ms',
                                    '--folded'], stdout=subprocess.PIPE)
        # A thread that sleeps is woken once or more in each round.
        begun, end = sleeps_of(program.pid), time.monotonic() + 60
        while sleeps_of(program.pid) < begun + 30 and time.monotonic() < end:
            time.sleep(0.01)
        program.process.kill()
        program.process.wait()
        out = looking.communicate(timeout=60)[0]
    expect_equal(looking.returncode, 0, 'status')
    expect(b'rest' in out, out)


# For profrun: a ptrace() that asks instead() first, which returns true if it has done the call.
PTRACE = r'''
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static bool instead(long request, pid_t tid);

static pid_t number_of(const char *variable)
{
	return atoi(getenv(variable));
}

static long trace(long request, pid_t tid, void *address, void *data)
{
	return syscall(SYS_ptrace, request, tid, address, data);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list list;
	pid_t tid;
	void *address, *data;

	va_start(list, request);
	tid = va_arg(list, pid_t);
	address = va_arg(list, void *);
	data = va_arg(list, void *);
	va_end(list);
	return instead(request, tid) ? 0 : trace(request, tid, address, data);
}
'''

# The process ends before a thread is traced for the AT-th time.
ENDING = r'''
static void end_process(pid_t pid)
{
	char path[64], text[512] = "", *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	kill(pid, SIGKILL);
	do {
		FILE *file = fopen(path, "r");

		end = file && fgets(text, sizeof(text), file) ? strrchr(text, ')') : NULL;
		if (file)
			fclose(file);
	} while (end && end[2] != 'Z');
}

static bool instead(long request, pid_t tid)
{
	static int calls;

	(void)tid;
	if (request == PTRACE_SEIZE && ++calls == number_of("AT"))
		end_process(number_of("PID"));
	return false;
}
'''


def preloaded(name, text):
    """The path of a library with PTRACE and @text."""
    path = os.path.join(new_directory(name), name + '.so')
    with open(path + '.c', 'w') as file:
        file.write(PTRACE + text)
    subprocess.run(['gcc', '-shared', '-fPIC', '-o', path, path + '.c'], check=True)
    return path


@test
def a_process_that_ends_when_it_is_about_to_be_stopped_has_ended():
    """The kernel refuses to trace it, as it refuses a process of another user."""
    path = preloaded('ending', ENDING)
    for at, words in (3, ['--every', '10ms', '--folded']), (1, []):
        with Program(1) as program:
            text = stack(program.pid, *words, status=0 if words else 1,
                         env=dict(os.environ, LD_PRELOAD=path, PID=str(program.pid),
                                  AT=str(at)))
        expect(('rest' if words else 'has ended') in text, text)


# Seen to fail when let_go() does not detach a thread that is stopped.
@test
def a_stopped_process_stays_stopped_and_a_running_one_goes_on():
    def becomes(wanted, when):
        # A thread that profrun lets go needs a processor to get there.
        until(lambda: state_of(program.pid) == wanted, when)

    with Program(2) as program:
        os.kill(program.pid, signal.SIGSTOP)
        becomes('T', 'stopped')
        expect('stopped by a signal' in stack(program.pid), 'state')
        becomes('T', 'afterwards')
        os.kill(program.pid, signal.SIGCONT)
        stack(program.pid)
        becomes('S', 'goes on')


@test
def sigkill_of_profrun_leaves_the_process_as_it_was():
    with Program(4, 'spin') as program:
        for i in range(20):
            looking = subprocess.Popen([PROFRUN, 'stack', str(program.pid), '--every',
                                        '1ms'], stdout=subprocess.DEVNULL)
            time.sleep(0.05 + i * 0.003)
            looking.kill()
            looking.wait()
        found = frames(stack(program.pid))
        expect_equal(len(found), 5, found)
        expect_equal(program.process.poll(), None, 'still there')


@test
def five_hundred_threads():
    with Program(500) as program:
        found = frames(stack(program.pid))
        expect_equal(len(found), 501, 'threads')
        for tid, calls in found.items():
            names = [name for name, _, _ in calls]
            expect('main' in names if tid == program.pid else
                   names[1:6] == ['rest', 'inlined', 'inner', 'outer', 'thread'], names)


def preemptions(pid):
    """How often each thread had to leave its processor."""
    found = []
    for task in os.listdir('/proc/%d/task' % pid):
        with open('/proc/%d/task/%s/status' % (pid, task)) as file:
            found.append(int(re.search(r'^nonvoluntary_ctxt_switches:\s+(\d+)', file.read(),
                                       re.M).group(1)))
    return found


# Seen to fail when each thread is asked to stop after the one before was copied: about as
# often as there are threads.
@test
def threads_wait_together_for_the_processor_on_which_they_stop():
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skipped('one processor')
    with Program(60, 'spin',
                 preexec_fn=lambda: os.sched_setaffinity(0, cpus[:1])) as program:
        more = []
        # Others may want that processor, too: the least of several.
        while not more or (min(more) >= 35 and len(more) < 5):
            before = statistics.median(preemptions(program.pid))
            stack(program.pid, preexec_fn=lambda: os.sched_setaffinity(0, cpus[1:]))
            more.append(statistics.median(preemptions(program.pid)) - before)
    expect(min(more) < 35, more)


# So many threads are stopped before the first is copied.  The copies of the wide ones need more
# memory than profrun takes at a time.
@test
def very_many_threads_that_run_have_all_their_frames():
    for kind, callers in (('spin', ['thread']), ('wide', ['wide', 'outer', 'thread'])):
        with Program(MANY, kind) as program:
            found = frames(stack(program.pid))
            # They run on: all have a stack again.
            again = frames(stack(program.pid))
        expect_equal((len(found), sorted(found)), (MANY + 1, sorted(again)), kind)
        for tid, calls in list(found.items()) + list(again.items()):
            names = [name for name, _, _ in calls]
            expect(tid == program.pid or
                   names[:3] == ['rest', 'inlined', 'inner'] and
                   all(name in names for name in callers), (kind, names))


# The thread TID is asked to stop half a second late.
LATE = r'''
static struct timespec asked;
static int is_asked;

static bool instead(long request, pid_t tid)
{
	if (request != PTRACE_INTERRUPT || tid != number_of("TID") || is_asked)
		return false;
	is_asked = 1;
	clock_gettime(CLOCK_MONOTONIC, &asked);
	return true;
}

int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *limit)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (is_asked == 1 && (now.tv_sec - asked.tv_sec) * 1000000000 +
			     now.tv_nsec - asked.tv_nsec > 500000000) {
		is_asked = 2;
		trace(PTRACE_INTERRUPT, number_of("TID"), NULL, NULL);
	}
	return (int)syscall(SYS_rt_sigtimedwait, set, info, limit, 8);
}
'''


@test
def of_very_many_threads_one_that_stops_late_has_its_frames():
    with Program(MANY, 'wide') as program:
        tid = sorted(map(int, os.listdir('/proc/%d/task' % program.pid)))[1]
        found = frames(stack(program.pid, env=dict(
            os.environ, LD_PRELOAD=preloaded('late', LATE), TID=str(tid))))
    names = [name for name, _, _ in found[tid]]
    expect_equal(names[:3], ['rest', 'inlined', 'inner'], tid)


@test
def each_thread_has_the_time_that_it_was_stopped():
    with Program(3) as program:
        found = json.loads(stack(program.pid, '--json'))
    times = [thread['stopped_ns'] for thread in found['threads']]
    expect(min(times) > 0, times)
    expect_equal(max(times), found['longest_stop_ns'], times)


# --- what cannot be looked at ---


def refused(words, wanted, status=1, **more):
    text = stack(*words, status=status, **more)
    expect(text.startswith('profrun: ') and wanted in text, (words, text, wanted))


@test
def processes_that_cannot_be_looked_at_are_refused_with_the_reason():
    gone = subprocess.Popen(['true'])
    gone.wait()
    refused([gone.pid], 'there is no process %d' % gone.pid)
    zombie = subprocess.Popen(['true'])
    while state_of(zombie.pid) != 'Z':
        pass
    refused([zombie.pid], 'has already ended')
    zombie.wait()
    with Program(1) as program:
        thread = max(map(int, os.listdir('/proc/%d/task' % program.pid)))
        refused([thread], 'is a thread: give its process, %d' % program.pid)


FIRST_ENDS = '''
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).pthread_exit(None)
'''


@test
def a_process_without_its_first_thread_is_refused_but_not_said_to_have_ended():
    with subprocess.Popen([sys.executable, '-c', FIRST_ENDS]) as process:
        try:
            while state_of(process.pid) != 'Z':
                time.sleep(0.001)
            refused([process.pid], 'its first thread has ended')
        finally:
            process.kill()


@test
def threads_of_the_kernel_are_refused():
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % name) as file:
                flags = int(file.read().rsplit(')', 1)[1].split()[6])
        except OSError:
            continue
        if flags & 0x200000:
            refused([name], 'is a kernel thread')
            return
    raise Skipped('no thread of the kernel can be seen here')


# The thread goes on as one that gets no processor, or that sleeps where nothing ends the call.
DEAF = '''
static bool instead(long request, pid_t tid)
{
	return request == PTRACE_INTERRUPT && tid == number_of("DEAF");
}
'''


@test
def a_thread_that_does_not_stop_has_the_reason_that_is_known():
    library = preloaded('deaf', DEAF)
    for kind, state, reason in (
            ('spin', 'running', ' (it may have got no processor)'), ('sleep', 'sleeping', '')):
        with Program(1, kind) as program:
            tid = max(map(int, os.listdir('/proc/%d/task' % program.pid)))
            text = stack(program.pid, env=dict(os.environ, LD_PRELOAD=library, DEAF=str(tid)))
            expect(re.search(r'thread %d .*, %s\n +\(no stack: the thread did not stop in '
                             r'5 s%s\)' % (tid, state, re.escape(reason)), text), text)


@test
def a_process_with_a_debugger_is_refused_with_its_name():
    libc = ctypes.CDLL(None, use_errno=True)
    with Program(1) as program:
        if libc.ptrace(0x4206, program.pid, 0, 0) != 0:    # PTRACE_SEIZE
            raise Skipped('ptrace: %s' % os.strerror(ctypes.get_errno()))
        refused([program.pid], 'is already traced by process %d (' % os.getpid())


@test
def a_process_of_another_user_is_refused():
    if os.getuid() != 0:
        raise Skipped('not root')
    with Program(1) as program:
        refused([program.pid], 'belongs to another user (0)', user=65534, group=65534)


@test
def files_that_are_no_core_files_are_refused():
    directory = new_directory('files')
    text = os.path.join(directory, 'text')
    with open(text, 'w') as file:
        file.write('hello\n')
    refused([text], 'neither a process id nor a core file')
    refused(['/bin/true'], 'is a program or library')
    refused([os.path.join(directory, 'missing')], 'No such file')
    refused(['/dev/null'], 'neither a process id nor a core file')


@test
def wrong_words_are_refused():
    for words, wanted in (([], 'needs a process id or a core file'),
                          (['1', '2'], 'one process'),
                          (['1', '--count', '3'], 'needs --every'),
                          (['1', '--every', '3'], 'is not a time'),
                          (['1', '--every', '1s', '--count', '0'], 'not a number'),
                          (['1', '--nothing'], 'unknown option'),
                          (['0'], 'is not a process id'),
                          (['99999999999999'], 'is not a process id'),
                          (['file', '--running'], 'need a running process')):
        refused(words, wanted, status=2)


shimtest.main()
