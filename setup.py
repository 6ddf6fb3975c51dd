"""Builds the C parts and the commands; everything else is in setup.cfg."""

import os
import shutil
from pathlib import Path

from setuptools import Extension, setup  # first, since it provides distutils
from setuptools.command.build_py import build_py

from distutils.ccompiler import new_compiler  # isort: skip
from distutils.command.build_scripts import build_scripts  # isort: skip
from distutils.errors import CCompilerError  # isort: skip
from distutils.sysconfig import customize_compiler  # isort: skip

#: The starter of the commands: a program, and a script that is used if there is no compiler.
STARTERS = ("commands/starter.c", "commands/starter.sh")
COMMANDS = ("tfprof", "tfprof-run")


def extension(package: str, name: str, source: str, *headers: str, python: str = "0x030B0000") -> Extension:
    """Return a C extension; ``python`` is the oldest version that can load it.

    It is optional unless TFPROF_NEED_C is set: without a compiler, slower Python code gives the
    same results. `tfprof status` shows which decoder runs.
    """
    return Extension(
        f"tfprof.{package}.{name}",
        [f"{package}/{source}"],
        depends=[f"{package}/{header}" for header in headers],
        define_macros=[("Py_LIMITED_API", python)],
        extra_compile_args=["-O2", "-std=c11"],
        py_limited_api=True,
        optional="TFPROF_NEED_C" not in os.environ,
    )


class BuildModules(build_py):
    """Copies the modules without those of an earlier build, some of which may be deleted by now."""

    def run(self) -> None:
        """Remove what an earlier build made, and build."""
        if not self.editable_mode:
            shutil.rmtree(Path(self.build_lib, "tfprof"), ignore_errors=True)
        super().run()


class BuildCommands(build_scripts):
    """Builds the commands and the file ``tfprof-isolated`` beside them.

    The installer writes the path of its Python into the first line of ``tfprof-isolated``.
    """

    def run(self) -> None:
        """Write all files into the build folder."""
        folder = Path(self.build_dir)
        folder.mkdir(parents=True, exist_ok=True)
        starter = self._starter()
        files = dict.fromkeys(COMMANDS, starter)
        files["tfprof-isolated"] = b"#!python\n" + Path(self.scripts[0]).read_bytes()
        for name, content in files.items():
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o755)

    def _starter(self) -> bytes:
        program, script = STARTERS
        work = Path(self.get_finalized_command("build").build_temp)
        try:
            compiler = new_compiler()
            customize_compiler(compiler)
            objects = compiler.compile([program], output_dir=str(work), extra_preargs=["-O2", "-std=gnu11"])
            compiler.link_executable(objects, "starter", output_dir=str(work), extra_postargs=["-s"])
        except CCompilerError as error:
            self.warn(f"no compiler ({error}): the commands are started by a shell")
            return Path(script).read_bytes()
        return (work / "starter").read_bytes()

    def get_source_files(self) -> list[str]:
        """Return the files that a source distribution must include."""
        return [*self.scripts, *STARTERS]


setup(
    cmdclass={"build_py": BuildModules, "build_scripts": BuildCommands},
    ext_modules=[
        extension(
            "collector",
            "decoders._walker",
            "decoders/walker.c",
            "decoders/names.h",
            "decoders/node.h",
            "decoders/sink.h",
            "decoders/walk.h",
            "decoders/wire.h",
        ),
        extension("collector", "imports._checksum", "imports/checksum.c"),
        extension("collector", "store._rollup", "store/rollup.c", "store/rollup.h"),
        extension("shim", "pacing._native", "pacing/native.c", python="0x03070000"),  # jobs load it
    ],
)
