"""Malicious clients that prove their batch and share another statistic than that of its rows."""

from dataclasses import dataclass, field, replace

from sluice.attestation.messages import COMMITS, sign
from sluice.attestation.protocol import statistic_hash
from sluice.federation import Attestation, Attestor
from sluice.telemetry import Record

__all__ = ["StatisticForger"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StatisticForger:
    """The clients' side of a gate, in which some clients forge their statistic.

    A forger proves its batch honestly. Then it sends the forged statistic. If `signed`, it also
    signs a commitment that names the forged statistic.
    """

    honest: Attestor
    forged: dict[str, bytes] = field(repr=False)  # by client
    signed: bool = True

    def __call__(self, client: str, batch: Record) -> Attestation | None:
        """Return the client's attestation, with the forged statistic if it is malicious."""
        attested = self.honest(client, batch)
        statistic = self.forged.get(client)
        if attested is None or statistic is None:
            return attested
        commit = attested.commit
        if self.signed:
            own = COMMITS.read(commit).content
            named = replace(own, statistic=statistic_hash(statistic))
            commit = COMMITS.write(sign(named, self.honest.keys[client]))
        return replace(attested, commit=commit, statistic=statistic)
