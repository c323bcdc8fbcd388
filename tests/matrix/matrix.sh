#!/bin/sh
# matrix.sh PROFRUN FIXTURE [TEST...] - a program under profrun behaves as without it
#
# Exit status, signals, stopping, input, output, arguments, environment: the typical
# mistakes of wrappers.  Prints TAP.
#
# shellcheck disable=SC2013 # pids and names of functions are words
set -u

# All tests: the functions of this file, except its helpers.
all=$(sed -n 's/^\([a-z]*_[a-z0-9_]*\)() {.*/\1/p' "$0" |
    grep -vx -e status_is -e until_true -e state_is -e group_of \
        -e has_no_files -e clean_up -e witness_of)
profrun=$(realpath -s "$1")
fixture=$(realpath "$2")
if [ ! -x "$profrun" ] || [ ! -x "$fixture" ]; then
    echo 'Bail out! where are the programs?'
    exit 1
fi
shift 2
[ $# -eq 0 ] || all=$*
unset LD_PRELOAD SHIM_DIR SHIM_OUTPUT SHIM_PROFILE SHIM_VERBOSE \
    SHIM_QUIET SHIM_NO_REPORT

scratch=$(mktemp -d "${TMPDIR:-/tmp}/matrix.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

tests=0
failures=0

# try NAME - run the function NAME in a directory of its own
try() {
    tests=$((tests + 1))
    mkdir "$scratch/$1" && cd "$scratch/$1" || exit 1
    (trap clean_up EXIT; "$1") >log 2>&1
    status=$?
    if [ $status -eq 0 ]; then
        echo "ok $tests - $1"
    elif [ $status -eq 77 ]; then
        echo "ok $tests - $1 # SKIP $(tail -n 1 log)"
    else
        failures=$((failures + 1))
        echo "not ok $tests - $1"
        sed 's/^/# /' log
    fi
}

# A failed test may have left waiting processes.
clean_up() {
    [ -z "${tool-}" ] || kill -KILL "-$tool" "$child" "$leader" 2>/dev/null
}

# is GOT WANTED
is() {
    [ "$1" = "$2" ] || { printf 'got "%s", wanted "%s"\n' "$1" "$2"; exit 1; }
}

# status_is STATUS COMMAND... - also leaves its stderr in the file err
status_is() {
    wanted=$1
    shift
    "$@" 2>err
    got=$?
    cat err
    is $got "$wanted"
}

says() { grep -q -- "$1" err || { echo "stderr lacks: $1"; exit 1; }; }

# until_true COMMAND... - wait until it succeeds, 10 seconds at most
until_true() {
    for _ in $(seq 500); do
        if "$@" 2>/dev/null; then return 0; fi
        sleep 0.02
    done
    echo "waited in vain for: $*"
    exit 1
}

# Both ways to run: `for how in $ways; do "$profrun" "$how" -q ...`
ways='run record'

state_is() { [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat")" = "$2" ]; }

# group_of PID - its process group
group_of() { sed 's/.*) //' "/proc/$1/stat" | cut -d' ' -f 3; }

# witness_of PROFRUN PROGRAM - the other child of profrun
witness_of() {
    # The kernel may omit children when the list changes during the reading.
    until_true grep -q '[0-9] [0-9]' "/proc/$1/task/$1/children"
    until_true grep -owE '[0-9]+' "/proc/$1/task/$1/children" | grep -vx "$2"
}
has_no_files() { [ -z "$(ls -A "/proc/$1/fd")" ]; }
gone() { ! kill -0 "$1" 2>/dev/null; }

# start ARG... - profrun ARG... in a process group of its own, in the
# background.  When the program is ready, the pid of profrun is in $tool, that
# of the program in $child, and its output in the file out.
start() {
    rm -f out
    "$fixture" group "$profrun" "$@" >out 2>err &
    leader=$!
    until_true grep -q "^ready" out
    until_true grep -q "^group" out
    tool=$(sed -n 's/^group //p' out)
    child=$(sed -n 's/^ready //p' out)
}

ended() { state_is "$1" Z || gone "$1"; }
finish() { until_true ended "$leader"; wait "$leader"; is $? "$1"; }

# --- status ------------------------------------------------------------------

the_status_is_the_programs() {
    for how in $ways; do
        status_is 7 "$profrun" "$how" "$fixture" exit 7
        status_is 0 "$profrun" "$how" "$fixture" exit 0
        status_is 127 "$profrun" "$how" "$fixture" exit 127
    done
    status_is 7 "$profrun" "$fixture" exit 7
}

a_fatal_signal_is_passed_on_as_one() {
    for how in $ways; do
        is "$("$fixture" wait "$profrun" "$how" -q "$fixture" segv)" 'signal 11'
    done
    status_is 139 "$profrun" "$fixture" segv
}

only_the_program_leaves_a_core() {
    # shellcheck disable=SC3045 # sh here has it
    ulimit -c unlimited || exit 0
    "$profrun" -q "$fixture" segv
    for core in core*; do
        [ ! -e "$core" ] || ! grep -q shim-run "$core" || exit 1
    done
}

what_is_not_there_is_127() {
    for how in $ways; do
        status_is 127 "$profrun" "$how" ./nothing
        says 'profrun: ./nothing: not found'
        status_is 127 "$profrun" "$how" no-such-program
    done
    status_is 127 "$profrun" run ''
    # A future verb is not a verb yet.
    status_is 127 "$profrun" predict
    says 'profrun: predict: not found'
    is "$(echo profrun.*)" 'profrun.*'
}

what_cannot_be_executed_is_126() {
    echo text >file
    printf '#!/nothing/here\n' >script
    printf '\177ELF\2\1\1 but no more' >broken
    chmod +x script broken
    for how in $ways; do
        status_is 126 "$profrun" "$how" ./file
        status_is 126 "$profrun" "$how" /
        status_is 126 "$profrun" "$how" ./script
        says '/nothing/here is not there'
    done
    mkdir bin && cp file bin/matrix-file
    PATH=$PWD/bin:$PATH status_is 126 "$profrun" matrix-file
    is "$(echo profrun.*)" 'profrun.*'
}

wrong_usage_is_2() {
    for how in $ways; do
        status_is 2 "$profrun" "$how" --nonsense "$fixture" exit 7
        says nonsense
        status_is 2 "$profrun" "$how"
        status_is 2 "$profrun" "$how" -o
        status_is 2 "$profrun" "$how" -o %x "$fixture" exit 7
        status_is 2 "$profrun" "$how" -o '' "$fixture" exit 7
    done
    status_is 2 "$profrun"
    status_is 2 "$profrun" --nonsense
    status_is 2 "$profrun" --sort beauty "$fixture" exit 7
    status_is 2 "$profrun" --limit -3 "$fixture" exit 7
    status_is 2 "$profrun" record --tree "$fixture" exit 7
    is "$(echo profrun.*)" 'profrun.*'
}

an_unknown_profiler_is_2() {
    for profile in 'calltree;non sense' 'none;:' ''; do
        status_is 2 "$profrun" -p "$profile" "$fixture" exit 7
        says 'there are calltree'
        status_is 2 "$profrun" "--profile=$profile" "$fixture" exit 7
    done
    for profile in calltree:nonsense 'none;calltree:counts,x'; do
        status_is 2 "$profrun" -p "$profile" "$fixture" exit 7
        says 'calltree takes exact, calibrate, counts'
    done
    status_is 2 "$profrun" -p none:nonsense "$fixture" exit 7
    says 'none takes no arguments'
    status_is 2 "$profrun" -p trace:depth=3,ring=64K,off "$fixture" exit 7
    says "'ring=64K': trace takes ring=1M"
    SHIM_PROFILE=calltree:nonsense status_is 2 "$profrun" "$fixture" exit 7
    says SHIM_PROFILE
    for profile in calltree calltree:exact calltree:counts memory none pchist \
        sampling 'sampling:hz=100,clock=wall' calltree:by=main/1; do
        status_is 7 "$profrun" -p "$profile" "$fixture" exit 7
        ! grep "not found" err || exit 1
    done
    is "$("$profrun" -q -p calltree:exact "$fixture" env | grep SHIM_PROFILE)" \
        SHIM_PROFILE=calltree:exact
}

a_module_that_is_missing_is_2() {
    for how in $ways; do
        for profile in nonsense 'calltree;;nonsense;' ./nonsense.so; do
            status_is 2 "$profrun" "$how" -p "$profile" "$fixture" args started
            says "nonsense.*' was not found"
        done
        SHIM_PROFILE=nonsense status_is 2 "$profrun" "$how" "$fixture" exit 7
        says "nonsense' was not found"
    done
    ! grep started log || exit 1
    is "$(echo profrun.*)" 'profrun.*'
    SHIM_DISABLE=1 status_is 7 "$profrun" "$fixture" exit 7
    says 'SHIM_DISABLE is set'
}

a_recording_is_never_overwritten() {
    mkdir here
    for how in $ways; do
        status_is 125 "$profrun" "$how" -o here "$fixture" args started
        says exists
        SHIM_OUTPUT=here status_is 125 "$profrun" "$how" "$fixture" exit 7
    done
    ! grep started log || exit 1
    is "$(ls -A here)" ''
    # shellcheck disable=SC2016 # $$ is the inner shell's
    sh -c 'mkdir "profrun.fixture.$$"
        exec "$0" record -q "$1" exit 0' "$profrun" "$fixture" || exit 1
    is "$(echo profrun.fixture.*.1 | grep -c '\*')" 0
}

help_and_version_are_there() {
    for verb in '' run record doctor; do
        # shellcheck disable=SC2086 # an empty one is none
        status_is 0 "$profrun" $verb --help >out
        is "$(grep -c '^Usage: profrun' out)" 1
    done
    is "$("$profrun" --version | grep -c '^profrun [0-9]')" 1
}

# --- signals -----------------------------------------------------------------

the_programs_handler_gets_what_profrun_is_sent() {
    for how in $ways; do
        for signal in TERM INT HUP QUIT USR1 USR2 ALRM WINCH; do
            start "$how" -q -o "$how.$signal" "$fixture" handle $signal 55
            kill -$signal "$tool"
            finish 55
        done
    done
}

a_signal_the_program_does_not_handle_ends_it() {
    start run "$fixture" handle USR1 55
    kill -TERM "$tool"
    finish 143
    ! kill -0 "$child" 2>/dev/null || exit 1
    says 'profrun: recording: '
}

a_signal_to_the_group_arrives_once() {
    for how in $ways; do
        start "$how" -q -o "$how" "$fixture" count INT
        for _ in 1 2 3 4 5; do
            kill -INT "-$tool"
            sleep 0.05
        done
        # A signal to the whole group is not mistaken for a signal to one process.
        kill -INT "$tool"
        sleep 0.05
        kill -QUIT "$tool"
        finish 0
        is "$(tail -n 1 out)" 6
    done
}

a_key_arrives_once() {
    "$fixture" pty true || { echo 'there are no terminals'; exit 77; }
    for how in $ways; do
        "$fixture" pty "$profrun" "$how" -q "$fixture" count INT >out
        is "$(tr -d '\r' <out | tail -n 1 | tr -cd 0-9)" 2
    done
}

when_the_program_stops_profrun_stops() {
    start run -q "$fixture" handle TERM 55
    for signal in STOP TSTP TTIN TTOU; do
        kill -$signal "$child"
        until_true state_is "$tool" T
        kill -CONT "$tool"
        until_true state_is "$tool" S
        until_true state_is "$child" S
    done
    kill -STOP "-$tool"
    until_true state_is "$child" T
    until_true state_is "$tool" T
    kill -CONT "$tool"
    until_true state_is "$child" S
    kill -STOP "$child"
    until_true state_is "$tool" T
    kill -CONT "-$tool"
    until_true state_is "$child" S
    until_true state_is "$tool" S
    kill -TERM "$tool"
    finish 55
}

a_stop_is_passed_on() {
    for how in $ways; do
        start "$how" -q -o "$how" "$fixture" handle TERM 55
            kill -TSTP "$tool"
        until_true state_is "$child" T
        until_true state_is "$tool" T
        kill -CONT "$tool"
        until_true state_is "$child" S
        kill -TERM "$tool"
        finish 55
    done
}

a_continue_arrives_once() {
    start run -q "$fixture" count CONT
    kill -STOP "$child"
    until_true state_is "$tool" T
    kill -CONT "-$tool"
    until_true state_is "$tool" S
    sleep 0.05
    kill -QUIT "$tool"
    finish 0
    is "$(tail -n 1 out)" 1
}

ignored_and_blocked_signals_stay_so() {
    "$fixture" ignore "$fixture" signals >wanted
    is "$(grep -cx -e 'ignored 1' -e 'blocked 12' wanted)" 2
    for how in $ways; do
        "$fixture" ignore "$profrun" "$how" -q "$fixture" signals >got
        cmp wanted got || exit 1
    done
    "$fixture" signals >wanted
    for how in $ways; do
        "$profrun" "$how" -q "$fixture" signals >got
        cmp wanted got || exit 1
    done
}

# A shell needs 11 descriptors for a script, and the report needs 100 KiB for one frame.
programs_are_started_with_any_limits() {
    for limit in '-n 4' '-n 5' '-n 10' '-s 128' '-s 64'; do
        for how in $ways; do
            # shellcheck disable=SC2086 # two words
            (ulimit $limit && "$profrun" "$how" "$fixture" exit 7) >out 2>err
            is "$? $limit $how $(cat out)" "7 $limit $how "
        done
    done
    limit='-s 128'
    # shellcheck disable=SC2086
    (ulimit $limit && "$profrun" "$fixture" exit 7) 2>err
    says '^ self'
}

an_alarm_set_before_rings() {
    for how in $ways; do
        is "$("$fixture" wait "$fixture" alarm "$profrun" "$how" -q \
            "$fixture" sleep)" 'signal 14'
    done
}

without_profrun_the_program_goes_on() {
    start run -q "$fixture" handle TERM 55
    witness=$(witness_of "$tool" "$child")
    kill -KILL "$tool"
    finish 137
    sleep 0.1
    until_true state_is "$child" S
    # ... alone: no process of ours remains.
    until_true gone "$witness"
    kill -KILL "$child"
}

# --- input and output --------------------------------------------------------

input_passes_through() {
    head -c 3000000 /dev/urandom >input
    for how in $ways; do
        "$profrun" "$how" -q "$fixture" cat <input >output || exit 1
        cmp input output || exit 1
        # shellcheck disable=SC2002 # a pipe, not a file
        cat input | "$profrun" "$how" -q "$fixture" cat >output || exit 1
        cmp input output || exit 1
        is "$("$profrun" "$how" -q "$fixture" cat </dev/null | wc -c)" 0
        is "$("$profrun" "$how" -q "$fixture" cat <&-)" closed
        # Input that the program does not read is left for the next program.
        is "$(printf 'a\nb\n' | { "$profrun" "$how" -q "$fixture" exit 0; cat; } |
            wc -l)" 2
    done
}

output_passes_through() {
    "$fixture" args a b >wanted
    for how in $ways; do
        "$profrun" "$how" "$fixture" args a b >got 2>err
        cmp wanted got || exit 1
        [ -s err ] || exit 1
        "$profrun" "$how" -q "$fixture" args a b >got 2>err
        cmp wanted got || exit 1
        is "$(cat err)" ''
        "$profrun" "$how" "$fixture" exit 7 >&- 2>&-
        is $? 7
    done
}

a_reader_of_a_pipe_is_not_kept_waiting() {
    # When a program ends, no writer remains: neither profrun nor the witness.
    is "$("$profrun" -q "$fixture" args x | cat)" '<x>'
    start run -q "$fixture" handle TERM 55
    until_true has_no_files "$(witness_of "$tool" "$child")"
    kill -TERM "$tool"
    finish 55
}

descriptors_are_the_same() {
    "$fixture" descriptors 5</dev/null >wanted
    for how in $ways; do
        "$profrun" "$how" -q "$fixture" descriptors 5</dev/null >got
        cmp wanted got || exit 1
    done
}

# --- arguments, environment, identity ----------------------------------------

arguments_arrive_unchanged() {
    new_line='
'
    set -- '' ' ' 'a b' "a$new_line$new_line" "$new_line" -x --help -- \
        -p --output "it's" '"' "\$HOME" '*' "\\" "$(printf '\001\377')" run
    "$fixture" args "$@" >wanted
    for how in run record --; do
        "$profrun" "$how" "$fixture" args "$@" >got 2>err
        cmp wanted got || exit 1
        "$profrun" "$how" -- "$fixture" args "$@" >got 2>err
        [ "$how" = -- ] || cmp wanted got || exit 1
    done
    "$profrun" "$fixture" args "$@" >got 2>err
    cmp wanted got || exit 1
}

programs_of_any_name_are_run() {
    # shellcheck disable=SC2016 # as it stands
    for name in -x 'a b' '%p' "a
b" run '$(x)'; do
        mkdir -p bin
        cp "$fixture" "bin/$name"
        status_is 7 "$profrun" -- "bin/$name" exit 7
        PATH=$PWD/bin:$PATH status_is 7 "$profrun" -- "$name" exit 7
        (cd bin && PATH=:$PATH status_is 7 "$profrun" record -q -- "$name" exit 7)
    done
}

programs_of_any_kind_are_run() {
    printf '#!/bin/sh\nexit 7\n' >script
    echo 'exit $#' >plain
    chmod +x script plain
    for how in $ways; do
        status_is 7 "$profrun" "$how" ./script
        status_is 3 "$profrun" "$how" ./plain 1 2 3
    done
}

# The name of the library in LD_PRELOAD: if its directory contains a blank, the name has
# no directory, and LD_LIBRARY_PATH has the directory.
case ${SHIM_LIBRARY:-$profrun} in
    *[[:space:]]*) entry='libshim\.so\.0' ;;
    *) entry='/[^:]*libshim\.so\.0' ;;
esac

the_environment_is_the_same() {
    set -- A=1 'B=x y' SHIM_PROFILE=calltree \
        ${SHIM_LIBRARY:+"SHIM_LIBRARY=$SHIM_LIBRARY"} \
        ${SHIM_LIBEXEC:+"SHIM_LIBEXEC=$SHIM_LIBEXEC"}
    env -i "$@" "$fixture" env | sort >wanted
    for how in $ways; do
        env -i "$@" "$profrun" "$how" -q "$fixture" env >got
        grep -q '^SHIM_DIR=/' got || exit 1
        grep -qx 'SHIM_SPEAK=[0-9][0-9]*' got || exit 1
        grep -q "^LD_PRELOAD=$entry\$" got || exit 1
        # A shell adds PWD if it is missing.  Only root has an opener.
        grep -v -e '^SHIM_DIR=' -e '^SHIM_SPEAK=' -e '^LD_PRELOAD=' -e '^PWD=' \
            -e '^SHIM_OPENER=' -e '^LD_LIBRARY_PATH=.*[[:space:]]' got |
            sort | diff wanted - || exit 1
    done
}

what_was_preloaded_still_is() {
    for how in $ways; do
        LD_PRELOAD=libm.so.6 "$profrun" "$how" -q "$fixture" env >got
        grep -q "^LD_PRELOAD=libm\.so\.6:$entry\$" got || exit 1
        LD_PRELOAD=':libm.so.6: :libutil.so.1: ' \
            "$profrun" "$how" -q "$fixture" env >got
        grep -q "^LD_PRELOAD=libm\.so\.6:libutil\.so\.1:$entry\$" got || exit 1
        # The library is listed once, also inside another profrun.
        "$profrun" "$how" -q "$profrun" "$how" -q "$fixture" env >got
        grep -q "^LD_PRELOAD=$entry\$" got || exit 1
    done
}

record_keeps_the_process() {
    # shellcheck disable=SC2016 # $$ is the inner shell's
    is "$(sh -c 'echo $$; exec "$0" record -q "$1" pid' "$profrun" "$fixture" |
        uniq -d | wc -l)" 1
}

the_process_group_is_the_same() {
    start run -q "$fixture" handle TERM 55
    is "$(group_of "$child")" "$tool"
    kill -TERM "$tool"
    finish 55
}

# --- the recording -----------------------------------------------------------

a_recording_is_private() {
    for mask in 000 022 077 777; do
        umask $mask
        "$profrun" run -q -o "run.$mask" "$fixture" exit 0
        "$profrun" record -q -o "record.$mask" "$fixture" exit 0
        umask 022
        is "$(stat -c %a "run.$mask" "record.$mask" | uniq)" 700
        is "$(stat -c %a "run.$mask/end")" 600
    done
    is "$(find . -path './r*' -type d ! -perm 700 ! -path '*.777/*')" ''
    is "$(find . -path './r*' -type f ! -perm 600 ! -path '*.777/*')" ''
}

the_end_is_noted() {
    "$profrun" -q -o a "$fixture" exit 7
    is "$(cut -d' ' -f 1-3 a/end)" 'status 1792 mono-ns'
    "$profrun" -q -o b "$fixture" segv
    # 11, or 139 with a core file
    case $(cut -d' ' -f 2 b/end) in 11 | 139) ;; *) exit 1 ;; esac
    "$profrun" record -q -o c "$fixture" exit 7
    [ -d c ] && [ ! -e c/end ] || exit 1
}

names_are_filled_in() {
    PMIX_RANK=3 "$profrun" -q -o 'x/%n/%h/%r.100%%' "$fixture" exit 0
    is "$(find x -name end)" "x/fixture/$(uname -n)/3.100%/end"
    # shellcheck disable=SC2016 # $$ is the inner shell's
    is "$(sh -c 'echo "$$"; exec "$0" record -q -o %p "$1" exit 0' \
        "$profrun" "$fixture")" "$(find . -maxdepth 1 -name '[0-9]*' -printf %f)"
    pid=$("$profrun" -q "$fixture" pid)
    [ -d "profrun.fixture.$pid" ] || exit 1
}

where_nothing_can_be_written_the_program_still_runs() {
    for how in $ways; do
        is "$("$profrun" "$how" -o /proc/nothing/x "$fixture" args x 2>err)" '<x>'
        says 'cannot be created'
        status_is 7 "$profrun" "$how" -o /proc/nothing/x "$fixture" exit 7
        ! "$profrun" "$how" -q -o /proc/nothing/x "$fixture" env 2>err |
            grep -e LD_PRELOAD -e SHIM_DIR -e SHIM_SPEAK -e SHIM_OPENER || exit 1
        SHIM_LIBRARY=/nothing.so status_is 7 "$profrun" "$how" "$fixture" exit 7
        says /nothing.so
    done
    is "$(echo profrun.*)" 'profrun.*'
}

the_report_is_written_to_stderr() {
    "$profrun" -o a "$fixture" exit 7 >out 2>err
    is "$(cat out)" ''
    says "^profrun: recording: $PWD/a\$"
    [ "$(grep -vc '^profrun: ' err)" -gt 0 ] || exit 1
    "$profrun" -o b --no-report "$fixture" exit 7 2>err
    says "^profrun: recording: $PWD/b\$"
    is "$(grep -v '^profrun: ' err)" ''
}

an_uninstrumented_program_is_explained() {
    status_is 0 "$profrun" /bin/true
    says '-finstrument-functions'
    # Without samples, which may or may not find the function.
    status_is 0 "$profrun" -p calltree /bin/true
    says 'nothing was recorded'
    says '^profrun: empty recording: '
    is "$("$profrun" -q -p calltree /bin/true 2>&1)" ''
}

profrun_can_be_linked_to() {
    ln -s "$profrun" link
    status_is 7 ./link -q "$fixture" exit 7
    PATH=$PWD:$PATH status_is 7 link -q "$fixture" exit 7
}

for name in $all; do try "$name"; done
echo "1..$tests"
[ $failures -eq 0 ]
