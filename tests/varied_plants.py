"""Plants with other tags, units, sizes and sensors, as files: record, plant file and own rules."""

from dataclasses import dataclass
from pathlib import Path

from sluice.admission.policy import HardenedPolicy, accept
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants import varied_site
from sluice.network.training_rows import TrainingRows
from sluice.telemetry import FileLayout, PlantFile, write, write_plant_file
from sluice.telemetry.plantfile import read_plant_file
from sluice.telemetry.reading import read_record
from sluice.template import Template, mapped_plant_file, placements


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedPlant:
    """One site: its files, and the rows that it shares."""

    rules: RuleSet  # in points of the template
    rules_file: Path
    share: TrainingRows

    @classmethod
    def make(
        cls,
        folder: Path,
        kind: str,
        site: int,
        template: Template,
        *,
        days: float,
        every: int,
        skip_s: float = 0.0,
        cuts: tuple[int, int],
        share: tuple[int, int],
    ) -> "VariedPlant":
        """Map a site's tags as an operator would decide it, and mine its rules."""
        varied = varied_site(kind, site, seed=3, days=days)
        record = varied.record.without_first(skip_s).every(every)
        path, plant_file = folder / f"site-{site}.parquet", folder / f"site-{site}.toml"
        write(record, path, FileLayout.PARQUET)
        placed = placements(record, template, varied.reference)
        write_plant_file(record, plant_file, plant=mapped_plant_file(PlantFile(), placed))
        mapped = read_record(path, plant=read_plant_file(plant_file))
        fit, calibrate = cuts
        rules = mine(mapped.rows(0, fit), mapped.rows(fit, calibrate), profile=Profile.HARDENED)
        rules_file = folder / f"site-{site}.rules.json"
        save_rules(rules, rules_file)
        start, stop = share
        rows = TrainingRows(record=str(path), start=start, stop=stop, plant=str(plant_file))
        return cls(rules=rules, rules_file=rules_file, share=rows)


def declared_by_approver(rules: RuleSet) -> tuple[tuple[str, str], ...]:
    """Return what the approver declares of the rules, so that the default policy accepts them."""
    asked = [each.declares for each in accept(rules, HardenedPolicy()) if each.declares]
    return tuple((name, "nothing meters it") for name in dict.fromkeys(asked))
