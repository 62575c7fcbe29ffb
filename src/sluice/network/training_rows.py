"""The rows that a plant attests and trains on."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import ConfigDict

from sluice.attestation.messages import STRICT, Count
from sluice.telemetry import Record, read_plant_file, read_record

__all__ = ["TrainingRows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """The rows that a plant attests and trains on."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    record: str  # file or folder
    start: Count
    stop: Count
    every: Count = 1
    plant: str | None = None  # the plant file that says how to read the record

    def read(self) -> Record:
        """Read the rows."""
        return self.whole().rows(self.start, self.stop)

    def whole(self) -> Record:
        """Read the whole record."""
        return self.like(Path(self.record))

    def like(self, record: Path) -> Record:
        """Read another record of this plant in the same way."""
        declared = read_plant_file(Path(self.plant)) if self.plant else None
        return read_record(record, plant=declared).every(self.every)
