"""The compiler provider: what torch.compile emits for a problem, in several variations, as candidates without it."""

import shutil
from collections.abc import Callable, Iterator
from threading import Event

from tasks.problems.problem import Problem
from tasks.variants.candidate import Candidate
from tasks.variants.compiler.cpp import CppEmitter
from tasks.variants.compiler.emission import NotSelfContainedError
from tasks.variants.compiler.process import Refused, emit
from tasks.variants.compiler.program import Emitter, program_of

ORIGIN = "compiler"
TIMEOUT_S = 120
MAX_CHARS = 60_000
"""Of a candidate, which g++ must read in seconds."""


class CompilerProvider:
    """Runs the reference, in a process of its own; builds nothing, that is the judge's.

    Args:
        emitter: writes the native part; there is one for the CPU.
        standalone: makes of a problem's text one that runs in another folder, where it needs files beside it.
    """

    name = ORIGIN

    def __init__(
        self,
        emitter: Emitter | None = None,
        *,
        timeout_s: int = TIMEOUT_S,
        standalone: Callable[[str], str] = lambda source: source,
    ) -> None:
        self.emitter: Emitter = emitter or CppEmitter()
        self.timeout_s = timeout_s
        self._standalone = standalone
        self.refused: dict[str, dict[str, str]] = {}
        """By problem and variation, why there is no candidate; equal texts are no reason."""
        self._stopped = Event()

    def stop(self) -> None:
        """End what is being compiled; may be called from another thread."""
        self._stopped.set()

    def candidates(self, problem: Problem, *, seed: int) -> Iterator[Candidate]:
        """A candidate for each variation that makes a text of its own; the seed changes nothing."""
        refused = self.refused[problem.problem_id] = {}
        variations = self.emitter.variations
        if shutil.which(self.emitter.compiler) is None:
            why = f"{self.emitter.compiler}, which builds the candidates, is not installed"
            refused |= {variation.name: why for variation in variations}
            return
        seen: set[str] = set()
        source = self._standalone(problem.source)
        emissions = emit(source, variations, timeout_s=self.timeout_s, is_stopped=self._stopped.is_set)
        for variation, emission in zip(variations, emissions, strict=True):
            try:
                if isinstance(emission, Refused):
                    raise NotSelfContainedError(emission.why)
                text = program_of(problem.source, emission, self.emitter)
                if len(text) > MAX_CHARS:
                    raise NotSelfContainedError(f"the program has {len(text)} characters, above {MAX_CHARS}")
            except NotSelfContainedError as error:
                refused[variation.name] = str(error)
                continue
            if text not in seen:
                seen.add(text)
                yield Candidate(
                    problem_id=problem.problem_id, source=text, origin=ORIGIN, recipe=("inductor", variation.name)
                )
