"""The first lines of a job that makes its channel itself, for ``python -c`` under `tfprof-run`."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent

#: Code that makes and announces a channel, ``writer``, of the launch that the environment names.
OPEN_CHANNEL = f"""
import json, os, sys, time
sys.path.insert(0, {str(TESTS)!r})
from fakes.channel_writer import ChannelWriter
launch, _, folder = os.environ["TFPROF_RUN"].partition("@")
writer = ChannelWriter(int(launch, 16))
writer.announce(folder)
"""

#: A job that applies orders as the shim does. It steps until it is detached or its launcher ends,
#: at most as often as its argument says.
OBEDIENT_JOB = f"""{OPEN_CHANNEL}
from tfprof.formats import layout
number, launcher, count = 0, os.getppid(), int((sys.argv[1:] or [0])[0])
while not writer.word("detached") and os.getppid() == launcher and (not count or number < count):
    number += 1
    writer.put_span(number)
    writer.put(b'{{"slug": "fake", "text": "step"}}')
    if writer.word("policy") != writer.word("policy_seen"):
        first = max(number, writer.word("policy_first"))
        writer.set(order_kind=layout.RUN, order_step=first, policy_seen=writer.word("policy"))
        writer.set(detached=writer.word("detach"))
    time.sleep(0.01)
"""
