"""Nine plants, a coordinator and a helper, with statistics of random registers and no proofs.

What a proof would show is computed: `totals` are the masks plus the form of the statistic.
"""

import hashlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import numpy as np

from sluice.attestation.hidden import (
    ORDER,
    Draw,
    GroupSums,
    Helper,
    HiddenContribution,
    Shape,
    SharedSums,
    element_bytes,
    expand,
    share_sums,
    vector_of,
)
from sluice.attestation.messages import (
    Commit,
    EpochOrder,
    HelperOpened,
    Interval,
    MemberKey,
    Signed,
    SigningKey,
    Submission,
    sign,
)
from sluice.detector import MomentSettings, MomentStatistic
from sluice.detector.moments.statistic import sum_windows, trapezoid
from sluice.invariants import Register

SETTINGS = MomentSettings(
    registers=tuple(Register(channel=name, low=0.0, step=1.0) for name in ("F", "L", "P"))
)
SHAPE = Shape.of(SETTINGS)
ROWS = 40
NAMES = tuple(f"plant-{at}" for at in range(9))
START = datetime(2026, 1, 1, tzinfo=UTC)
DEADLINE = START + timedelta(hours=1)
IDENTITY, CONTEXT = bytes([1]) * 32, bytes([2]) * 32


def statistic(seed: int) -> MomentStatistic:
    """The statistic of random registers."""
    registers = np.random.default_rng(seed).integers(0, 65_536, (ROWS, 3))
    weights = np.zeros(ROWS, np.int64)
    weights[SETTINGS.lags - 1 :] = trapezoid(ROWS - SETTINGS.lags + 1)
    return sum_windows(registers, weights, SETTINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A plant in an epoch: its statistic, its shares, and what its proof shows."""

    client: str
    key: SigningKey
    statistic: MomentStatistic
    shares: SharedSums
    commit: Signed[Commit]
    draw: Draw
    totals: tuple[int, ...]
    epoch: int

    def submission(self, **changes: object) -> Signed[Submission]:
        """What it sends the helper."""
        content = Submission(
            federation="north",
            epoch=self.epoch,
            client=self.client,
            commit=self.commit,
            sealed=self.draw.sealed,
            identity=IDENTITY.hex(),
            context=CONTEXT.hex(),
            share=self.shares.helper.seed,
        )
        return sign(replace(content, **changes), self.key)  # type: ignore[arg-type]

    def contribution(self, **changes: object) -> HiddenContribution:
        """What it sends the coordinator."""
        content = HiddenContribution(
            commit=self.commit.content,
            sealed=self.draw.sealed,
            share=self.shares.coordinator.canonical(),
            identity=IDENTITY,
            context=CONTEXT,
            proof=element_bytes(self.totals) + b"the rest of a proof",
        )
        return replace(content, **changes)  # type: ignore[arg-type]


def member(
    at: int,
    key: SigningKey,
    *,
    epoch: int = 1,
    tape: bytes = b"",
    sums: MomentStatistic | None = None,
) -> Member:
    """Plant number `at` in an epoch; its randomness follows from `tape`."""
    client = NAMES[at]
    seed = tape + f"{client} {epoch}".encode()
    found = statistic(100 * epoch + at) if sums is None else sums
    masks = tuple(expand(seed, "test masks", 3).tolist())
    entropy = hashlib.shake_256(b"entropy" + seed).digest(64)
    shares = share_sums(found, masks, rows=ROWS, entropy=entropy)
    sealed = shares.sealed.canonical()
    commitment = hashlib.sha256(b"commitment" + seed).digest()
    commit = Commit(
        federation="north",
        client=client,
        key=key.public,
        system="full",
        circuit="3" * 64,
        rules="4" * 64,
        policy="5" * 64,
        commitment=commitment.hex(),
        rows=ROWS,
        interval=Interval(
            start=f"2026-01-{epoch:02}T00:00:00.000000", end=f"2026-01-{epoch:02}T12:00:00.000000"
        ),
        statistic=hashlib.sha256(sealed).hexdigest(),
    )
    draw = Draw(identity=IDENTITY, commitment=commitment, context=CONTEXT, sealed=sealed)
    forms = draw.forms(SHAPE, vector_of(found))
    return Member(
        client=client,
        key=key,
        statistic=found,
        shares=shares,
        commit=sign(commit, key),
        draw=draw,
        totals=tuple((mask + form) % ORDER for mask, form in zip(masks, forms, strict=True)),
        epoch=epoch,
    )


@dataclass
class Parties:
    """Keys of all parties, and the helper's folder."""

    folder: Path
    coordinator: SigningKey = field(default_factory=SigningKey.generate)
    helper: SigningKey = field(default_factory=SigningKey.generate)
    plants: tuple[SigningKey, ...] = field(
        default_factory=lambda: tuple(SigningKey.generate() for _ in NAMES)
    )

    @cached_property
    def opened(self) -> HelperOpened:
        """How the helper's log begins."""
        return HelperOpened(
            federation="north",
            helper=self.helper.public,
            coordinator=self.coordinator.public,
            members=tuple(
                MemberKey(client=name, key=key.public)
                for name, key in zip(NAMES, self.plants, strict=True)
            ),
        )

    def start(self) -> Helper:
        """Create the helper's folder and open it."""
        Helper.create(self.folder, self.opened, self.helper, at=START)
        return Helper(self.folder, self.helper)

    def order(self, **changes: object) -> Signed[EpochOrder]:
        """An epoch of all plants, with one malicious."""
        content = EpochOrder(
            federation="north",
            epoch=1,
            malicious=1,
            members=NAMES,
            settings=SETTINGS.digest,
            channels=SHAPE.channels,
            lags=SHAPE.lags,
            deadline="2026-01-01T01:00:00.000000Z",
            head="6" * 64,
        )
        return sign(replace(content, **changes), self.coordinator)  # type: ignore[arg-type]

    def members(self, *, epoch: int = 1) -> dict[str, Member]:
        """Every plant in an epoch."""
        made = (member(at, key, epoch=epoch) for at, key in enumerate(self.plants))
        return {each.client: each for each in made}


def group_sums(parties: Parties, members: dict[str, Member], group: int) -> GroupSums:
    """The coordinator, after one group contributed."""
    sums = GroupSums(parties.order().content, SETTINGS)
    for client in sums.groups[group]:
        sums.accept(members[client].contribution())
    return sums
