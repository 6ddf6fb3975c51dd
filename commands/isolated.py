"""Runs a command or a daemon of tfprof in a Python that nothing of its surroundings has a say in.

Started as ``python -I -S isolated.py NAME ARGUMENT…``. ``-I`` shuts out the working folder and every variable that Python
reads; ``-S`` is made up for here, but for what a user or a site has put into sitecustomize and usercustomize.
"""

import _signal
import os
import sys
from importlib import import_module

#: Commands by their names; daemons go by their modules'.
COMMANDS = {"tfprof": "tfprof.cli.main", "tfprof-run": "tfprof.agent.launcher.run"}


def set_up_path() -> None:
    """Put on the module path what Python's own start would have put there, and the folder that tfprof was installed to."""
    customizations = dict.fromkeys(("sitecustomize", "usercustomize"))
    sys.modules.update(customizations)  # type: ignore[arg-type]  # None: cannot be imported
    import site

    site.main()
    for name in customizations:
        del sys.modules[name]
    here = os.path.dirname(os.path.abspath(__file__))
    # The folders above bin/ and above tfprof/shim/ (pip install --target), and the user's own (pip install --user).
    for folder in (os.path.dirname(here), os.path.dirname(os.path.dirname(here)), site.getusersitepackages()):
        if _is_found():
            return
        site.addsitedir(folder)


def _is_found() -> bool:
    from importlib.util import find_spec

    try:
        return find_spec("tfprof.shim") is not None
    except ImportError:
        return False


def release_interrupt() -> None:
    """Let Ctrl-C end the process, as it ends a program in C, while things are only being imported; starter.c held it back so far."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if sys._xoptions.get("tfprof") == "held":
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGINT])


def occupy_standard() -> None:
    """See that nothing that is opened later becomes descriptor 0, 1 or 2; programs that are started get them closed, as they were."""
    while True:
        fd = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        if fd > 2:
            os.close(fd)
            return


def main() -> None:
    """Run what the command line names; never returns."""
    release_interrupt()
    occupy_standard()
    set_up_path()
    del sys.argv[0]
    name = sys.argv[0]
    sys.exit(import_module(COMMANDS.get(name, name)).main())


if __name__ == "__main__":
    main()
