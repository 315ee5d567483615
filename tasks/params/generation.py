"""The section generate_variants: which providers write candidates, and what language models among them may cost."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from tasks.params.fields import Count, Integer, Positive, Real, Share, section

BUILTIN = "builtin"
COMPILER = "compiler"
OFFLINE = (BUILTIN, COMPILER)
# A generator's name is its candidates' origin, and these are others'.
TAKEN_NAMES = (*OFFLINE, "rewrites", "reference", "sft", "self_supervised", "contrastive_rl")

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
Price = Annotated[Real, Field(ge=0)]


@section
class GeneratorParams:
    """A language model behind an OpenAI-compatible endpoint, and how it is asked."""

    base_url: Annotated[str, Field(pattern=r"^https?://[^@\s]+$")]
    """Such as "https://api.openai.com/v1", without the "/chat/completions"."""
    model: Annotated[str, Field(min_length=1)]
    """The model's name at that endpoint."""
    key_variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None
    """Environment variable that holds the endpoint's key, which must be set; null for an endpoint that wants none."""
    prompt_usd_per_million: Price
    """Price of a million prompt tokens; 0 where nobody sends a bill."""
    answer_usd_per_million: Price
    """Price of a million tokens of the answer, the model's thinking included."""
    answer_tokens: Count = 8192
    """Longest answer, the model's thinking included."""
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the endpoint calls that limit; thinking models of OpenAI know only the second name."""
    temperature: Annotated[Real, Field(ge=0, le=2)] | None = 1.0
    """null sends none, for models that refuse it."""
    concurrency: Count = 4
    """Questions in flight at the endpoint."""
    connect_timeout_s: Positive = 10.0
    answer_timeout_s: Positive = 600.0
    """From sending a question to the last byte of its answer."""
    retries: Annotated[Integer, Field(ge=0, le=20)] = 6
    """Of a question that the endpoint refused for the moment, such as with status 429 or 503."""
    backoff_s: Positive = 1.0
    """Wait before the first retry where the endpoint names none; it doubles with each, up to a minute."""


@section
class GenerateVariantsParams:
    """The defaults ask no language model; trials and successes are the paper's."""

    providers: Annotated[tuple[Name, ...], Field(min_length=1)] = (BUILTIN,)
    """Who writes candidates: "builtin", "compiler" (the reference under torch.compile), and names under generators."""
    max_per_problem: Count
    """Distinct candidates kept per problem of each provider that is no language model."""
    depth: Count
    """Longest composition of rewrites."""
    draws: Count
    """Compositions sampled per problem before giving up on finding a new text."""
    compiled_share: Share
    """Share of the problems of which a candidate under torch.compile is tried; each takes the judge seconds."""
    faulty_share: Share
    """Share of the candidates that carry a deliberate mistake, as a language model's drafts would."""
    trials: Count = 20
    """Answers bought at most of each generator for each train problem."""
    successes: Count = 2
    """Distinct candidates that run and are right at which no more are bought."""
    max_tokens: Count | None = None
    """Of all questions and answers ever bought in this project; null for no limit."""
    max_usd: Positive | None = None
    """Likewise; required where a generator in use has a price."""
    generators: dict[Name, GeneratorParams] = Field(default_factory=dict)
    """By name; only those named under providers are asked."""

    @property
    def generators_in_use(self) -> dict[str, GeneratorParams]:
        """The generators named under providers, in that order."""
        return {name: self.generators[name] for name in self.providers if name not in OFFLINE}

    @model_validator(mode="after")
    def _names_are_sound(self) -> Self:
        taken = [name for name in self.generators if name in TAKEN_NAMES]
        if taken:
            raise ValueError(f"generators may not be called {', '.join(taken)}")
        unknown = [name for name in self.providers if name not in (*OFFLINE, *self.generators)]
        if unknown:
            raise ValueError(f"providers without an entry under generators: {', '.join(unknown)}")
        if len(set(self.providers)) < len(self.providers):
            raise ValueError("a provider is named twice")
        return self

    @model_validator(mode="after")
    def _money_has_a_limit(self) -> Self:
        prices = [g.prompt_usd_per_million + g.answer_usd_per_million for g in self.generators_in_use.values()]
        if self.max_usd is None and any(prices):
            raise ValueError("max_usd must be set: a generator in use has a price")
        return self
