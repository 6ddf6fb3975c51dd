#!/bin/sh
# Starts a command of tfprof in a Python that ignores its own environment variables. Replaces starter.c where there is
# no compiler. A shell takes a millisecond more and drops variables whose names are not valid in a shell.
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
exec "${python:-$folder/python3}" -I -S "$folder/tfprof-isolated" "${self##*/}" "$@"
