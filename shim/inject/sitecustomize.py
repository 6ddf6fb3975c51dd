# Arms a job, then runs the sitecustomize that this file shadows. Valid in Python 2.7 and 3.x.
import sys


def _tfprof():
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    for path in list(sys.path):
        if isinstance(path, str) and path and os.path.abspath(path) == here:
            sys.path.remove(path)
    sys.path_importer_cache.pop(here, None)
    if sys.version_info < (3, 7) or not os.environ.get("TFPROF_RUN") or "_tfprof" in sys.modules:
        return
    import _frozen_importlib_external as external
    import _imp

    def rename(code, path):  # like the code of frozen modules, which tools ignore
        getattr(_imp, "_fix_co_filename")(code, "<tfprof/%s>" % os.path.basename(path))  # noqa: B009 - no stub has it
        return code

    class Loader(external.SourceFileLoader):
        def get_code(self, fullname):
            return rename(super(Loader, self).get_code(fullname), self.path)

    for function in (rename, Loader.get_code):
        rename(function.__code__, __file__)
    root = os.path.dirname(os.path.dirname(here))
    folders = "", ".channel", ".cpython", ".pacing", ".steps", ".tensorflow"
    for suffix in ["", ".formats"] + [".shim" + folder for folder in folders]:
        package = sys.modules["_tfprof" + suffix] = type(sys)("_tfprof" + suffix)
        package.__path__ = [root + suffix.replace(".", os.sep)]
        sys.path_importer_cache[package.__path__[0]] = external.FileFinder(package.__path__[0], (Loader, [".py"]))
    try:
        __import__("_tfprof.shim.arming", fromlist=["arm"]).arm(os.environ)
    except Exception:
        try:
            if __import__("_tfprof.formats.settings", fromlist=["SETTINGS"]).SETTINGS["debug"].read():
                __import__("traceback").print_exc()
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] == "_tfprof"]:
                del sys.modules[name]


try:
    _tfprof()
except Exception:
    pass  # no error of ours reaches the job

# The module site handles the errors of the shadowed sitecustomize. At the end importlib removes
# "sitecustomize" from sys.modules and needs an entry with that name.
_tfprof_self = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except BaseException:
    if "sitecustomize" not in sys.modules and _tfprof_self is not None:
        sys.modules["sitecustomize"] = _tfprof_self
    _tfprof_error = sys.exc_info()[1]
    if not isinstance(_tfprof_error, ImportError) or getattr(_tfprof_error, "name", "") not in ("sitecustomize", ""):
        raise
