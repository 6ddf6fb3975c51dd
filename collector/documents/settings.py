"""The settings in force."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, NamedTuple, TypedDict


class SettingInForce(NamedTuple):
    """A setting, its value in force as text, and the source of the value."""

    name: str
    value: str
    source: str


SettingDocument = TypedDict(  # a field has the name of a keyword
    "SettingDocument",
    {
        "setting": Annotated[str, "The name of the setting (docs/settings.md)."],
        "value": Annotated[str, "Its value as text."],
        "from": Annotated[str, "Its source: option, environment, default, or the path of a file."],
    },
)
SettingDocument.__doc__ = "A setting in force."


class ConfigDocument(TypedDict):
    """The settings in force."""

    schema: Annotated[Literal["tfprof.config/1"], "The format and its version."]
    settings: Annotated[list[SettingDocument], "All settings except those of a single job."]
    files: Annotated[list[str], "The settings files that are read, whether they exist or not."]


def config_document(settings: Iterable[SettingInForce], files: Sequence[str]) -> ConfigDocument:
    """Return the settings in force; ``files``: the settings files that are read."""
    return {
        "schema": "tfprof.config/1",
        "settings": [{"setting": setting.name, "value": setting.value, "from": setting.source} for setting in settings],
        "files": list(files),
    }
