"""The purpose of session runs, with fake ops."""

import pytest
from tfprof.formats import layout
from tfprof.shim.tensorflow.run_kinds import OPS_MAX, kind_of


class Op:
    """A fake op; ``inputs`` are the ops that its inputs come from."""

    def __init__(self, op_type, *inputs, after=(), name=None):
        self.type, self.name = op_type, name or f"{op_type}_{id(self)}"
        self.inputs = [type("Tensor", (), {"op": op}) for op in inputs]
        self.control_inputs = list(after)


class Graph:
    """A graph whose collection `global_step` has the variables of ``counter_ops``."""

    def __init__(self, *counter_ops):
        self.counter_ops = counter_ops

    def get_collection(self, _name):
        """Return the variables."""
        return [type("Variable", (), {"op": op}) for op in self.counter_ops]


W, STEP, COUNTER = Op("VarHandleOp"), Op("VariableV2", name="scope/steps"), Op("VariableV2")
LOSS = Op("Mean", Op("MatMul", W, Op("Placeholder")))
APPLY = Op("ResourceApplyAdam", W, LOSS)
SUMMARY = Op("MergeSummary", Op("ScalarSummary", LOSS))
SAVE = Op("SaveV2", Op("Const"), W)


def chain(length, last):
    """Return the end of a chain of ``length`` ops, the first of which depends on ``last``."""
    for _ in range(length):
        last = Op("Relu", last)
    return last


@pytest.mark.parametrize(
    ("fetched", "kind"),
    [
        ([APPLY], layout.TRAIN),
        ([Op("NoOp", after=[Op("NoOp", after=[APPLY])])], layout.TRAIN),
        ([LOSS, Op("NoOp", after=[APPLY]), SUMMARY], layout.TRAIN),
        ([Op("Identity", LOSS, after=[APPLY])], layout.TRAIN),
        ([chain(50, Op("Identity", LOSS, after=[APPLY]))], layout.TRAIN),
        ([Op("AssignAdd", STEP, Op("Const"))], layout.TRAIN),
        ([Op("AssignAddVariableOp", Op("VarHandleOp", name="global_step"), Op("Const"))], layout.TRAIN),
        ([Op("AssignAdd", COUNTER, Op("Const"))], layout.RUN),
        ([Op("AssignSubVariableOp", W, LOSS)], layout.TRAIN),
        (
            [Op("ReadVariableOp", W, after=[Op("AssignVariableOp", W, Op("Sub", Op("ReadVariableOp", W), LOSS))])],
            layout.TRAIN,
        ),
        ([Op("NoOp", after=[Op("Assign", W, Op("TruncatedNormal", Op("Const")))])], layout.INIT),
        ([Op("InitializeTableFromTextFileV2")], layout.INIT),
        ([Op("MakeIterator")], layout.INIT),
        ([Op("NoOp", after=[Op("AssignVariableOp", W, Op("Identity", Op("RestoreV2")))])], layout.CHECKPOINT),
        ([Op("Identity", Op("Const"), after=[SAVE])], layout.CHECKPOINT),
        ([SUMMARY], layout.SUMMARY),
        ([Op("NoOp", after=[Op("WriteScalarSummary", LOSS)])], layout.SUMMARY),
        ([SUMMARY, LOSS], layout.RUN),
        ([Op("QueueEnqueueManyV2")], layout.INPUT),
        ([LOSS], layout.RUN),
        ([Op("ReadVariableOp", W)], layout.RUN),
        ([Op("NoOp")], layout.RUN),
        ([], layout.RUN),
        ([Op("Summarize")], layout.RUN),
        ([Op("SaveDatasetV2")], layout.RUN),
    ],
)
def test_the_kind_of_a_run_follows_from_its_ops(fetched, kind):
    assert kind_of(Graph(STEP), fetched) == kind


def test_the_number_of_examined_ops_is_limited():
    class EndlessOp(Op):
        examined_count = 0

        def __init__(self):
            super().__init__("Relu")

        @property
        def control_inputs(self):
            EndlessOp.examined_count += 1
            return [EndlessOp()]

        @control_inputs.setter
        def control_inputs(self, _value):
            pass

    assert kind_of(Graph(), [EndlessOp()]) == layout.RUN
    assert EndlessOp.examined_count <= 2 * OPS_MAX
