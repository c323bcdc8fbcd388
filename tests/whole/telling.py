"""A job of two processes that tell of messages without MPI."""

import os
import subprocess

import shimtest
from shimtest import compile, expect_equal, new_directory

PROFRUN = os.path.join(os.environ['SHIM_BUILD'], 'profrun')
INCLUDE = os.path.join(shimtest.PROGRAMS, '..', '..', 'include')
KNOWN = {}


def told():
    """The recording of messages.c."""
    if 'told' in KNOWN:
        return KNOWN['told']
    directory = new_directory('messages')
    program = compile('messages.c', flags=['-I', INCLUDE])
    for name in 'to.0', 'to.1':
        os.mkfifo(os.path.join(directory, name))
    processes = [subprocess.Popen(
        [PROFRUN, '-q', '-p', 'trace', '-o', 'job', program, str(rank)],
        cwd=directory, env=shimtest.environment(
            OMPI_COMM_WORLD_SIZE='2', OMPI_COMM_WORLD_RANK=str(rank),
            PMIX_NAMESPACE='80')) for rank in range(2)]
    expect_equal([each.wait(60) for each in processes], [0, 0], 'status')
    KNOWN['told'] = os.path.join(directory, 'job')
    return KNOWN['told']
