"""Parity with the TF profiler: which version is followed, and whether its errors are reproduced.

Every difference between the versions, and between tfprof and the TF profiler, is a rule of
`Parity`. No other file decides by `compat` or `exact`.
"""

from typing import Final, NamedTuple

#: Versions of TensorFlow that can be followed.
COMPAT: Final = ("2.21", "2.4", "1.15")
_MISSING_FORMULAS: Final = {
    "1.15": frozenset({"AddV2", "BatchMatMulV2", "BatchMatMulV3"}),
    "2.4": frozenset({"AddV2", "BatchMatMulV3"}),
}


class Parity(NamedTuple):
    """The version that is followed, and how closely.

    `compat`: one of COMPAT. `exact`: reproduce the TF profiler's output, even where it is wrong or
    incomplete. The properties are the rules.
    """

    compat: str = COMPAT[0]
    exact: bool = False

    # -- rules of a version ------------------------------------------------------------------------

    @property
    def _is_old(self) -> bool:
        return self.compat == "1.15"

    @property
    def _is_2_4_or_older(self) -> bool:
        return self.compat in ("2.4", "1.15")

    @property
    def sorts_unstably(self) -> bool:
        """Whether entries with equal keys have the order of std::sort, which is not stable."""
        return self._is_2_4_or_older

    @property
    def reads_slots(self) -> bool:
        """Whether an input's shape is that of the output slot, not of the source's first output."""
        return self._is_old

    @property
    def compares_unsigned(self) -> bool:
        """Whether a negative minimum of occurrences hides everything."""
        return self._is_old

    @property
    def prints_all_digits(self) -> bool:
        """Whether sizes in a timeline have all digits of the number."""
        return self._is_old

    @property
    def missing_formulas(self) -> frozenset[str]:
        """The ops that got a formula only in a later version."""
        return _MISSING_FORMULAS.get(self.compat, frozenset())

    @property
    def missing_time_hint(self) -> str:
        """What to do if accelerator time is missing, as the version words it."""
        return "consider filing a bug to xprof-dev@!" if self._is_old else "consider to post to discuss@tensorflow.org!"

    @property
    def invalid_argument(self) -> str:
        """The name of the status of a bad option."""
        return "Invalid argument" if self._is_2_4_or_older else "INVALID_ARGUMENT"

    # -- rules of tfprof, which the TF profiler does not have --------------------------------------

    @property
    def separates_kinds(self) -> bool:
        """Whether steps of different kinds are kept apart, even if they have the same number."""
        return not self.exact

    @property
    def has_unit_times(self) -> bool:
        """Whether times are in ns, and medians of steps; otherwise they are means in µs.

        The median is taken for each unit, a node on a device (`step_times.unit_times`).
        """
        return not self.exact

    @property
    def time_unit(self) -> int:
        """How many units of a time in Stats are a µs."""
        return 1000 if self.has_unit_times else 1

    @property
    def finds_missing_streams(self) -> bool:
        """Whether missing streams are also noticed in imported profiles."""
        return not self.exact

    @property
    def labels_kernels(self) -> bool:
        """Whether kernel names, and timeline labels in RunMetadata, count as op types.

        -account_type_regexes then matches both. The labels of profiler sessions always count.
        """
        return not self.exact

    @property
    def follows_inlining(self) -> bool:
        """Whether a node inlined from a function's body has the stack of the body's node."""
        return not self.exact

    @property
    def finds_forward_ops(self) -> bool:
        """Whether gradients of a GradientTape, or in nested scopes, are at their forward ops."""
        return not self.exact

    @property
    def knows_parameters(self) -> bool:
        """Whether only the model's variables have parameters, in the shapes that the job logged.

        If so, the variables of frozen layers do not count as trainable.
        """
        return not self.exact

    @property
    def counts_by_step(self) -> bool:
        """Whether float_ops are counted with the shapes of each traced step.

        If so, input shapes that the graph does not specify are also taken from the traces.
        Otherwise float_ops are those of one execution times the number of runs. If the job has an
        op log, only the numbers in the log are then used.
        """
        return not self.exact

    @property
    def has_own_formulas(self) -> bool:
        """Whether tfprof's own formulas count float_ops, instead of TensorFlow's."""
        return not self.exact

    @property
    def has_own_advice(self) -> bool:
        """Whether tfprof's own checkers run, and the TF profiler's checkers have its rules."""
        return not self.exact

    @property
    def has_own_layout(self) -> bool:
        """Whether texts, messages and the width of columns are tfprof's own."""
        return not self.exact

    @property
    def checks_options(self) -> bool:
        """Whether senseless options are refused."""
        return not self.exact


DEFAULT: Final = Parity()
