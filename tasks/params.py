"""The typed view of params.yaml: one dataclass per section, one section per stage and per thing stages share."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from tasks.errors import ParamsError
from tasks.params_checks import inconsistencies

# frozen: params are facts about a run. forbid: a misspelt key is an error, not a default.
section = dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))

# strict: "3" and true are mistakes, not numbers.
Integer = Annotated[int, Field(strict=True)]
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Count = Annotated[Integer, Field(gt=0)]
Positive = Annotated[Real, Field(gt=0)]
Share = Annotated[Real, Field(ge=0, le=1)]


@section
class ProblemsParams:
    """Which problems there are and how they are split."""

    folders: Annotated[tuple[str, ...], Field(min_length=1)]
    """Folders in KernelBench format, searched in order."""
    held_out_families: tuple[str, ...]
    """Families no policy is trained on. Whole families, so that no near-duplicate leaks."""
    limit: Annotated[Integer, Field(gt=0)] | None
    """At most so many problems, spread evenly over levels and families; null for all."""


@section
class LongParams:
    """The long tier of the judge; the defaults are the paper's."""

    window_s: Positive = 1800.0
    """What one session of timing takes."""
    buckets: Annotated[Integer, Field(ge=2)] = 7
    """Equal parts of the window; the speedup is the median of their means."""
    max_variance: Positive = 0.005
    """Of the bucket means; above it there is no speedup."""
    second_look_tolerance: Positive = 0.1
    """A jump counts if two sessions differ by at most this share."""


@section
class JudgeParams:
    """How a candidate is checked and timed; shared by every stage that judges."""

    device: Annotated[str, Field(pattern=r"^(cpu|cuda:\d+)$")] = "cpu"
    workers: Count = 1
    """Candidates judged side by side on the CPU. Each worker uses one core; more workers than cores disturb timings."""
    trials: Annotated[Integer, Field(ge=2)] = 3
    """Fresh random inputs, each with weights of its own, that a candidate must get right."""
    rounds: Annotated[Integer, Field(ge=5)] = 9
    """Timed pairs of baseline and candidate in a batch; up to six batches are taken where they do not settle."""
    settled_error: Annotated[Real, Field(gt=0, le=0.12)] = 0.02
    """Batches are added until the standard error of the speedup is at most this share of it."""
    timeout_s: Positive = 90.0
    """Wall-clock limit for one candidate, builds included."""
    memory_bytes: Annotated[Integer, Field(ge=1 << 28)] = 2 << 30
    """Memory a candidate may use beyond what its process starts with."""
    tier: Literal["screen", "long"] = "screen"
    """screen: as many rounds as it takes to know the speedup to a few percent; long: the paper's window of minutes."""
    jump_speedup: Annotated[Real, Field(gt=1)] = 3.0
    """A speedup above this is timed again in fresh processes before it is believed."""
    jump_over_best: Annotated[Real, Field(gt=1)] = 2.0
    """So is one above this multiple of the best known for the problem."""
    second_look_tolerance: Positive = 0.2
    """A jump in the screen counts if two sessions differ by at most this share."""
    long: LongParams = LongParams()


@section
class PolicyParams:
    """The model that is trained, and how it writes."""

    model: str | None
    """Name or path of a pretrained causal language model of transformers; null makes a small one from scratch."""
    prompt_style: Literal["compact", "instruct"]
    """compact: bare code, for small models; instruct: the paper's full prompt with its three sections."""
    vocab_size: Annotated[Integer, Field(ge=300)]
    """Tokens of the byte-level BPE made for a model from scratch."""
    hidden_size: Count
    layers: Count
    heads: Count
    context_tokens: Annotated[Integer, Field(ge=128)]
    """Longest prompt and completion together."""
    completion_tokens: Annotated[Integer, Field(ge=16)]
    """Longest completion sampled or trained on."""
    threads: Count
    """Processor threads of the trainer."""


@section
class ExemplarsParams:
    """How earlier candidates are chosen for a prompt; shared by every stage that shows any."""

    count: Count
    """N of the paper (section 3: N = 2)."""
    bucket_width: Positive
    """Width of a speed bucket in log2 of the speedup; 1.0 spans a factor of two. Not disclosed in the paper."""
    bucket_temperature: Positive
    """tau of the softmax over bucket means: small prefers the fastest buckets. Not disclosed in the paper."""


@section
class CheckerParams:
    """The reward checker: a language model that is asked whether a jump in speed is a hack. An opinion, no verdict."""

    base_url: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")] | None
    """Of an OpenAI-compatible endpoint, such as "http://127.0.0.1:8000/v1"; null asks nobody."""
    model: str | None
    """Name of the model at that endpoint."""
    key_variable: Annotated[str, Field(min_length=1)]
    """Environment variable that holds the endpoint's key; where it is not set, requests carry none."""
    timeout_s: Positive
    """For one answer; thinking models take minutes."""
    retries: Annotated[Integer, Field(ge=0, le=10)]
    answer_tokens: Count
    """Longest answer, the model's thinking included."""
    max_questions: Count
    """In one run of the stage."""
    withholds_reward: bool
    """Whether a candidate that is called a hack earns nothing until the long tier has judged it."""

    @model_validator(mode="after")
    def _names_a_model(self) -> Self:
        if self.base_url is not None and not self.model:
            raise ValueError("base_url needs a model beside it")
        return self


@section
class GenerateVariantsParams:
    max_per_problem: Count
    """Distinct candidates kept per problem."""
    depth: Count
    """Longest composition of rewrites."""
    draws: Count
    """Compositions sampled per problem before giving up on finding a new text."""
    compiled_share: Share
    """Share of the problems of which a candidate under torch.compile is tried; each takes the judge seconds."""
    faulty_share: Share
    """Share of the candidates that carry a deliberate mistake, as a language model's drafts would."""


@section
class FilterVariantsParams:
    min_speedup: Annotated[Real, Field(ge=0)]
    """Correct candidates slower than this are kept as history but not taught."""
    max_per_problem: Count
    """Candidates taught per problem, the fastest first."""


@section
class SftParams:
    steps: Count
    batch_size: Count
    learning_rate: Positive
    exemplar_share: Share
    """Share of the examples whose prompt shows scored exemplars, so that stage 3 does not start from an unseen form."""
    renamed_share: Share
    """Share of the examples in which identifiers are consistently renamed, which teaches copying from the prompt."""
    invented_share: Share
    """Share of the examples that are made-up programs to be repeated as they are, which teaches copying still more."""


@section
class SelfSupervisedParams:
    iterations: Count
    """Rounds of sample, judge, train on the successes."""
    samples_per_problem: Count
    temperature: Positive
    exemplar_share: Share
    """Share of the prompts, sampled and trained on, that show scored exemplars."""
    steps: Count
    """Training steps in each iteration."""
    batch_size: Count
    learning_rate: Positive
    replay_share: Share
    """Share of each batch taken from the filtered variants, against forgetting what was not sampled."""


@section
class ContrastiveRLParams:
    steps: Count
    prompts_per_step: Count
    group_size: Annotated[Integer, Field(ge=2)]
    """Completions per prompt; a group of one has no advantage."""
    temperature: Positive
    learning_rate: Positive
    exemplars: Literal["buckets", "random", "none"]
    """How earlier kernels are chosen for the prompt; "random" and "none" are the paper's ablations."""
    reward_clip: Positive
    """k of the paper: normalised rewards are clipped to [-k, k]."""
    kl_beta: Annotated[Real, Field(ge=0)]
    """Weight of the KL penalty against the policy that the stage starts from."""
    clip_epsilon: Positive
    """Half-width of GRPO's trust region around ratio 1."""
    novelty_bonus: Annotated[Real, Field(ge=0)]
    """Added to the reward of a correct text its group holds once: works against the collapse of diversity."""


@section
class EvaluateParams:
    samples_per_problem: Count
    temperature: Positive
    exemplar_share: Share
    """Share of the prompts for train problems that show exemplars from filter_variants, the same for every policy.

    Prompts for held-out problems never show any.
    """
    contenders_per_problem: Count
    """So many of the fastest correct candidates of each problem are timed afresh before one is called the best."""
    baselines: tuple[Literal["compile", "compile_reduce_overhead", "cuda_graph"], ...]
    """What is timed besides eager, over which every speedup is measured anyway; all but compile need CUDA."""
    bootstrap: Annotated[Integer, Field(ge=100)]
    """Resamples behind every interval."""


@section
class Params:
    seed: Integer
    problems: ProblemsParams
    judge: JudgeParams
    policy: PolicyParams
    exemplars: ExemplarsParams
    checker: CheckerParams
    generate_variants: GenerateVariantsParams
    filter_variants: FilterVariantsParams
    sft: SftParams
    self_supervised: SelfSupervisedParams
    contrastive_rl: ContrastiveRLParams
    evaluate: EvaluateParams


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check every section before any stage spends time.

    The file's "profiles" section is not part of the result: it holds changes for apply_profile.

    Raises:
        ParamsError: listing every bad key at once, each with its dotted path.
    """
    document = read_document(path)
    profiles = document.pop("profiles", None) or {}
    if not isinstance(profiles, dict) or not all(isinstance(changes, dict) for changes in profiles.values()):
        raise ParamsError(f"{path}: profiles must hold sections by profile, such as 'smoke: {{sft: {{steps: 80}}}}'")
    mistakes = inconsistencies(document)
    try:
        params = TypeAdapter(Params).validate_python(document)
    except ValidationError as error:
        mistakes += [f"{'.'.join(map(str, mistake['loc']))}: {_explain(mistake)}" for mistake in error.errors()]
    if mistakes:
        raise ParamsError("\n  ".join([f"{path} has {len(mistakes)} mistake(s):", *mistakes]))
    return params


def read_document(path: Path) -> dict[str, Any]:
    """The file's sections as they stand, unchecked.

    Raises:
        ParamsError: if it cannot be read or is not a mapping.
    """
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ParamsError(f"{path} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ParamsError(f"{path} must hold sections such as 'seed: 0', but holds {document!r}")
    return document


def apply_profile(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A copy of the document with the values of one of its profiles laid over it, and no profiles left.

    Raises:
        ParamsError: if there is no such profile.
    """
    profiles = document.get("profiles") or {}
    if name not in profiles:
        raise ParamsError(f"no profile {name!r}; there are: {', '.join(sorted(profiles)) or 'none'}")
    base = {key: value for key, value in document.items() if key != "profiles"}
    return _overlaid(base, profiles[name])


def _overlaid(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _overlaid(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _explain(mistake: Any) -> str:
    if mistake["type"] == "unexpected_keyword_argument":
        return f"unknown key (got {mistake['input']!r}); remove it or correct its spelling"
    if mistake["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return "missing key; add it"
    return f"{mistake['msg']} (got {mistake['input']!r})"


def as_document(params: Params) -> dict[str, Any]:
    """The params as plain dictionaries, lists and scalars, as they stand in the file."""
    return dict(TypeAdapter(Params).dump_python(params, mode="json"))
