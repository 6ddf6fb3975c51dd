"""Runs under TensorFlow 1.15 or 2.x: writes what TensorFlow's Timeline draws of two StepStats.

    python step_stats_timeline.py RUN_METADATA STEP_STATS ANSWER

ANSWER gets JSON: the events of the RunMetadata's steps, and those of the StepStats.
"""

import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from tensorflow.core.framework import step_stats_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.client import timeline


def events(step_stats):
    """Return the events of the timeline, with its memory."""
    return json.loads(timeline.Timeline(step_stats).generate_chrome_trace_format(show_memory=True))["traceEvents"]


recorded, exported, answer = sys.argv[1:]
with open(recorded, "rb") as file:
    original = config_pb2.RunMetadata.FromString(file.read()).step_stats
with open(exported, "rb") as file:
    copy = step_stats_pb2.StepStats.FromString(file.read())
with open(answer, "w") as file:
    json.dump([events(original), events(copy)], file)
