"""Who takes part in an optimization: the names after --provider, and what each of them becomes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from flows.project import project_folder
from tasks.errors import ParamsError, ProblemError, ProviderError
from tasks.params import GeneratorParams, Params, load_params
from tasks.params.generation import BUILTIN, COMPILER, OFFLINE
from tasks.problems.problem import Problem
from tasks.search.compositions import Compositions, starting_programs
from tasks.search.contrastive import Contrastive, IslandsChoice
from tasks.search.experience import Experience
from tasks.search.folder_provider import FolderProvider
from tasks.search.inherited import put_together
from tasks.search.proposers import FromProvider, InBackground, Proposer
from tasks.search.texts import with_prefix
from tasks.search.writers import Asked, Writer
from tasks.variants.candidate import Candidate
from tasks.variants.compiler.provider import TIMEOUT_S, CompilerProvider
from tasks.variants.recipes import RecipeProvider
from tasks.variants.rewrites import rewrites_for
from tasks.variants.rewriting import ORIGIN as REWRITES

if TYPE_CHECKING:
    from flows.optimizing.answers import Answers
    from flows.optimizing.writers import Shop
    from tasks.variants.llm.budget import Cost

ExemplarsFrom = Literal["buckets", "islands"]
POLICY = "policy:"
MODEL_FILES = ("*.safetensors", "*.json")


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Providers by name that exist as far as one can see, in the order they were named in."""

    names: tuple[str, ...]
    params: Params | None
    """Of the project, where a name needs it."""
    max_usd: float | None
    """Of all that language models write; None for no cap."""
    exemplars: ExemplarsFrom = "buckets"
    """What the prompts of language models and policies show."""

    @property
    def generators(self) -> Mapping[str, GeneratorParams]:
        known = self.params.generate_variants.generators if self.params else {}
        return {name: known[name] for name in self.names if name in known and not Path(name).is_dir()}

    @property
    def islands(self) -> IslandsChoice | None:
        if self.params is None or self.exemplars != "islands":
            return None
        training = self.params.contrastive_rl
        return IslandsChoice(count=training.islands, reset_rounds=training.island_reset_steps)


def chosen(names: Sequence[str], *, max_usd: float | None, exemplars: ExemplarsFrom = "buckets") -> Chosen:
    """The providers of these names; nothing of them is loaded or asked yet.

    Raises:
        ProblemError: if a name is nobody's, or exemplars are chosen for no prompt.
        ParamsError: if the params that a provider needs are missing, or a price without a cap.
    """
    distinct = tuple(dict.fromkeys(names))
    named = [name for name in distinct if name not in OFFLINE and not Path(name).is_dir()]
    if exemplars != "buckets" and not named:
        raise ProblemError(
            f"--exemplars {exemplars} is for prompts, and no --provider is a language model or a policy: name one, or "
            f"leave it out"
        )
    folder = project_folder()
    params = load_params(folder / "params.yaml") if named and folder else None
    known = params.generate_variants.generators if params else {}
    for name in named:
        if name.startswith(POLICY):
            if params is None:
                raise ParamsError(
                    f"--provider {name} needs the section policy of a params.yaml, and there is none in {Path.cwd()} "
                    f"or above; run this from within a project"
                )
        elif name not in known:
            where = f"{folder}/params.yaml" if folder else f"a project, which {Path.cwd()} is not in"
            there = f" ({', '.join(known)})" if known else ""
            raise ProblemError(
                f"--provider {name} is neither {' nor '.join(OFFLINE)} nor a folder of files that define ModelNew, nor "
                f"{POLICY}PATH, nor a name under generate_variants.generators of {where}{there}"
            )
    _require_distinct(distinct)
    found = Chosen(names=distinct, params=params, max_usd=max_usd, exemplars=exemplars)
    priced = [n for n, each in found.generators.items() if each.prompt_usd_per_million + each.answer_usd_per_million]
    if priced and max_usd is None:
        raise ParamsError(f"--provider {priced[0]} has a price: say with --max-usd what may be spent in all")
    return found


def _require_distinct(names: Sequence[str]) -> None:
    """Refuse names that would be one in the report and in what is remembered."""
    by_origin: dict[str, str] = {}
    for name in names:
        is_folder = name not in OFFLINE and Path(name).is_dir()
        origin = FolderProvider(Path(name)).name if is_folder else REWRITES if name == BUILTIN else name
        if origin in by_origin:
            raise ProblemError(
                f"--provider {by_origin[origin]} and --provider {name} would both be called {origin} in the report; "
                f"rename the folder of one of them"
            )
        by_origin[origin] = name


class Providers:
    """Proposers for one problem, and what they hold open.

    Args:
        folder: for the ledger of what is bought.
        answers: the journal of what is asked.
        device: that candidates are judged on.
        seconds: that the search may take.
        candidates: the most that are judged.
        prefix: what goes before a text so that it finds the files that it needs.
    """

    def __init__(
        self,
        chosen: Chosen,
        problem: Problem,
        *,
        folder: Path,
        answers: "Answers",
        device: str,
        seed: int,
        seconds: float,
        candidates: int | None = None,
        prefix: str = "",
    ) -> None:
        self._chosen = chosen
        self._prefix = prefix
        self._problem = problem
        self._folder = folder
        self._answers = answers
        self._device = device
        self._seed = seed
        self._seconds = seconds
        self._candidates = candidates
        self._stack = ExitStack()
        self._shop: Shop | None = None
        self.proposers: list[Proposer] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            if self._chosen.generators:
                from flows.optimizing.writers import PURCHASES, Shop

                shop = Shop(self._folder / PURCHASES, self._chosen.generators, max_usd=self._chosen.max_usd)
                self._shop = stack.enter_context(shop)
            for name in self._chosen.names:
                for proposer in self._of(name):
                    stack.callback(proposer.close)  # where a search does not come to that
                    self.proposers.append(proposer)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def spent(self) -> "dict[str, Cost]":
        """What each language model has cost in all runs with this folder."""
        return self._shop.spent() if self._shop else {}

    def _of(self, name: str) -> Iterator[Proposer]:
        generators = self._chosen.generators
        if name == BUILTIN:
            yield from rewriting(self._problem, seed=self._seed, device=self._device)
        elif name == COMPILER:
            if self._device != "cpu":
                raise ProblemError(f"--provider {COMPILER} writes C++ for the CPU: leave it out for {self._device}")
            # Half of the search at most: what comes later than that is not looked at well any more.
            compiler = CompilerProvider(
                timeout_s=min(TIMEOUT_S, math.ceil(self._seconds / 2)),
                standalone=partial(with_prefix, prefix=self._prefix),
            )
            yield InBackground(COMPILER, partial(self._compiled, compiler), stop=compiler.stop)
        elif name in generators:
            from flows.optimizing.writers import LanguageModel

            assert self._shop is not None
            params = generators[name]
            model = LanguageModel(name, params, self._problem, shop=self._shop, device=self._device)
            yield self._contrastive(model, [params.model, str(params.answer_tokens), str(params.temperature)])
        elif name.startswith(POLICY):
            from flows.optimizing.writers import load_writer

            assert self._chosen.params is not None
            source = name.removeprefix(POLICY)
            policy = load_writer(name, source, self._chosen.params, self._problem, seed=self._seed)
            yield self._contrastive(policy, [str(self._chosen.params.policy), *_state(Path(source))])
        else:
            yield FromProvider(FolderProvider(Path(name)), self._problem, seed=self._seed)

    def _compiled(self, provider: CompilerProvider) -> list[Candidate]:
        found = list(provider.candidates(put_together(self._problem), seed=self._seed))
        if not found:
            raise ProviderError(next(iter(provider.refused[self._problem.problem_id].values())))
        return found

    def _contrastive(self, writer: Writer, identity: Sequence[str]) -> Contrastive:
        if self._chosen.islands:  # an answer lives where its question came from
            identity = [*identity, str(self._chosen.islands)]

        def note(asked: Asked) -> None:
            self._answers.note(asked, identity)

        assert self._chosen.params is not None
        return Contrastive(
            self._problem,
            writer,
            choice=self._chosen.params.exemplars,
            seed=self._seed,
            islands=self._chosen.islands,
            known=self._answers.of(writer.name, identity),
            note=note,
            candidates=self._candidates,
        )


def rewriting(problem: Problem, *, seed: int, device: str, experience: Experience | None = None) -> list[Proposer]:
    """Rewrites that learn from what was found, here and by those with whom the experience is shared.

    Where calls can be put into the forward, they start from that form, and from the text as it is too. What the class
    inherits within its file is in its text before. On a GPU whole recipes come before them: a kernel in the graph that
    pays for it is many steps away.
    """
    problem = put_together(problem)
    make = partial(
        Compositions, problem, seed=seed, rewrites=rewrites_for(device), experience=experience or Experience()
    )
    learning: list[Proposer] = [make(start=start) for start in starting_programs(problem)]
    if device == "cpu":
        return learning
    return [FromProvider(RecipeProvider(device), problem, seed=seed), *learning]


def _state(folder: Path) -> list[str]:
    """What tells a policy from one that was saved in the same place later."""
    files = sorted(path for pattern in MODEL_FILES for path in folder.glob(pattern)) if folder.is_dir() else []
    return [f"{path.name} {path.stat().st_mtime_ns}" for path in files]
