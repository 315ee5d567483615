"""The history again, from what the stages left under data/: for when the file is lost.

Doing it again adds nothing. What only the history remembered stays lost: see LOST.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from flows.engine import DATA, progress
from flows.parts.accounting import Account, read_account
from flows.parts.journal import read_rows
from flows.stages import STAGES
from tasks.errors import RecordError
from tasks.history.records import Run, Sample, verdict_id
from tasks.history.store import History
from tasks.judge.baselines import BASELINES, baseline_candidate
from tasks.judge.verdict import Verdict
from tasks.params import as_document, load_params
from tasks.problems.catalogue import load_problems
from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate

VERDICT_FILES = ("verdicts.jsonl", "contenders.jsonl")
LOST = (
    "prompts, completions and exemplars: samples of evaluate come back without them, those of other stages not at all",
    "runs before the last one of each stage; of one without run.json also its id, git commit, beginning and costs",
    "that evaluate reused verdicts of earlier stages",
    "texts and splits of problems as they were then: those of now stand in for them",
    "hacking cases and the reward checker's opinions",
)
"""What stages do not write under data/."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebuilt:
    """What came back of one stage's last run."""

    stage: str
    run_id: str
    was_there: bool
    """The history has a run of the stage with all these verdicts: nothing was added."""
    num_verdicts: int = 0
    num_samples: int = 0
    num_costs: int = 0
    num_left_out: int = 0
    """Verdicts on problems or texts that are not there any more."""


def rebuild_history(out: Path) -> list[Rebuilt]:
    """Append the last run of every stage, as far as its outputs are there.

    Raises:
        RecordError: if an output cannot be read, or no stage has any.
        ParamsError: if params.yaml is refused.
        ProblemError: if the problems are.
        HistoryBusyError: if other processes held the file for too long.
        MachineError: if it cannot be written.
    """
    found = {stage: (read_account(stage), _verdicts(stage)) for stage in STAGES}
    stages = [stage for stage, left in found.items() if any(left)]
    if not stages:
        raise RecordError(f"no stage has left anything under {DATA}; `dvc checkout` or `dvc repro` brings it")
    problems = load_problems(load_params().problems)
    texts = _texts(problems)
    rebuilt, earlier = [], set[str]()
    with progress("rebuilding", total=len(stages), unit="stage") as bar:
        for stage in stages:
            account, verdicts = found[stage]
            rebuilt.append(_rebuild(History(out), stage, problems, texts, account, verdicts, earlier))
            earlier |= {verdict_id(verdict) for verdict in verdicts}
            bar.update()
    return rebuilt


def _rebuild(
    history: History,
    stage: str,
    problems: Mapping[str, Problem],
    texts: Mapping[str, Candidate],
    account: Account | None,
    verdicts: Sequence[Verdict],
    earlier: set[str],
) -> Rebuilt:
    found = _recorded_run(history, stage, account, [verdict_id(verdict) for verdict in verdicts])
    if found:
        return Rebuilt(stage=stage, run_id=found, was_there=True)
    known = [verdict for verdict in verdicts if verdict.candidate_id in texts and verdict.problem_id in problems]
    if verdicts and not known:
        raise RecordError(f"{stage}: the texts of its {len(verdicts)} verdicts are missing; `dvc checkout` brings them")
    own = [verdict for verdict in known if verdict_id(verdict) not in earlier]
    run = account.run if account else _likely_run(stage, verdicts, own or known)
    samples = [sample for sample in _samples(stage, run.params) if sample.candidate_id in texts]
    costs = account.costs if account else ()
    there = {candidate_id for candidate_id, text in texts.items() if text.problem_id in problems}
    costs = [cost for cost in costs if cost.candidate_id is None or cost.candidate_id in there]
    judged = {verdict.candidate_id for verdict in known} | {sample.candidate_id for sample in samples}
    named = judged | {cost.candidate_id for cost in costs if cost.candidate_id is not None}
    history.append(
        run,
        problems=problems.values(),
        candidates=[texts[candidate_id] for candidate_id in sorted(named)],
        samples=samples,
        verdicts=known,
        costs=costs,
        links=account.links if account else (),
    )
    return Rebuilt(
        stage=stage,
        run_id=run.run_id,
        was_there=False,
        num_verdicts=len(known),
        num_samples=len(samples),
        num_costs=len(costs),
        num_left_out=len(verdicts) - len(known),
    )


def _likely_run(stage: str, verdicts: Sequence[Verdict], own: Sequence[Verdict]) -> Run:
    """What verdicts tell of a run of which nothing else is left.

    Args:
        own: those that no earlier stage reached.
    """
    params = _params(stage)
    return Run(
        run_id=f"{stage}-rebuilt-{_content_hash(verdicts)}",
        stage=stage,
        seed=params["seed"],
        params=params,
        # The nearest to its beginning that the outputs tell.
        started_at=min(verdict.judged_at - verdict.seconds for verdict in own),
        versions=own[-1].environment,
    )


def _recorded_run(history: History, stage: str, account: Account | None, verdict_ids: Sequence[str]) -> str | None:
    """A run of the stage that the history has with all these verdicts, if there is one.

    One that has left an account must be there under its name and with its costs and links.
    """
    if not history.path.exists():
        return None
    if account:
        counts = history.query(
            "SELECT (SELECT count(*) FROM runs WHERE run_id = $1), (SELECT count(*) FROM costs WHERE run_id = $1), "
            "(SELECT count(*) FROM run_links WHERE run_id = $1), "
            "(SELECT count(*) FROM run_verdicts WHERE run_id = $1 AND verdict_id IN (SELECT unnest($2)))",
            [account.run.run_id, list(verdict_ids)],
        ).row(0)
        left = (1, len(account.costs), len(account.links), len(set(verdict_ids)))
        # It may know more, such as what an attempt that was killed has told.
        is_whole = all(count >= number for count, number in zip(counts, left, strict=True))
        return account.run.run_id if is_whole else None
    found = history.query(
        "SELECT run_id FROM run_verdicts JOIN runs USING (run_id) WHERE stage = ? AND verdict_id IN "
        "(SELECT unnest(?)) GROUP BY run_id HAVING count(*) = ? ORDER BY run_id",
        [stage, list(verdict_ids), len(set(verdict_ids))],
    )
    return str(found.item(0, 0)) if len(found) else None


def _verdicts(stage: str) -> list[Verdict]:
    paths = [DATA / stage / name for name in VERDICT_FILES]
    return [Verdict.from_json(row) for path in paths if path.exists() for row in read_rows(path)]


def _texts(problems: Mapping[str, Problem]) -> dict[str, Candidate]:
    """Every candidate that a stage wrote down, as of who wrote it first; and the baselines, which none does."""
    paths = [DATA / stage / "candidates.jsonl" for stage in STAGES]
    written = [Candidate.from_json(row) for path in paths if path.exists() for row in read_rows(path)]
    baselines = [baseline_candidate(problem, name) for problem in problems.values() for name in BASELINES]
    return {candidate.candidate_id: candidate for candidate in reversed([*written, *baselines])}


def _samples(stage: str, params: Mapping[str, Any]) -> list[Sample]:
    """What evaluate noted of its samples; a step is a policy and a way of sampling, in the order they come."""
    path = DATA / stage / "samples.jsonl"
    steps: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in read_rows(path) if path.exists() else ():
        steps[row["policy"], row["mode"]].append(row)
    return [
        Sample(
            problem_id=row["problem_id"],
            candidate_id=row["candidate_id"],
            prompt="",
            completion="",
            policy=policy,
            temperature=0.0 if mode == "greedy" else params[stage]["temperature"],
            step=step,
            number=number,
        )
        for step, ((policy, mode), rows) in enumerate(steps.items(), start=1)
        for number, row in enumerate(rows)
    ]


def _params(stage: str) -> dict[str, Any]:
    """The sections of params.yaml as DVC noted them with the outputs, or as they are now where it did not."""
    lock = Path("dvc.lock")
    noted = (yaml.safe_load(lock.read_text()) or {}).get("stages", {}) if lock.exists() else {}
    if "params" in noted.get(stage, {}):
        return dict(noted[stage]["params"]["params.yaml"])
    sections = yaml.safe_load(Path("dvc.yaml").read_text())["stages"][stage]["params"]
    document = as_document(load_params())
    return {section: document[section] for section in sections}


def _content_hash(verdicts: Sequence[Verdict]) -> str:
    return sha256("".join(map(verdict_id, verdicts)).encode()).hexdigest()[:16]
