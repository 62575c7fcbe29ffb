"""Every error a user can meet, in one tree.

    SluiceError                   exit code
    ├── InputError                2   the caller gave something unusable
    │   ├── RecordError               a plant record cannot be read as told
    │   │   ├── UnknownFormatError    no loader recognises it
    │   │   └── MissingChannelError   a channel that was asked for is not there
    │   ├── PlantFileError            a plant file contradicts itself or the record
    │   ├── RulesFileError            a rules or policy file is damaged, edited or of another schema
    │   ├── EmptyRulesError           a rule set holds no physics
    │   ├── ModelFileError            a model file is damaged or contradicts itself
    │   ├── DocumentError             a document of the attestation protocol is not as it must be
    │   ├── CheckpointError           a federation's checkpoint is damaged or another one's
    │   ├── GridError                 a grid asks for what is not there or cannot be run
    │   ├── ResultsError              a results folder is damaged, locked, full or another grid's
    │   └── SettingError              an option or argument is out of range
    ├── SolverError               1   a numerical solver did not reach its tolerance
    ├── ProverError               1   the prover died or gave no answer in time
    └── RefusedError              3   well formed, judged, and refused
        └── VerificationError         a message of the attestation protocol fails a numbered step

Messages say who, what was expected, what was met, and what to do next. Anything that is not a
`SluiceError` is a bug in Sluice and leaves exit code 1.
"""

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
    "SettingError",
    "SluiceError",
    "SolverError",
    "UnknownFormatError",
    "VerificationError",
]


class SluiceError(Exception):
    """The root; never raised itself."""

    exit_code: ClassVar[int] = 1


class InputError(SluiceError):
    """Bad usage or bad input: nothing was written."""

    exit_code: ClassVar[int] = 2


class RecordError(InputError):
    """A plant record cannot be read as told."""


class UnknownFormatError(RecordError):
    """No loader recognises the file or folder."""


class MissingChannelError(RecordError):
    """A channel that was asked for is not in the record."""

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
    """A rules or policy file is damaged, was edited after sealing, or is of another schema."""


class EmptyRulesError(InputError):
    """A rule set without coupling, balance or window admits any fabrication within range."""


class ModelFileError(InputError):
    """A model file is damaged, of an unknown kind, or contradicts itself."""


class CheckpointError(InputError):
    """A federation's checkpoint is damaged, of another schema, or another federation's."""


class GridError(InputError):
    """A grid file asks for something that is not known, not there, or cannot be run."""


class ResultsError(InputError):
    """A results folder is damaged, locked, full, of another schema, or another grid's."""


class DocumentError(InputError):
    """A document of the attestation protocol is damaged, too long, or not in its one encoding."""


class SettingError(InputError):
    """An option or argument is out of range."""


class SolverError(SluiceError):
    """A numerical solver did not reach the tolerance that its answer is held to."""


class ProverError(SluiceError):
    """No proof was made, for a reason that does not lie in the batch: nothing was proven."""


class RefusedError(SluiceError):
    """The input was well formed, was judged, and is refused."""

    exit_code: ClassVar[int] = 3


class VerificationError(RefusedError):
    """A message of the attestation protocol fails one of the steps that docs/protocol.md numbers.

    `step` is that number, such as "5.3"; a round excludes a client with it as the reason.
    """

    def __init__(self, step: str, why: str) -> None:
        super().__init__(f"step {step}: {why}")
        self.step = step
        self.why = why
