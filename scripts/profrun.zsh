#compdef profrun
# zsh completion for profrun                                 -*- shell-script -*-
#
# `profrun --complete` knows the words; here is what zsh has of its own.

_profrun() {
    local line word
    local -a shown

    while IFS= read -r line; do
        case $line in
            :files) _files ;;
            :directories) _files -/ ;;
            :commands) _command_names -e ;;
            *)
                word=${line%%$'\t'*}
                # _describe splits at colons.
                shown+=("${word//:/\\:}${${line#$word}/$'\t'/:}") ;;
        esac
    done < <("${words[1]}" --complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    (( ${#shown} )) && _describe -V 'profrun' shown
}

if [ "$funcstack[1]" = "_profrun" ]; then
    _profrun "$@"
else
    compdef _profrun profrun
fi
