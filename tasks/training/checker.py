"""The reward-checking model: a language model behind an OpenAI-compatible endpoint that is asked about jumps in speed.

Its answer is an opinion. An honest kernel has been called a hack by such a model before, so no status depends on it.
"""

import json
import os
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tasks.errors import ParamsError, ProviderError
from tasks.params import CheckerParams
from tasks.training.checker_prompt import Answer, AnswerError, parse_answer

if TYPE_CHECKING:
    import httpx

RETRY_DELAY_S = 1.0
MAX_ANSWER_BYTES = 1 << 20
_WORTH_ANOTHER_TRY = (408, 409, 425, 429)


class _RefusedError(ProviderError):
    """The endpoint will say the same next time."""


class RewardChecker:
    """Asks one model at one endpoint. Safe to use from several threads, within a with statement.

    The key is read from the environment variable that the params name; without one, requests carry none.
    """

    def __init__(self, params: CheckerParams) -> None:
        if params.base_url is None or params.model is None:
            raise ParamsError("the reward checker needs checker.base_url and checker.model in params.yaml")
        self._params = params
        self._url = f"{params.base_url.rstrip('/')}/chat/completions"
        self._client: httpx.Client | None = None
        self.model = params.model

    def __enter__(self) -> Self:
        import httpx

        key = os.environ.get(self._params.key_variable, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise ParamsError(f"the environment variable {self._params.key_variable} holds something that is no key")
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {}, timeout=self._params.timeout_s
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()

    def ask(self, prompt: str) -> Answer:
        """The model's answer.

        Raises:
            ProviderError: if there was no usable one after all tries; the message names the endpoint and the remedy.
        """
        problem = ""
        for attempt in range(self._params.retries + 1):
            if attempt:
                time.sleep(RETRY_DELAY_S * 2 ** (attempt - 1))
            try:
                return parse_answer(self._completion(prompt))
            except (ProviderError, AnswerError) as error:
                problem = str(error)
                if isinstance(error, _RefusedError):
                    break
        raise ProviderError(f"the reward checker at {self._url} gave no answer: {problem}")

    def _completion(self, prompt: str) -> str:
        import httpx

        request = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": self._params.answer_tokens,
        }
        try:
            status, body = self._exchange(request)
        except httpx.TimeoutException:
            raise ProviderError(f"nothing within {self._params.timeout_s:g} s; see checker.timeout_s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ProviderError(f"{type(error).__name__}: {error}; is checker.base_url right?") from None
        if status != 200:
            said = body[:300].decode(errors="replace")
            remedy = f"; is the key in {self._params.key_variable}?" if status in (401, 403) else ""
            kind = ProviderError if status >= 500 or status in _WORTH_ANOTHER_TRY else _RefusedError
            raise kind(f"status {status}: {said}{remedy}")
        return _content(body)

    def _exchange(self, request: dict[str, Any]) -> tuple[int, bytes]:
        """Status and body, within the time limit however slowly the body trickles in."""
        assert self._client is not None
        deadline = time.monotonic() + self._params.timeout_s
        body = b""
        with self._client.stream("POST", self._url, json=request) as response:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    raise ProviderError(f"an answer of more than {MAX_ANSWER_BYTES} bytes")
                if time.monotonic() > deadline:
                    raise ProviderError(f"no whole answer within {self._params.timeout_s:g} s")
        return response.status_code, body


def _content(body: bytes) -> str:
    """The completion within a response."""
    try:
        content = json.loads(body)["choices"][0]["message"]["content"]
    except (ValueError, RecursionError, KeyError, IndexError, TypeError):
        content = None
    if not isinstance(content, str):
        raise ProviderError(f"a response without choices[0].message.content: {body[:300].decode(errors='replace')}")
    return content
