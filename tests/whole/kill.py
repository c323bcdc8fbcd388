#!/usr/bin/env python3
"""kill.py LIBSHIM SHIM-REPORT FIXTURES [TEST...]

SIGKILL at random moments.  The program counts in a shared page before each call
and first thing in each call; what is recorded of a thread lies between the two,
or is one more or less for the call in flight.
"""
import os
import random
import struct
import subprocess
import time

import shimtest
from shimtest import (BUILDS, PROFILES, Failed, add_test, compile, environment,
                      expect, expect_equal, json_of, new_directory, test)

ROUNDS = 64 if shimtest.ALL else 8


def kill_once(program, profile, delay):
    directory = new_directory('kill')
    output = os.path.join(directory, 'r')
    os.mkdir(output, 0o700)
    page = os.path.join(directory, 'page')
    with open(page, 'wb') as file:
        file.write(bytes(4096))
    process = subprocess.Popen(shimtest.emulator + [program, page], stdout=subprocess.PIPE,
                               env=environment(output, profile))
    process.stdout.readline()
    time.sleep(delay)
    process.kill()
    process.wait()
    process.stdout.close()
    with open(page, 'rb') as file:
        words = struct.unpack('512Q', file.read())
    try:
        about = json_of(output)
    except Failed as error:     # killed before its first call
        if 'no call was recorded' not in str(error):
            raise
        about = {'lost': 0, 'threads': []}
    expect_equal(about['lost'], 0, 'lost')
    threads = {t['tid'] == t['pid']: t for t in about['threads']}
    for number, is_main in enumerate((True, False)):
        begun, entered = words[8 * number], words[8 * number + 1]
        got = threads[is_main]['calls'] if is_main in threads else 0
        expect(entered <= got <= begun,
               '%s, killed after %.1f ms: thread %d began %d calls, is known '
               'to be in the %dth, recorded %d' %
               (profile, delay * 1000, number, begun, entered, got))


def check(profile, family, optimize):
    program = compile('killed.c', family, optimize)
    for i in range(ROUNDS):
        # Early, when all is made, and later.
        kill_once(program, profile,
                  random.uniform(0, 0.004 if i % 2 else 0.05))


@test
def a_killed_program_has_its_time():
    """None of the calls that are open, main's alone, began late."""
    program = compile('naps.c', 'gcc', '-O0')
    output = new_directory('kill')
    process = subprocess.Popen(shimtest.emulator + [program], stdout=subprocess.PIPE,
                               env=environment(output, 'calltree'))
    process.stdout.readline()
    begin = time.monotonic()
    time.sleep(0.6)
    process.kill()
    process.wait()
    process.stdout.close()
    ran = (time.monotonic() - begin) * 1e9
    duration = json_of(output)['duration_ns']
    # A machine may let the program wait for a while at its end.
    expect(ran / 3 < duration < ran + 1e9, '%d of %d ns' % (duration, ran))


for family, optimize in BUILDS:
    for profile in PROFILES:
        add_test('sigkill loses the call in flight at most (%s, %s %s)' %
                 (profile, family, optimize),
                 lambda profile=profile, family=family, optimize=optimize:
                 check(profile, family, optimize))

if __name__ == '__main__':
    shimtest.main()
