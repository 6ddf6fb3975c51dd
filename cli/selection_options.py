"""Options that select jobs, steps and devices, and a class of commands.

Commands of this class accept the TF profiler's spelling of options.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import click

from ..collector.query.job_selection import Selection, check_criteria, choose
from ..collector.store.opening import open_reader
from ..collector.store.selectors import matching
from ..collector.summaries.kinds import parse_kinds, parse_steps
from ..collector.tfviews.options import TABLE
from ..collector.tfviews.parity import COMPAT, DEFAULT, Parity
from .arguments import spellings, translate
from .command import jobs_argument, pid_option, store_option
from .values import MOMENT, NON_EMPTY, WHOLE

F = TypeVar("F", bound=Callable[..., Any])

#: Sections of a view's help: heading, and the parameters below it.
_SECTIONS: Final = (
    ("Jobs and steps", ("hosts", "pids", "kinds", "steps", "since_ns", "device", "store")),
    ("View (one dash or two)", tuple(option.name for option in TABLE)),
    ("Form", ("by", "top", "as_json", "compat", "exact")),
)


def step_kinds(text: str | None) -> tuple[int, ...] | None:
    """Parse the value of `--kind`, once the jobs were read: they may declare kinds."""
    return None if text is None else parse_kinds(text)


def kind_option(default: str) -> Callable[[Any], Any]:
    """Return the option `--kind`, which `step_kinds` parses; its help names the ``default``."""
    text = "Only steps of this kind, such as batch, train or function:NAME, or of several (KIND,KIND), or all"
    return click.option("--kind", "kinds", metavar="KIND", help=f"{text}; default: {default}.")


device_option: Callable[[F], F] = click.option(
    "--device", metavar="D", type=NON_EMPTY, help="Only ops on devices with D in their names; `*` matches anything."
)


def since_option(what: str) -> Callable[[F], F]:
    """Return the option `--since`; its help says ``what`` it selects."""
    text = f"Only {what} after TIME: 30s, 5m, 2h (that long ago), 14:30, or '2026-01-31 14:30'."
    return click.option("--since", "since_ns", metavar="TIME", type=MOMENT, default=0, help=text)


def steps_option(what: str) -> Callable[[F], F]:
    """Return the option `--steps`; its help says ``what`` it selects."""
    text = f"Only {what} from A to B, or from A on (A-)."
    return click.option(
        "--steps", metavar="A-B", callback=lambda _context, _option, value: parse_steps(value), help=text
    )


def top_option(what: str) -> Callable[[F], F]:
    """Return the option `--top`; its help says ``what`` it limits."""
    return click.option("--top", metavar="N", type=WHOLE, default=0, help=f"Show the N {what}.")


hosts_option: Callable[[F], F] = click.option(
    "--host", "hosts", metavar="H", type=NON_EMPTY, multiple=True, help="Only jobs of this host; `*` matches anything."
)


_OPTIONS: Final[tuple[Callable[[Any], Any], ...]] = (
    jobs_argument,
    hosts_option,
    pid_option,
    kind_option("the main kind"),
    steps_option("traced steps"),
    since_option("traced steps that began"),
    device_option,
    click.option(
        "--compat",
        type=click.Choice(COMPAT),
        default=COMPAT[0],
        metavar="VERSION",
        help=f"Use the order and the wording of TensorFlow {', '.join(COMPAT[:-1])} or {COMPAT[-1]} ({COMPAT[0]}).",
    ),
    click.option(
        "--exact-tf",
        "exact",
        is_flag=True,
        help="Print exactly what the TF profiler prints, even where it is wrong or incomplete.",
    ),
)


def selection_options(command: F) -> F:
    """Add to ``command`` the options that select jobs, steps and devices.

    Also add `--compat` and `--exact-tf`.
    """
    for option in reversed((*_OPTIONS, store_option)):
        command = option(command)
    return command


def view_options(view: str) -> Callable[[F], F]:
    """Return a decorator that adds the options of ``view`` to a command."""

    def decorate(command: F) -> F:
        for option in reversed(TABLE):
            name = f"--{option.name.replace('_', '-')}"
            command = click.option(name, option.name, metavar=option.metavar, help=option.help_for(view))(command)
        return command

    return decorate


def pop_selection(options: dict[str, Any]) -> dict[str, Any]:
    """Remove from ``options`` those that select jobs, steps and a device, and return them."""
    names = ("jobs", "store", "hosts", "pids", "kinds", "steps", "since_ns", "device")
    return {name: options.pop(name) for name in names}


def selection_from(
    jobs: Sequence[str],
    store: str,
    *,
    hosts: Sequence[str],
    pids: Sequence[int],
    kinds: str | None,
    steps: tuple[int, int] | None,
    device: str | None,
    since_ns: int = 0,
    parity: Parity = DEFAULT,
) -> Selection:
    """Return the selection; NoSuchJobError, StoreError or UsageError if it is invalid."""
    check_criteria(jobs, hosts, pids)
    chosen = tuple(choose(open_reader(store), jobs, hosts, pids))
    return Selection(chosen, steps, device, parity, step_kinds(kinds), since_ns)


def jobs_and_ops(store: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words that select jobs, and the others, which name op types of these jobs.

    The first word selects a job. So do words with a time or with a number of jobs before.
    """
    if len(words) < 2:
        return list(words), []
    infos = [job.info for job in open_reader(store).jobs()]
    ops = [word for word in words[1:] if not set("~@") & set(word) and not matching(infos, word)]
    return [word for word in words if word not in ops], ops


class TfprofCommand(click.Command):
    """A command that accepts the TF profiler's spelling of options; its help has sections."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Translate ``args`` to click's spelling, then parse them."""
        long_names = [name for parameter in self.params for name in parameter.opts if name.startswith("--")]
        flags = [name for parameter in self.params if getattr(parameter, "is_flag", False) for name in parameter.opts]
        other_spellings = spellings([name[2:].replace("-", "_") for name in long_names])
        return super().parse_args(ctx, translate(args, ctx.info_name or "COMMAND", [*flags, "--help"], other_spellings))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options in sections, those of views in the TF profiler's spelling."""
        options = [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        rows = {str(option.name): record for option in options if (record := option.get_help_record(ctx))}
        for heading, names in _SECTIONS:
            lines = [(self._usage(name, rows.pop(name)[0]), text) for name in names if (text := self._help(name, rows))]
            if lines:
                with formatter.section(heading):
                    formatter.write_dl(lines)
        with formatter.section("Other"):
            formatter.write_dl(list(rows.values()))

    @staticmethod
    def _help(name: str, rows: dict[str, tuple[str, str]]) -> str:
        return rows[name][1] if name in rows else ""

    @staticmethod
    def _usage(name: str, usage: str) -> str:
        is_view_option = any(option.name == name for option in TABLE)
        return f"-{name} {usage.rsplit(maxsplit=1)[-1]}" if is_view_option else usage
