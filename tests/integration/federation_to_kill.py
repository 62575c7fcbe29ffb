"""A small federation that a test kills and starts again: `python federation_to_kill.py FOLDER`."""

import sys
from pathlib import Path

import numpy as np

from sluice.aggregation.registry import RULES
from sluice.detector.autoencoder import Descent, initial
from sluice.federation.admission_check import Decision
from sluice.federation.checkpoints import CheckpointFile
from sluice.federation.rounds import Checkpoint, begin, run
from sluice.federation.transport import InProcess
from sluice.seeding import stream
from sluice.telemetry.windows import Windows

ROWS, CHANNELS, LENGTH, ROUNDS = 200, 4, 5, 600


def windows(client: str) -> Windows:
    rows = stream(3, "rows", client).standard_normal((ROWS, CHANNELS)).astype(np.float32)
    starts = np.arange(ROWS - LENGTH + 1)
    return Windows(rows=rows, starts=starts, length=LENGTH, labels=np.zeros(len(starts), np.int8))


def tell(checkpoint: Checkpoint) -> None:
    print(checkpoint.round, flush=True)  # noqa: T201 - the test reads it


def main(folder: Path) -> None:
    clients = ("a", "b", "c")
    done = run(
        lambda: begin(
            initial(LENGTH * CHANNELS, seed=5),
            dict.fromkeys(clients, Decision(admitted=True, rows=ROWS)),
        ),
        transport=InProcess(
            batches={},
            windows={client: windows(client) for client in clients},
            descent=Descent(epochs=1, batch=64),
            seed=9,
        ),
        rule=RULES["foolsgold"],  # the rule with the longest memory
        rounds=ROUNDS,
        keeper=CheckpointFile(path=folder / "checkpoint.safetensors", fingerprint="to-kill"),
        on_round=[tell],
    )
    (folder / "weights").write_bytes(done.parameters.tobytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
