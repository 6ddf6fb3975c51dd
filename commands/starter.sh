#!/bin/sh
# Starts a command of tfprof in a Python that does not see the variables for the job's Python. Replaces starter.c where
# there is no compiler. A shell takes two milliseconds more and drops variables whose names are not valid in a shell.
[ -d /dev/stdin ] && echo "tfprof: standard input is a folder [usage]" >&2 && exit 2
self=$0
while [ -h "$self" ]; do
    link=$(readlink "$self")
    case $link in
        /*) self=$link ;;
        *) self=${self%/*}/$link ;;
    esac
done
folder=${self%/*}
python=
IFS= read -r line < "$folder/tfprof-isolated" && python=${line#"#!"}
case $python in
    /bin/sh*) python= ;; # installers write this where the path of Python is too long for a first line
esac
steering='PYTHON|_PYTHON_|__PYVENV_LAUNCHER__|MIMALLOC_|mimalloc_'
for name in $(export -p | sed -nE "s/^export (($steering)[A-Za-z0-9_]*)=.*/\1/p"); do
    eval "[ \"\${$name+set}\" ] && export _TFPROF_JOB_$name=\"\$$name\"; unset $name"
done
exec "${python:-$folder/python3}" -I -S "$folder/tfprof-isolated" "${self##*/}" "$@"
