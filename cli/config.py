"""`tfprof config`: the settings in force."""

import os

import click
from click.core import ParameterSource

from ..collector.render.table import Column, render
from ..commands import settings_files
from ..formats.settings import SETTINGS
from .command import json_option, print_json, print_lines, store_option, width

_COLUMNS = (Column("setting"), Column("value", min_width=12), Column("from", min_width=12))
#: All settings except those of a single job, which commands do not use.
_SHOWN_SETTINGS = tuple(row for row in SETTINGS.values() if row.name not in settings_files.NOT_IN_FILES)


@click.command()
@json_option
@store_option
@click.pass_context
def config(context: click.Context, store: str, as_json: bool) -> None:
    """Print the settings in force, each with its source.

    The source is an option, the environment, a file, or the default.
    """
    rows = []
    for setting in _SHOWN_SETTINGS:
        text = os.environ.get(setting.variable)
        setting.value(text)  # SettingError if it is invalid
        source = settings_files.paths_by_variable.get(setting.variable) or ("environment" if text else "default")
        value = text or setting.default
        if setting.name == "store":
            value = store
            if context.get_parameter_source("store") is ParameterSource.COMMANDLINE:
                source = "option"
        rows.append({"setting": setting.name, "value": value, "from": source})
    if as_json:
        print_json({"settings": rows, "files": settings_files.paths()})
    else:
        print_lines(render(_COLUMNS, [list(row.values()) for row in rows], width=width()))
