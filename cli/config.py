"""`tfprof config`: the settings in force."""

import os

import click
from click.core import ParameterSource

from ..collector.documents.settings import SettingInForce, config_document
from ..collector.errors import UsageError
from ..collector.render.table import Column, render
from ..collector.suggestion import suggestion
from ..commands import settings_files
from ..commands.streams import print_lines
from ..formats.addresses import is_remote
from ..formats.settings import SETTINGS, Setting
from .command import folder_option, json_option, print_json, width

#: Settings that are meant by other words.
_MEANT = {"budget": "trace", "folder": "store", "retention": "keep-days"}
_COLUMNS = (Column("setting"), Column("value", min_width=12), Column("from", min_width=12))
#: All settings except those of a single job, which commands do not use.
_SHOWN_SETTINGS = tuple(row for row in SETTINGS.values() if row.name not in settings_files.NOT_IN_FILES)


def _chosen(names: tuple[str, ...]) -> list[Setting]:
    """Return the settings ``names``, all for none; UsageError if there is no such setting."""
    known = {setting.name: setting for setting in _SHOWN_SETTINGS}
    for name in names:
        if name not in known:
            hint = suggestion(name, known, _MEANT) or f": {settings_files.paths()[0]} sets values"
            raise UsageError(f"no setting is called {name!r}{hint}")
    return [known[name] for name in names] or list(_SHOWN_SETTINGS)


@click.command()
@click.argument("settings", nargs=-1, metavar="[SETTING]...")
@json_option
@folder_option
@click.pass_context
def config(context: click.Context, settings: tuple[str, ...], store: str, as_json: bool) -> None:
    """Print the settings in force, or some of them, each with its source.

    The source is an option, the environment, a file, or the default.
    """
    rows = []
    for setting in _chosen(settings):
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
