"""The network's own controls, and the windows in which an intruder overrides them."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from sluice.lab.plants.distribution.model import Model

__all__ = ["Override", "controls_to_rules", "override"]

RULE_STEP_S = 60
DAY_S = 86_400
RELEASED, OWN, FORCED = 0, 3, 1_000_000
"""EPANET obeys the rule of highest priority; a network's own rules stay far below a million."""


Action: TypeAlias = Any
"""A wntr.network.controls.ControlAction; wntr publishes no types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A link held open or closed for a while, counted in seconds from the start of the run."""

    link: str
    is_open: bool
    start_s: int
    stop_s: int


def controls_to_rules(model: Model, *, duration_s: int) -> None:
    """Rewrite simple controls as rules, and repeat a timed schedule over the whole run.

    EPANET applies simple controls at every step, whatever any rule says, so nothing could override
    them. A schedule (`AT TIME`) covers the run its author had in mind and no more: Net3's pump
    would never start again after its first week.
    """
    from wntr.network.controls import Control, Rule, SimTimeCondition  # noqa: PLC0415

    clock = model.options.time
    period_s = max(-(-int(clock.duration) // DAY_S), 1) * DAY_S
    clock.rule_timestep = RULE_STEP_S
    for name in model.control_name_list:
        control = model.get_control(name)
        if not isinstance(control, Control):
            continue
        model.remove_control(name)
        conditions = [control.condition]
        if isinstance(control.condition, SimTimeCondition):
            first_s = int(control.condition._threshold)  # noqa: SLF001 -- wntr offers no accessor
            conditions += [
                SimTimeCondition(model, "=", float(start_s))
                for start_s in range(first_s + period_s, duration_s + 1, period_s)
            ]
        for number, condition in enumerate(conditions):
            rule = f"{name.replace(' ', '_')}_{number}"
            model.add_control(rule, Rule(condition, control.actions(), priority=OWN, name=rule))


def override(model: Model, overrides: tuple[Override, ...]) -> None:
    """Hold links as told; when a window ends each returns to the state it has at the start.

    The network's own rules take precedence over that return, where one of them applies; a timed
    command that falls into the window is missed, as a controller out of service misses it.
    """
    from wntr.network.base import LinkStatus  # noqa: PLC0415
    from wntr.network.controls import ControlAction  # noqa: PLC0415

    for number, held in enumerate(overrides):
        link = model.get_link(held.link)
        forced = ControlAction(link, "status", int(held.is_open))
        window = (held.start_s, held.stop_s)
        _act(model, f"force_{number}", window, forced, priority=FORCED)
        if link.initial_status == LinkStatus.Active:  # no rule can say so; a setting implies it
            restored = ControlAction(link, "setting", link.initial_setting)
        else:
            restored = ControlAction(link, "status", int(link.initial_status))
        window = (held.stop_s, held.stop_s + 2 * RULE_STEP_S)
        _act(model, f"release_{number}", window, restored, priority=RELEASED)


def _act(
    model: Model, name: str, window_s: tuple[int, int], action: Action, *, priority: int
) -> None:
    from wntr.network.controls import AndCondition, Rule, SimTimeCondition  # noqa: PLC0415

    during = AndCondition(
        SimTimeCondition(model, ">=", float(window_s[0])),
        SimTimeCondition(model, "<", float(window_s[1])),
    )
    model.add_control(name, Rule(during, [action], priority=priority, name=name))
