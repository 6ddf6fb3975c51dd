"""`tfprof config`: the settings in force."""

import os

import click
from click.core import ParameterSource

from ..collector.documents.settings import SettingInForce, config_document
from ..collector.render.table import Column, render
from ..commands import settings_files
from ..commands.streams import print_lines
from ..formats.addresses import is_remote
from ..formats.settings import SETTINGS
from .command import folder_option, json_option, print_json, width

_COLUMNS = (Column("setting"), Column("value", min_width=12), Column("from", min_width=12))
#: All settings except those of a single job, which commands do not use.
_SHOWN_SETTINGS = tuple(row for row in SETTINGS.values() if row.name not in settings_files.NOT_IN_FILES)


@click.command()
@json_option
@folder_option
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
        if setting.name == "store" and not is_remote(store):
            value = store
            if context.get_parameter_source("store") is ParameterSource.COMMANDLINE:
                source = "option"
        rows.append(SettingInForce(setting.name, value, source))
    if as_json:
        print_json(config_document(rows, settings_files.paths()))
    else:
        print_lines(render(_COLUMNS, list(map(list, rows)), width=width()))
