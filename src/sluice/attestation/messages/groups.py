"""Groups of members whose statistics are summed before anyone sees them.

A group has at least f + 2 members: f that collude with the coordinator learn the sum of at least
two others. There are at least 2f + 1 groups, so that groups with a malicious member are a minority
of the vote. Both hold for every draw. The draw is public, so that no plant chooses its group.
"""

from collections.abc import Sequence

from sluice.attestation.messages.hidden_sums import EpochOrder
from sluice.attestation.packing import digest, number, packed
from sluice.errors import SettingError

__all__ = ["draw_groups", "groups_of", "members_needed"]


def members_needed(malicious: int) -> int:
    """Return the least number of members with which groups exist."""
    return (malicious + 2) * (2 * malicious + 1)


def draw_groups(
    members: Sequence[str], *, malicious: int, seed: bytes
) -> tuple[tuple[str, ...], ...]:
    """Draw as many groups of at least f + 2 members as there can be; refuse too few members."""
    if len(set(members)) < len(members):
        raise SettingError("a member is named twice; a group would count it twice")
    needed = members_needed(malicious)
    if len(members) < needed:
        raise SettingError(
            f"{len(members)} members are too few for groups: with {malicious} malicious, a group "
            f"has at least {malicious + 2} members and there are at least {2 * malicious + 1} "
            f"groups, so {needed} members are needed"
        )
    count = len(members) // (malicious + 2)
    drawn = sorted(members, key=lambda name: digest("hidden group order", seed, name.encode()))
    return tuple(tuple(sorted(drawn[at::count])) for at in range(count))


def groups_of(order: EpochOrder) -> tuple[tuple[str, ...], ...]:
    """Draw the groups of an epoch. Every party gets the same ones."""
    if list(order.members) != sorted(order.members):
        raise SettingError("the members of an epoch are named in sorted order")
    seed = digest(
        "hidden groups",
        order.federation.encode(),
        number(order.epoch),
        packed(*(name.encode() for name in order.members)),
        bytes.fromhex(order.head),
    )
    return draw_groups(order.members, malicious=order.malicious, seed=seed)
