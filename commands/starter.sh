#!/bin/sh
# Starts the command that it is called as in Python without the variables that Python reads. Stands in for starter.c where
# there is no compiler: a shell takes a millisecond more, and passes no variable on of which the name is none to a shell.
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
    /bin/sh*) python= ;; # an installer's way around a path that is too long for a first line
esac
exec "${python:-$folder/python3}" -I -S "$folder/tfprof-isolated" "${self##*/}" "$@"
