"""Op executions of programs that XLA compiled."""

import pytest
from fakes.xspaces import Plane, opened
from tfprof.collector.decoders.compiled import origins, program_rows
from tfprof.collector.decoders.proto.hlo_pb2 import HloProto
from tfprof.collector.decoders.session_ops import Execution, executions

MODULE = b"a_inference_step_90.2"
NUMBER = 7


def _program() -> HloProto:
    program = HloProto()
    step = program.hlo_module.computations.add(name=b"main")
    for name, opcode, op_type, op_name in (
        (b"dot.1", b"dot", b"MatMul", b"StatefulPartitionedCall/dense/MatMul"),
        (b"add_maximum_fusion.2", b"fusion", b"Relu", b"dense/Relu"),
        (b"copy.3", b"copy", b"", b""),
    ):
        instruction = step.instructions.add(name=name, opcode=opcode)
        instruction.metadata.op_type, instruction.metadata.op_name = op_type, op_name
    program.hlo_module.computations.add(name=b"fused_computation").instructions.add(name=b"maximum.1")
    return program


def _programs(*programs: bytes) -> Plane:
    """Return the plane of ``programs``, which have one name and the numbers from NUMBER on."""
    plane = Plane(b"/host:metadata")
    for number, data in enumerate(programs, NUMBER):
        event = plane.plane.event_metadata[number]
        event.name = b"%s(%d)" % (MODULE, number)
        event.stats.add(metadata_id=plane._id("stat_metadata", b"Hlo Proto"), bytes_value=data)
    return plane


def _instruction(
    name: bytes, start: int, end: int, link: int = 0, program: int = NUMBER
) -> tuple[bytes, int, int, dict[bytes, object]]:
    stats = {b"hlo_op": name, b"hlo_module": MODULE, b"program_id": program}
    return name, start, end, stats | ({b"_p": link} if link else {})


def _read(*planes: Plane) -> list[tuple[bytes, bytes, float]]:
    rows: list[Execution] = sorted(executions(opened(*planes), 0), key=lambda row: row.start_ns)
    return [(row.node, row.label, row.own_ns / 1000) for row in rows]


def test_an_instruction_is_an_execution_of_the_op_that_it_came_from() -> None:
    host = Plane().line(
        _instruction(b"copy.3", 0, 2),
        _instruction(b"dot.1", 10, 30),
        _instruction(b"add_maximum_fusion.2", 30, 35),
        _instruction(b"while.4", 5, 40),
        (b"ThunkExecutor::Execute", 0, 50),
    )
    assert _read(host, _programs(_program().SerializeToString())) == [
        (b"copy.3", b"copy", 2),
        (b"dense/MatMul", b"MatMul", 20),
        (b"dense/Relu", b"Relu_fusion", 5),
    ]


def test_programs_of_one_name_are_told_apart_by_their_numbers() -> None:
    other = HloProto()
    instruction = other.hlo_module.computations.add(name=b"main").instructions.add(name=b"dot.1")
    instruction.metadata.op_type, instruction.metadata.op_name = b"MatMul", b"last/MatMul"
    host = Plane().line(_instruction(b"dot.1", 0, 2), _instruction(b"dot.1", 5, 9, program=NUMBER + 1))
    assert _read(host, _programs(_program().SerializeToString(), other.SerializeToString())) == [
        (b"dense/MatMul", b"MatMul", 2),
        (b"last/MatMul", b"MatMul", 4),
    ]


@pytest.mark.parametrize("program", [b"", b"\xff", None], ids=["empty", "damaged", "none"])
def test_without_a_program_instructions_keep_their_names(program: bytes | None) -> None:
    planes = [] if program is None else [_programs(program)]
    assert _read(Plane().line(_instruction(b"dot.1", 10, 30)), *planes) == [(b"dot.1", b"dot", 20)]


def test_an_instruction_may_end_on_another_thread() -> None:
    host = Plane().line(_instruction(b"dot.1", 10, 30, link=5), _instruction(b"dot.2", 40, 50, link=6))
    host.line((b"end: dot.1", 70, 71, {b"_c": 5}), (b"end: dot.2", 49, 50, {b"_c": 6}), thread=8)
    assert _read(host) == [(b"dot.1", b"dot", 60), (b"dot.2", b"dot", 10)]


def test_an_op_that_waits_for_the_instructions_of_its_program_is_not_counted() -> None:
    events = (b"cluster_0/xla_run:_XlaRun", 0, 100), (b"__inference_f_12:__inference_f_12", 0, 90)
    assert _read(Plane().line(*events).line(_instruction(b"dot.1", 10, 30))) == [(b"dot.1", b"dot", 20)]


def test_without_instructions_a_program_is_one_op() -> None:
    call = {b"name": b"StatefulPartitionedCall", b"kernel_type": b"StatefulPartitionedCall", b"step_id": 1}
    other = {**call, b"name": b"loss"}
    host = Plane().line(
        (b"ExecutorState::ProcessAsync::Start", 10, 20, {**call, b"_p": 1}),
        (b"ExecutorState::ProcessAsync::Done", 50, 51, {**call, b"_c": 1}),
        (b"ExecutorState::ProcessAsync::Start", 60, 70, {**other, b"_p": 2}),
        (b"a:Mul", 75, 80),
        (b"ExecutorState::ProcessAsync::Done", 90, 91, {**other, b"_c": 2}),
    )
    assert _read(host) == [(b"a", b"Mul", 5)]
    assert _read(host, _programs(b"")) == [(b"StatefulPartitionedCall", b"XlaLaunch", 40), (b"a", b"Mul", 5)]
    of_pipeline = (b"ExecutorState::Process", 19, 22, {b"id": 9}), (b"args_0:_Arg", 20, 21)
    host.line(*of_pipeline, name=b"tf_data_private_threadpool", thread=9)
    assert (b"StatefulPartitionedCall", b"XlaLaunch", 40) in _read(host, _programs(b""))


def test_large_programs_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _program().SerializeToString()
    assert set(origins(data)) == {b"dot.1", b"add_maximum_fusion.2", b"copy.3"}
    monkeypatch.setattr("tfprof.collector.decoders.compiled.PROGRAM_MAX", len(data) - 1)
    assert origins(data) == {}


def _fused_program() -> bytes:
    """Return a program with a fusion of the ops Mul, Sum and Relu, and with a copy of no op.

    A constant of Mul is outside the fusion, and what Sum calls for each element is a computation.
    """
    program = HloProto()
    region = program.hlo_module.computations.add(name=b"region_0", id=4)
    fused = program.hlo_module.computations.add(name=b"fused_computation", id=5)
    main = program.hlo_module.computations.add(name=b"main", id=6)
    for computation, name, opcode, op_type, op_name in (
        (region, b"add.1", b"add", b"Sum", b"dense/Sum"),
        (region, b"add.2", b"add", b"", b""),
        (fused, b"reduce.1", b"reduce", b"Sum", b"dense/Sum"),
        (fused, b"multiply.1", b"multiply", b"Mul", b"StatefulPartitionedCall/dense/mul"),
        (fused, b"multiply.2", b"multiply", b"Mul", b"dense/mul"),
        (fused, b"maximum.1", b"maximum", b"Relu", b"dense/Relu"),
        (fused, b"constant.1", b"constant", b"", b""),
        (main, b"fusion.2", b"fusion", b"Relu", b"dense/Relu"),
        (main, b"dot.1", b"dot", b"MatMul", b"dense/MatMul"),
        (main, b"constant.2", b"constant", b"Mul", b"dense/mul"),
        (main, b"copy.3", b"copy", b"", b""),
        (main, b"arg0.1", b"parameter", b"", b""),
    ):
        instruction = computation.instructions.add(name=name, opcode=opcode)
        instruction.metadata.op_type, instruction.metadata.op_name = op_type, op_name
    fused.instructions[0].called_computation_ids.append(4)
    main.instructions[0].called_computation_ids.append(5)
    return program.SerializeToString()


def test_the_ops_of_a_program_are_those_of_its_instructions_and_of_their_fusions() -> None:
    rows = [tuple(row.values()) for row in program_rows(MODULE, _fused_program()).to_pylist()]
    module = MODULE.decode()
    assert rows == [
        (module, "dense/Sum", "Sum", "dense/Relu", 2),
        (module, "dense/mul", "Mul", "dense/Relu", 3),
        (module, "dense/Relu", "Relu", "", 2),
        (module, "dense/MatMul", "MatMul", "", 1),
        (module, "copy.3", "", "", 1),
    ]


@pytest.mark.parametrize("program", [b"", b"\xff"], ids=["empty", "damaged"])
def test_a_program_that_cannot_be_read_has_no_ops(program: bytes) -> None:
    assert program_rows(MODULE, program).num_rows == 0
