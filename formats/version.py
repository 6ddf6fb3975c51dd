"""Versions of the package, the channel and the wire; the last two with their histories."""

VERSION = "0.3.0"

#: Layout of the shared memory between a job and the agent (docs/channel.md).
#: 1: control page, hello page, span ring, record ring.
#: 2: development versions of 0.3.0; not read.
#: 3: an XSpace has one step, and follows a header (XSPACE_HEAD).
CHANNEL_VERSION = 3

#: Messages between agent and collector (docs/wire.md).
#: 1: fixed 40-byte head, one opaque body.
#: 2: development versions of 0.3.0; not spoken.
#: 3: orders to jobs, and answers to them.
WIRE_VERSION = 3
