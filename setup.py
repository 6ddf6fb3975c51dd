"""Builds the C walker; everything else is in setup.cfg."""

from setuptools import Extension, setup

# Optional: without a compiler the Python decoder takes over, slower and equal (`tfprof status` says which runs).
setup(
    ext_modules=[
        Extension(
            "tfprof.collector.ingest._walker",
            ["collector/ingest/walker.c"],
            depends=[f"collector/ingest/{name}.h" for name in ("names", "walk", "wire")],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-O2", "-std=c11"],
            py_limited_api=True,
            optional=True,
        )
    ]
)
