# bash completion for profrun                                -*- shell-script -*-
#
# `profrun --complete` knows the words; here is what bash has of its own.

_profrun() {
    local -a words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    local line word last=$((COMP_CWORD - 1))
    COMPREPLY=()

    # bash takes a colon for the end of a word.
    if ((last >= 1)) && [[ ${words[last]} == : ]]; then
        words=("${words[@]:0:last - 1}" "${words[last - 1]}:")
    elif ((last >= 2)) && [[ ${words[last - 1]} == : ]]; then
        words=("${words[@]:0:last - 2}" "${words[last - 2]}:${words[last]}")
    fi
    word=${words[${#words[@]} - 1]}
    while IFS= read -r line; do
        case $line in
            :files) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word") ;;
            :directories) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$word") ;;
            :commands) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- "$word") ;;
            *) COMPREPLY+=("${line%%$'\t'*}") ;;
        esac
    done < <("$1" --complete "${words[@]}" 2>/dev/null)
    [[ $word == *:* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
    return 0
}

complete -o filenames -F _profrun profrun
