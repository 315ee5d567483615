"""Completions by transformers' continuous batching: a new one begins wherever one ended. Made for GPUs."""

from collections.abc import Sequence

from transformers import ContinuousBatchingConfig, GenerationConfig, PreTrainedModel

from tasks.errors import MachineError
from tasks.training.generation import Written, weights_stamp
from tasks.training.policy import Policy

_PAGE_TOKENS = 64
_REMEDY = "set engine.generator to sampler"


class ContinuousBatching:
    """Writes with the very model that is trained, whose attention it exchanges for the time."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._model: PreTrainedModel = policy.model

    def take(self, model: PreTrainedModel, *, stamp: str) -> None:
        """Nothing to send: training changes this model in place."""
        self._model = model

    def write(
        self, prompt_ids: Sequence[Sequence[int]], *, num_samples: int, temperature: float | None, seed: int, first: int
    ) -> Written:
        """As GenerationEngine.write, except that completions depend on what else is written beside them.

        Raises:
            MachineError: if the model is of a kind it does not know, or completions are missing.
        """
        was_training, attention = self._model.training, self._model.config._attn_implementation
        self._model.eval()
        try:
            outputs = self._model.generate_batch(  # type: ignore[operator]
                [list(ids) for ids in prompt_ids for _ in range(num_samples)],
                generation_config=self._config(temperature),
                continuous_batching_config=self._room(prompt_ids, num_samples, seed=(seed + first) % (1 << 31)),
            )
        except ValueError as error:
            raise MachineError(f"continuous batching cannot write with this model: {error}; {_REMEDY}") from error
        finally:
            self._model.set_attn_implementation(attention)
            self._model.train(was_training)
        ids = [output.generated_tokens for output in outputs.values() if output.error is None]
        if len(ids) != len(prompt_ids) * num_samples:
            raise MachineError(
                f"continuous batching wrote {len(ids)} of {len(prompt_ids) * num_samples} completions; {_REMEDY}"
            )
        groups = [ids[start : start + num_samples] for start in range(0, len(ids), num_samples)]
        return Written(completion_ids=groups, stamp=weights_stamp(self._model))

    def _room(self, prompt_ids: Sequence[Sequence[int]], num_samples: int, *, seed: int) -> ContinuousBatchingConfig:
        if self._model.device.type == "cuda":
            return ContinuousBatchingConfig(seed=seed)
        # Without a GPU it would take most of the memory there is, and then compute with all of that.
        pages = sum(-(-(len(ids) + self._policy.completion_tokens) // _PAGE_TOKENS) for ids in prompt_ids)
        longest = max(map(len, prompt_ids))
        return ContinuousBatchingConfig(
            seed=seed, page_size=_PAGE_TOKENS, num_blocks=pages * num_samples + 1, max_batch_tokens=longest
        )

    def _config(self, temperature: float | None) -> GenerationConfig:
        sampling = {"do_sample": False} if temperature is None else {"do_sample": True, "temperature": temperature}
        return GenerationConfig(
            max_new_tokens=self._policy.completion_tokens,
            eos_token_id=self._policy.end_ids,
            pad_token_id=self._policy.tokenizer.pad_token_id,
            top_k=0,
            **sampling,
        )
