"""Refusals of commands: one line on standard error with one documented slug."""

import re

from house.tree import ROOT

DOCUMENTED_SLUGS = frozenset(re.findall(r"^## `([a-z0-9-]+)`", (ROOT / "docs/errors.md").read_text(), re.MULTILINE))


def refusal_slug(answer: tuple[int, str, str], case: object = None) -> str:
    """Return the slug of a refusal of ``case``; it must be a single line with this slug only."""
    code, _, err = answer
    assert code in {1, 2}, case
    assert err.startswith("tfprof: "), case
    assert err.endswith("]\n"), case
    assert err[:-1].isprintable(), case
    assert len(err) < 1500, case
    (slug,) = [
        word for word in re.findall(r"\[([a-z-]+)\]", err) if word in DOCUMENTED_SLUGS or err.endswith(f"[{word}]\n")
    ]
    assert slug in DOCUMENTED_SLUGS, case
    assert slug != "internal", case
    return str(slug)
