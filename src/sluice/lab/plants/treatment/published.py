"""The 36 published attacks with a physical effect, as they were staged on the real plant.

Numbers follow the published list, whose 5, 9, 12, 15 and 18 had no physical effect. Values that
the list leaves open ("above HH") are chosen just beyond the set-point they name.
"""

from datetime import datetime
from typing import Final

from sluice.lab.plants.treatment.attacks import (
    Effect,
    ForceActuator,
    SpoofConstant,
    SpoofRamp,
    TreatmentAttack,
)
from sluice.lab.plants.treatment.tags import CLOSED, OFF, ON, OPEN

__all__ = ["PUBLISHED_ATTACKS"]

ABOVE_HH_MM: Final = 1210.0
ABOVE_H_MM: Final = 810.0  # of T101
BELOW_L_MM: Final = 790.0  # of T401
BELOW_LL_MM: Final = 240.0
CLOGGED_KPA: Final = 45.0


def _at(day: int, clock: str) -> datetime:
    """Return a moment of the campaign, which ran from 28 December 2015 to 2 January 2016."""
    year, month = (2015, 12) if day >= 28 else (2016, 1)
    return datetime.fromisoformat(f"{year}-{month:02}-{day:02}T{clock}")


def _attack(
    number: int, targets: str, when: tuple[int, str, str], what: str, *effects: Effect
) -> TreatmentAttack:
    day, start, end = when
    return TreatmentAttack(
        number=number,
        targets=tuple(targets.split()),
        start=_at(day, start),
        end=_at(day, end),
        what=what,
        effects=effects,
    )


def _force(tag: str, code: int) -> Effect:
    return ForceActuator(tag=tag, code=code)


def _show(tag: str, value: float, *, after_s: int = 0, for_s: int | None = None) -> Effect:
    return SpoofConstant(tag=tag, value=value, after_s=after_s, for_s=for_s)


def _ramp(tag: str, per_s: float) -> Effect:
    return SpoofRamp(tag=tag, per_s=per_s)


PUBLISHED_ATTACKS: Final[tuple[TreatmentAttack, ...]] = (
    _attack(1, "MV101", (28, "10:29:14", "10:44:53"), "Open MV101", _force("MV101", OPEN)),
    _attack(2, "P102", (28, "10:51:08", "10:58:30"), "Turn on P102", _force("P102", ON)),
    _attack(
        *(3, "LIT101", (28, "11:22:00", "11:28:22"), "Increase by 1 mm every second"),
        _ramp("LIT101", 1.0),
    ),
    # MV504 is not among the 51 tags and moves no water that they measure: no tag shows it.
    _attack(4, "MV504", (28, "11:47:39", "11:54:08"), "Open MV504"),
    _attack(
        *(6, "AIT202", (28, "12:00:55", "12:04:10"), "Set value of AIT202 as 6"),
        _show("AIT202", 6.0),
    ),
    _attack(
        *(7, "LIT301", (28, "12:08:25", "12:15:33"), "Water level increased above HH"),
        _show("LIT301", ABOVE_HH_MM),
    ),
    _attack(
        *(8, "DPIT301", (28, "13:10:10", "13:26:13"), "Set value of DPIT as >40kpa"),
        _show("DPIT301", CLOGGED_KPA),
    ),
    _attack(
        *(10, "FIT401", (28, "14:16:20", "14:19:00"), "Set value of FIT401 as <0.7"),
        _show("FIT401", 0.65),
    ),
    _attack(
        *(11, "FIT401", (28, "14:19:00", "14:28:20"), "Set value of FIT401 as 0"),
        _show("FIT401", 0.0),
    ),
    _attack(13, "MV304", (29, "11:11:25", "11:15:17"), "Close MV304", _force("MV304", CLOSED)),
    _attack(
        *(14, "MV303", (29, "11:35:40", "11:42:50"), "Do not let MV303 open"),
        _force("MV303", CLOSED),
    ),
    _attack(
        *(16, "LIT301", (29, "11:57:25", "12:02:00")),
        "Decrease LIT301 water level by 1 mm each second",
        _ramp("LIT301", -1.0),
    ),
    _attack(
        *(17, "MV303", (29, "14:38:12", "14:50:08"), "Do not let MV303 open"),
        _force("MV303", CLOSED),
    ),
    _attack(
        *(19, "AIT504", (29, "18:10:43", "18:15:01"), "Set value of AIT504 to 16 uS/cm"),
        _show("AIT504", 16.0),
    ),
    _attack(
        *(20, "AIT504", (29, "18:15:43", "18:22:17"), "Set value of AIT504 to 255 uS/cm"),
        _show("AIT504", 255.0),
    ),
    _attack(
        *(21, "MV101 LIT101", (29, "18:30:00", "18:42:00")),
        "Keep MV101 on continuously; Value of LIT101 set as 700 mm",
        *(_force("MV101", OPEN), _show("LIT101", 700.0)),
    ),
    _attack(
        *(22, "UV401 AIT502 P501", (29, "22:55:18", "23:03:00")),
        "Stop UV401; Value of AIT502 set as 150; Force P501 to remain on",
        *(_force("UV401", OFF), _show("AIT502", 150.0), _force("P501", ON)),
    ),
    _attack(
        *(23, "P602 DPIT301 MV302", (30, "01:42:34", "01:54:10")),
        "Value of DPIT301 set to >0.4 bar; Keep MV302 open; Keep P602 closed",
        *(_force("P602", OFF), _show("DPIT301", CLOGGED_KPA), _force("MV302", OPEN)),
    ),
    _attack(
        *(24, "P203 P205", (30, "09:51:08", "09:56:28"), "Turn off P203 and P205"),
        *(_force("P203", OFF), _force("P205", OFF)),
    ),
    # The list names P401 as the target and P402 in the description; P402 is the one that runs.
    _attack(
        *(25, "LIT401 P401", (30, "10:01:50", "10:12:01")),
        "Set value of LIT401 as 1000; P402 is kept on",
        *(_show("LIT401", 1000.0), _force("P402", ON)),
    ),
    _attack(
        *(26, "P101 LIT301", (30, "17:04:56", "17:29:00")),
        "P101 is turned on continuously; Set value of LIT301 as 801mm",
        *(_force("P101", ON), _show("LIT301", 801.0)),
    ),
    _attack(
        *(27, "P302 LIT401", (31, "01:17:08", "01:45:18")),
        "Keep P302 on continuously; Value of LIT401 set as 600mm till 1:26:01",
        *(_force("P302", ON), _show("LIT401", 600.0, for_s=534)),
    ),
    _attack(28, "P302", (31, "01:45:19", "11:15:27"), "Close P302", _force("P302", OFF)),
    _attack(
        *(29, "P201 P203 P205", (31, "15:32:00", "15:34:00")),
        "Turn on P201; Turn on P203; Turn on P205",
        *(_force("P201", ON), _force("P203", ON), _force("P205", ON)),
    ),
    # The list describes MV101 and targets MV201; the target agrees with its stated aim, to empty
    # T101 into T301.
    _attack(
        *(30, "LIT101 P101 MV201", (31, "15:47:40", "16:07:10")),
        "Turn P101 on continuously; Turn MV101 on continuously; Set value of LIT101 as 700mm; "
        "P102 started itself because LIT301 level became low",
        *(_force("P101", ON), _force("MV201", OPEN), _show("LIT101", 700.0)),
    ),
    _attack(
        *(31, "LIT401", (31, "22:05:34", "22:11:40"), "Set LIT401 to less than L"),
        _show("LIT401", BELOW_L_MM),
    ),
    _attack(
        *(32, "LIT301", (1, "10:36:00", "10:46:00"), "Set LIT301 to above HH"),
        _show("LIT301", ABOVE_HH_MM),
    ),
    _attack(
        *(33, "LIT101", (1, "14:21:12", "14:28:35"), "Set LIT101 to above H"),
        _show("LIT101", ABOVE_H_MM),
    ),
    _attack(34, "P101", (1, "17:12:40", "17:14:20"), "Turn P101 off", _force("P101", OFF)),
    _attack(
        *(35, "P101 P102", (1, "17:18:56", "17:26:56"), "Turn P101 off; Keep P102 off"),
        *(_force("P101", OFF), _force("P102", OFF)),
    ),
    _attack(
        *(36, "LIT101", (1, "22:16:01", "22:25:00"), "Set LIT101 to less than LL"),
        _show("LIT101", BELOW_LL_MM),
    ),
    _attack(
        *(37, "P501 FIT502", (2, "11:17:02", "11:24:50")),
        "Close P501; Set value of FIT502 to 1.29 at 11:18:36",
        *(_force("P501", OFF), _show("FIT502", 1.29, after_s=94)),
    ),
    _attack(
        *(38, "AIT402 AIT502", (2, "11:31:38", "11:36:18")),
        "Set value of AIT402 as 260; Set value of AIT502 to 260",
        *(_show("AIT402", 260.0), _show("AIT502", 260.0)),
    ),
    _attack(
        *(39, "FIT401 AIT502", (2, "11:43:48", "11:50:28")),
        "Set value of FIT401 as 0.5; Set value of AIT502 as 140 mV",
        *(_show("FIT401", 0.5), _show("AIT502", 140.0)),
    ),
    _attack(
        *(40, "FIT401", (2, "11:51:42", "11:56:38"), "Set value of FIT401 as 0"),
        _show("FIT401", 0.0),
    ),
    _attack(
        *(41, "LIT301", (2, "13:13:02", "13:41:11"), "decrease LIT301 value by 0.5 mm per second"),
        _ramp("LIT301", -0.5),
    ),
)
