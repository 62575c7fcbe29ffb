"""`sluice rules`: show rules in words, seal them, compare them, check them against a policy."""

import difflib
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import (
    BUILT_IN,
    HardenedPolicy,
    Objection,
    policy_hash,
    read_policy,
    unsound,
    write_policy,
)
from sluice.admission import accept as judge_rules
from sluice.cli.console import (
    Json,
    emit,
    objection_payloads,
    out,
    show_objections,
    table,
)
from sluice.cli.options import Declare, declarations
from sluice.cli.paths import PolicyPath, reads_file, writes_file
from sluice.errors import RulesFileError, SettingError
from sluice.invariants import (
    Change,
    Invariant,
    Moved,
    Redefined,
    RuleSet,
    drift,
    duration,
    evidence_in_words,
    load_rules,
    power_in_words,
    rule_in_words,
    rules_hash,
    seal_rules,
    unit_of,
)

__all__ = ["app", "change_payload", "refuse_unknown_tags", "rule_payload", "show_rules"]

app = typer.Typer(no_args_is_help=True, help="Show, seal, compare and accept rules files.")

RulesPath = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A rules file.", click_type=reads_file("a rules file")),
]


class PolicyKind(StrEnum):
    """The built-in policies."""

    PAPER = "paper"
    HARDENED = "hardened"


@app.command()
def show(file: RulesPath, json: Json = False) -> None:
    """Show rules in words and units, with the evidence for each and what it detects.

    Example: [bold]sluice rules show rules.json[/bold]
    """
    rules = load_rules(file, provisional=True)
    if json:
        emit(
            {
                "plant": rules.plant,
                "profile": rules.profile.value,
                "stride_s": rules.stride_s,
                "rules": [rule_payload(rule, rules) for rule in rules.invariants],
                "dropped": [asdict(candidate) for candidate in rules.dropped],
                "empty": rules.empty,
                "clean": asdict(rules.clean) if rules.clean else None,
                "hash": rules_hash(rules),
            }
        )
    else:
        show_rules(rules)
        out.print(f"\nhash {rules_hash(rules)}")


@app.command()
def seal(file: RulesPath, json: Json = False) -> None:
    """Check an edited rules file and update its hash in place.

    Rules are refused if they contradict themselves, or if a residual could overflow in a proof.

    Example: [bold]sluice rules seal rules.json[/bold]
    """
    objections = unsound(load_rules(file, sealed=False))
    if objections:
        sentences = "; ".join(objection.sentence for objection in objections)
        raise RulesFileError(f"rules file {file} cannot be sealed: {sentences}")
    digest = seal_rules(file)
    if json:
        emit({"hash": digest})
    else:
        out.print(f"{file}: sealed, hash {digest}", markup=False)


@app.command()
def diff(
    before: Annotated[
        Path,
        typer.Argument(
            metavar="A", help="The older rules file.", click_type=reads_file("a rules file")
        ),
    ],
    after: Annotated[
        Path,
        typer.Argument(
            metavar="B",
            help="The newer rules file; it may be unsealed.",
            click_type=reads_file("a rules file"),
        ),
    ],
    json: Json = False,
) -> None:
    """List the rules that were added, removed or changed, and by how much.

    Example: [bold]sluice rules diff accepted.json rules.json[/bold]
    """
    changes = drift(load_rules(before, sealed=False), load_rules(after, sealed=False))
    if json:
        emit({"changes": [change_payload(change) for change in changes]})
    elif not changes:
        out.print("the rules are the same")
    for change in () if json else changes:
        out.print(change.sentence, markup=False)


@app.command()
def accept(
    file: RulesPath,
    policy: Annotated[
        str, typer.Option(help="hardened, or a policy file (TOML).", click_type=PolicyPath())
    ],
    last: Annotated[
        Path | None,
        typer.Option(
            help="The last accepted rules of this plant.", click_type=reads_file("a rules file")
        ),
    ] = None,
    declare: Declare = None,
    json: Json = False,
) -> None:
    """Check a plant's rules against the coordinator's policy; exit 0 if accepted, 3 if not.

    The command reads rules files only, never telemetry. --declare shows what the verdict would be
    if the approver declared these reasons; it declares nothing.

    Example: [bold]sluice rules accept rules.json --policy policy.toml --last accepted.json[/bold]
    """
    required = read_policy(policy)
    if not required.integers:
        raise SettingError("the paper policy requires nothing of rules; give a hardened policy")
    rules, accepted = load_rules(file), load_rules(last) if last else None
    declared = declarations(declare)
    refuse_unknown_tags(declared, rules, *([accepted] if accepted else []))
    objections = judge_rules(rules, required, last=accepted, declared=declared)
    if json:
        emit(
            {
                "accepted": not objections,
                "objections": objection_payloads(objections, rules=file, last=last),
                "reasons": [objection.sentence for objection in objections],
            }
        )
    elif objections:
        out.print(f"[bold]not accepted[/bold]: {len(objections)} objections")
        show_objections(objections, rules=file, last=last)
    else:
        out.print(f"[bold]accepted[/bold]: {len(rules.invariants)} rules")
    if objections:
        raise typer.Exit(3)


def refuse_unknown_tags(declared: Mapping[str, str], *files: RuleSet) -> None:
    """Refuse a reason for a channel or rule that no file has: it is a misprint."""
    named = {channel.name for file in files for channel in file.channels}
    named |= {rule.name for file in files for rule in file.invariants}
    for tag in declared:
        if tag not in named:
            near = difflib.get_close_matches(tag, named, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name a channel"
            raise SettingError(f"--declare names {tag!r}, which no rules file has; {hint}")


@app.command()
def policy(
    out_path: Annotated[
        Path, typer.Option("--out", help="The policy file to write.", click_type=writes_file())
    ],
    kind: Annotated[
        PolicyKind, typer.Option(help="The built-in policy to write.")
    ] = PolicyKind.HARDENED,
    declare: Declare = None,
    json: Json = False,
) -> None:
    """Write a built-in policy with all its budgets to a file that you can edit.

    --declare writes reasons to [acceptance.reasons]. They hold for every plant under the policy.

    Example: [bold]sluice rules policy --out policy.toml[/bold]
    """
    chosen, reasons = BUILT_IN[kind.value], declarations(declare)
    if reasons:
        if not isinstance(chosen, HardenedPolicy):
            raise SettingError("the paper policy requires nothing of rules, so it takes no reasons")
        chosen = replace(chosen, acceptance=replace(chosen.acceptance, reasons=reasons))
    write_policy(chosen, out_path)
    if json:
        emit({"kind": kind.value, "hash": policy_hash(chosen)})
    else:
        out.print(f"{out_path}: the {kind.value} policy", markup=False)


@app.command()
def key(
    out_path: Annotated[
        Path,
        typer.Option("--out", help="The key file to write, mode 0600.", click_type=writes_file()),
    ],
    json: Json = False,
) -> None:
    """Make an approver's key; give its public half to the coordinator, and keep the key.

    Example: [bold]sluice rules key --out approver.key[/bold]
    """
    from sluice.attestation.messages import SigningKey
    from sluice.attestation.protocol import save_approver

    made = SigningKey.generate()
    save_approver(made, out_path)
    if json:
        emit({"public": made.public, "key": str(out_path)})
    else:
        out.print(
            f"{out_path}: keep it secret; {out_path.with_suffix('.pub')} goes to the coordinator "
            "('sluice coordinator init --approver')",
            markup=False,
        )


@app.command()
def approve(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A rules file, a waiver or a shadow order.",
            click_type=reads_file("a rules file or an order"),
        ),
    ],
    key_path: Annotated[
        Path,
        typer.Option(
            "--key", help="The approver's private key.", click_type=reads_file("an approver's key")
        ),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The approval to write.", click_type=writes_file())
    ],
    plant: Annotated[
        str | None, typer.Option(help="Approve the rules for this plant only.")
    ] = None,
    looser: Annotated[
        bool,
        typer.Option("--looser", help="The rules may be looser than the plant's last ones."),
    ] = False,
    declare: Declare = None,
    policy: Annotated[
        str,
        typer.Option(
            help="The coordinator's policy, to warn of what it will refuse.",
            click_type=PolicyPath(),
        ),
    ] = "hardened",
    json: Json = False,
) -> None:
    """Sign an approval of a plant's rules, of a waiver or of a shadow order, as a file.

    The coordinator imports it with 'sluice coordinator import --approval'. The key stays with the
    approver. The command warns of channels without a rule: declare why, or ask for other rules.

    Example: [bold]sluice rules approve rules.json --key approver.key --out approval.json[/bold]
    """
    from sluice.attestation.messages import APPROVALS, SigningKey
    from sluice.attestation.protocol import approve_file, read_order
    from sluice.files import atomically

    signed = approve_file(
        file, SigningKey.load(key_path), client=plant, looser=looser, declared=declarations(declare)
    )
    with atomically(out_path) as draft:
        draft.write_bytes(APPROVALS.write(signed))
    remaining: tuple[Objection, ...] = ()
    if read_order(file) is None:
        remaining = judge_rules(
            load_rules(file), read_policy(policy), declared=signed.content.reasons
        )
    for objection in remaining:
        typer.echo(
            f"sluice: the coordinator may refuse these rules: {objection.sentence}", err=True
        )
    if json:
        emit(
            {
                "approval": str(out_path),
                "subject": signed.content.subject,
                "approver": signed.content.approver,
                "plant": plant,
                "looser": looser,
                "declared": signed.content.reasons,
                "objections": [asdict(objection) for objection in remaining],
            }
        )
    else:
        out.print(f"{out_path}: send it to the coordinator", markup=False)


def rule_payload(rule: Invariant, rules: RuleSet) -> Mapping[str, object]:
    """Return a rule as JSON: its numbers, its evidence and its sentence."""
    return {
        "name": rule.name,
        "kind": rule.kind.value,
        "tolerance": rule.tolerance,
        "unit": unit_of(rule.relation, rules),
        **asdict(rule.evidence),
        "sentence": rule_in_words(rule, rules),
        "power": power_in_words(rule, rules),
    }


def change_payload(change: Change) -> Mapping[str, object]:
    """Return a change as JSON; `share` is the change relative to the old value, if defined."""
    payload: dict[str, object] = {
        "change": type(change).__name__.lower(),
        "rule": change.rule,
        "sentence": change.sentence,
    }
    if isinstance(change, Moved | Redefined):
        payload["what"] = change.what.value
    if isinstance(change, Moved):
        payload |= {"before": change.before, "after": change.after}
        payload["share"] = change.share if math.isfinite(change.share) else None
    return payload


def show_rules(rules: RuleSet) -> None:
    """Print rules in words, dropped candidates, and the share of clean batches refused."""
    out.print(
        f"[bold]{len(rules.invariants)} rules[/bold] ({rules.profile.value}), one row every "
        f"{duration(rules.stride_s)}; fitted to {rules.fit_rows:,} rows, calibrated on "
        f"{rules.calibration_rows:,}"
    )
    for kind in dict.fromkeys(rule.kind for rule in rules.invariants):
        out.print(f"\n[bold]{kind.value}[/bold]")
        for rule in rules.of_kind(kind):
            out.print(f"  {rule_in_words(rule, rules)}", markup=False)
            if kind.physical:
                for sentence in (power_in_words(rule, rules), evidence_in_words(rule)):
                    if sentence:
                        out.print(f"      {sentence}", markup=False, style="dim")
    if rules.dropped:
        dropped = table("\nDropped candidates", "candidate", "why")
        for candidate in rules.dropped:
            dropped.add_row(candidate.name, candidate.why)
        out.print(dropped)
    if rules.clean:
        clean = rules.clean
        out.print(
            f"\n{clean.refused_share:.1%} of clean batches of {clean.batch_rows:,} rows would be "
            f"refused; with {clean.effective_batches:.1f} effective batches, up to "
            f"{clean.refused_upper:.1%} is possible"
        )
