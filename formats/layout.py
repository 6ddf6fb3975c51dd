"""The channel's layout: words, spans and records in the shared memory (docs/channel.md).

Every number is little-endian. Words of 8 bytes lie on 8-byte boundaries, so each is read and
written atomically.
"""

import struct

MAGIC = b"TFPROFCH"
MEMFD_NAME = "tfprof"
#: Nanoseconds in a second. All times in the channel are in nanoseconds.
SECOND_NS = 10**9

PAGE = 4096
HELLO_AT = PAGE
HELLO_MAX = PAGE
SPANS_AT = 2 * PAGE
SPAN_SIZE = 64
SPAN_COUNT = 4096
RING_AT = SPANS_AT + SPAN_SIZE * SPAN_COUNT
RING_DEFAULT = 16 << 20
RING_MIN = 1 << 20
RING_MAX = 1 << 30

# -- the control page: words that the job writes -------------------------------------------------
#: At offset 0: MAGIC, CHANNEL_VERSION and PAGE.
START = struct.Struct("<8sII")
JOB_WORDS = {
    "uid": 16,  # of this process, random, unique across hosts
    "pid": 24,  # in the job's pid namespace
    "created_real_ns": 32,
    "created_mono_ns": 40,
    "hello_size": 48,  # bytes of JSON in the hello page; written last
    "hello_generation": 56,
    "ring_size": 64,  # 0 until the record ring is made
    "head": 72,  # bytes ever written to the ring
    "records": 80,  # sequence number of the last record put
    "dropped_records": 88,  # records dropped, and traced steps without a record
    "dropped_bytes": 96,
    "dropped_traces": 104,  # traced steps whose data was dropped
    "span_head": 112,  # span entries ever written
    "dropped_spans": 120,  # spans lost
    "traced": 128,  # traced steps
    "self_ns": 136,  # time spent in our own code: timing and counting of steps, puts, graphs, policy, recordings
    "extra_ns": 144,  # estimated extra time of traced steps, compared with untraced ones
    "step_ns": 152,  # time in steps, traced or not, without the kinds whose steps consist of other steps
    "faults": 160,  # exceptions of the shim that the guard contained
    "policy_seen": 168,  # number of the last policy of the agent that the job applied
    "launch": 176,  # id of the tfprof-run that started the job, 0 for none
    "detached": 184,  # 1 when the shim has removed all its patches
    "span_open": 192,  # span_head + 1 while the entry at span_head is still being filled with short steps
    "missed": 200,  # steps selected by number that were not traced, because the profiler session was in use
    "order_step": 208,  # ordinal of the first step that the policy of `policy_seen` selects by its number
    "order_kind": 216,  # kind of that step
    "order_traced": 224,  # steps traced under that policy
    "order_over": 232,  # number of the last order that ended: the policy before it is in force again
    "policy_refused": 240,  # number of the last invalid policy
    "agent_lost": 248,  # 1 while no step is traced because the agent is silent
    "ring_error": 256,  # errno of the failed attempt to create the record ring, 0 when none failed
    "order_budget": 264,  # budget of the order in force, parts per million; 0: no order, or it has no budget
}
#: Maximum number of span kinds in the tables below.
KINDS_MAX = 20
#: One counter per span kind: its highest ordinal, including dropped and only counted spans.
COUNTS_AT = 512
#: One word for each span kind: the time in its spans, ns.
TIMES_AT = COUNTS_AT + 8 * KINDS_MAX
#: One counter per span kind: spans that ended by an exception. OutOfRangeError, which marks the end
#: of the data, counts, too.
FAILED_AT = TIMES_AT + 8 * KINDS_MAX

# -- the control page: words that the agent writes -----------------------------------------------
AGENT_WORDS = {
    "tail": 1024,  # ring bytes that the collector has acked
    "span_tail": 1032,
    "agent_pid": 1040,
    "agent_beat_ns": 1048,  # monotonic clock
    "policy": 1056,  # number of the policy: 0 = the environment's policy
    "policy_mode": 1064,  # a MODE
    "policy_level": 1072,  # a LEVEL
    "policy_first": 1080,
    "policy_last": 1088,
    "policy_every": 1096,
    "policy_budget": 1104,  # parts per million
    "policy_count": 1112,  # maximum traced steps of each kind, 0: no limit; the order ends when the main kind has them
    "policy_end_ns": 1120,  # monotonic time at which the order ends, 0: no limit
    "policy_ranges": 1128,  # number of step ranges in the table; 0: policy_first to policy_last is the only range
    "policy_order": 1136,  # id of the order
    "policy_writing": 1144,  # 1 while these words and the table are being changed
    "detach": 1152,  # 1: the shim disarms itself and ignores the policy
    "order_end": 1160,  # 1: an order without an end ends, too
}
#: Index of each word in the control page.
WORD = {name: at // 8 for name, at in list(JOB_WORDS.items()) + list(AGENT_WORDS.items())}
#: The table of step ranges: first and last step of each, u64.
RANGES_AT = 1280
RANGES_MAX = 16
#: Maximum silence of the agent (ns). After a longer silence no step is traced.
AGENT_SILENCE_NS = 30 * SECOND_NS
#: Traceback of the first exception that the guard contained: u32 length, then UTF-8.
FAULT_AT = 2048
FAULT_MAX = PAGE - FAULT_AT - 4

# -- trace policies ------------------------------------------------------------------------------
MODE_OFF, MODE_BUDGET, MODE_ALL, MODE_EVERY, MODE_STEPS = range(5)
LEVEL_AUTO, LEVEL_SOFTWARE, LEVEL_FULL = 0, 1, 3

# -- spans ---------------------------------------------------------------------------------------
#: start (monotonic ns), total ns, ordinal of the first step, count, kind, flags, key, thread, min
#: ns, max ns, parent
SPAN = struct.Struct("<QQQIHHIIQQQ")
#: Indexes of words of an entry; the word at SPAN_TAG is count | kind << 32 | flags << 48.
SPAN_TOTAL, SPAN_TAG, SPAN_MIN, SPAN_MAX = 1, 3, 5, 6
(
    RUN,  # a run of a session or callable that is none of TRAIN to INPUT
    BATCH,  # a batch of fit
    TEST_BATCH,
    PREDICT_BATCH,
    EPOCH,
    FIT,
    EVALUATE,
    PREDICT,
    FUNCTION,  # an outermost call of a tf.function, outside of Keras
    PARTIAL_RUN,  # a partial run of a session, which cannot be traced
    TRAIN,  # a session run that trains
    INIT,  # a session run that initializes variables, tables or iterators
    CHECKPOINT,  # a session run that saves or restores
    SUMMARY,  # a session run that yields only summaries
    INPUT,  # a session run that feeds a queue
    EAGER,  # a training step of eager ops: from the gradient tape to the end of the optimizer's update
    CALL,  # a direct call of a Keras model, outside of all steps above
    ACTIVITY,  # no step: what else the job's Python does; its key has the category (activities.py)
) = range(1, 19)
_NAMES = (  # in the order of the kinds
    "run batch test_batch predict_batch epoch fit evaluate predict function partial_run "
    "train init checkpoint summary input eager call activity"
)
SPAN_NAMES = dict(enumerate(_NAMES.split(), RUN))
#: Kinds of a session's runs.
RUN_KINDS = (TRAIN, RUN, SUMMARY, CHECKPOINT, INIT, INPUT)
#: Step kinds, with the weight of each kind's time in the choice of the main kind.
STEP_WEIGHTS = {
    BATCH: 10,
    TRAIN: 10,
    EAGER: 10,
    RUN: 1,
    FUNCTION: 1,
    CALL: 1,
    TEST_BATCH: 1,
    PREDICT_BATCH: 1,
    SUMMARY: 0,
    CHECKPOINT: 0,
    INIT: 0,
    INPUT: 0,
}
STEP_KINDS = tuple(STEP_WEIGHTS)
#: Roles of kinds: their spans are steps, or not.
STEP_ROLE, OTHER_ROLE = "step", "span"
#: (name, role, weight) of the kinds above, as in the hello.
KINDS = {
    kind: (name, STEP_ROLE if kind in STEP_WEIGHTS else OTHER_ROLE, STEP_WEIGHTS.get(kind, 0))
    for kind, name in SPAN_NAMES.items()
}
FLAG_TRACED = 1  # the step is traced: averages of step times leave it out
FLAG_FAILED = 2  # the step ended by an exception
FLAG_SETUP = 4  # the first run of a traced variant of a callable: its time may not be typical
FLAG_SAMPLED = 8  # only the last step was timed: total = its time * count; with FLAG_FAILED, no step was timed
FLAG_REQUESTED = 16  # with FLAG_TRACED: the job itself requested the trace
FLAG_IN_STEP = 32  # the activity ran within a step of its thread

# -- records -------------------------------------------------------------------------------------
#: size including this header, kind, flags, seq, step, start (monotonic ns), start (real ns),
#: duration (ns), thread, key
RECORD = struct.Struct("<IHHQQQQQII")
GRAPH = 2  # GraphDef bytes with _output_shapes; later ones add nodes; step = graph number
RUN_METADATA = 3  # RunMetadata bytes as TensorFlow made them
XSPACE = 4  # XSPACE_HEAD, then XSpace bytes of the profiler session that recorded one step
REFUSED = 7  # JSON {"slug", "text"}: why the shim refused something
FRAMES = 9  # JSON: op -> Python frames of a graph; step = graph number
#: Header before the bytes of an XSPACE: start of the session (real ns), number of batches that the
#: step stands for, and the step's thread: its pthread_t, an address (0: unknown). The lowest bit of
#: an address is free. It is used as XSPACE_OTHER_THREADS: it is set if other threads were in calls
#: when the session began.
XSPACE_HEAD = struct.Struct("<QIQ")
XSPACE_OTHER_THREADS = 1
RECORD_NAMES = {
    GRAPH: "graph",
    RUN_METADATA: "run_metadata",
    XSPACE: "xspace",
    REFUSED: "refused",
    FRAMES: "frames",
}
#: Maximum size of a record: agent and collector hold a whole record in memory.
RECORD_MAX = 64 << 20
