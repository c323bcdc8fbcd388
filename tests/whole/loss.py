#!/usr/bin/env python3
"""loss.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

Disk, memory, the directory and system calls fail while the program runs.  The program
must not notice, and every unrecorded call must be counted: recorded + lost = truth,
exactly.
"""
import contextlib
import glob
import json
import os
import re
import resource
import shutil
import struct
import subprocess

import shimtest
from shimtest import (PROFILES, Failed, Skipped, calls_of, compile, environment, expect,
                      expect_equal, json_of, need_root, new_directory, run, shim_report, test)


class Run:
    """Runs the program busy; a thread does @meanwhile() halfway."""

    def __init__(self, arguments, output, profile, meanwhile=None):
        self.program = compile('busy.c', 'gcc', '-O1')
        process = subprocess.Popen(
            [self.program] + arguments, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd='/',
            env=environment(output, profile))
        try:
            seen = b''
            if meanwhile:
                seen = process.stdout.readline()
                meanwhile()
                process.stdin.write(b'\n')
                process.stdin.flush()
            stdout, stderr = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            raise Failed('the program hangs')
        finally:
            process.kill()
            process.wait()
        self.result = shimtest.Result(process.returncode, seen + stdout,
                                      stderr, output)


def lose(arguments, causes, output=None, meanwhile=None, read=None,
         profiles=PROFILES):
    """Runs busy without shim and with it.  @causes: exactly these reasons must have
    lost calls.  @read() makes the recording readable."""
    for profile in profiles:
        alone = Run(arguments, None, profile,
                    (lambda: None) if meanwhile else None).result
        with (output() if output else contextlib.nullcontext(
                new_directory('loss'))) as directory:
            ours = Run(arguments, directory, profile,
                       meanwhile and (lambda: meanwhile(directory))).result
            expect_equal(ours.status, alone.status, 'exit status')
            expect_equal(ours.stdout, alone.stdout, 'stdout')
            expect_equal(ours.stderr, alone.stderr, 'stderr')
            about = json_of(read(directory) if read else directory)
        truth = sum(ours.truth().values())
        expect_equal(about['calls'] + about['lost'], truth,
                     '%s: %d recorded + %d lost %s' % (
                         profile, about['calls'], about['lost'],
                         about['lost_causes']))
        got = {cause for cause, n in about['lost_causes'].items() if n}
        expect_equal(got, set(causes), '%s: causes of loss' % profile)
        # The recorded calls are right: no function has more than it should.
        for name, calls in calls_of(about).items():
            expect(calls <= ours.truth().get(name, 0), '%s: %d calls of %s' %
                   (profile, calls, name))
    return about


def expect_one_line(result, says, is_made=False):
    """A loss is printed on stderr only if there is no recording; otherwise its log has
    the message."""
    if is_made and not result.stderr:
        return
    expect(result.stderr.startswith('shim: ') and
           result.stderr.count('\n') == 1 and says in result.stderr,
           'stderr: %r' % result.stderr)


@contextlib.contextmanager
def small_disk(size):
    need_root()
    directory = new_directory('disk')
    done = subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=%d,mode=700' %
                           size, 'shim-test', directory],
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise Skipped('mount is not permitted')
    try:
        yield directory
    finally:
        subprocess.run(['umount', directory])


@test
def nothing_is_lost_when_nothing_is_taken():
    about = lose(['none'], [])
    expect_equal(about['lost'], 0, 'lost')


@test
def a_disk_that_gets_full():
    lose(['none'], ['space'], lambda: small_disk(1 << 20))


@test
def a_disk_with_room_for_the_first_thread_only():
    lose(['none'], ['space'], lambda: small_disk(450 << 10))


@test
def a_disk_filled_by_another_process_loses_counted_calls():
    def fill(directory):
        with contextlib.suppress(OSError):
            with open(os.path.join(directory, 'fill'), 'wb', 0) as file:
                while True:
                    file.write(b'x' * 4096)
    lose(['wait'], ['space'], lambda: small_disk(8 << 20), meanwhile=fill)


@test
def a_disk_without_any_room_leaves_the_program_alone():
    program = compile('busy.c', 'gcc', '-O1')
    alone = run([program, 'none'])
    for size in (4096, 40 << 10, 200 << 10):
        with small_disk(size) as directory:
            ours = run([program, 'none'], directory)
            made = os.listdir(os.path.join(directory))
        expect_equal(ours.status, alone.status, 'exit status')
        expect_equal(ours.stdout, alone.stdout, 'stdout')
        expect_one_line(ours, 'no space left on the device', bool(made))


@test
def a_full_disk_is_named_as_the_cause():
    """The message is in the log once, and in the report: with room for no call, for the
    first thread's calls, and for some."""
    program = compile('busy.c', 'gcc', '-O1')
    for profile in PROFILES + ['trace', 'sampling:hz=1000', 'memory']:
        for size in (200 << 10, 450 << 10, 1 << 20):
            with small_disk(size) as directory:
                run([program, 'none'], directory, profile)
                about = json_of(directory)
                log = shimtest.shim_report('info', directory)
                text = shimtest.shim_report('report', directory)
            if about['lost'] == 0:      # few samples
                continue
            expect_equal(log.count('no space left on the device: records may be '
                                   'lost from here on, and are counted '
                                   '(free space and run again, or use -o '
                                   'DIR)'), 1, '%s: log' % profile)
            expect('the disk or the quota was full: free space' in text, text)
            expect('finstrument' not in text, text)


@test
def a_file_that_a_full_disk_has_prevented_is_not_one_that_cannot_be_opened():
    """The cause is the disk, not the missing list of objects."""
    program = compile('busy.c', 'gcc', '-O1')
    with small_disk(28 << 10) as directory:
        run([program, 'none'], directory, 'calltree')
        expect(not glob.glob(os.path.join(directory, '*', 'images')), 'images')
        done = subprocess.run([shimtest.report, 'report', directory], text=True,
                              capture_output=True, timeout=60)
    text = done.stdout + done.stderr
    expect_equal(done.returncode, 1, 'status')
    expect('the disk or the quota was full: free space' in text, text)
    expect('Nothing is left to report.' in text and 'opened' not in text, text)


@test
def a_limit_of_file_size():
    lose(['fsize'], ['file_size'])


@test
def a_limit_of_file_size_of_nothing():
    lose(['fsize0'], ['file_size'])


@test
def a_limit_of_address_space():
    lose(['as'], ['memory'])


@test
def no_descriptor_to_be_had():
    about = lose(['nofile'], ['other'])
    expect(about['lost'] > 0, 'nothing was lost')


@test
def no_new_threads_to_be_had():
    lose(['nproc'], [])


@test
def a_program_that_changes_its_root():
    need_root()
    lose(['chroot', new_directory('empty')], ['access'])


@test
def a_program_that_gives_up_its_rights():
    need_root()
    lose(['setuid'], ['access'])


@test
def a_directory_that_is_renamed():
    def read(directory):
        os.rename(directory + '.away', directory)
        return directory
    lose(['wait'], ['access'], read=read,
         meanwhile=lambda directory: os.rename(directory,
                                               directory + '.away'))


@test
def a_directory_that_is_removed():
    def remove(directory):      # files exist while they are mapped
        copy = directory + '.copy'
        shutil.copytree(directory, copy, copy_function=os.link)
        shutil.rmtree(directory)
    lose(['wait'], ['access'], meanwhile=remove,
         read=lambda directory: directory + '.copy')


@test
def a_disk_that_becomes_read_only():
    def freeze(directory):
        done = subprocess.run(['mount', '-o', 'remount,ro', directory],
                              stderr=subprocess.PIPE)
        if done.returncode:     # files that are mapped for writing
            raise Skipped('busy file systems cannot become read-only here')
    lose(['wait'], ['access'], lambda: small_disk(64 << 20), meanwhile=freeze)


@test
def a_file_in_place_of_the_directory():
    def replace(directory):
        os.rename(directory, directory + '.away')
        with open(directory, 'w'):
            pass
    lose(['wait'], ['access'], meanwhile=replace,
         read=lambda directory: directory + '.away')


@test
def seccomp_loses_no_calls_of_paths_that_are_known():
    about = lose(['seccomp-prctl', '6'], [])
    expect_equal(about['lost'], 0, 'lost')


@test
def seccomp_loses_new_paths_when_the_reserve_is_used_up():
    about = lose(['seccomp-prctl', '15'], ['forbidden'])
    expect(about['lost'] > 0, 'nothing was lost')


@test
def seccomp_by_its_own_system_call():
    lose(['seccomp-syscall', '15'], ['forbidden'])


@test
def a_program_that_only_asks_for_seccomp_loses_nothing():
    for profile in [*PROFILES, 'trace']:
        about = lose(['seccomp-asked', '15'], [], profiles=[profile])
        expect_equal(about['lost'], 0, 'lost')


@test
def a_vfork_child_that_restricts_itself_does_not_restrict_its_parent():
    for profile in [*PROFILES, 'trace']:
        about = lose(['seccomp-vfork', '15'], [], profiles=[profile])
        expect_equal(about['lost'], 0, 'lost')


@test
def system_calls_of_chosen_code_alone():
    """PR_SET_SYSCALL_USER_DISPATCH: a call of shim would raise SIGSYS."""
    if run([compile('busy.c', 'gcc', '-O1'), 'seccomp-dispatch', '6']).status == 77:
        raise Skipped('the kernel has no PR_SET_SYSCALL_USER_DISPATCH')
    lose(['seccomp-dispatch', '6'], [])
    lose(['seccomp-dispatch', '15'], ['forbidden'], profiles=[*PROFILES, 'trace'])


@test
def other_threads_have_their_signals_when_one_restricts_system_calls():
    """Threads that were about to unblock them could not: half of the runs failed."""
    program = compile('restricted_threads.c')
    for _ in range(10):
        for profile in 'calltree', 'trace', 'memory', 'sampling':
            done = shimtest.record([program], profile)
            expect_equal((done.status, done.stdout, done.stderr), (0, '', ''), profile)


RESTRICTED = r'''
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(void)
{
	struct sock_filter all = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { 1, &all };

	usleep(100000);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}
'''


@test
def seccomp_ends_the_measuring_of_the_clocks_unit_not_before():
    path = shimtest.new_source('restricted.c', RESTRICTED)
    for profile in [*PROFILES, 'sampling', 'coverage']:
        result = shimtest.record([compile(path)], profile)
        expect_equal(result.status, 0, 'status')
        meta, = glob.glob(os.path.join(result.output, '*', 'meta'))
        with open(meta, 'rb') as file:
            clock, mono_ns, last_clock, last_mono_ns = struct.unpack_from(
                '<4Q', file.read(), 40)
        expect(last_clock > clock, profile)
        expect(last_mono_ns - mono_ns >= 100000000, profile)


# --- losses other than calls ---

ALLOCATING = r'''
#include <stdlib.h>

static void *volatile kept;

static void left(unsigned depth);

static void right(unsigned depth)
{
	kept = malloc(16);
	if (depth) {
		left(depth - 1);
		right(depth - 1);
	}
}

static void left(unsigned depth)
{
	kept = malloc(16);
	if (depth) {
		right(depth - 1);
		left(depth - 1);
	}
}

int main(void)
{
	left(14);
	return 0;
}
'''


@test
def allocations_that_are_lost_are_no_calls():
    path = shimtest.new_source('allocating.c', ALLOCATING)
    program = compile(path, optimize='-O0')
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    for profile in 'memory', 'calltree:counts;memory':
        # prlimit itself allocates, too.
        made = [shimtest.record(['prlimit', '--fsize=%d' % limit, program],
                                profile).output for limit in (most, 1 << 20)]
        whole, about = map(json_of, made)
        lost = about['lost_others']['allocations']
        expect(lost, about['lost_others'])
        expect_equal(about['memory']['allocations'] + lost,
                     whole['memory']['allocations'], profile)
        expect_equal(about['calls'] + about['lost'], whole['calls'], profile)
        said = shimtest.shim_report('report', '--limit', '1',
                                    made[1])
        expect('{:,} allocations LOST (file_size: '.format(lost) in said, said)


SAMPLED = '''
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

static void __attribute__((noinline)) leaf(void)
{
    __asm__ volatile("");
}

static void *work(void *unused)
{
    for (int i = 0; i < 20000000; i++)
        leaf();
    return unused;
}

int main(void)
{
    struct rlimit none = { 0, 0 };
    pthread_t thread;

    work(NULL);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
'''


@test
def samples_that_are_lost_are_no_calls():
    """The second thread gets no files."""
    path = shimtest.new_source('sampled.c', SAMPLED)
    made = shimtest.record([compile(path)], 'calltree;sampling:hz=1000').output
    about = json_of(made)
    expect_equal((about['calls'], about['lost']), (20000002, 20000001), 'calls')
    lost = about['lost_others']['samples']
    said = shim_report('report', '--limit', '1', made)
    expect(lost and '{:,} samples LOST (file_size: '.format(lost) in said, said)
    samples = json.loads(shim_report('report', '--samples', '--format', 'json', made))
    expect_equal((samples['lost'], samples['lost_others']['samples']), (lost, 0),
                 'of samples')


TAKES = '''
#define _GNU_SOURCE
#include <sys/mman.h>
__attribute__((constructor, no_instrument_function, patchable_function_entry(0)))
static void take(void)
{
    mmap((void *)0x200000000000, 0x100000000000, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}
'''


def lose_returns(flags, takes=True, profile='calltree', **more):
    """Records a program that has memory, as MemorySanitizer has, where shim would keep return
    addresses; or does not have it."""
    if takes:
        flags = [*flags, '-include', shimtest.new_source('takes.h', TAKES)]
    program = compile('nesting.c', flags=flags, name='nesting-taken', instrument=False)
    return shimtest.record([program], profile, SHIM_VERBOSE='1', PROFDIR='', **more)


@test
def calls_that_are_all_lost_are_told_instead_of_samples():
    whole = lose_returns(['-pg'], takes=False)
    calls = json_of(whole.output)['calls']
    for profile in 'calltree', 'calltree;sampling':     # without sampling: samples of pchist
        made = lose_returns(['-pg'], profile=profile)
        expect_equal((made.status, made.stdout), (0, whole.stdout), 'the program')
        about = json_of(made.output)
        expect_equal((about['calls'], about['lost']), (0, calls), profile)
        said = shim_report('report', made.output)
        expect('%d calls LOST (limit: %d)' % (calls, calls) in said, said)
        samples = json.loads(shim_report('report', '--samples', '--format', 'json', made.output))
        expect_equal(samples['lost'], 0, profile)


@test
def the_log_says_that_return_addresses_have_no_room():
    """The report sends the reader there for the reason."""
    for flags, more in (['-fpatchable-function-entry=5'], {}), (['-pg'], {}), \
            ([], {'SHIM_PATCH': 'program,-take'}):
        whole, made = (lose_returns(flags, takes, **more) for takes in (False, True))
        expect_equal((made.status, made.stdout), (0, whole.stdout), flags)
        expect_equal([result.stderr.count('where shim would keep return addresses')
                      for result in (whole, made)], [0, 1], flags)
        expect_equal(json_of(made.output)['lost'], json_of(whole.output)['calls'], flags)


# --- the clock ---

@test
def without_the_kernels_tick_every_call_is_timed_exactly():
    """In a time namespace, another page is at the address of the tick."""
    need_root()
    program = compile('busy.c', 'gcc', '-O1')
    apart = ['unshare', '--time', '--fork', 'env',
             'LD_PRELOAD=' + shimtest.library]
    if run(apart[:3] + ['true']).status != 0:
        raise Skipped('no time of its own here')
    for profile in PROFILES:
        output = new_directory('tick')
        ours = run(apart + [program, 'none'], SHIM_DIR=output,
                   SHIM_PROFILE=profile)
        alone = run([program, 'none'])
        expect_equal((ours.status, ours.stdout, ours.stderr),
                     (alone.status, alone.stdout, alone.stderr), 'the program')
        about = json_of(output)
        expect_equal(about['processes'][0]['tick_ns'], None, 'tick')
        expect('has no coarse clock' in shimtest.shim_report('info', output),
               'no word of it')
        shimtest.expect_truth(ours, calls_of(about))
        # The minimum and maximum are known for exactly timed calls only.
        for function in about['functions']:
            expect(profile == 'calltree:counts' or
                   function['max_ns'] is not None or function['calls'] == 1,
                   '%s: %s' % (profile, function))


@test
def without_proc_calls_are_recorded_and_their_missing_names_are_explained():
    need_root()
    program = compile('busy.c', 'gcc', '-O1')
    apart = ['unshare', '-m', 'sh', '-c', 'umount -l /proc && exec "$@"', 'sh']
    if run(apart + ['true']).status != 0:
        raise Skipped('/proc cannot be hidden here')
    why = '/proc/self/maps'
    for profile in PROFILES:
        output = new_directory('no_proc')
        ours = run(apart + ['env', 'LD_PRELOAD=' + shimtest.library, program, 'none'],
                   SHIM_DIR=output, SHIM_PROFILE=profile)
        alone = run([program, 'none'])
        expect_equal((ours.status, ours.stdout, ours.stderr),
                     (alone.status, alone.stdout, alone.stderr), 'the program')
        expect_equal(json_of(output)['calls'], sum(ours.truth().values()), 'calls')
        text = shimtest.shim_report('info', output)
        expect('cannot read %s, so functions have no names' % why in text, text)
        expect('this machine has no coarse clock' not in text, text)
    profrun = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    doctor = run([*apart, profrun, 'doctor', program]).stdout
    expect('%s cannot be read' % why in doctor and 'probe' not in doctor, doctor)


# --- from the start ---

def check_no_recording(output, says, **more):
    """The program runs as usual; one line on stderr tells why there is no recording."""
    program = compile('busy.c', 'gcc', '-O1')
    alone = run([program, 'none'], **more)
    ours = run([program, 'none'], LD_PRELOAD=shimtest.library,
               SHIM_OUTPUT=output, **more)
    # profrun has already made the directory:
    with_profrun = run([program, 'none'], output, **more)
    for result in (ours, with_profrun):
        expect_equal(result.status, alone.status, 'exit status')
        expect_equal(result.stdout, alone.stdout, 'stdout')
        expect_one_line(result, says)


@test
def a_directory_that_is_not_there():
    check_no_recording('/nonexistent/directory/r',
                       'no such file or directory')


@test
def a_directory_that_is_read_only():
    with small_disk(1 << 20) as directory:
        os.mkdir(os.path.join(directory, 'r'), 0o700)
        subprocess.run(['mount', '-o', 'remount,ro', directory])
        check_no_recording(os.path.join(directory, 'r'), 'read-only')


@test
def a_name_that_is_too_long():
    check_no_recording('/tmp/' + 'x' * 300, 'too long')


@test
def a_file_instead_of_a_directory():
    check_no_recording(compile('busy.c', 'gcc', '-O1') + '/r',
                       'not a directory')


# --- a standard error that cannot take the message ---

def expect_unharmed(stderr, *before):
    """shim cannot record, or cannot follow a setting, and has no place for a message:
    the program must still be unharmed."""
    program = compile('busy.c', 'gcc', '-O1')
    command = ['sh', '-c', ' '.join(before + ('exec "$@"',)), 'sh', program,
               'none']
    done = []
    for more in ({}, {'LD_PRELOAD': shimtest.library,
                      'SHIM_OUTPUT': '/nonexistent/r', 'SHIM_VERBOSE': '1'},
                 {'LD_PRELOAD': shimtest.library,
                  'SHIM_OUTPUT': '/nonexistent/r'},
                 {'LD_PRELOAD': shimtest.library, 'SHIM_NO_SETTING': '1',
                  'SHIM_OUTPUT': new_directory('recording') + '/r.%p'}):
        try:
            result = subprocess.run(
                ['env', *('%s=%s' % v for v in more.items()), *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=stderr, cwd='/', timeout=60, env=environment())
        except subprocess.TimeoutExpired:
            raise Failed('the program hangs')
        done.append((result.returncode, result.stdout))
    expect(all(d == done[0] for d in done), '%r' % done)


@test
def profrun_that_cannot_block_signals_refuses_to_run():
    profrun = os.path.join(os.path.dirname(shimtest.report), '..', '..', 'profrun')
    output = os.path.join(new_directory('refused'), 'r')
    done = run([compile('masks_refused.c'), os.path.abspath(profrun), '-o', output,
                compile('masks_refused.c')], None)
    expect_equal((done.status, done.stdout, done.stderr.strip()),
                 (125, '', 'profrun: signals cannot be blocked: Operation not '
                  'permitted'), 'profrun')


@test
def a_program_that_cannot_block_signals_from_the_start_says_so():
    output = os.path.join(new_directory('refused'), 'r')
    done = run([compile('masks_refused.c'), '/usr/bin/env',
                'LD_PRELOAD=' + shimtest.library, 'SHIM_OUTPUT=' + output,
                '/bin/echo', 'works'], None)
    expect_equal((done.status, done.stdout), (0, 'works\n'), 'the program')
    expect(re.fullmatch('shim: signals cannot be blocked.*\n'
                        'shim: nothing is recorded: a system call fails: not '
                        'permitted\n', done.stderr), 'stderr: ' + done.stderr)


# If signals cannot be blocked, the child has no recording and writes nothing into its
# parent's.
@test
def a_child_that_cannot_block_signals_is_lost_and_reported():
    program = compile('masks_refused.c')
    output = new_directory('masks')
    done = run([program], output=output, profile='calltree')
    expect_equal((done.status, done.stdout.splitlines()),
                 (3, ['calls leaf 10', 'calls main 1']), 'the program')
    expect_equal(len([name for name in os.listdir(output)
                      if name.endswith('.0')]), 1, 'recordings')
    about = json_of(output)
    leaf, = (f for f in about['functions'] if f['name'] == 'leaf')
    expect_equal((leaf['calls'], about['lost']), (10, 100),
                 "the parent's calls, and those that are lost")
    expect('a forked child is not recorded: signals cannot be blocked' in
           shim_report('info', output), 'it is not said')


@test
def no_signal_comes_of_our_line_where_files_may_not_grow():
    with open(os.path.join(new_directory('limit'), 'err'), 'w') as file:
        expect_unharmed(file, 'ulimit -f 0;')


@test
def writing_a_message_to_a_closed_pipe_raises_no_signal():
    reader, writer = os.pipe()
    os.close(reader)
    expect_unharmed(writer)
    os.close(writer)


@test
def our_line_does_not_wait_for_a_reader():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b'x' * 4096)
    os.set_blocking(writer, True)
    expect_unharmed(writer)
    os.close(writer)
    os.close(reader)


@test
def our_line_is_not_written_without_standard_error():
    expect_unharmed(subprocess.DEVNULL, 'exec 2>&-;')


if __name__ == '__main__':
    shimtest.main()
