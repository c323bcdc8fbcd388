"""--json of the verbs that have it: valid, complete, and the numbers of the text."""
import json
import os
import re
import signal
import subprocess

import shimtest
from shimtest import (compile, environment, expect, expect_equal, new_directory,
                      record, shim_report, test)

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
PROFILES = ('calltree', 'trace', 'memory', 'locks', 'sampling:hz=1000',
            'calltree:budget=10')


def recordings():
    program = compile('everything.cc', optimize='-O1')
    return [(profile, record([program], profile).output)
            for profile in PROFILES]


def profrun(*words, status=0):
    done = subprocess.run([PROFRUN, *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120,
                          cwd=new_directory('cwd'), env=environment())
    expect_equal(done.returncode, status, done.stderr)
    return done.stdout


@test
def a_process_has_its_threads_also_if_they_shared_a_file():
    program = compile('threads.c')
    for profile in 'calltree:counts', 'trace':
        output = record([program], profile).output
        about = json.loads(shim_report('report', '--json', output))
        process, = about['processes']
        expect_equal((process['threads'], len(about['threads'])),
                     (1 + 64 + 200 + 50, 1 + 64 + 200 + 50), profile)


@test
def info_has_what_the_text_has():
    for profile, output in recordings():
        text = shim_report('info', output)
        told = json.loads(shim_report('info', '--json', output))
        process, = told['processes']
        expect_equal(process['profile'], profile, 'profile')
        for image in process['images']:
            expect(image['path'] in text, image)
            expect(not image['build_id'] or image['build_id'] in text, image)
        for thread in process['threads']:
            expect('    %d %s: ' % (thread['tid'], thread['name']) in text,
                   thread)
        counts = told.get('calls', told.get('samples'))
        calls = re.search(r'calls +(~?)([\d,]+) in (\d+) functions', text)
        if not calls.group(1):
            expect_equal(counts, int(calls.group(2).replace(',', '')), profile)
        expect_equal(told['functions'], int(calls.group(3)), profile)
        expect_equal(told['end'], re.search('ended +(.*)', text).group(1),
                     profile)
        sums = json.loads(shim_report('info', '--sums', '--json', output))
        expect_equal(sums.get('calls', sums.get('samples')), counts, profile)
        expect_equal(sums['functions'], told['functions'], profile)
        reported = re.search(r' paths? of ([\d,]+) function',
                             shim_report('report', '--limit', '1', output))
        if reported:
            expect_equal(int(reported.group(1).replace(',', '')),
                         told['functions'], profile)


@test
def replay_has_a_leave_for_each_enter():
    for profile, output in recordings():
        if profile != 'trace':
            continue
        told = json.loads(shim_report('replay', '--json', output))
        text = shim_report('replay', output)
        open_calls, entered = {}, 0
        for event in told['events']:
            key = event['tid'], event.get('coroutine', 0)
            stack = open_calls.setdefault(key, [])
            if event['kind'] == 'enter':
                expect_equal(event['depth'], len(stack), event)
                stack.append(event)
                entered += 1
            elif event['kind'] == 'leave':
                begin = stack.pop()
                expect_equal(event['function'], begin['function'], event)
                expect(abs(event['time_ns'] - begin['time_ns'] -
                           event['duration_ns']) < 1, (begin, event))
        # A slow machine computes less in its 60 ms.
        expect(entered > 20, entered)
        expect_equal([c for c in open_calls.values() if c], [], 'open')
        # A line for each call that calls nothing, two for each other.
        lines = [l for l in text.splitlines()[1:] if not l.strip()[0] == '-']
        expect_equal(sum(1 for l in lines if not re.search(r'} \S', l) and
                         ' -- ' not in l), entered, 'lines')
        few = json.loads(shim_report('replay', '--json', '--limit', '3', output))
        expect_equal(few['events'], told['events'][:3], 'limit')


@test
def doctor_says_the_same():
    program = compile('trivial.c', flags=['-s'], name='trivial-stripped')
    told = json.loads(profrun('doctor', '--json', program))
    text = profrun('doctor', program)
    expect_equal([re.sub(r'\d+', 'N', '%-7s  %s' % (c['kind'], c['text']))
                  for c in told['checks']],
                 re.sub(r'\d+', 'N', text).splitlines(), 'lines')
    expect_equal(told['problems'], 0, 'problems')
    told = json.loads(profrun('doctor', '--json', '/bin/nothing', status=1))
    expect_equal(told['problems'], 1, told)


@test
def a_running_process_has_a_list_a_status_and_stacks():
    path = new_directory('run') + '/r'
    name = 'quote"d'
    directory = new_directory('program')
    source = os.path.join(directory, 'sleeper.c')
    with open(source, 'w') as file:
        file.write('#include <unistd.h>\n'
                   'void nap(void) { pause(); }\n'
                   'int main(void) { write(1, "!", 1); nap(); }\n')
    program = os.path.join(directory, name)
    subprocess.run(['gcc', '-g', '-finstrument-functions', '-o', program,
                    source], check=True)
    with subprocess.Popen([PROFRUN, 'record', '-q', '--control', '-o', path,
                           program], stdout=subprocess.PIPE,
                          env=environment()) as child:
        try:
            expect_equal(child.stdout.read(1), b'!', 'it runs')
            # Other tests have processes of their own.
            for words in ('ctl', '--json'), ('ctl', 'list', '--json'):
                told = json.loads(profrun(*words))
                mine, = [p for p in told['processes'] if p['pid'] == child.pid]
                expect_equal((mine['program'], mine['control'],
                              mine['recording']), (name, True, path), mine)
            told = json.loads(profrun('ctl', str(child.pid), 'status',
                                      '--json'))
            expect_equal((told['pid'], told['recording'], told['threads'],
                          told['records_calls'], told['recorded']['calls'],
                          told['recorded']['open']),
                         (child.pid, path, 1, True, 2, 2), told)
            told = profrun('stack', '--json', '--every', '10ms', '--count',
                           '3', str(child.pid)).splitlines()
            expect_equal(len(told), 3, told)
            for line in told:
                # Others are threads of --control.
                thread = json.loads(line)['threads'][0]
                names = [f['function'] for f in thread['frames']]
                expect_equal(names[names.index('nap'):][:2], ['nap', 'main'],
                             names)
                expect_equal(thread['open_calls'], [['main', 'nap']], thread)
        finally:
            child.send_signal(signal.SIGKILL)


if __name__ == '__main__':
    shimtest.main()
