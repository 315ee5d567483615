"""Completions by a vLLM server, on GPUs of its own: the first process sends it the weights and asks for everybody.

Start it with ``VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --weight-transfer-config '{"backend": "nccl"}'``.
"""

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedModel

from tasks.errors import MachineError, PolicyError
from tasks.training.adapters import within
from tasks.training.generation import Written
from tasks.training.policy import Policy
from tasks.training.team import team

_CONNECT_S = 120.0


class VllmServer:
    """Writes with weights that are sent to the server whenever they have changed."""

    def __init__(self, policy: Policy, url: str) -> None:
        """Meet the server.

        Raises:
            PolicyError: if the policy is an adapter.
            MachineError: if vLLM's client is not installed or nothing answers.
        """
        if within(policy.model) is not policy.model:
            raise PolicyError(
                "engine.generator vllm is sent whole models, but the policy is an adapter: set engine.generator to "
                "sampler, or policy.adapter to null"
            )
        self._policy = policy
        self._stamp: str | None = None
        self._client = _client(url, device=policy.model.device) if team().is_first else None

    def take(self, model: PreTrainedModel, *, stamp: str) -> None:
        if stamp != self._stamp and self._client is not None:
            self._client.update_model_params(model)
            self._client.reset_prefix_cache()  # what it remembers of a prompt was computed with the old weights
        self._stamp = stamp

    def write(
        self, prompt_ids: Sequence[Sequence[int]], *, num_samples: int, temperature: float | None, seed: int, first: int
    ) -> Written:
        def ask(everyone: list[Sequence[int]]) -> list[list[list[int]]]:
            assert self._client is not None, "only the first process asks"
            ids = self._client.generate(
                [list(ids) for ids in everyone],
                n=num_samples,
                temperature=0.0 if temperature is None else temperature,
                max_tokens=self._policy.completion_tokens,
                logprobs=None,
                generation_kwargs={"seed": (seed + first) % (1 << 31), "stop_token_ids": self._policy.end_ids},
            )["completion_ids"]
            return [ids[start : start + num_samples] for start in range(0, len(ids), num_samples)]

        return Written(completion_ids=team().by_first(prompt_ids, ask), stamp=self._stamp)


def _client(url: str, *, device: Any) -> Any:
    try:
        from trl.generation.vllm_client import VLLMClient

        client = VLLMClient(base_url=url, connection_timeout=_CONNECT_S)
        client.init_communicator(device=device)
    except ImportError as error:
        said = str(error).rstrip(".")
        raise MachineError(
            f"engine.generator is vllm, but its client is not here: {said}. Install vllm or choose continuous_batching"
        ) from error
    except (ConnectionError, OSError) as error:
        raise MachineError(f"no vLLM server answers at {url} (engine.vllm_url): {error}") from error
    return client
