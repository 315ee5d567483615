"""One dataclass per section of params.yaml: one section per stage and per thing stages share."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.params.engine import EngineParams
from tasks.params.fields import Count, Integer, Positive, Real, Share, section
from tasks.params.generation import GenerateVariantsParams
from tasks.params.policy import PolicyParams
from tasks.params.retraining import RetrainParams


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

    device: Annotated[str, Field(pattern=r"^(cpu|cuda|cuda:\d+)$")] = "cpu"
    """cpu, one GPU such as cuda:0, or cuda: every GPU of this machine, or of the cluster that `ray` names."""
    ray: Annotated[str, Field(pattern=r"^(local|auto|[^\s:/@]+:\d+)$")] | None = None
    """A Ray cluster to judge on: HOST:PORT, auto for the one this machine belongs to, or local for one of its own."""
    accelerators: tuple[str, ...] = ()
    """Models of GPU to judge on, as Ray calls them, such as H100; all that the cluster has when empty."""
    workers: Count = 1
    """Candidates measured side by side on each device. Each takes one core; more workers than cores disturb timings."""
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

    @property
    def is_spread(self) -> bool:
        """Whether judges sit on several devices, each in a process that Ray starts."""
        return self.ray is not None or self.device == "cuda"

    @model_validator(mode="after")
    def _is_in_one_place(self) -> Self:
        if self.ray is not None and ":" in self.device:
            raise ValueError(f"ray gives out whole devices: device must be cuda or cpu, not {self.device}")
        if self.accelerators and self.device != "cuda":
            raise ValueError(f"accelerators are chosen among GPUs: device must be cuda, not {self.device}")
        return self


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
class FilterVariantsParams:
    min_speedup: Annotated[Real, Field(ge=0)]
    """Correct candidates slower than this are kept as history but not taught."""
    max_per_problem: Count
    """Candidates taught per problem, the fastest first."""


@section
class SftParams:
    steps: Count
    copying_steps: Annotated[Integer, Field(ge=0)]
    """Steps before these, on made-up programs alone that are to be repeated as they are: copying takes hold where
    nothing can be recited. For models from scratch; others know how to."""
    batch_size: Count
    learning_rate: Positive
    exemplar_share: Share
    """Share of the examples whose prompt shows scored exemplars, so that stage 3 does not start from an unseen form."""
    renamed_share: Share
    """Share of the examples in which identifiers are consistently renamed, which teaches copying from the prompt."""
    invented_share: Share
    """Share of the examples that are such made-up programs, also of those that self_supervised replays."""
    micro_batch_size: Count | None = None
    """Examples computed at once; it divides batch_size, also that of self_supervised. null for the whole batch."""
    packing: bool = False
    """Whether these are laid end to end without padding, kept apart by attention; for models that only attend."""


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
    exemplars: Literal["buckets", "islands", "random", "none"]
    """How earlier kernels are chosen for the prompt; all but "buckets" are the paper's ablations."""
    reward_clip: Annotated[Real, Field(gt=0.5)]
    """k of the paper: normalised rewards are clipped to [-k, k].

    What is correct earns at least -k + 0.5. At 0.5 that is as much as the usual speed earns, 0, so that nothing slower
    would earn less; at 0.25 it is k itself, and speed would be worth nothing.
    """
    kl_beta: Annotated[Real, Field(ge=0)]
    """Weight of the KL penalty against the policy that the stage starts from."""
    clip_epsilon: Positive
    """Half-width of GRPO's trust region around ratio 1."""
    novelty_bonus: Annotated[Real, Field(ge=0)]
    """Added to the reward of a correct text its group holds once: works against the collapse of diversity."""
    micro_batch_size: Count | None = None
    """Rows of a group computed at once when its gradient is, which is the same whatever it is; null for all."""
    updates_per_step: Count = 1
    """Optimiser steps on each step's rollouts; from the second on the ratio leaves 1 and clip_epsilon matters."""
    groups_at_once: Count | None = None
    """Groups sampled side by side; those of before are judged meanwhile. null samples all of a step, then judges.

    What is judged meanwhile must not share a device with what samples: it would be timed beside it.
    """
    islands: Annotated[Integer, Field(ge=2)] = 4
    """Populations of candidates kept apart where exemplars is "islands". Not disclosed in the paper."""
    island_reset_steps: Count = 10
    """After so many steps the worse half of a problem's islands starts anew from the best of the others."""
    entropy_floor: Annotated[Real, Field(ge=0)] = 0.01
    """A mean entropy per token below this over five steps, in nats, is warned of; nothing else changes."""
    distinct_floor: Share = 0.2
    """Likewise for the share of texts that differ within their group; 1 / group_size means that all are alike."""


@section
class EvaluateParams:
    samples_per_problem: Count
    temperature: Positive
    exemplar_share: Share
    """Share of the prompts for train problems that show exemplars from filter_variants, the same for every policy.

    Prompts for held-out problems never show any.
    """
    contenders_per_problem: Count
    """So many of the fastest correct candidates of each problem are timed afresh before one is called the best; the
    next ones, up to three times, where none of these is correct again."""
    baselines: tuple[Literal["compile", "compile_reduce_overhead", "cuda_graph"], ...]
    """What is timed besides eager, over which every speedup is measured anyway; all but compile need CUDA."""
    bootstrap: Annotated[Integer, Field(ge=100)]
    """Resamples behind every interval."""


@section
class Params:
    seed: Annotated[Integer, Field(ge=0, lt=1 << 32)]
    """What numpy takes for one."""
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
    engine: EngineParams = EngineParams()
    retrain: RetrainParams = RetrainParams()
