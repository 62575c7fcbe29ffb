"""`sluice data inspect --fix`: ask about what is unclear in a record, one question at a time.

Questions go to stderr and answers come from stdin, so that a pipe can answer too.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import typer

from sluice.errors import SettingChoice, SettingError, UnclearRecordError
from sluice.telemetry import Channel, Fill, PlantFile, ReadRecord, Role, read_with_settings

__all__ = ["ask_until_clear"]

MOST_QUESTIONS = 200
ACCEPT_ALL = "all"


def ask_until_clear(
    paths: Sequence[Path], *, plant: PlantFile, format_name: str | None, fill: Fill | None
) -> ReadRecord:
    """Read a record; ask for the setting that decides each time it can be read in several ways."""
    asked = 0
    last: tuple[str, PlantFile] | None = None
    while True:
        try:
            found = read_with_settings(paths, plant=plant, format_name=format_name, fill=fill)
        except UnclearRecordError as unclear:
            asked += 1
            if asked > MOST_QUESTIONS or last == (unclear.what, plant):
                raise  # the answers do not help
            last = (unclear.what, plant)
            plant = plant.having(_answer(unclear))
            continue
        return _with_roles(found)


def _answer(unclear: UnclearRecordError) -> SettingChoice:
    """Ask one question; return the chosen setting."""
    typer.echo(f"\n{unclear.what}.", err=True)
    for number, choice in enumerate(unclear.choices, 1):
        proposed = " (proposed)" if number == 1 else ""
        typer.echo(
            f"  {number}  {choice.setting} = {_shown(choice.value)}: {choice.meaning}{proposed}",
            err=True,
        )
    if unclear.free:
        typer.echo(f"  or another value of {unclear.choices[0].setting}", err=True)
    while True:
        text = _line("Answer [1]: ")
        chosen = _chosen(text, unclear)
        if chosen is not None:
            return chosen
        typer.echo(f"{text!r} is none of the answers", err=True)


def _chosen(text: str, unclear: UnclearRecordError) -> SettingChoice | None:
    choices = unclear.choices
    by_text = {_shown(choice.value): choice for choice in reversed(choices)}
    by_text |= {str(choice.value): choice for choice in reversed(choices)}
    if not isinstance(choices[0].value, float):  # such an answer is a number itself
        by_text |= {str(number): choice for number, choice in enumerate(choices, 1)}
    by_text[""] = choices[0]
    if text in by_text or not unclear.free:
        return by_text.get(text)
    return _free(text, choices[0])


def _free(text: str, proposal: SettingChoice) -> SettingChoice | None:
    """Return an answer of the operator's own."""
    if isinstance(proposal.value, tuple):
        return replace(proposal, value=(text,))
    if not isinstance(proposal.value, int | float):
        return replace(proposal, value=text)
    try:
        number = float(text)
    except ValueError:
        return None
    return replace(proposal, value=number) if number > 0 else None


def _shown(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        words = ", ".join(f"{_shown(word)} = {number:g}" for word, number in value.items())
        return f"{{ {words} }}"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _with_roles(found: ReadRecord) -> ReadRecord:
    """Ask for the roles that neither a name nor the plant file shows."""
    channels: list[Channel] = []
    accepted = False
    for channel in found.record.channels:
        unclear = channel.why.startswith("values:") and not channel.role.discrete
        if not unclear or accepted:
            channels.append(channel)
            continue
        role = _role(channel)
        accepted = role is None
        channels.append(channel if role is None else replace(channel, role=role, why="plant file"))
    return replace(found, record=replace(found.record, channels=tuple(channels)))


def _role(channel: Channel) -> Role | None:
    """Ask for the role of a channel; None accepts this and all further proposals."""
    roles = [role for role in Role if not role.discrete]
    typer.echo(
        f"\nThe name of channel {channel.name!r} does not show what it measures. Its role can be "
        f"{', '.join(role.value for role in roles)}; {ACCEPT_ALL!r} accepts all proposals.",
        err=True,
    )
    while True:
        text = _line(f"Role [{channel.role.value}]: ")
        if text == ACCEPT_ALL:
            return None
        if not text:
            return channel.role
        if text in set(roles):
            return Role(text)
        typer.echo(f"{text!r} is no role", err=True)


def _line(prompt: str) -> str:
    typer.echo(prompt, err=True, nl=False)
    line = sys.stdin.readline()
    if not line:
        typer.echo("", err=True)
        raise SettingError(
            "the answers ended before all questions were answered; give one line for each, an "
            "empty one for the proposal"
        )
    return line.strip()
