"""Compares a job with its copy: exported as a profile of the TF profiler and imported again."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fakes.command import output_of

VIEWS = ("scope", "graph", "op", "code")
SELECT = "micros,bytes,peak_bytes,residual_bytes,output_bytes,params,float_ops,occurrence,device,op_types,input_shapes"


def differences(store: Path | str, uid: str) -> Iterator[str]:
    """Yield the differences between a job with traced steps and its copy, or a command's error.

    The views of the copy must equal those of the job under `--exact-tf`, and so must its exported
    file.
    """
    with tempfile.TemporaryDirectory(prefix="round-trip-") as folder:
        copy_store, files = f"{folder}/store", [f"{folder}/{name}.pb" for name in ("first", "second")]
        try:
            output_of("profile-proto", uid, "-o", files[0], "--store", store)
            imported = output_of("import", "--profile_path", files[0], "--json", "--store", copy_store)
            copy_uid = json.loads(imported)["job"]
            output_of("profile-proto", copy_uid, "-o", files[1], "--store", copy_store)
        except AssertionError as error:
            yield str(error)
            return
        for view in VIEWS:
            if _view(view, uid, store) != _view(view, copy_uid, copy_store):
                yield f"the {view} view differs"
        if Path(files[0]).read_bytes() != Path(files[1]).read_bytes():
            yield "the second profile differs from the first"


def _view(view: str, job: str, store: Path | str) -> Any:
    options = ("-max_depth", "100000", "-select", SELECT, "--exact-tf", "--json", "--store", store)
    return json.loads(output_of(view, job, *options))["profile"]
