"""The server of `fakes/forks.py`: imports modules once, then runs each script in a forked process.

    python fork_server.py MODULE…

A line of JSON on standard input starts a script: {"script", "arguments", "folder", "errors",
"environment"}. The script runs in the directory ``folder``, with its standard error in the file
``errors`` and the variables ``environment`` added. The forked process prints ``forked PID`` before
the output of the script. The server prints ``ended STATUS`` when the forked process has ended. Only
the script reads standard input while it runs.
"""

import importlib
import json
import os
import runpy
import sys


def read_request():
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


def prepare(request):
    """Give this process the arguments, directory, variables and errors file of the script."""
    with open(request["errors"], "wb") as errors:
        os.dup2(errors.fileno(), 2)
    os.chdir(request["folder"])
    os.environ.update(request["environment"])
    sys.argv[:] = [request["script"]] + request["arguments"]
    sys.path[0] = os.path.dirname(request["script"])


def main():
    """Serve requests until standard input ends.

    In a forked process, return the path of its script.
    """
    for name in sys.argv[1:]:
        importlib.import_module(name)
    while True:
        request = read_request()
        if request is None:
            return None
        child = os.fork()
        if not child:
            prepare(request)
            print("forked", os.getpid(), flush=True)
            return request["script"]
        status = os.waitpid(child, 0)[1]
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
        print("ended", code, flush=True)


script = main()
if script is not None:
    runpy.run_path(script, run_name="__main__")
