"""Approvers sign files: a plant's rules, a waiver, a shadow order. Their keys stay with them."""

from collections.abc import Mapping
from pathlib import Path

from sluice.attestation.messages import (
    SHADOW_ORDERS,
    WAIVERS,
    Approval,
    ShadowOrder,
    Signed,
    SigningKey,
    Waiver,
    approve,
)
from sluice.errors import DocumentError, SettingError
from sluice.files import atomically, read_bounded, read_text
from sluice.invariants import load_rules, rules_hash

__all__ = ["approve_file", "read_approver", "read_order", "save_approver"]

HEX_DIGITS = 64


def approve_file(
    path: Path,
    key: SigningKey,
    *,
    client: str | None = None,
    looser: bool = False,
    declared: Mapping[str, str] | None = None,
) -> Signed[Approval]:
    """Sign an approval of a rules file, a waiver or a shadow order.

    `client` limits an approval of rules to one plant; `looser` consents to rules that are looser
    than the plant's last ones; `declared` says of channels why they have no rule.
    """
    order = read_order(path)
    if order is None:
        subject = rules_hash(load_rules(path))
        reasons = tuple((declared or {}).items())
        return approve(subject, key, client=client, looser=looser, declared=reasons)
    if client is not None or looser or declared:
        raise SettingError(
            f"{path} is a {order.TAG}; a plant's name, looser rules and declarations go with rules "
            "only"
        )
    return approve(order, key)


def read_order(path: Path) -> Waiver | ShadowOrder | None:
    """Read a waiver or a shadow order; None if the file is neither."""
    try:
        raw = read_bounded(path, "file", largest=WAIVERS.largest, error=DocumentError)
    except DocumentError:
        return None
    for form in (WAIVERS, SHADOW_ORDERS):
        try:
            return form.read(raw)
        except DocumentError:
            continue
    return None


def save_approver(key: SigningKey, path: Path) -> None:
    """Write an approver's key (mode 0600) and, beside it, the public key: both, or neither."""
    public = path.with_suffix(".pub")
    if public == path:
        raise SettingError(
            f"{path} is the name of a public key's file; give the private key another name, such "
            f"as {path.with_suffix('.key')}"
        )
    if public.exists() and not path.exists():
        raise SettingError(
            f"{public} exists and may be the public key of another approver; choose another path"
        )
    key.save(path)
    try:
        with atomically(public) as draft:
            draft.write_text(f"{key.public}\n", encoding="ascii")
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def read_approver(text: str) -> str:
    """Return an approver's public key, given as 64 hex digits or as a file that holds them."""
    found = text
    if len(text) != HEX_DIGITS or Path(text).is_file():
        found = read_text(Path(text), "approver's public key", largest=256).strip()
    if len(found) != HEX_DIGITS or set(found) - set("0123456789abcdef"):
        raise SettingError(
            f"approver {text!r} does not hold a public key of {HEX_DIGITS} lower-case hex digits; "
            "give the .pub file that 'sluice rules key' wrote"
        )
    return found
