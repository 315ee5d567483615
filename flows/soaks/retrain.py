"""Does a night hold? Retrainings one after the other, each struck by faults at random moments, and then looked at.

    python -m flows.soaks.retrain --faults 200        # what was ended continues where it stopped

A night has something new to do: a better policy, a worse one, or a new problem, which makes every stage out of date.
What the faults left undone is made good by the same run, begun again, or by the next one. A run that ends before all of
a night's faults have struck is followed by another; the last one of a night is struck by nothing, or has finished. Then
nothing may be lost, doubled, promoted wrongly, left over or hidden.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import copytree
from typing import Any
from uuid import UUID

from flows.engine import WORK, progress, say
from flows.parts.journal import Journal
from flows.soaks.retrain_checks import Witness, leftovers, orphans, visible
from flows.soaks.retrain_faults import FAULTS, Fault, Undo
from flows.soaks.retrain_machine import Machine, machine
from flows.soaks.retrain_runs import (
    POLICY,
    begin,
    bring,
    enthrone_untrained,
    finished,
    is_over,
    make_untrained,
    pause,
)
from tasks.errors import MachineError
from tasks.registry_files import policy_digest

NEWS = ("better", "problem", "worse", "problem")
DISK = "640m"
OWN_DISK = "CUDA_L1_SOAK_DISK"
"""Set where the project has a disk of its own, which can be filled."""
STRIKE_TRIES = 20
NUM_FAULTS, MAX_STRUCK = (3, 10), 4
"""Faults in one night, at least and at most, and runs that they may strike."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Night:
    """What became of one night."""

    number: int
    seed: int
    """What struck, and when, as far as that can be repeated."""
    news: str
    faults: list[str]
    """Those that struck; one that found nothing to hit at its moment did not."""
    states: list[str]
    """How the runs ended that were struck, and the one after them where there had to be one."""
    seconds: float
    violations: list[str]


class Soak:
    """Night after night on one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._witness = Witness(machine)
        self._usual_s = 60.0

    def prepare(self) -> None:
        """The first night, undisturbed: every stage, and a champion that knows nothing is beaten."""
        begun = time.monotonic()
        make_untrained(self._machine)
        self._witness.set_champion(enthrone_untrained(self._machine))
        state = finished(self._machine, begin(self._machine))
        if state.name != "Promoted":
            raise MachineError(f"undisturbed, the first night ended as {state.name}: {state.message}")
        copytree(self._machine.root / POLICY, self._machine.folder / "trained")
        if wrong := self._violations():
            raise MachineError(f"undisturbed, the first night left this: {wrong}")
        self._usual_s = time.monotonic() - begun

    def night(self, number: int, chosen: Sequence[Fault], *, seed: int) -> Night:
        """Strike a run with some of the faults, and look at what is there in the end."""
        begun, rng, news = time.monotonic(), random.Random(seed), NEWS[number % len(NEWS)]
        faults = rng.sample(chosen, k=min(rng.randint(*NUM_FAULTS), len(chosen)))
        if news == "better":
            self._witness.set_champion(enthrone_untrained(self._machine))
        bring(self._machine, news, number)
        if news == "worse":
            self._witness.losers.add(policy_digest(self._machine.root / POLICY))
        struck: list[Fault] = []
        states: list[str] = []
        violations: list[str] = []
        left, usual_s = list(faults), self._usual_s / (1 if news == "problem" else 2)
        try:
            while left and len(states) < MAX_STRUCK:
                run_id, left = self._struck(left, struck, rng, usual_s=usual_s)
                state = finished(self._machine, run_id)
                states.append(f"{state.name}: {state.message}")
                violations += visible(self._machine, run_id, struck)
            if not state.is_completed():
                state = finished(self._machine, begin(self._machine))
                states.append(f"{state.name}: {state.message}")
            if not state.is_completed():
                violations.append(f"the run after the faults is {state.name}: {state.message}")
            violations += self._violations()
        except MachineError as error:
            violations.append(str(error))
        return Night(
            number=number,
            seed=seed,
            news=news,
            faults=[fault.name for fault in struck],
            states=[state[:200] for state in states],
            seconds=round(time.monotonic() - begun, 1),
            violations=violations,
        )

    def _struck(
        self, faults: Sequence[Fault], struck: list[Fault], rng: random.Random, *, usual_s: float
    ) -> tuple[UUID, list[Fault]]:
        """A run and those faults whose turn has not come when it is over, over as long as a run usually takes.

        Args:
            struck: what has struck is appended.
        """
        pause_s = 2 * usual_s / (1 + len(faults))
        undo = {fault.name: fault.inject(self._machine, rng) for fault in faults if fault.before}
        run_id, left = begin(self._machine), list[Fault]()
        for fault in faults:
            if not fault.before:
                pause(self._machine, run_id, rng.uniform(0.5, pause_s))
                if is_over(self._machine, run_id):
                    left.append(fault)
                    continue
                self._witness.look()
                undo[fault.name] = self._injected(fault, run_id, rng)
            if heal := undo[fault.name]:
                struck.append(fault)
                try:
                    _hold(self._machine, run_id, fault, rng)
                finally:
                    heal()
        return run_id, left

    def _injected(self, fault: Fault, run_id: UUID, rng: random.Random) -> Undo | None:
        """Wait a little for something to hit, no longer than the run lasts."""
        for _ in range(STRIKE_TRIES):
            if (undo := fault.inject(self._machine, rng)) is not None or is_over(self._machine, run_id):
                return undo
            time.sleep(0.25)
        return None

    def _violations(self) -> list[str]:
        checks = (orphans(self._machine), self._witness.records(), self._witness.promotion(), leftovers(self._machine))
        return [wrong for check in checks for wrong in check]


def soak(folder: Path, journal: Journal, *, num_faults: int, chosen: Sequence[Fault], minutes: float) -> None:
    """Nights until so many faults have struck, counting those of earlier calls, or the time is over."""
    rows, end = list(journal.rows), time.monotonic() + 60 * minutes
    with progress("soaking", total=num_faults, unit="fault") as bar, machine(folder) as made:
        bar.update(sum(len(row["faults"]) for row in rows))
        soak = Soak(made)
        soak.prepare()
        while bar.n < num_faults and time.monotonic() < end:
            night = soak.night(len(rows), chosen, seed=random.SystemRandom().getrandbits(32))
            rows.append(asdict(night))
            journal.append(rows[-1:])
            bar.update(len(night.faults))
            for wrong in night.violations:
                say(f"night {night.number} ({', '.join(night.faults)}): {wrong}")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each kind of fault: how often it struck, in how many nights something was broken, and the promise."""
    times = Counter(name for row in rows for name in row["faults"])
    broken = Counter(name for row in rows if row["violations"] for name in row["faults"])
    lines = [f"{'fault':22}{'times':>6}{'broken':>8}  promise"]
    lines += [f"{f.name:22}{times[f.name]:6}{broken[f.name]:8}  {f.promise}" for f in FAULTS]
    wrong = sum(len(row["violations"]) for row in rows)
    return "\n".join([*lines, f"{sum(times.values())} faults in {len(rows)} nights, {wrong} violations"])


def _hold(machine: Machine, run_id: UUID, fault: Fault, rng: random.Random) -> None:
    seconds = rng.uniform(*fault.hold_s)
    if fault.before:
        pause(machine, run_id, seconds)  # until it has struck
    else:
        time.sleep(seconds)


def _on_own_disk(folder: Path) -> None:
    """Begin again where the project has a disk of its own, if this machine allows mounts."""
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    script = f'mount -t tmpfs -o size={DISK} none {project} && exec "$@"'
    for prefix in (["unshare", "--mount"], ["unshare", "--map-root-user", "--mount"]):
        if (
            subprocess.run([*prefix, "sh", "-c", script, "sh", "true"], capture_output=True, check=False).returncode
            == 0
        ):
            os.environ[OWN_DISK] = str(folder)
            command = [*prefix, "sh", "-c", script, "sh", sys.executable, "-m", "flows.soaks.retrain", *sys.argv[1:]]
            os.execvp(command[0], command)
    say('this machine allows no mounts: the fault "disk full" is left out')


def main() -> None:
    """Parse the command line and soak; exit code 1 when anything was broken."""
    parser = argparse.ArgumentParser(description="Strike retrainings with faults at random and look what is left.")
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--only", action="append", choices=[fault.name for fault in FAULTS], help="these kinds only")
    parser.add_argument("--minutes", type=float, default=24 * 60.0, help="begin no night after this")
    parser.add_argument("--out", type=Path, default=WORK / "soak_retrain")
    arguments = parser.parse_args()
    if OWN_DISK not in os.environ:
        _on_own_disk(Path(tempfile.mkdtemp(prefix="soak-retrain-")))
        os.environ[OWN_DISK] = tempfile.mkdtemp(prefix="soak-retrain-")
    chosen = [fault for fault in FAULTS if not arguments.only or fault.name in arguments.only]
    journal = Journal(arguments.out.absolute() / "nights.jsonl")
    folder = Path(os.environ[OWN_DISK])
    try:
        soak(folder, journal, num_faults=arguments.faults, chosen=chosen, minutes=arguments.minutes)
    except MachineError as error:
        sys.exit(f"MachineError: {error}")
    finally:
        rows = [json.loads(line) for line in journal.path.read_bytes().splitlines()]
        say(table(rows))
        journal.path.with_name("result.json").write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(1 if any(row["violations"] for row in rows) else 0)


if __name__ == "__main__":
    main()
