"""What a policy is shown and how its answer is read."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.variants.answers import code_of

PromptStyle = Literal["compact", "instruct"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Exemplar:
    """An earlier correct candidate shown in a prompt with its speedup."""

    candidate_id: str
    source: str
    speedup: float
    """Against the eager baseline."""


def build_prompt(reference: str, exemplars: Sequence[Exemplar], *, style: PromptStyle) -> str:
    """The prompt that asks for a faster equal of the reference.

    Args:
        reference: source of the problem, in KernelBench format.
        exemplars: earlier candidates with their speedups, shown in the given order; may be empty.
        style: "compact" is bare code under short headings, for small models made from scratch; "instruct" has the four
            parts of the paper's prompt: task, earlier codes with scores, protocol of the answer, restrictions.

    Source: CUDA-L1 (arXiv:2507.14111), the contrastive prompt of section 3.
    """
    return (_compact if style == "compact" else _instruct)(reference, exemplars)


def parse_completion(completion: str, *, style: PromptStyle) -> str:
    """The candidate's source within a policy's answer.

    For "instruct" that is the block under the heading of the code, see answers.code_of. Never raises: what comes out is
    the judge's to refuse.
    """
    if style == "instruct":
        completion = code_of(completion)
    return completion.strip() + "\n"


def as_completion(source: str, *, style: PromptStyle) -> str:
    """The answer that parse_completion turns back into the source."""
    if style == "compact":
        return source.strip()
    longest = max((len(marks) for marks in re.findall("`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"### Code Implementation\n{fence}python\n{source.strip()}\n{fence}"


def _compact(reference: str, exemplars: Sequence[Exemplar]) -> str:
    parts = [f"# reference\n{reference.strip()}\n"]
    parts += [f"# {exemplar.speedup:.2g}x\n{exemplar.source.strip()}\n" for exemplar in exemplars]
    return "".join([*parts, "# faster\n"])


def _instruct(reference: str, exemplars: Sequence[Exemplar]) -> str:
    earlier = "".join(
        f"### Implementation {number}: {exemplar.speedup:.2f}x the reference's speed\n"
        f"```python\n{exemplar.source.strip()}\n```\n\n"
        for number, exemplar in enumerate(exemplars, start=1)
    )
    comparison = (
        "1. **Performance Analysis**: compare the earlier implementations. Which is faster, by which technique, and "
        "what do the slower ones leave on the table?\n"
        if exemplars
        else "1. **Performance Analysis**: where does the reference spend its time?\n"
    )
    return (
        "You write PyTorch, Triton and CUDA code that is as fast as the hardware allows.\n\n"
        "## Task\n"
        "Write a class `ModelNew` that returns the same outputs as `Model` below, faster.\n\n"
        f"```python\n{reference.strip()}\n```\n\n"
        + (f"## Earlier implementations and their measured speed\n{earlier}" if exemplars else "")
        + "## Answer\n"
        "Answer in three sections:\n"
        f"{comparison}"
        "2. **Algorithm Design**: what you will do differently, and why it is faster.\n"
        "3. **Code Implementation**: one fenced Python block with the complete module, imports included.\n\n"
        "## Requirements and restrictions\n"
        "- `ModelNew` takes the constructor arguments of `Model` and creates its parameters in the same order, so that "
        "equal seeds give equal weights.\n"
        "- Outputs equal the reference's for every valid input, in shape, dtype and value, at full precision.\n"
        "- Hyper-parameters and shapes stay exactly as in the reference.\n"
        "- No caching of results between calls, no work deferred past the return, no access to the file system except "
        "for building kernels, none to the network.\n"
    )
