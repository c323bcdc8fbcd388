# bash completion for profrun                                -*- shell-script -*-
#
# Options are asked of profrun itself, so they are always those that it has.

_profrun_options() {
    "$1" "$2" --help 2>/dev/null | grep -oE -- '(^|[ ,[])--[a-z][a-z-]*' |
        grep -oE -- '--[a-z-]*' | sort -u
}

# Directories that are recordings, and those that may lead to one.
_profrun_recordings() {
    compgen -d -- "$1" | while IFS= read -r directory; do
        case $directory in
            */.*) ;;
            *) printf '%s\n' "$directory" ;;
        esac
    done
}

_profrun_value() {
    case $1 in
        -p | --profile)
            echo calltree calltree:exact calltree:calibrate \
                calltree:counts sampling \
                sampling:clock=wall trace trace:ring=64M memory \
                memory:period=512K locks coverage exceptions pchist none ;;
        --sort)
            echo self total calls mean max bytes allocations peak leaked \
                temporary lost ;;
        --value)
            echo self total calls samples bytes allocations peak leaked lost \
                waits ;;
        --names) echo full short mangled ;;
        --format) echo text json csv github junit ;;
        --color) echo auto always never ;;
        *) return 1 ;;
    esac
}

_profrun() {
    local verbs='run record report annotate replay export html diff merge gprof finish
        info doctor stack ctl help'
    local formats='folded speedscope chrome perfetto ctf json csv pprof
        callgrind massif gmon lcov cobertura order dot perf-script html'
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local verb=${COMP_WORDS[1]-} words
    COMPREPLY=()

    # bash takes a colon for the end of a word.
    if [[ $word == : ]]; then
        word=$before: before=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $before == : && $COMP_CWORD -gt 3 ]]; then
        word=${COMP_WORDS[COMP_CWORD - 2]}:$word
        before=${COMP_WORDS[COMP_CWORD - 3]}
    fi
    if words=$(_profrun_value "$before"); then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
        [[ $word == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
        return
    fi
    case $before in
        --source-dir)
            mapfile -t COMPREPLY < <(compgen -d -- "$word")
            return ;;
        -o | --output)
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return ;;
        --hide | --only | --focus | --context | --every | --count | --limit | --min-percent | --object | --depth | --process | --callers | --callees | \
            --histogram | -F | --filter | --max-depth)
            return ;;
    esac
    [[ " ${verbs//$'\n'/ } " == *" $verb "* ]] || verb=run
    if [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(
            compgen -W "$(_profrun_options "$1" "$verb")" -- "$word")
        return
    fi
    if [[ $COMP_CWORD -eq 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$word"
            compgen -c -- "$word"; compgen -f -- "$word")
        return
    fi
    case $verb in
        export)
            if [[ $COMP_CWORD -eq 2 ]]; then
                mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$word")
            else
                mapfile -t COMPREPLY < <(_profrun_recordings "$word")
            fi ;;
        report | replay | html | diff | merge | info | finish)
            mapfile -t COMPREPLY < <(_profrun_recordings "$word") ;;
        annotate)
            [[ $COMP_CWORD -eq 2 ]] ||
                mapfile -t COMPREPLY < <(_profrun_recordings "$word") ;;
        help)
            mapfile -t COMPREPLY < <(
                compgen -W "$verbs profilers recording modules" -- "$word") ;;
        stack)
            mapfile -t COMPREPLY < <(
                compgen -W "$(pgrep -u "$(id -u)" 2>/dev/null)" -- "$word"
                compgen -f -- "$word") ;;
        ctl)
            if [[ $COMP_CWORD -eq 2 ]]; then
                mapfile -t COMPREPLY < <(
                    compgen -W "$(pgrep -u "$(id -u)" 2>/dev/null)" -- "$word")
            else
                mapfile -t COMPREPLY < <(
                    compgen -W 'status load unload stop start trace-start
                        trace-stop heap snapshot' -- "$word")
            fi ;;
        *)
            mapfile -t COMPREPLY < <(compgen -c -- "$word"
                compgen -f -- "$word") ;;
    esac
}

complete -o filenames -F _profrun profrun
