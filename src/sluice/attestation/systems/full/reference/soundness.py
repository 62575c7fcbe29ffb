"""Which statements a circuit can state soundly.

A statement is refused if a residual could wrap round the field, if two rows could have the same
lanes, if a flag could tighten a limit, or if a rule reads something that is not there.
"""

from collections.abc import Iterator, Sequence

from sluice.attestation.systems.full.reference.field import ORDER
from sluice.attestation.systems.full.reference.parameters import RADIX
from sluice.attestation.systems.full.reference.statement import (
    LARGEST_RESIDUAL,
    REGISTER_TOP,
    ActuatorSource,
    IndicatorTerm,
    RegisterSource,
    RegisterTerm,
    StatedFlows,
    StatedResidual,
    StatementDocument,
    SummedRegister,
)
from sluice.errors import SettingError

__all__ = ["demand_sound"]

LEAST_BAND = 6 * (RADIX - 1)
LEAST_SUMS = 16 * (RADIX - 1)
"""The least widths for which 6 and 16 digits all have some weight."""


def demand_sound(statement: StatementDocument) -> None:
    """Refuse a statement that a circuit cannot state."""
    for objection in _objections(statement):
        raise SettingError(f"the circuit cannot state these rules: {objection}")


def _objections(statement: StatementDocument) -> Iterator[str]:
    limits = [(each.low, each.high) for each in statement.registers]
    limits += [(each.low, each.high) for each in statement.bounds]
    if any(low > high for low, high in limits):
        yield "a lower limit is above its upper one"
    tolerances = [(each.usual, each.severe) for each in statement.rates]
    tolerances += [(each.usual, each.severe) for each in statement.balances]
    tolerances += [(each.usual, each.severe) for each in statement.ties]
    if any(usual > severe for usual, severe in tolerances):
        yield "a severe limit is below the usual one"
    if any(code >= each.codes for each in statement.actuators for code in each.legal):
        yield "a legal code has no index"
    for idle in statement.idle:
        known = statement.actuators[idle.actuator : idle.actuator + 1]
        if not known or idle.code >= known[0].codes:
            yield "an idle actuator has no such code"
    yield from _wrong_reads(statement)
    yield from _wrong_lanes(statement)
    yield from _wrong_couplings(statement)
    yield from _wrong_bands(statement)
    yield from _wrong_spectra(statement)
    yield from _wrong_statistic(statement)
    for residual, rows in _residuals(statement):
        share = 2 if residual.averaged else 1
        flows = abs(residual.constant) + share * _reach(residual.terms)
        if abs(residual.weight) * REGISTER_TOP + rows * flows >= LARGEST_RESIDUAL:
            yield "a residual could wrap round the field"
    for tie in statement.ties:
        flows = abs(tie.constant) + _reach(tie.terms)
        if abs(tie.weight) * REGISTER_TOP + flows >= LARGEST_RESIDUAL:
            yield "the residual of a tie could wrap round the field"


def _residuals(statement: StatementDocument) -> Iterator[tuple[StatedResidual, int]]:
    yield from ((each.residual, 1) for each in statement.balances)
    yield from ((each.residual, each.rows) for each in statement.windows)


def _reach(terms: Sequence[RegisterTerm | IndicatorTerm]) -> int:
    """Return what terms never exceed on one row, whatever the registers are."""
    return sum(
        abs(term.register.weight) * REGISTER_TOP
        if isinstance(term, RegisterTerm)
        else abs(term.indicator.weight)
        for term in terms
    )


def _wrong_reads(statement: StatementDocument) -> Iterator[str]:
    registers = [each.register for each in statement.bounds]
    registers += [each.register for each in statement.rates]
    registers += [each.register for each in statement.liveness]
    registers += [each.register for each in statement.ties]
    registers += [each.register for each in statement.switches]
    registers += [each.register for each in statement.spectra]
    registers += [each.flow for each in statement.couplings]
    codes = [(pump, off) for each in statement.couplings for pump, off in each.standby]
    codes += [(each.actuator, one.code) for each in statement.couplings for one in each.steady]
    codes += [(each.actuator, code) for each in statement.switches for code in each.codes]
    registers += [residual.level for residual, _ in _residuals(statement)]
    terms = [term for residual, _ in _residuals(statement) for term in residual.terms]
    for term in (*terms, *(term for tie in statement.ties for term in tie.terms)):
        if isinstance(term, RegisterTerm):
            registers.append(term.register.register)
        else:
            codes += [(term.indicator.actuator, code) for code in term.indicator.codes]
    if any(at >= len(statement.registers) for at in registers):
        yield "a rule reads a register that is not there"
    if not all(_readable(statement, at, code) for at, code in codes):
        yield "a rule reads a code that is not there"


def _readable(statement: StatementDocument, actuator: int, code: int) -> bool:
    if actuator >= len(statement.actuators):
        return False
    found = statement.actuators[actuator]
    return found.read and code < found.codes


def _wrong_lanes(statement: StatementDocument) -> Iterator[str]:
    """Every channel is in one lane, once, in mixed radix: the digest binds all of them."""
    sources: list[object] = [RegisterSource(register=at) for at in range(len(statement.registers))]
    sources += [ActuatorSource(actuator=at) for at in range(len(statement.actuators))]
    sources += ["start"] if statement.jumps else []
    packed = [each.source for lane in statement.lanes for each in lane]
    if not packed or len(packed) != len(sources) or set(packed) != set(sources):
        yield "not every channel is in one lane, once"
        return
    for lane in statement.lanes:
        product = 1
        for each in lane:
            if each.weight != product:
                yield "a weight is not the product of the radices before it"
            product *= statement.radix(each)
        if product >= ORDER:
            yield "a lane overflows the field"


def _wrong_couplings(statement: StatementDocument) -> Iterator[str]:
    for coupling in statement.couplings:
        codes = [each.code for each in coupling.steady]
        if len(set(codes)) < len(codes):
            yield "a steady code stands twice"
        if coupling.actuator >= len(statement.actuators):
            yield "a coupling reads an actuator that is not there"
        for flows in (coupling.envelope, *(each.flows for each in coupling.steady)):
            yield from _wrong_flows(flows)


def _wrong_flows(flows: StatedFlows) -> Iterator[str]:
    usual, severe = flows.usual, flows.severe
    if any(each is not None and each[0] > each[1] for each in (usual, severe)):
        yield "an interval of flows is empty"
    elif usual and (not severe or severe[0] > usual[0] or usual[1] > severe[1]):
        yield "usual flows are not within the severe ones"


def _wrong_bands(statement: StatementDocument) -> Iterator[str]:
    for band in statement.switches:
        if not band.codes or len(set(band.codes)) < len(band.codes):
            yield "no code counts as on, or one stands twice"
        for low, high in (band.on, band.off):
            widest = REGISTER_TOP + RADIX
            if low > REGISTER_TOP or not _shareable(low, high, LEAST_BAND, widest):
                yield "a switch band has no width that digits can share"


def _wrong_spectra(statement: StatementDocument) -> Iterator[str]:
    for spectrum in statement.spectra:
        if spectrum.offset >= spectrum.rows:
            yield "a block begins after its own length"
        most = 4 * spectrum.rows * REGISTER_TOP**2 + LEAST_SUMS
        for low, high in (spectrum.first, spectrum.second):
            if low > most or high > 2 * most or not _shareable(low, high, LEAST_SUMS, most):
                yield "sums of a spectrum have no width that digits can share"


def _shareable(low: int, high: int, least: int, most: int) -> bool:
    """Whether digits of the largest radix, each with some weight, end exactly at the width."""
    return least <= high - low <= most and (high - low) % (RADIX - 1) == 0


def _wrong_statistic(statement: StatementDocument) -> Iterator[str]:
    """Every channel is committed to once, can change, and is read if it is an actuator."""
    if statement.statistic is None:
        return
    seen: list[tuple[str, int]] = []
    for summed in statement.statistic.channels:
        if isinstance(summed, SummedRegister):
            seen.append(("register", summed.register))
            known = statement.registers[summed.register : summed.register + 1]
            if not known or known[0].low >= known[0].high:
                yield "a statistic sums a register that is not there or cannot change"
        else:
            at, codes = summed.actuator.actuator, summed.actuator.codes
            seen.append(("actuator", at))
            actuators = statement.actuators[at : at + 1]
            if not actuators or not actuators[0].read or actuators[0].codes != len(codes):
                yield "a statistic sums an actuator that no rule reads, or other codes"
    if len(set(seen)) < len(seen):
        yield "a statistic sums a channel twice"
