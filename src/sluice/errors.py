"""All errors that Sluice reports to a user, as one tree.

    SluiceError                   exit code
    ├── InputError                2   an argument or input file cannot be used
    │   ├── RecordError               a plant record is damaged, inconsistent or unreadable
    │   │   ├── UnknownFormatError    no loader recognises it
    │   │   ├── UnclearRecordError    it can be read in several ways, and a setting decides
    │   │   └── MissingChannelError   a requested channel is not in the record
    │   ├── PlantFileError            a plant file contradicts itself or the record
    │   ├── RulesFileError            a rules or policy file is damaged, edited or of another schema
    │   ├── EmptyRulesError           a rule set has no coupling, balance or window rule
    │   ├── ModelFileError            a model file is damaged or contradicts itself
    │   ├── DocumentError             a document of the attestation protocol is malformed
    │   ├── CheckpointError           a checkpoint is damaged or of another federation
    │   ├── GridError                 a grid file names something unknown or cannot be run
    │   ├── ResultsError              a results folder is damaged, locked, full or of another grid
    │   └── SettingError              an option or argument is out of range
    ├── SolverError               1   a numerical solver did not reach its tolerance
    ├── ProverError               1   the prover crashed or timed out
    └── RefusedError              3   the input is well formed, but refused
        └── VerificationError         a message of the attestation protocol fails a numbered step

Each message says who, what was expected, what was found, and what to do next. Any exception that
is not a `SluiceError` is a bug in Sluice; its exit code is 1.
"""

from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "CheckpointError",
    "EmptyRulesError",
    "GridError",
    "InputError",
    "MissingChannelError",
    "ModelFileError",
    "PlantFileError",
    "ProverError",
    "RecordError",
    "RefusedError",
    "ResultsError",
    "RulesFileError",
    "SettingChoice",
    "SettingError",
    "SluiceError",
    "SolverError",
    "UnclearRecordError",
    "UnknownFormatError",
    "VerificationError",
]


class SluiceError(Exception):
    """The base class; never raised itself."""

    exit_code: ClassVar[int] = 1


class InputError(SluiceError):
    """An argument or input file cannot be used; nothing was written."""

    exit_code: ClassVar[int] = 2


class RecordError(InputError):
    """A plant record is damaged, inconsistent or unreadable."""


class UnknownFormatError(RecordError):
    """No loader recognises the file or folder."""


LONGEST_WHAT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChoice:
    """One way to read a record: a setting of the plant file's [record] table, and what it means."""

    setting: str
    value: str | float | tuple[str, ...] | dict[str, float] | dict[str, str]
    meaning: str


class UnclearRecordError(RecordError):
    """A record can be read in more than one way; a setting of the plant file decides.

    The first choice is the proposal. With `free`, any other value of its setting is allowed too.
    """

    def __init__(
        self,
        what: str,
        *,
        file: str,
        cure: str,
        choices: tuple[SettingChoice, ...],
        free: bool = False,
    ) -> None:
        if len(what) > LONGEST_WHAT:
            what = f"{what[:LONGEST_WHAT]}..."
        super().__init__(
            f"{file}: {what}; set {cure} in the plant file, or let 'sluice data inspect --fix' "
            "ask and write it"
        )
        self.what = what
        self.cure = cure
        self.choices = choices
        self.free = free


class MissingChannelError(RecordError):
    """A requested channel is not in the record."""

    def __init__(
        self, record: str, channel: str, *, needed_by: str, known: tuple[str, ...]
    ) -> None:
        shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        super().__init__(
            f"record {record!r} has no channel {channel!r}, which {needed_by} reads; "
            f"it has {shown or 'none'}"
        )


class PlantFileError(InputError):
    """A plant file contradicts itself or the record it describes."""


class RulesFileError(InputError):
    """A rules or policy file is damaged, was edited after sealing, or has another schema."""


class EmptyRulesError(InputError):
    """A rule set without coupling, balance or window rule admits any fabricated data in range."""


class ModelFileError(InputError):
    """A model file is damaged, of an unknown kind, or contradicts itself."""


class CheckpointError(InputError):
    """A checkpoint is damaged, has another schema, or belongs to another federation."""


class GridError(InputError):
    """A grid file names something unknown or missing, or cannot be run."""


class ResultsError(InputError):
    """A results folder is damaged, locked, full, of another schema, or of another grid."""


class DocumentError(InputError):
    """A document of the attestation protocol is damaged, too long, or not canonically encoded."""


class SettingError(InputError):
    """An option or argument is out of range."""


class SolverError(SluiceError):
    """A numerical solver did not reach its required tolerance."""


class ProverError(SluiceError):
    """The prover made no proof, and the cause is not the batch: nothing was proven."""


class RefusedError(SluiceError):
    """The input is well formed, was judged, and is refused."""

    exit_code: ClassVar[int] = 3


class VerificationError(RefusedError):
    """A message of the attestation protocol fails a numbered step of docs/protocol.md.

    `step` is that number, such as "5.3"; a round gives it as the reason to exclude a client.
    """

    def __init__(self, step: str, why: str) -> None:
        super().__init__(f"step {step}: {why}")
        self.step = step
        self.why = why
