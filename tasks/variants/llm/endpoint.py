"""One OpenAI-compatible endpoint, asked through the official client. Knows no retries and no money.

Nothing light may import this file: the client takes most of a second.
The client's own retries are off: it would send a question again after a time-out, when the first may have been charged.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

import httpx2
import openai

from tasks.errors import ParamsError
from tasks.params import GeneratorParams
from tasks.variants.llm.answers import Answer, AnswerError, read_answer
from tasks.variants.llm.question import Question
from tasks.variants.llm.refusals import Again, LostError, RefusedError, status_error

MAX_BODY_BYTES = 8 << 20
SHOWN = 300
# The client insists on a key, and would fall back to OPENAI_API_KEY, which is another endpoint's.
NO_KEY = "none"


class Endpoint:
    """Asks one model, from within one event loop and an async with statement.

    The key is read from the environment variable that the params name. It goes into the header of a request and
    nowhere else: where a server repeats it, it is taken out of what is kept.

    Raises:
        ParamsError: on construction, if that variable is not set or holds no key.
    """

    def __init__(self, name: str, params: GeneratorParams) -> None:
        self._name = name
        self._params = params
        self._key = _key(name, params.key_variable)
        self._client: openai.AsyncOpenAI | None = None

    async def __aenter__(self) -> Self:
        self._client = openai.AsyncOpenAI(
            base_url=self._params.base_url,
            api_key=self._key or NO_KEY,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                follow_redirects=False,  # a prompt and a key go where params.yaml says
                # A connection for each question: on one that is kept, a response sent twice is the next one's answer.
                limits=httpx2.Limits(max_connections=self._params.concurrency, max_keepalive_connections=0),
                timeout=httpx2.Timeout(self._params.answer_timeout_s, connect=self._params.connect_timeout_s),
                event_hooks={"response": [_bound]},
            ),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def ask(self, question: Question) -> Answer:
        """The model's answer, whole and within the time limit.

        Raises:
            RefusedError: if there is none and nothing to pay.
            LostError: if there is none, though one may have been written and charged.
        """
        assert self._client is not None
        try:
            # The client's limit is one between two bytes; this one is for the whole.
            async with asyncio.timeout(self._params.answer_timeout_s):
                response = await self._client.chat.completions.with_raw_response.create(**self._request(question))
            return read_answer(self._without_key(response.content.decode(errors="replace")).encode())
        except openai.APIStatusError as error:
            said = self._without_key(error.response.text)[:SHOWN]
            headers = {name.lower(): value for name, value in error.response.headers.items()}
            raise status_error(error.status_code, said=said, code=error.code, headers=headers) from None
        except TimeoutError:
            raise LostError(self._too_slow()) from None
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            message = self._without_key(f"{type(cause).__name__}: {cause}")[:SHOWN]
            if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
                raise RefusedError(f"{message}; is {self._params.base_url} right?", again=Again.SOON) from None
            raise LostError(self._too_slow() if isinstance(cause, httpx2.TimeoutException) else message) from None
        except AnswerError as error:
            raise LostError(str(error)) from None

    def _request(self, question: Question) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": question.model,
            "messages": [{"role": "user", "content": question.prompt}],
            self._params.limit_name: question.answer_tokens,
            "extra_headers": {
                # Endpoints that know the first answer a repeated question from memory; the second is for their logs.
                "Idempotency-Key": question.request_id,
                "X-Client-Request-Id": question.request_id,
                "Accept-Encoding": "identity",
            },
        }
        if question.temperature is not None:
            request["temperature"] = question.temperature
        return request

    def _too_slow(self) -> str:
        return f"no whole answer within {self._params.answer_timeout_s:g} s; see answer_timeout_s of {self._name}"

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text


def _key(name: str, variable: str | None) -> str:
    if variable is None:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ParamsError(f"generator {name} needs its key in the environment variable {variable}, which is not set")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ParamsError(f"the environment variable {variable} of generator {name} holds something that is no key")
    return key


async def _bound(response: httpx2.Response) -> None:
    """Have a response's body end with an error once it is larger than any answer, however it is packed."""
    if response.headers.get("Content-Encoding", "identity") != "identity":
        raise httpx2.ReadError("a packed body, though none was asked for")
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        num_bytes = 0
        async for chunk in self._whole:
            num_bytes += len(chunk)
            if num_bytes > MAX_BODY_BYTES:
                raise httpx2.ReadError(f"a body of more than {MAX_BODY_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._whole.aclose()
