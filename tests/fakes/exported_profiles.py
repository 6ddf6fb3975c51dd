"""Reads exported profiles: files of speedscope, by the rules of its schema, and files of pprof."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tfprof.collector.proto.pprof_pb2 import Profile

#: Required keys of each type of profile in speedscope's schema, version 1.25.
_KEYS = {
    "sampled": {"type", "name", "unit", "startValue", "endValue", "samples", "weights"},
    "evented": {"type", "name", "unit", "startValue", "endValue", "events"},
}
_UNITS = {"bytes", "microseconds", "milliseconds", "nanoseconds", "none", "seconds"}


class Sample(NamedTuple):
    """One sample of pprof: names of its functions, innermost first, its values and its labels."""

    stack: tuple[str, ...]
    values: Mapping[str, int]
    labels: Mapping[str, str | int]


def speedscope(data: bytes) -> dict[str, Any]:
    """Return the file as a dict, after checking it; frames are replaced by their names."""
    file: dict[str, Any] = json.loads(data)
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    assert all(isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"} for frame in frames)
    for profile in file["profiles"]:
        assert set(profile) == _KEYS[profile["type"]]
        assert profile["unit"] in _UNITS
        if profile["type"] == "sampled":
            assert len(profile["samples"]) == len(profile["weights"])
            assert sum(profile["weights"]) == profile["endValue"]
            profile["samples"] = [[frames[number]["name"] for number in stack] for stack in profile["samples"]]
        else:
            _check_events(profile)
    return file


def _check_events(profile: Mapping[str, Any]) -> None:
    """Fail unless each event closes the innermost open frame, in order of time, or opens one."""
    stack: list[int] = []
    last = profile["startValue"]
    for event in profile["events"]:
        assert last <= event["at"] <= profile["endValue"]
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert event["type"] == "C"
            assert stack.pop() == event["frame"]
    assert not stack


def pprof(data: bytes) -> list[Sample]:
    """Return the samples of a profile, after checking that all references are valid."""
    profile = Profile.FromString(data)
    texts = list(profile.string_table)
    assert texts[0] in {"", b""}
    functions = {function.id: _text(texts[function.name]) for function in profile.function}
    locations = {location.id: functions[location.line[0].function_id] for location in profile.location}
    counters = [_text(texts[kind.type]) for kind in profile.sample_type]
    assert _text(texts[profile.default_sample_type]) in counters
    return [
        Sample(
            tuple(locations[number] for number in sample.location_id),
            dict(zip(counters, sample.value, strict=True)),
            {_text(texts[label.key]): _text(texts[label.str]) if label.str else label.num for label in sample.label},
        )
        for sample in profile.sample
    ]


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
