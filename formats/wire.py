"""The messages between agent and collector: a fixed head and one body (docs/wire.md).

Routing reads the head only.
"""

import struct
from typing import NamedTuple, Sequence

from . import layout
from .errors import FormatError, VersionError
from .version import WIRE_VERSION

MAGIC = b"TFPW"
#: Versions of the wire that this build supports.
SUPPORTED_VERSIONS = (1, WIRE_VERSION)
#: Version of development builds of 0.3.0. They also offer version 1, but send other records.
_UNRELEASED_VERSION = 2
#: magic, version, type, uid, about (the type that an ACK, STALL or REFUSE answers), first, last
HEAD = struct.Struct("<4sHHQQQQ")
#: Maximum size of a body; larger ones are refused unread. The largest record fits, and only small
#: records are batched.
BODY_MAX = layout.RECORD_MAX + (1 << 20)

# agent -> collector
GREETING = 1  # JSON of the agent: agent, host, boot, pid, user, version, wire, requests
OPEN = 2  # JSON identity of job uid
RECORDS = 3  # records first..last of job uid, as they lay in the ring
SPANS = 4  # u64 monotonic ns, u64 real ns of one moment, then span entries first..last
COUNTERS = 5  # JSON of the job's words
SAMPLES = 6  # JSON of host and process samples (uid 0)
CLOSE = 7  # JSON of the job's end
EVENT = 8  # JSON {"slug", "text", "count", "t_ns"} about job uid
GIVEN_UP = 10  # JSON {"identity", "end", "event"} of job uid, whose remaining data is lost
# client -> collector -> agent
ORDER = 9  # JSON of an order to job uid, `last` is its id
ASK = 11  # JSON of a request to the agents of hosts, `last` is its id
# client -> collector
CHANGE = 12  # JSON of a change of the stored job uid, `last` is its id
# collector -> agent
WELCOME = 128  # JSON of the collector: collector, pid, version, store, wire
ACK = 129  # everything of type `about` up to `last` of job uid is stored
STALL = 130  # JSON {"slug", "text"}: cannot be stored now, send it again later
REFUSE = 131  # JSON {"slug", "text"}: will never be accepted
REOPEN = 132  # job uid is not known, or its data has a gap: send OPEN, then everything not acked
# agent -> collector -> client
ANSWER = 133  # JSON of the result of order `last` to job uid
REPLY = 134  # JSON of the reply to request `last`; for the client, after a line with the agent

#: The numbers of COUNTERS, SAMPLES and EVENT count from COUNTED_FROM plus a random number of 62
#: bits, which each agent draws; those of tfprof 0.2.0 are the real time (ns).
COUNTED_FROM = 1 << 63
#: A message is a repetition if its number is that of the last stored message, or lower by less than
#: this: an agent keeps fewer messages of a type. The numbers of another agent differ by more.
_REPEATED_MAX = 1 << 20

#: For each type that version 1 lacks, the version that added it. The head of a message of such a
#: type has this version.
_ADDED_IN = {ORDER: 3, ANSWER: 3, GIVEN_UP: 3, ASK: 3, REPLY: 3, CHANGE: 3}

#: Slug of the refusal of everything from a node whose key is no longer accepted.
KEY_REVOKED = "key-revoked"


class Head(NamedTuple):
    """The head of one message."""

    type: int
    uid: int = 0
    about: int = 0
    first: int = 0
    last: int = 0


def is_repeated(number: int, stored: int) -> bool:
    """Return whether message ``number`` is stored already; ``stored`` is the last stored number."""
    if number < COUNTED_FROM:
        return number <= stored < COUNTED_FROM
    return 0 <= stored - number < _REPEATED_MAX


def common_version(peer_versions: Sequence[int]) -> int:
    """Return the highest version that this build supports and that is in ``peer_versions``.

    VersionError with both sides' versions if there is no such version, or if the peer is a
    development build. FormatError if ``peer_versions`` is empty.
    """
    common = set(SUPPORTED_VERSIONS).intersection(peer_versions)
    if common and max(peer_versions) != _UNRELEASED_VERSION:
        return max(common)
    if not peer_versions:
        raise FormatError("no wire version is offered")
    raise VersionError("wire", max(peer_versions), max(SUPPORTED_VERSIONS))


def version_of(kind: int) -> int:
    """Return the version that added the type ``kind``; only peers that support it get the type."""
    return _ADDED_IN.get(kind, 1)


def pack(head: Head) -> bytes:
    """Return the 40 bytes of ``head``."""
    return HEAD.pack(MAGIC, version_of(head.type), head.type, head.uid, head.about, head.first, head.last)


def unpack(data: bytes) -> Head:
    """Return the head in ``data``.

    FormatError if it is invalid, VersionError if it is of an unknown version.
    """
    if len(data) < 6 or data[:4] != MAGIC:
        raise FormatError("not a tfprof message")
    version = int.from_bytes(data[4:6], "little")
    if version not in SUPPORTED_VERSIONS:
        raise VersionError("wire", version, WIRE_VERSION)
    if len(data) != HEAD.size:
        raise FormatError("a message head of %d bytes, not %d" % (len(data), HEAD.size))
    _, _, kind, uid, about, first, last = HEAD.unpack(data)
    if last < first:
        raise FormatError("a message whose last sequence number (%d) is below its first (%d)" % (last, first))
    return Head(kind, uid, about, first, last)
