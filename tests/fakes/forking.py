"""The server of `fakes/forks.py`: imports modules once, then runs each script in a forked process.

    python forking.py MODULE…

A line of JSON on standard input starts a script: {"script", "arguments", "folder", "errors",
"environment"}. The script runs in the directory ``folder``, with its standard error in the file
``errors`` and the variables ``environment`` added. This process prints ``forked PID`` before the
output of the script, and ``ended STATUS`` after it. Only the script reads standard input while it
runs.
"""

import importlib
import json
import os
import runpy
import sys


def request():
    """Return the next request, None at the end of input.

    The rest of the input belongs to the script.
    """
    line = b""
    while not line.endswith(b"\n"):
        character = os.read(0, 1)
        if not character:
            return None
        line += character
    return json.loads(line.decode())


def become(wanted):
    """Make this process look as if it had been started for the script."""
    with open(wanted["errors"], "wb") as errors:
        os.dup2(errors.fileno(), 2)
    os.chdir(wanted["folder"])
    os.environ.update(wanted["environment"])
    sys.argv[:] = [wanted["script"]] + wanted["arguments"]
    sys.path[0] = os.path.dirname(wanted["script"])


def main():
    """Serve requests until standard input ends.

    In a forked process, return the path of its script.
    """
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
