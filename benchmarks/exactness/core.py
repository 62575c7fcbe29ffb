"""The circuit as the Rust core has it: asked about a batch without a proof."""

from sluice import _attest
from sluice.attestation.systems.full import Statement, Witness
from sluice.telemetry import Record

__all__ = ["committed", "examined", "planes_of"]


def planes_of(statement: Statement, record: Record) -> _attest.FullBatch:
    """Return a batch as the circuit takes it."""
    witness = Witness.of(statement, record)
    return _attest.FullBatch(
        witness.rows, witness.registers, witness.codes, witness.starts, witness.flagged
    )


def committed(core: _attest.FullCircuit, planes: _attest.FullBatch) -> bool:
    """Whether there is a commitment to a batch, which a proof could speak of."""
    try:
        core.commit(planes, bytes(32))
    except _attest.RefusedBatchError:
        return False
    return True


def examined(
    core: _attest.FullCircuit, budgets: bytes, planes: _attest.FullBatch
) -> tuple[bool | None, str]:
    """Return whether the circuit takes a batch; nothing where it contradicts itself."""
    try:
        core.examine(budgets, planes)
    except _attest.RefusedBatchError as refused:
        return False, str(refused)
    except RuntimeError as broken:
        return None, str(broken)
    return True, "it holds"
