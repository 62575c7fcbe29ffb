"""An update with as much poison in it as the rule takes for ordinary."""

import numpy as np
import pytest

from sluice.aggregation.averages import FedAvg
from sluice.aggregation.registry import RULES
from sluice.aggregation.rule import Fresh, RootUpdate, State
from sluice.aggregation.selection import Krum
from sluice.aggregation.update import Update
from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.lab.attacks.blend import Blend, CleanAndPoisoned
from sluice.seeding import stream

SIZE = 200


def towards(seed: int) -> Floats:
    """Updates of one round point the same way, more or less."""
    rng = stream(seed, "blend")
    return np.ones(SIZE) + rng.normal(0, 0.5, SIZE)


def others(count: int = 7) -> list[Update]:
    return [
        Update(client=f"plant-{number}", vector=towards(number), weight=100.0)
        for number in range(count)
    ]


def liars(count: int = 1, *, poison: float = -8.0) -> list[CleanAndPoisoned]:
    return [
        CleanAndPoisoned(
            client=f"liar-{number}",
            clean=towards(100 + number),
            poisoned=towards(100 + number) + poison * (np.arange(SIZE) % 2),
            weight=100.0,
        )
        for number in range(count)
    ]


def state_for(rule: str) -> State:
    return RootUpdate(vector=towards(50)) if RULES[rule].needs_root else Fresh()


@pytest.fixture(params=sorted(RULES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def influence_of(name: str, sent: tuple[Update, ...]) -> tuple[float, list[float]]:
    aggregate, _ = RULES[name]([*others(), *sent], state_for(name))
    heard = [aggregate.influence.get(update.client, 0.0) for update in others()]
    mine = [aggregate.influence.get(update.client, 0.0) for update in sent]
    return float(np.mean(mine)), [part for part in heard if part > 0]


def test_what_is_called_ordinary_has_an_ordinary_part_in_the_round(name: str) -> None:
    found = Blend()(liars(), others(), rule=RULES[name], state=state_for(name))
    mine, heard = influence_of(name, found.updates)
    honest = tuple(
        Update(client=liar.client, vector=liar.clean, weight=liar.weight) for liar in liars()
    )
    without, _ = influence_of(name, honest)
    assert found.ordinary
    assert 0 < min(np.median(heard or [0]), without or 1) * (1 - 1e-6) <= mine or not heard
    assert 0 <= found.share <= 1


def test_a_little_more_poison_would_show(name: str) -> None:
    found = Blend(bisections=10)(liars(), others(), rule=RULES[name], state=state_for(name))
    if not found.ordinary or found.share == 1:
        return
    sent = found.updates[0]
    more = sent.vector + 0.02 * (liars()[0].poisoned - sent.vector)
    mine, heard = influence_of(name, (Update(client=sent.client, vector=more, weight=100.0),))
    aggregate, _ = RULES[name](
        [*others(), Update(client=sent.client, vector=more, weight=100.0)], state_for(name)
    )
    refused = sent.client not in aggregate.admitted
    assert refused or mine < min(np.median(heard or [1]), influence_of(name, found.updates)[0])


def test_an_average_takes_all_of_the_poison() -> None:
    found = Blend()(liars(), others(), rule=FedAvg(), state=Fresh())
    assert found.share == 1
    assert np.array_equal(found.updates[0].vector, liars()[0].poisoned)


def test_krum_is_courted_with_the_others_mean() -> None:
    found = Blend()(liars(), others(), rule=Krum(f=1), state=Fresh())
    aggregate, _ = Krum(f=1)([*others(), *found.updates], Fresh())
    assert found.ordinary
    assert aggregate.admitted == {"liar-0"}
    assert 0 < found.share < 1


def test_liars_agree_on_one_share() -> None:
    found = Blend()(liars(3), others(), rule=RULES["trimmed-mean"], state=Fresh())
    assert [update.client for update in found.updates] == ["liar-0", "liar-1", "liar-2"]
    assert found.ordinary
    assert found.share < 1


def test_where_nothing_is_ordinary_the_clean_update_is_sent() -> None:
    found = Blend()(
        liars(), others(), rule=RULES["fltrust"], state=RootUpdate(vector=-np.ones(SIZE))
    )
    assert not found.ordinary
    assert found.share == 0
    assert np.array_equal(found.updates[0].vector, liars()[0].clean)


def test_a_liar_needs_somebody_to_hide_among() -> None:
    with pytest.raises(SettingError, match="among 0"):
        Blend()(liars(), [], rule=FedAvg(), state=Fresh())
