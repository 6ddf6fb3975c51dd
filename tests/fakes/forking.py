"""Imports modules once and then runs scripts, each in a process forked from this one.

It is the server of `fakes/forks.py`.

    python forking.py MODULE…

A line of JSON on standard input, {"script", "arguments", "folder", "errors", "environment"}, starts
one: its directory is ``folder``, its standard error the file ``errors``, and ``environment`` is
added to its own. Standard output has the line ``forked PID`` before what the script prints, and
``ended STATUS`` after it. The script has standard input to itself until then.
"""

import importlib
import json
import os
import runpy
import sys


def request():
    """Return the next request, None at the end; read nothing after its line."""
    line = b""
    while not line.endswith(b"\n"):
        character = os.read(0, 1)
        if not character:
            return None
        line += character
    return json.loads(line.decode())


def become(wanted):
    """Set up this process for the script."""
    with open(wanted["errors"], "wb") as errors:
        os.dup2(errors.fileno(), 2)
    os.chdir(wanted["folder"])
    os.environ.update(wanted["environment"])
    sys.argv[:] = [wanted["script"]] + wanted["arguments"]
    sys.path[0] = os.path.dirname(wanted["script"])


def main():
    """Serve until standard input ends; in a forked process, return its script."""
    for name in sys.argv[1:]:
        importlib.import_module(name)
    while True:
        wanted = request()
        if wanted is None:
            return None
        child = os.fork()
        if not child:
            become(wanted)
            print("forked", os.getpid(), flush=True)
            return wanted["script"]
        status = os.waitpid(child, 0)[1]
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        print("ended", code, flush=True)


script = main()
if script is not None:
    runpy.run_path(script, run_name="__main__")
