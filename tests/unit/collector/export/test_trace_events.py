"""Trace events are byte for byte as TensorFlow's JSON writer writes them."""

import json

import pytest
from tfprof.collector.export.trace_events import TraceEvents, quoted


def test_names_and_bars_come_before_arrows_and_counters() -> None:
    events = TraceEvents()
    events.process(0, "a")
    events.flow("f", 1, (0, 2, 30), (4, 5, 60))
    events.bar("b", 0, 1, 7, 9)
    events.counter("c", 3, 8, {"z": 5, "Y": "1 MB"})
    events.process(1, "d")
    assert events.json() == (
        b'{"traceEvents":['
        b'{"args":{"name":"a"},"name":"process_name","ph":"M","pid":0},'
        b'{"args":{"name":"b"},"cat":"Op","dur":9,"name":"b","ph":"X","pid":0,"tid":1,"ts":7},'
        b'{"args":{"name":"d"},"name":"process_name","ph":"M","pid":1},'
        b'{"cat":"DataFlow","id":1,"name":"f","ph":"s","pid":0,"tid":2,"ts":30},'
        b'{"cat":"DataFlow","id":1,"name":"f","ph":"t","pid":4,"tid":5,"ts":60},'
        b'{"args":{"Y":"1 MB","z":5},"cat":"Memory","name":"c","ph":"C","pid":3,"tid":0,"ts":8}'
        b"]}\n"
    )


def test_without_events_there_is_an_empty_list() -> None:
    assert TraceEvents().json() == b'{"traceEvents":[]}\n'


@pytest.mark.parametrize(
    ("text", "json_text"),
    [
        ("conv/Conv2D", '"conv/Conv2D"'),
        ('a"b\\c/d', r'"a\"b\\c/d"'),
        ("\b\f\n\r\t\x01\x1f", r'"\b\f\n\r\t\u0001\u001f"'),
        ("a\x7f ~", '"a\x7f ~"'),
        ("é€\u2028", r'"\u00e9\u20ac\u2028"'),
        ("🚀", r'"\ud83d\ude80"'),
    ],
)
def test_texts_are_ascii_with_the_escapes_of_jsoncpp(text: str, json_text: str) -> None:
    assert quoted(text) == json_text
    assert json.loads(quoted(text)) == text


@pytest.mark.parametrize(
    ("data", "json_text"),
    [
        (b"\xc3...", r'"\u00ee.."'),  # TensorFlow writes this for a function's name that it cut within a character
        (b"\xe2\x82...", r'"\u20ae.."'),
        (b"\xf0\x9f\x98...", r'"\ud83d\ude2e.."'),
        (b"\xf0...", r'"\ud87a\udfae"'),
        (b"\xc0\x80z", r'"\ufffdz"'),
        (b"\xed\xa0\x80z", r'"\ufffdz"'),
        (b"\xffz", r'"\ufffdz"'),
        (b"z\xe2", r'"z\ufffd"'),
    ],
)
def test_invalid_utf_8_is_converted_like_jsoncpp_does(data: bytes, json_text: str) -> None:
    assert quoted(data.decode("utf-8", "surrogateescape")) == json_text
