# fish completion for profrun
#
# `profrun --complete` knows the words; here is what fish has of its own.

function __profrun_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l before $words[2..-1]
    for line in ($words[1] --complete $before "$word" 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path "$word"
            case :directories
                __fish_complete_directories "$word"
            case :commands
                complete -C "$word" 2>/dev/null
            case '*'
                printf '%s\n' $line
        end
    end
end

complete -c profrun -f -a '(__profrun_complete)'
