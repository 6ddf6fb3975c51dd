"""The C decoder does not read or write outside its buffers.

It is compiled with the address and undefined-behavior sanitizers, and fed damaged steps.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
SAMPLES = sorted((ROOT / "tests" / "contract" / "data").glob("*.run_metadata"))
FLAGS = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("walk") / "walk_fuzz"
    source = [f"-I{ROOT / 'collector' / 'decoders'}", "-o", str(program), str(HERE / "walk_fuzz.c")]
    compilation = subprocess.run(
        [compiler, *FLAGS, *SANITIZERS, *source], capture_output=True, text=True, timeout=120, check=False
    )
    if "cannot find" in compilation.stderr:
        pytest.skip("no sanitizer libraries")
    assert compilation.returncode == 0, compilation.stderr
    return program


def _on_gpu(sample: Path, folder: Path) -> Path:
    """Return a copy of ``sample`` in ``folder``, with the name of a GPU's allocator.

    Only the allocation records of such an allocator are decoded.
    """
    copy = folder / sample.name
    copy.write_bytes(sample.read_bytes().replace(b"\x0a\x03cpu", b"\x0a\x03GPU"))
    return copy


def test_damaged_steps_are_read_within_their_bounds(fuzzer: Path, tmp_path: Path) -> None:
    samples = [*SAMPLES, *(_on_gpu(sample, tmp_path) for sample in SAMPLES)]
    command = [str(fuzzer), "300", *map(str, samples)]
    environment = {**os.environ, "UBSAN_OPTIONS": "print_stacktrace=1"}
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert process.returncode == 0, process.stderr
    decoded, malformed = (int(part.split()[0]) for part in process.stdout.split(",")[:2])
    assert decoded + malformed == 300 * len(samples)
    assert min(decoded, malformed) > 100
