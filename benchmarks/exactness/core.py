"""The circuit of the Rust core, applied to a batch without a proof."""

from sluice import _attest
from sluice.attestation.systems.full import Statement, Witness
from sluice.telemetry import Record

__all__ = ["committed", "examined", "planes_of"]


def planes_of(statement: Statement, record: Record) -> _attest.FullBatch:
    """Return a batch in the circuit's format."""
    witness = Witness.of(statement, record)
    return _attest.FullBatch(
        witness.rows, witness.registers, witness.codes, witness.starts, witness.flagged
    )


def committed(core: _attest.FullCircuit, planes: _attest.FullBatch) -> bool:
    """Whether a commitment to a batch exists, which a proof needs."""
    try:
        core.commit(planes, bytes(32))
    except _attest.RefusedBatchError:
        return False
    return True


def examined(
    core: _attest.FullCircuit, budgets: bytes, planes: _attest.FullBatch
) -> tuple[bool | None, str]:
    """Return whether the circuit accepts a batch, and why; None if it contradicts itself."""
    try:
        core.examine(budgets, planes)
    except _attest.RefusedBatchError as refused:
        return False, str(refused)
    except RuntimeError as broken:
        return None, str(broken)
    return True, "it holds"
