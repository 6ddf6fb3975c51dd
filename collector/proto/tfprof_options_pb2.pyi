from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class OptionsProto(_message.Message):
    __slots__ = ("max_depth", "min_bytes", "min_micros", "min_params", "min_float_ops", "order_by", "account_type_regexes", "start_name_regexes", "trim_name_regexes", "show_name_regexes", "hide_name_regexes", "account_displayed_op_only", "select", "output", "dump_to_file", "min_occurrence", "step", "min_peak_bytes", "min_residual_bytes", "min_output_bytes", "min_accelerator_micros", "min_cpu_micros")
    MAX_DEPTH_FIELD_NUMBER: _ClassVar[int]
    MIN_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_MICROS_FIELD_NUMBER: _ClassVar[int]
    MIN_PARAMS_FIELD_NUMBER: _ClassVar[int]
    MIN_FLOAT_OPS_FIELD_NUMBER: _ClassVar[int]
    ORDER_BY_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_TYPE_REGEXES_FIELD_NUMBER: _ClassVar[int]
    START_NAME_REGEXES_FIELD_NUMBER: _ClassVar[int]
    TRIM_NAME_REGEXES_FIELD_NUMBER: _ClassVar[int]
    SHOW_NAME_REGEXES_FIELD_NUMBER: _ClassVar[int]
    HIDE_NAME_REGEXES_FIELD_NUMBER: _ClassVar[int]
    ACCOUNT_DISPLAYED_OP_ONLY_FIELD_NUMBER: _ClassVar[int]
    SELECT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    DUMP_TO_FILE_FIELD_NUMBER: _ClassVar[int]
    MIN_OCCURRENCE_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    MIN_PEAK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_RESIDUAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_OUTPUT_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_ACCELERATOR_MICROS_FIELD_NUMBER: _ClassVar[int]
    MIN_CPU_MICROS_FIELD_NUMBER: _ClassVar[int]
    max_depth: int
    min_bytes: int
    min_micros: int
    min_params: int
    min_float_ops: int
    order_by: str
    account_type_regexes: _containers.RepeatedScalarFieldContainer[str]
    start_name_regexes: _containers.RepeatedScalarFieldContainer[str]
    trim_name_regexes: _containers.RepeatedScalarFieldContainer[str]
    show_name_regexes: _containers.RepeatedScalarFieldContainer[str]
    hide_name_regexes: _containers.RepeatedScalarFieldContainer[str]
    account_displayed_op_only: bool
    select: _containers.RepeatedScalarFieldContainer[str]
    output: str
    dump_to_file: str
    min_occurrence: int
    step: int
    min_peak_bytes: int
    min_residual_bytes: int
    min_output_bytes: int
    min_accelerator_micros: int
    min_cpu_micros: int
    def __init__(self, max_depth: _Optional[int] = ..., min_bytes: _Optional[int] = ..., min_micros: _Optional[int] = ..., min_params: _Optional[int] = ..., min_float_ops: _Optional[int] = ..., order_by: _Optional[str] = ..., account_type_regexes: _Optional[_Iterable[str]] = ..., start_name_regexes: _Optional[_Iterable[str]] = ..., trim_name_regexes: _Optional[_Iterable[str]] = ..., show_name_regexes: _Optional[_Iterable[str]] = ..., hide_name_regexes: _Optional[_Iterable[str]] = ..., account_displayed_op_only: bool = ..., select: _Optional[_Iterable[str]] = ..., output: _Optional[str] = ..., dump_to_file: _Optional[str] = ..., min_occurrence: _Optional[int] = ..., step: _Optional[int] = ..., min_peak_bytes: _Optional[int] = ..., min_residual_bytes: _Optional[int] = ..., min_output_bytes: _Optional[int] = ..., min_accelerator_micros: _Optional[int] = ..., min_cpu_micros: _Optional[int] = ...) -> None: ...

class AdvisorOptionsProto(_message.Message):
    __slots__ = ("checkers",)
    class CheckerOption(_message.Message):
        __slots__ = ("options",)
        class OptionsEntry(_message.Message):
            __slots__ = ("key", "value")
            KEY_FIELD_NUMBER: _ClassVar[int]
            VALUE_FIELD_NUMBER: _ClassVar[int]
            key: str
            value: str
            def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
        OPTIONS_FIELD_NUMBER: _ClassVar[int]
        options: _containers.ScalarMap[str, str]
        def __init__(self, options: _Optional[_Mapping[str, str]] = ...) -> None: ...
    class CheckersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: AdvisorOptionsProto.CheckerOption
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[AdvisorOptionsProto.CheckerOption, _Mapping]] = ...) -> None: ...
    CHECKERS_FIELD_NUMBER: _ClassVar[int]
    checkers: _containers.MessageMap[str, AdvisorOptionsProto.CheckerOption]
    def __init__(self, checkers: _Optional[_Mapping[str, AdvisorOptionsProto.CheckerOption]] = ...) -> None: ...
