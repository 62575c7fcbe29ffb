"""Runs EPANET once and reads the values at the meters."""

import contextlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Floats, Ints
from sluice.errors import RecordError
from sluice.lab.plants.distribution.controls import Override, Overrides
from sluice.lab.plants.distribution.instruments import Meter, Quantity
from sluice.lab.plants.distribution.model import Model, quiet

__all__ = ["OutputFile", "run"]

LITRES_PER_M3 = 1000.0
SAVE_HYDRAULICS = 1  # EN_SAVE
CLOSED_CODES = 2  # EPANET writes 0 to 2 for closed states, 3 and more for open ones

# The binary output file of the EPANET toolkit manual: all sizes in bytes.
PROLOG, TITLES_AND_FILES, IDENTIFIER, WORD, EPILOG = 60, 240 + 260 + 260 + 64, 32, 4, 28
NODE_QUANTITIES, LINK_QUANTITIES = 4, 8
HEAD_AMONG_NODES, FLOW_AMONG_LINKS, STATUS_AMONG_LINKS = 1, 0, 4


def run(
    model: Model, meters: tuple[Meter, ...], *, rows: int, overrides: tuple[Override, ...] = ()
) -> Floats:
    """Solve the network and return the true value at each meter, one row per report time."""
    from wntr.epanet.exceptions import EpanetException  # noqa: PLC0415

    # EPANET also writes scratch files to the working directory, not only those it is given.
    with TemporaryDirectory(prefix="sluice-epanet-") as folder, contextlib.chdir(folder), quiet():
        try:
            _solve(model, overrides)
        except EpanetException as error:
            reason = " ".join(str(error).split())
            raise RecordError(f"EPANET cannot solve network {model.name!r}: {reason}") from error
        true = OutputFile(meters=meters).read("run.bin")
    if len(true) < rows:
        raise RecordError(
            f"EPANET stopped solving network {model.name!r} after {len(true)} of {rows} rows; "
            "its hydraulics do not converge, try less demand noise or no attacks"
        )
    return true[:rows]


def _solve(model: Model, overrides: tuple[Override, ...]) -> None:
    """Run EPANET step by step, as its own ENsolveH does, and write `run.bin`."""
    from wntr.epanet.toolkit import ENepanet  # noqa: PLC0415
    from wntr.network import write_inpfile  # noqa: PLC0415

    write_inpfile(model, "run.inp", units=model.options.hydraulic.inpfile_units)
    toolkit = ENepanet()
    toolkit.ENopen("run.inp", "run.rpt", "run.bin")
    forced = Overrides(toolkit, model, overrides)
    toolkit.ENopenH()
    toolkit.ENinitH(SAVE_HYDRAULICS)
    time_s, step_s = 0, 1
    while step_s > 0:
        forced.before_step(time_s)
        toolkit.ENrunH()
        step_s = toolkit.ENnextH()
        time_s += step_s
    toolkit.ENcloseH()
    toolkit.ENsolveQ()  # writes the output file
    toolkit.ENclose()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """Reads the metered columns of EPANET's output file.

    wntr's own reader makes a table of every quantity of every element (52 kB a row for ky4, so
    that a month at one minute would take several times 2 GB of memory); this one loads only the
    columns that a meter shows.
    """

    meters: tuple[Meter, ...]

    def read(self, filename: str) -> Floats:
        """Return meters' values, m and L/s, at as many report times as the run reached."""
        prolog = np.fromfile(filename, "<i4", PROLOG // WORD)
        _, _, nodes, tanks, links, pumps = (int(count) for count in prolog[:6])
        names_at = PROLOG + TITLES_AND_FILES
        identifiers = np.fromfile(filename, f"S{IDENTIFIER}", nodes + links, offset=names_at)
        layout_words = 3 * links + 2 * tanks + nodes + 2 * links + 7 * pumps + 1
        data_at = names_at + (nodes + links) * IDENTIFIER + layout_words * WORD
        width = NODE_QUANTITIES * nodes + LINK_QUANTITIES * links
        rows = (Path(filename).stat().st_size - data_at - EPILOG) // (width * WORD)
        if rows < 1:
            return np.empty((0, len(self.meters)))
        table = np.memmap(filename, "<f4", "r", offset=data_at, shape=(rows, width))
        metered = table[:, self._columns(identifiers, nodes, links)].astype(np.float64)
        return self._in_plant_units(metered, int(prolog[9]))

    def _columns(self, identifiers: NDArray[np.bytes_], nodes: int, links: int) -> Ints:
        names = [identifier.decode("latin-1") for identifier in identifiers]
        node_at = {name: place for place, name in enumerate(names[:nodes])}
        link_at = {name: place for place, name in enumerate(names[nodes:])}
        links_from = NODE_QUANTITIES * nodes
        columns = []
        for meter in self.meters:
            match meter.quantity:
                case Quantity.HEAD:
                    columns.append(HEAD_AMONG_NODES * nodes + node_at[meter.element])
                case Quantity.FLOW:
                    columns.append(links_from + FLOW_AMONG_LINKS * links + link_at[meter.element])
                case Quantity.STATUS:
                    columns.append(links_from + STATUS_AMONG_LINKS * links + link_at[meter.element])
        return np.array(columns, np.int64)

    def _in_plant_units(self, metered: Floats, flow_units: int) -> Floats:
        from wntr.epanet.util import FlowUnits, HydParam, to_si  # noqa: PLC0415

        units = FlowUnits(flow_units)
        for column, meter in enumerate(self.meters):
            values = metered[:, column]
            match meter.quantity:
                case Quantity.HEAD:
                    metered[:, column] = (
                        to_si(units, values, HydParam.HydraulicHead) - meter.datum_m
                    )
                case Quantity.FLOW:
                    litres = to_si(units, values, HydParam.Flow) * LITRES_PER_M3
                    metered[:, column] = litres * meter.sign
                case Quantity.STATUS:
                    metered[:, column] = values > CLOSED_CODES
        return metered
