"""The tables of a store: column names, types and units (docs/store.md).

The write-ahead log and the segments have the same tables.
"""

from typing import Final

import pyarrow as pa

#: Version of the stores that this build writes. Version 2 added all outputs of ops; accelerators of
#: traces; allocations, output memory and op logs; lines of frames. Version 3 is that of development
#: versions of 0.3.0. Version 4 added alerts and histograms of step times, and removed columns that
#: nothing read.
STORE_VERSION: Final = 4
#: Versions of stores that this build reads. A writer raises the version of a store that it opens.
READABLE: Final = (2, STORE_VERSION)

#: Value of an id column that means no device, or no name.
NONE_ID: Final = 0xFFFFFFFF

#: Highest number of a trace.
LAST_TRACE: Final = 0xFFFFFFFF

_U16: Final[pa.DataType] = pa.uint16()
_U32: Final[pa.DataType] = pa.uint32()
_I64: Final[pa.DataType] = pa.int64()
_U64: Final[pa.DataType] = pa.uint64()
_F64: Final[pa.DataType] = pa.float64()
_TEXT: Final[pa.DataType] = pa.utf8()
_BYTES: Final[pa.DataType] = pa.binary()
_BOOL: Final[pa.DataType] = pa.bool_()

#: One row per node execution. `*_ns` are nanoseconds; ids point into `names`.
OPS = pa.schema(
    [
        ("trace", _U32),  # number of the traced step within the job: `traces.trace`
        ("node", _U32),  # name up to the first ':'
        ("device", _U32),  # never NONE_ID
        ("label", _U32),  # timeline label, else the part of the name after the ':'
        ("thread", _U32),
        ("start_ns", _I64),  # all_start, relative to the trace's base_ns; may be negative
        ("op_start_ns", _I64),  # relative to all_start
        ("op_end_ns", _I64),  # relative to op_start
        ("start_us_fix", _I64),  # all_start_micros - floor(all_start_ns / 1000): 0 in practice
        ("end_us_fix", _I64),  # op_end_rel_micros - (floor of end in us - floor of start in us): 0 in practice
        ("total_bytes", _I64),  # sum over allocators
        ("peak_bytes", _I64),
        ("live_bytes", _I64),
        ("allocator", _U32),  # name of the first allocator
        ("in_use_bytes", _I64),  # max allocator_bytes_in_use over allocators called *GPU*
        ("output_bytes", _I64),  # sum over outputs of max(allocated, requested)
        ("outputs", _U32),  # id of the output signature (output_signatures.py); NONE_ID without outputs
        ("temp_bytes", _I64),
        ("persistent_bytes", _I64),
    ]
)

#: One row per traced step; the same append holds all of its ops.
TRACES = pa.schema(
    [
        ("trace", _U32),
        ("source", _U16),  # layout.RUN_METADATA or layout.XSPACE
        ("kind", _U16),  # layout span kind of the step
        ("step", _U64),  # its ordinal among the spans of that kind
        ("key", _U32),
        ("thread", _U32),
        ("start_ns", _I64),  # real time
        ("duration_ns", _I64),
        ("base_ns", _I64),  # real time from which ops.start_ns counts
        ("rows", _U32),
        ("raw_bytes", _I64),
        ("accelerator", _U16),  # flags GPU and STREAMS (devices.py), set if any device has them, even one without rows
    ]
)

#: Interned strings. kind: NODE, DEVICE, LABEL, ALLOCATOR or OUTPUTS; ids are dense for each kind
#: and job.
NAMES = pa.schema([("kind", _U16), ("id", _U32), ("text", _BYTES)])
NODE, DEVICE, LABEL, ALLOCATOR, OUTPUTS = range(5)

#: One row per span entry. Short steps share an entry, of `count` steps; with layout.FLAG_SAMPLED
#: only the last of them was timed, or none if layout.FLAG_FAILED is also set.
SPANS = pa.schema(
    [
        ("kind", _U16),
        ("flags", _U16),
        ("ordinal", _U64),
        ("count", _U32),
        ("start_ns", _I64),  # real time
        ("total_ns", _I64),
        ("min_ns", _I64),
        ("max_ns", _I64),
        ("key", _U32),
        ("thread", _U32),
        ("parent", _U64),  # ordinal of the enclosing epoch, 0 for none
    ]
)

#: One row per node of a job's graphs, in the order in which the job sent them.
GRAPH_NODES = pa.schema(
    [
        ("graph", _U32),
        ("name", _TEXT),
        ("op", _TEXT),
        ("device", _TEXT),  # requested
        ("node_def", _BYTES),  # serialized NodeDef; of a running job without large attributes
    ]
)

#: Python frames: one row per (stack, position), outermost first.
FRAMES = pa.schema(
    [
        ("graph", _U32),
        ("stack", _U32),
        ("position", _U32),
        ("file", _TEXT),
        ("line", _I64),
        ("function", _TEXT),
        ("start_line", _I64),  # first line of the function; -1 if unknown
        ("text", _TEXT),  # the source line; empty if unknown
    ]
)

#: One row per node with a stack.
STACKS = pa.schema([("graph", _U32), ("name", _TEXT), ("stack", _U32)])

#: One row per second of a job's process tree. CPU seconds, and bytes read and written, count from
#: the start of each process.
SAMPLES = pa.schema(
    [
        ("t_ns", _I64),
        ("processes", _U32),
        ("threads", _U32),
        ("cpu_user_s", _F64),
        ("cpu_system_s", _F64),
        ("rss_bytes", _I64),
        ("read_bytes", _I64),
        ("write_bytes", _I64),
    ]
)

#: One row per second of the threads of a job's own process, in seconds from the start of each
#: thread: the main thread used a CPU, and waited for one; the waits of all living threads.
THREAD_SAMPLES = pa.schema([("t_ns", _I64), ("main_cpu_s", _F64), ("main_queued_s", _F64), ("queued_s", _F64)])

#: Threads of a job's own process, other than the main one, that used a CPU for ``cpu_s`` since the
#: sample before: for each sample, those with the most time. The row of thread 0 has the time of the
#: whole process; there is one as soon as the job has had further processes.
BUSY_THREADS = pa.schema([("t_ns", _I64), ("thread", _U32), ("cpu_s", _F64)])

#: One row per second of a host. CPU seconds, and bytes of disks and networks, count from the start
#: of the host.
HOST_SAMPLES = pa.schema(
    [
        ("t_ns", _I64),
        ("cpus", _U32),
        ("cpu_busy_s", _F64),
        ("cpu_iowait_s", _F64),
        ("load_1m", _F64),
        ("memory_total_bytes", _I64),
        ("memory_available_bytes", _I64),
        ("swap_used_bytes", _I64),
        ("disk_read_bytes", _I64),
        ("disk_write_bytes", _I64),
        ("net_received_bytes", _I64),
        ("net_sent_bytes", _I64),
    ]
)

#: Events of a job: drops, refusals, policy changes, undecodable data. docs/errors.md explains each
#: `slug`.
EVENTS = pa.schema([("t_ns", _I64), ("slug", _TEXT), ("text", _TEXT), ("count", _I64)])

#: One row per allocation (a free has negative bytes) of an allocator called *GPU*, in executions
#: with a start time.
ALLOCATIONS = pa.schema([("trace", _U32), ("node", _U32), ("device", _U32), ("t_us", _I64), ("bytes", _I64)])

#: One row per allocation (a free has negative bytes): of a RunMetadata those of allocators not
#: called *GPU*, in executions with a start time; of a profiler session those of all its allocators.
MEMORY_CHANGES = pa.schema(
    [
        ("trace", _U32),
        ("node", _U32),  # the op that allocated; NONE_ID if it is unknown, as before the session
        ("device", _U32),  # NONE_ID in profiler sessions
        ("allocator", _U32),
        ("t_us", _I64),  # real time
        ("bytes", _I64),
        ("in_use_bytes", _I64),  # in use by the allocator after the change; 0 if it is not recorded
        ("fragmentation", _F64),  # of the allocator, as it reports it; 0 if it is not recorded
        ("use", _U16),  # OUTPUT_BLOCK, …; 0 if it is not recorded
    ]
)
#: What an op allocates a block for: an output, its own work, or its later runs.
OUTPUT_BLOCK, TEMPORARY_BLOCK, PERSISTENT_BLOCK = range(1, 4)

#: The addresses of the blocks: of each trace, one row per row of `memory_changes`, then one per row
#: of `allocations`, in their order. The address is 0 if it is not recorded.
BLOCK_ADDRESSES = pa.schema([("trace", _U32), ("address", _U64)])

#: One row per output with an allocation_description, in executions with a start time. Only imported
#: jobs have such rows: the addresses would double the size of live jobs.
OUTPUT_MEMORY = pa.schema(
    [
        ("trace", _U32),
        ("node", _U32),
        ("device", _U32),
        ("execution", _U32),  # index among the rows of ops with this trace, node and device
        ("slot", _I64),
        ("bytes", _I64),
        ("ptr", _U64),
    ]
)

#: Facts about nodes from an op log, or from the job itself, in order of arrival.
OP_LOG = pa.schema(
    [
        ("graph", _U32),
        ("name", _TEXT),
        ("float_ops", _I64),
        ("types", pa.list_(_TEXT)),  # a live job sets TRAINABLE
        ("code", _BOOL),  # the entry had a code_def, even an empty one
        (
            "shape",
            pa.list_(_I64),
        ),  # shape of the variable behind a function's placeholder, [1] for a scalar; else empty
    ]
)
TRAINABLE: Final = "_trainable_variables"
#: Further labels of variables in live jobs, which are not node types: an untrained weight of a
#: model; a variable that belongs to no model.
UNTRAINED: Final = "_tfprof_untrained"
STATE: Final = "_tfprof_state"

#: Values of variables, in jobs imported with a checkpoint; `data`: the elements in row-major order,
#: encoded as in the checkpoint.
TENSORS = pa.schema([("name", _TEXT), ("dtype", _U32), ("shape", pa.list_(_I64)), ("data", _BYTES)])

#: One row per alert, columns as in alerts.alert.Alert. `before` and `now` are in ns, bytes or
#: entries, depending on `slug`.
ALERTS = pa.schema(
    [
        ("found_ns", _I64),  # real time, like since_ns
        ("since_ns", _I64),
        ("slug", _TEXT),
        ("kind", _U16),  # kind, key and step: the first slow step, for a stall the last step before it; 0 for none
        ("key", _U32),
        ("step", _U64),
        ("before", _F64),
        ("now", _F64),
    ]
)

#: One row per TensorFlow op that went into a program that XLA compiled, and per HLO instruction
#: that came from none. Rows may be repeated.
PROGRAMS = pa.schema(
    [
        ("module", _TEXT),  # XLA's name of the program, and its number: NAME(NUMBER)
        ("node", _TEXT),
        ("op", _TEXT),  # empty for an instruction that came from no op
        ("fused_into", _TEXT),  # node whose executions include this op; empty if it has executions of its own
        ("instructions", _U32),  # HLO instructions that came from this op
    ]
)

#: Aggregate of a generation's ops, or of all generations so far ("total"), sorted by node and
#: device. It has one row for each node and device. If the TF profiler would have an entry for a
#: node in any trace, there is also a node row, with device NONE_ID. In a node row, only `node`,
#: `canonical` and `traces` are set; `traces` is the number of traces with such an entry.
ROLLUP = pa.schema(
    [
        ("node", _U32),
        ("device", _U32),
        ("canonical", _U32),  # in a node row: first CPU or GPU that the node ran on in the job; else NONE_ID
        ("traces", _I64),  # distinct traces with a row
        ("runs", _I64),  # rows with a start time (all_start_micros > 0)
        ("sum_us", _I64),  # op_end_rel_micros of rows with a start time, 0 counted as 1
        ("sum_ns", _I64),  # op_start + op_end of rows with a start time
        ("requested_bytes", _I64),  # total + persistent + temp of rows with a start time, like the next three
        ("peak_bytes", _I64),  # peak + persistent + temp
        ("residual_bytes", _I64),  # live + persistent
        ("output_bytes", _I64),
    ]
)

#: Histogram of the times of a node on a device, over a generation's traces, or over those of all
#: generations so far ("total_times"), sorted by node, device and bucket. The time in a trace is the
#: sum of the node's executions with a start time there, 0 if that is negative. step_times.py
#: defines the buckets.
STEP_TIMES = pa.schema(
    [
        ("node", _U32),
        ("device", _U32),
        ("bucket", _U16),
        ("steps", _I64),  # traces with a time in this bucket
    ]
)

#: The tables of a job, by name. The position is the table's id in the log, so new tables go to the
#: end.
JOB_TABLES: Final = {
    "ops": OPS,
    "traces": TRACES,
    "names": NAMES,
    "spans": SPANS,
    "graph_nodes": GRAPH_NODES,
    "frames": FRAMES,
    "stacks": STACKS,
    "samples": SAMPLES,
    "events": EVENTS,
    "host_samples": HOST_SAMPLES,
    "allocations": ALLOCATIONS,
    "output_memory": OUTPUT_MEMORY,
    "op_log": OP_LOG,
    "tensors": TENSORS,
    "alerts": ALERTS,
    "thread_samples": THREAD_SAMPLES,
    "memory_changes": MEMORY_CHANGES,
    "programs": PROGRAMS,
    "block_addresses": BLOCK_ADDRESSES,
    "busy_threads": BUSY_THREADS,
}

_AFTER_OP_END: Final = OPS.get_field_index("op_end_ns") + 1
#: The tables in logs of version 1 (tfprof 0.2.0). There `ops` had two more columns: all_end,
#: relative to op_end, and the time from scheduling to all_start.
TABLES_OF_LOG_1: Final = {
    **JOB_TABLES,
    "ops": OPS.insert(_AFTER_OP_END, pa.field("wait_ns", _I64)).insert(_AFTER_OP_END, pa.field("all_end_ns", _I64)),
}
