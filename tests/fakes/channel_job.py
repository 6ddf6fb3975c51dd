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
