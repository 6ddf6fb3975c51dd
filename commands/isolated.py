"""Runs a command or daemon of tfprof in an isolated Python.

The command line is ``python -I -S isolated.py NAME ARGUMENT…``. ``-I`` ignores the working folder
and most of Python's environment variables; starter.c renames all of them. ``-S`` skips site, which
then runs here without sitecustomize and usercustomize.
"""

import _signal
import os
import sys
from importlib import import_module

#: Modules of commands by name; daemons use the names of their modules.
COMMANDS = {"tfprof": "tfprof.cli.main", "tfprof-run": "tfprof.agent.launcher.run"}


def set_up_path() -> None:
    """Set up the module path as Python does, and add the folder of the installation."""
    customizations = dict.fromkeys(("sitecustomize", "usercustomize"))
    sys.modules.update(customizations)  # type: ignore[arg-type]  # None: cannot be imported
    import site

    site.main()
    for name in customizations:
        del sys.modules[name]
    here = os.path.dirname(os.path.abspath(__file__))
    # Folders that may contain the package: the folder above bin/ or above tfprof/commands/ (pip
    # install --target), and the user's site-packages (pip install --user), which PYTHONUSERBASE may
    # have moved. Adding a folder runs its .pth files. A folder above may belong to anybody, so it
    # is added only if it contains tfprof.
    folders_above = [os.path.dirname(here), os.path.dirname(os.path.dirname(here))]
    installations = [folder for folder in folders_above if os.path.isdir(os.path.join(folder, "tfprof"))]
    user_packages = site.getusersitepackages()
    moved_packages = os.path.join(os.path.dirname(here), os.path.relpath(user_packages, site.getuserbase()))
    for folder in [*installations, moved_packages, user_packages]:
        if _is_tfprof_found():
            return
        site.addsitedir(folder)


def _is_tfprof_found() -> bool:
    from importlib.util import find_spec

    try:
        return find_spec("tfprof.shim") is not None
    except ImportError:
        return False


def release_interrupt() -> None:
    """Let Ctrl-C end the process silently during imports; unblock it if starter.c blocked it."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    if sys._xoptions.get("tfprof") == "held":
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [_signal.SIGINT])


def reserve_standard_fds() -> None:
    """Open closed descriptors among 0, 1 and 2, so that files opened later do not get them.

    Child programs do not inherit these placeholders: there the descriptors are closed.
    """
    while True:
        fd = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        if fd > 2:
            os.close(fd)
            return


def main() -> None:
    """Run the command that the command line names; never returns."""
    release_interrupt()
    reserve_standard_fds()
    set_up_path()
    del sys.argv[0]
    name = sys.argv[0]
    sys.exit(import_module(COMMANDS.get(name, name)).main())


if __name__ == "__main__":
    main()
