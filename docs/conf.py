"""Configuration of Sphinx for `make docs`: all pages as HTML, two of them also as man pages."""

import re
from pathlib import Path

_VERSION = (Path(__file__).parents[1] / "formats" / "version.py").read_text()

project = "tfprof"
author = "the tfprof authors"
release = version = re.search(r'^VERSION.*"(.+)"$', _VERSION, re.MULTILINE).group(1)  # type: ignore[union-attr]

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
exclude_patterns = ["_build"]
# Links of the form page.md#a-heading work as on a repository page.
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"tfprof {version}"

man_pages = [
    ("man/tfprof", "tfprof", "show profiles of TensorFlow jobs", [author], 1),
    ("man/tfprof-run", "tfprof-run", "run a command and profile its TensorFlow jobs", [author], 1),
]
