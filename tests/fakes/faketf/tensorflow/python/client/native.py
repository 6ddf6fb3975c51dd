"""The part of TensorFlow's C interface that sessions use.

``live_objects`` has the numbers of objects that are not yet released.
"""

# ruff: noqa: N801, N802 - the names are those of TensorFlow

live_objects = {"buffers": 0, "callables": 0}
STEP_STATS = b"\x0a\x04node"


class Buffer:
    """A TF_Buffer."""

    def __init__(self, data):
        self.data = data


class TF_Output:
    """The output of an operation."""

    def __init__(self, name):
        self.oper, self.index = name, 0


def TF_OperationName(operation):
    return operation


def TF_NewBuffer():
    return TF_NewBufferFromString(b"")


def TF_NewBufferFromString(data):
    live_objects["buffers"] += 1
    return Buffer(data)


def TF_GetBuffer(buffer):
    return buffer.data


def TF_DeleteBuffer(buffer):
    live_objects["buffers"] -= 1


def TF_SessionRun_wrapper(session, options, feed_dict, fetch_list, target_list, run_metadata):
    wait = feed_dict.get("wait")
    if wait is not None:
        wait()
    if "bad" in feed_dict:
        raise ValueError("a bad feed")
    if run_metadata is not None and options is not None and b"\x08" in options.data:
        run_metadata.data = STEP_STATS
    return feed_dict.get("x", 0) + 1


def TF_SessionPRun_wrapper(session, handle, feed_dict, fetch_list):
    return TF_SessionRun_wrapper(session, None, feed_dict, fetch_list, [], None)


def TF_SessionMakeCallable(session, options):
    live_objects["callables"] += 1
    return options.data


def TF_SessionRunCallable(session, handle, args, run_metadata):
    if args[0] == "bad":
        raise ValueError("a bad feed")
    if run_metadata is not None and b"\x22" in handle:
        run_metadata.data = STEP_STATS
    return args[0] + 1


def TF_SessionReleaseCallable(session, handle):
    live_objects["callables"] -= 1


def TF_GraphToGraphDef(graph, buffer):
    buffer.data = b""
