"""The network's own controls, and the windows in which an intruder overrides them."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from sluice.lab.plants.distribution.model import Model

__all__ = ["Override", "controls_to_rules", "override"]

RULE_STEP_S = 60
DAY_S = 86_400
RELEASED, OWN, FORCED = 0, 3, 1_000_000
"""EPANET applies the rule of highest priority; a network's own rules stay far below a million."""


Action: TypeAlias = Any
"""A wntr.network.controls.ControlAction; wntr publishes no types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A link forced open or closed for a time window, in seconds from the start of the run."""

    link: str
    is_open: bool
    start_s: int
    stop_s: int


def controls_to_rules(model: Model, *, duration_s: int) -> None:
    """Rewrite simple controls as rules, and repeat a timed schedule over the whole run.

    EPANET applies simple controls at every step regardless of rules, so nothing could override
    them. A schedule (`AT TIME`) covers only the run length its author planned: Net3's pump would
    never start again after its first week.
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
    """Force links open or closed; when a window ends, each link returns to its initial state.

    If one of the network's own rules applies, it takes precedence over that return. A timed command
    that falls into the window is missed, as by a controller out of service.
    """
    from wntr.network.base import LinkStatus  # noqa: PLC0415
    from wntr.network.controls import ControlAction  # noqa: PLC0415

    for number, each in enumerate(overrides):
        link = model.get_link(each.link)
        forced = ControlAction(link, "status", int(each.is_open))
        window = (each.start_s, each.stop_s)
        _act(model, f"force_{number}", window, forced, priority=FORCED)
        if link.initial_status == LinkStatus.Active:  # no rule can set Active; a setting implies it
            restored = ControlAction(link, "setting", link.initial_setting)
        else:
            restored = ControlAction(link, "status", int(link.initial_status))
        window = (each.stop_s, each.stop_s + 2 * RULE_STEP_S)
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
