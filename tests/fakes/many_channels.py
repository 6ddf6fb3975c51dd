"""Makes and announces COUNT valid channels in one process, and waits for a line.

    python many_channels.py FOLDER LAUNCH COUNT

It prints ``done`` when all are announced.
"""

import resource
import sys

from fakes.channel_writer import ChannelWriter

#: Descriptors of each channel (for its file and its mapping), and others that the process needs.
DESCRIPTORS_EACH, DESCRIPTORS_OTHER = 2, 20


def main():
    """Make the channels, without memory for their rings."""
    folder, launch, count = sys.argv[1], int(sys.argv[2], 16), int(sys.argv[3])
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS_EACH * count + DESCRIPTORS_OTHER, hard))
    channels = [ChannelWriter(launch, sparse=True) for _ in range(count)]
    for channel in channels:
        channel.announce(folder)
    print("done", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
