"""A folder with links to the files of installed packages, and with changed copies of a few."""

import re
from collections.abc import Mapping
from pathlib import Path


def write(site_packages: Path, folder: Path, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Make the packages of the changed files importable from ``folder``.

    ``changes``: path below ``site_packages`` -> {pattern: replacement}. Each pattern must match.
    """
    for name, replacements in changes.items():
        path = Path(name)
        for parent in [*path.parents][-2::-1]:  # from the package down to the file's own folder
            _link_entries(site_packages / parent, folder / parent)
        text = (site_packages / path).read_text()
        for pattern, replacement in replacements.items():
            text, count = re.subn(pattern, replacement, text)
            assert count, f"{pattern} matches nothing in {name}"
        (folder / path).unlink()
        (folder / path).write_text(text)


def _link_entries(source: Path, folder: Path) -> None:
    """Make ``folder`` a folder with links to the entries of ``source``, if it is none yet."""
    if folder.is_dir() and not folder.is_symlink():
        return
    folder.unlink(missing_ok=True)
    folder.mkdir(parents=True)
    for entry in source.iterdir():
        if entry.name != "__pycache__":  # Python would write the code of the copies there
            (folder / entry.name).symlink_to(entry)
