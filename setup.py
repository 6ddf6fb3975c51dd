"""Builds the C parts; everything else is in setup.cfg."""

from setuptools import Extension, setup


def extension(name: str, source: str, *headers: str) -> Extension:
    """Return a C part; optional: without a compiler Python takes over, slower and equal (`tfprof status` says which decoder runs)."""
    return Extension(
        f"tfprof.collector.{name}",
        [f"collector/{source}"],
        depends=[f"collector/{header}" for header in headers],
        define_macros=[("Py_LIMITED_API", "0x030B0000")],
        extra_compile_args=["-O2", "-std=c11"],
        libraries=["m"],
        py_limited_api=True,
        optional=True,
    )


setup(
    ext_modules=[
        extension(
            "ingest._walker",
            "ingest/walker.c",
            "ingest/names.h",
            "ingest/node.h",
            "ingest/sink.h",
            "ingest/walk.h",
            "ingest/wire.h",
        ),
        extension("store._sums", "store/sums.c", "store/merging.h", "store/rollup.h"),
    ]
)
