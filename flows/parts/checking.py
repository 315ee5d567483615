"""Asking the reward checker about jumps in a stage: several at once, journalled, and kept in the history."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from time import time

from flows.engine import HISTORY, Stage, say
from flows.parts.journal import Journal
from tasks.errors import CudaL1Error, ProviderError
from tasks.history.exemplars import ExemplarPool
from tasks.history.hacks import HackCase, HackCases, Opinion, most_similar
from tasks.judge.jumps import jump
from tasks.judge.opinions.findings import static_findings
from tasks.judge.verdict import Verdict
from tasks.params import CheckerParams
from tasks.problems.problem import Problem
from tasks.training.checker import RewardChecker
from tasks.training.checker_prompt import Question, build_question
from tasks.variants.candidate import Candidate

AT_ONCE = 4
FAILURES_IN_A_ROW = 3
"""After so many questions in a row without an answer, no more are asked in this run."""


class Inquiry:
    """The opinions of one run of a stage. An answer that does not come is missing, and nothing else happens."""

    def __init__(
        self, stage: Stage, problems: Mapping[str, Problem], params: CheckerParams, checker: RewardChecker | None
    ) -> None:
        self._problems = problems
        self._params = params
        self._judging = stage.params.judge
        self._checker = checker
        self._cases = HackCases(HISTORY)
        self._journal = Journal(
            stage.folder / "opinions.jsonl", remedy="remove that line: that opinion is then missing"
        )
        self._opinions = {row["candidate_id"]: Opinion(**row) for row in self._journal.rows}
        self._unanswered: set[str] = set()
        self._failures_in_a_row = 0
        self._said: set[str] = set()

    def ask_about_jumps(self, candidates: Sequence[Candidate], verdicts: Sequence[Verdict], pool: ExemplarPool) -> None:
        """Get an opinion on each candidate whose speedup is a jump, once a run and within the limits.

        Args:
            pool: the problems' best so far, these candidates not included; what it holds already is no jump.
        """
        if self._checker is None:
            return
        questions = [
            (candidate, verdict, words)
            for candidate, verdict in zip(candidates, verdicts, strict=True)
            if (words := self._jump(candidate, verdict, pool))
        ]
        cases = self._known_cases() if questions else []
        with ThreadPoolExecutor(max_workers=AT_ONCE) as threads:
            futures = {
                threads.submit(self._ask, self._checker, candidate, verdict, words, cases): candidate
                for candidate, verdict, words in questions[: self._questions_left]
            }
            if len(futures) < len(questions):
                self._say_once("limit", "no more questions to the reward checker in this run: some jumps go unasked")
            for future in as_completed(futures):
                self._note(futures[future], future.result())

    def withholds(self, verdict: Verdict) -> bool:
        """Whether a reward waits because of an opinion: it does until the long tier gives the verdict."""
        opinion = self._opinions.get(verdict.candidate_id)
        is_long = verdict.timing is not None and verdict.timing.settled is not None
        return self._params.withholds_reward and opinion is not None and opinion.is_hack and not is_long

    def close(self) -> None:
        """Let go of the journal, and say what came of the questions."""
        self._journal.close()
        if self._opinions or self._unanswered:
            hacks = sum(opinion.is_hack for opinion in self._opinions.values())
            say(
                f"reward checker: {len(self._opinions)} opinion(s), {hacks} of them that it is a hack, "
                f"{len(self._unanswered)} missing"
            )

    @property
    def _questions_left(self) -> int:
        if self._failures_in_a_row >= FAILURES_IN_A_ROW:
            return 0
        return max(self._params.max_questions - len(self._opinions) - len(self._unanswered), 0)

    def _jump(self, candidate: Candidate, verdict: Verdict, pool: ExemplarPool) -> str:
        asked = candidate.candidate_id in self._opinions or candidate.candidate_id in self._unanswered
        known = {exemplar.candidate_id for exemplar in pool.of(candidate.problem_id)}
        if verdict.speedup is None or asked or candidate.candidate_id in known:
            return ""
        best = pool.best(candidate.problem_id)
        return jump(
            verdict.speedup,
            best=best.speedup if best else None,
            times_reference=self._judging.jump_speedup,
            times_best=self._judging.jump_over_best,
        )

    def _ask(
        self, checker: RewardChecker, candidate: Candidate, verdict: Verdict, words: str, cases: Sequence[HackCase]
    ) -> Opinion | ProviderError:
        prompt = build_question(
            Question(
                problem=self._problems[candidate.problem_id],
                candidate=candidate,
                verdict=verdict,
                jump=words,
                findings=static_findings(candidate.source),
                cases=most_similar(candidate.source, cases),
            )
        )
        try:
            answer = checker.ask(prompt)
        except ProviderError as error:
            return error
        return Opinion(
            candidate_id=candidate.candidate_id,
            problem_id=candidate.problem_id,
            asked_at=time(),
            model=checker.model,
            is_hack=answer.is_hack,
            group=answer.group,
            reason=answer.reason,
            prompt=prompt,
        )

    def _note(self, candidate: Candidate, answer: Opinion | ProviderError) -> None:
        if isinstance(answer, ProviderError):
            self._failures_in_a_row += 1
            self._unanswered.add(candidate.candidate_id)
            self._say_once("missing", f"warning: opinions are missing, verdicts stand as they are: {answer}")
            return
        self._failures_in_a_row = 0
        self._journal.append([asdict(answer)])
        self._opinions[answer.candidate_id] = answer
        try:
            self._cases.record_opinions([answer])
        except CudaL1Error as error:
            self._say_once("history", f"warning: opinions are kept in the journal only: {error}")

    def _known_cases(self) -> list[HackCase]:
        try:
            return self._cases.all()
        except CudaL1Error as error:
            self._say_once("cases", f"warning: the reward checker is shown no earlier hacks: {error}")
            return []

    def _say_once(self, what: str, message: str) -> None:
        if what not in self._said:
            self._said.add(what)
            say(message)


@contextmanager
def inquiry(stage: Stage, problems: Mapping[str, Problem], params: CheckerParams) -> Iterator[Inquiry]:
    """The opinions of a stage's run, with a checker where params.base_url names one; closed whatever happens."""
    with RewardChecker(params) if params.base_url else nullcontext() as checker:
        opinions = Inquiry(stage, problems, params, checker)
        try:
            yield opinions
        finally:
            opinions.close()
