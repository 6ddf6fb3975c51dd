"""The op types whose time is a step's wait for its input."""

from typing import Final

#: Ops that only wait for the next batch.
WAITING_OPS: Final = frozenset(
    {
        "DatasetToSingleElement",
        "IteratorGetNext",
        "IteratorGetNextAsOptional",
        "IteratorGetNextSync",
        "MultiDeviceIteratorGetNextFromShard",
        "QueueDequeue",
        "QueueDequeueMany",
        "QueueDequeueManyV2",
        "QueueDequeueUpTo",
        "QueueDequeueUpToV2",
        "QueueDequeueV2",
        "ReaderRead",
        "ReaderReadUpTo",
        "ReaderReadUpToV2",
        "ReaderReadV2",
    }
)
