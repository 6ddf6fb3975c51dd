"""The remote debugging interface of CPython, in the memory of a fake interpreter."""

import struct

import pytest
from tfprof.agent.attach import remote_debugging
from tfprof.agent.attach.remote_debugging import TABLES, Offsets, find

#: Addresses of the runtime, of its two interpreters, and of the thread of the main interpreter.
RUNTIME, MAIN, OTHER, THREAD = 0x1000, 0x4000, 0x6000, 0x8000
#: Offsets of fields in the fake interpreter.
OFFSETS = Offsets(
    interpreters_head=800,
    interpreter_id=16,
    interpreter_next=24,
    main_thread=32,
    events=8,
    debugger_support=64,
    enabled_flag=40,
    pending_flag=4,
    path=8,
    path_size=512,
)
EVENTS, PENDING, PATH = (
    THREAD + OFFSETS.events,
    THREAD + OFFSETS.debugger_support + 4,
    THREAD + OFFSETS.debugger_support + 8,
)
VERSION = 0x030E00F0


class Memory:
    """Memory of a process with Python 3.14: another interpreter is listed before the main one."""

    def __init__(self) -> None:
        self.data = bytearray(0x10000)
        self.write(RUNTIME, struct.pack("<8sQQ", b"xdebugpy", VERSION, 0))
        for offset, value in zip(TABLES[3, 14], OFFSETS, strict=True):
            self.put(RUNTIME + offset, value)
        self.put(RUNTIME + OFFSETS.interpreters_head, OTHER)
        for address, number, next_address in ((OTHER, 1, MAIN), (MAIN, 0, 0)):
            self.put(address + OFFSETS.interpreter_id, number)
            self.put(address + OFFSETS.interpreter_next, next_address)
            self.put(address + OFFSETS.main_thread, THREAD if address == MAIN else 0)
            self.put(address + OFFSETS.enabled_flag, 1)

    def read(self, address: int, size: int) -> bytes:
        return bytes(self.data[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        self.data[address : address + len(data)] = data

    def put(self, address: int, value: int) -> None:
        self.write(address, value.to_bytes(8, "little"))


def test_a_request_names_the_file_to_the_main_thread_of_the_main_interpreter():
    memory = Memory()
    memory.put(EVENTS, 0x7700 | 1 << 4)
    interpreter = find(memory, RUNTIME)
    assert not interpreter.is_busy
    assert interpreter.request(b"/run/script.py")
    assert memory.read(PATH, 16) == b"/run/script.py\0\0"
    assert memory.read(PENDING, 4) == b"\1\0\0\0"
    events = int.from_bytes(memory.read(EVENTS, 8), "little")
    assert events >> 8 == 0x77  # the version in the higher bytes is unchanged
    assert events & 1 << 5  # the stop request, at which the thread looks for the file
    assert events & 1 << 4  # the event that the job had set
    # The write may erase events that the job has set meanwhile, so the request sets these, too.
    erasable_events = 1 << 1 | 1 << 2 | 1 << 3
    assert events & erasable_events == erasable_events
    assert not events & 1
    assert interpreter.is_busy
    interpreter.withdraw()
    assert not interpreter.is_busy


def test_a_path_that_does_not_fit_is_not_written():
    memory = Memory()
    unchanged = bytes(memory.data)
    assert not find(memory, RUNTIME).request(b"/" + b"x" * (OFFSETS.path_size - 1))
    assert bytes(memory.data) == unchanged


@pytest.mark.parametrize(
    ("address", "value"),
    [
        (RUNTIME, 7),  # no table
        (RUNTIME + 8, 0x030D00F0),  # Python 3.13
        (RUNTIME + 8, 0x030F00F0),  # an unknown version
        (RUNTIME + 16, 1),  # a free-threaded build
        (MAIN + OFFSETS.enabled_flag, 0),  # switched off
        (MAIN + OFFSETS.main_thread, 0),  # no main thread
        (MAIN + OFFSETS.interpreter_id, 5),  # no main interpreter
        (RUNTIME + TABLES[3, 14].path_size, 0),
        (RUNTIME + TABLES[3, 14].path_size, 1 << 40),
    ],
)
def test_an_unusable_interface_is_not_found(address, value):
    memory = Memory()
    memory.put(address, value)
    assert find(memory, RUNTIME) is None


def test_the_search_ends_if_the_list_of_interpreters_is_circular():
    memory = Memory()
    memory.put(MAIN + OFFSETS.interpreter_id, 5)
    memory.put(MAIN + OFFSETS.interpreter_next, OTHER)
    assert find(memory, RUNTIME) is None


def test_a_table_that_the_end_of_the_memory_cuts_off_is_not_found():
    assert remote_debugging.find(Memory(), 0xFF00) is None
