"""The network's own controls, and the windows in which an intruder overrides them.

EPANET itself evaluates every control and rule, to the second and in the order of the file. A copy
in another form would act differently: of two simple controls that apply at once, the last one in
the file wins, and of two rules the first, so a pump whose controls are written as rules can stop
for good.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from sluice.lab.plants.distribution.model import Model

__all__ = ["Override", "Overrides", "repeat_schedules"]

DAY_S = 86_400

Toolkit: TypeAlias = Any
"""A wntr.epanet.toolkit.ENepanet; wntr publishes no types."""

SimpleControl: TypeAlias = dict[str, float]
"""What ENgetcontrol returns: index, type, linkindex, setting, nodeindex, level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Override:
    """A link forced open or closed for a time window, in seconds from the start of the run."""

    link: str
    is_open: bool
    start_s: int
    stop_s: int


def repeat_schedules(model: Model, *, duration_s: int) -> None:
    """Repeat a timed schedule (`AT TIME`) over the whole run.

    It covers only the days its author planned: Net3's pump would never start again after its first
    week. `AT CLOCKTIME` recurs by itself.
    """
    from wntr.network.controls import Control, SimTimeCondition  # noqa: PLC0415

    timed = [
        (name, control, int(control.condition._threshold))  # noqa: SLF001 -- no accessor in wntr
        for name, control in model.controls()
        if isinstance(control, Control) and isinstance(control.condition, SimTimeCondition)
    ]
    planned_s = max((first_s + 1 for _, _, first_s in timed), default=0)
    period_s = -(-max(int(model.options.time.duration), planned_s, 1) // DAY_S) * DAY_S
    for name, control, first_s in timed:
        (action,) = control.actions()
        for start_s in range(first_s + period_s, duration_s + 1, period_s):
            again = Control(SimTimeCondition(model, "=", float(start_s)), action)
            model.add_control(f"{name} again at {start_s} s", again)


class Overrides:
    """Forces links during a run that is solved step by step.

    Inside its window a link keeps the forced state, and the simple controls of the link are
    suspended (EPANET would apply them inside the step). When the window ends, the controls are back
    and the link returns to its initial state, unless one of the network's own controls applies at
    that moment. A timed command that falls into the window is missed, as by a controller out of
    service.
    """

    def __init__(self, toolkit: Toolkit, model: Model, overrides: tuple[Override, ...]) -> None:
        from wntr.epanet.util import EN  # noqa: PLC0415

        self._toolkit = toolkit
        self._model = model
        self._overrides = overrides
        self._active: set[Override] = set()
        count = toolkit.ENgetcount(EN.CONTROLCOUNT)
        self._controls: list[SimpleControl] = [
            toolkit.ENgetcontrol(index) for index in range(1, count + 1)
        ]

    def before_step(self, time_s: int) -> None:
        """Force and release what is due; call it before EPANET solves the step at this time."""
        from wntr.epanet.util import EN  # noqa: PLC0415

        for each in self._overrides:
            inside = each.start_s <= time_s < each.stop_s
            link = self._toolkit.ENgetlinkindex(each.link)
            if inside:
                if each not in self._active:
                    self._suspend(link)
                self._toolkit.ENsetlinkvalue(link, EN.STATUS, float(each.is_open))
            elif each in self._active:
                self._restore(link)
                self._return_to_start(each.link, link)
            (self._active.add if inside else self._active.discard)(each)

    def _suspend(self, link: int) -> None:
        for control in self._controls:
            if control["linkindex"] == link:  # a control of no link is skipped by EPANET
                self._set(control, linkindex=0)

    def _restore(self, link: int) -> None:
        for control in self._controls:
            if control["linkindex"] == link:
                self._set(control, linkindex=link)

    def _set(self, control: SimpleControl, *, linkindex: int) -> None:
        self._toolkit.ENsetcontrol(
            control["index"],
            control["type"],
            linkindex,
            control["setting"],
            control["nodeindex"],
            control["level"],
        )

    def _return_to_start(self, name: str, link: int) -> None:
        from wntr.epanet.util import EN  # noqa: PLC0415

        if self._model.get_link(name).link_type == "Valve":
            setting = self._toolkit.ENgetlinkvalue(link, EN.INITSETTING)
            self._toolkit.ENsetlinkvalue(link, EN.SETTING, setting)
        status = self._toolkit.ENgetlinkvalue(link, EN.INITSTATUS)
        self._toolkit.ENsetlinkvalue(link, EN.STATUS, status)
