"""Random questions to a profiler, with every option of every view, valid and invalid."""

import random
import re
from collections.abc import Sequence
from typing import Any, Final

VIEWS: Final = ("scope", "graph", "op", "code")
SELECTS: Final = (
    "bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "micros",
    "accelerator_micros",
    "cpu_micros",
    "params",
    "float_ops",
    "device",
    "op_types",
    "occurrence",
    "input_shapes",
)
#: Quantities that a pprof file can have.
PPROF_SELECTS: Final = SELECTS[:9]
ORDERS: Final = ("name", *PPROF_SELECTS, "occurrence")
ODD_ORDERS: Final = ("", "Micros", "bogus", "micros,bytes")
MINIMA: Final = tuple(f"min_{name}" for name in (*PPROF_SELECTS, "occurrence"))
MINIMUM_VALUES: Final = (1, 1, 2, 100, 1000, 10**6, -1, 1 << 40)
#: Regexes of other dialects, invalid ones, and ones whose meaning differs between dialects.
ODD_REGEXES: Final = (
    "",
    "(",
    "*a",
    "[",
    "a{2,1}",
    "a{1001}",
    "n(?=1).*",
    "(n)\\1.*",
    "(?P<x>n).*",
    "n++1",
    "\\pL\\d+",
    "(?i)CONV.*",
    "(?U)n.*",
    "[[:alpha:]]+.*",
    "\\Qa/b/\\E.*",
    "n1|n1.*",
    "^n.*$",
    ".*\\z",
    ".*\\Z",
    "(?s).*",
    "[^/]*",
    "\\w+",
    "\\d*\\D*",
    ".{5}",
    "gr.ße.*",
    "\\x{6e}.*",
    "\\C*",
    ".*|(",
    ".+",
    "(.*)",
)
BASE_OPTIONS: Final[dict[str, Any]] = {
    "max_depth": 10000,
    "step": -1,
    "order_by": "name",
    "account_type_regexes": [".*"],
    "start_name_regexes": [".*"],
    "trim_name_regexes": [],
    "show_name_regexes": [".*"],
    "hide_name_regexes": [],
    "account_displayed_op_only": False,
    "select": ["micros"],
    "output": "file:outfile=FOLDER/out",
    **dict.fromkeys(MINIMA, 0),
}
#: Regexes that match frames, but not the root.
FRAME_REGEXES: Final = (
    "train.py.*",
    "real_runs.py.*",
    ".*:conv_net",
    "model.py:.*",
    ".*:main",
    ".*:7:.*",
    ".*:120:.*",
    "größe.py.*",
    ".*\\(gradient\\)",
    ".*\\.\\.\\.",
    ":.*",
    "d.py:-1:build",
    ".*<module>.*",
)
#: Invalid outputs, and outputs that not every view has.
ODD_OUTPUTS: Final = (
    "",
    "bogus",
    "file",
    "file:",
    "file:outfile=",
    "file:outfil=x",
    "stdout:outfile=x",
    "timeline:outfile",
    "none:x=y",
    "timeline:outfile=FOLDER/out",
    "pprof:outfile=FOLDER/out",
    "file:outfile=x,outfile=FOLDER/out",
)
CHECKERS: Final = ("AcceleratorUtilizationChecker", "OperationChecker", "ExpensiveOperationChecker", "JobChecker")


class Questions:
    """Random questions about a case with nodes ``names``, types ``types`` and ``steps`` steps.

    Timelines are asked only of ``timeline_views``. The TF profiler crashes on the timeline of a
    tree whose times do not add up.
    """

    def __init__(
        self,
        rng: random.Random,
        names: Sequence[str],
        types: Sequence[str],
        steps: int,
        timeline_views: Sequence[str] = ("graph", "scope", "code"),
    ) -> None:
        self.rng = rng
        self.names = names
        self.types = types
        self.steps = steps
        self.timeline_views = timeline_views

    def _regex(self, texts: Sequence[str]) -> str:
        text = self.rng.choice(texts)
        forms = (
            self.rng.choice(ODD_REGEXES),
            text,
            re.escape(text.split("/")[0]) + ".*",
            ".*" + re.escape(text[-3:]),
            ".*" + text[len(text) // 2 :][:2] + ".*",
            ".*",
            re.escape(text),
        )
        return self.rng.choices(forms, (15, 15, 15, 15, 10, 5, 25))[0]

    def _regexes(self, texts: Sequence[str], count_max: int = 4) -> list[str]:
        return [self._regex(texts) for _ in range(self.rng.randint(0, count_max))]

    def _trim_regexes(self) -> list[str]:
        """Return regexes that do not match the root: a trimmed root crashes the TF profiler."""
        return [self.rng.choice(FRAME_REGEXES) for _ in range(self.rng.randint(0, 2))]

    def view(self, view: str) -> dict[str, Any]:
        """Return one question to a view, with text as output."""
        rng = self.rng
        options = dict(BASE_OPTIONS, select=self._select(view), order_by=rng.choice(ORDERS))
        if rng.random() < 0.05:
            options["order_by"] = rng.choice(ODD_ORDERS)
        if rng.random() < 0.5:
            options["step"] = rng.choice([-1, *3 * list(range(self.steps)), self.steps + 3, -7])
        if rng.random() < 0.3:
            options["max_depth"] = rng.choice([1, 2, 3, 4, 10] if view == "code" else [-1, 0, 1, 2, 3, 4, 10])
        for _ in range(rng.choice([0, 0, 0, 0, 1, 2])):
            options[rng.choice(MINIMA)] = rng.choice(MINIMUM_VALUES)
        if rng.random() < 0.3:
            options["account_type_regexes"] = self._regexes(self.types)
        texts = self.types if view == "op" else (*FRAME_REGEXES, "_TFProfRoot") if view == "code" else self.names
        for option in ("start_name_regexes", "show_name_regexes", "hide_name_regexes"):
            if rng.random() < 0.15:
                options[option] = self._regexes(texts)
        if rng.random() < 0.15:
            options["trim_name_regexes"] = self._trim_regexes() if view == "code" else self._regexes(texts, 2)
        options["account_displayed_op_only"] = rng.random() < 0.3
        return {"view": view, "options": options}

    def _select(self, view: str) -> list[str]:
        if self.rng.random() < 0.3:
            return list(SELECTS)
        count = self.rng.choice([0, 1, 1, 2, 3, 5])
        return self.rng.sample([*SELECTS, "bogus", "tensor_value"] if self.rng.random() < 0.03 else SELECTS, count)

    def output(self) -> dict[str, Any]:
        """Return a question for a timeline, a pprof file, stdout or nothing; rarely an odd one."""
        if self.rng.random() < 0.03:
            question = self.view(self.rng.choice(("op", *self.timeline_views)))
            question["options"]["output"] = self.rng.choice(ODD_OUTPUTS)
            return question
        kind = self.rng.choice(("timeline", "timeline", "pprof", "stdout", "none"))
        views = {"timeline": self.timeline_views, "pprof": ("code",)}.get(kind, VIEWS)
        question = self.view(self.rng.choice(views))
        question["options"]["output"] = kind if kind in {"stdout", "none"} else f"{kind}:outfile=FOLDER/out"
        if kind == "pprof" and self.rng.random() < 0.9:
            question["options"]["select"] = [self.rng.choice(PPROF_SELECTS)]
        return question

    def advice(self) -> dict[str, Any]:
        """Return a question to the advisor."""
        return {"view": "advise", "checkers": self.rng.sample(CHECKERS, self.rng.randint(0, len(CHECKERS)))}

    def sample(self, count: int) -> list[dict[str, Any]]:
        """Return ``count`` questions to views, half as many for outputs, two to the advisor."""
        questions = [self.view(self.rng.choice(VIEWS)) for _ in range(count)]
        questions += [self.output() for _ in range(count // 2)]
        return [*questions, *(self.advice() for _ in range(2))]
