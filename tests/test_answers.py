"""Which part of an answer is read as the candidate."""

from textwrap import indent

import pytest

from tasks.variants.prompts import as_completion, build_prompt, parse_completion
from tests.training_builders import SCALED, SCALED_BY_CLAMP, SCALED_IN_PLACE

CODE = SCALED_IN_PLACE
FENCED = f"```python\n{CODE}```"
DRAFT = f"```python\n{SCALED_BY_CLAMP}```"
ANALYSIS = "### Performance Analysis\nThe first is faster.\n\n### Algorithm Design\nOne kernel.\n\n"
HEADED = f"{ANALYSIS}### Code Implementation\n"


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(f"{HEADED}{FENCED}", id="three sections"),
        pytest.param(FENCED, id="nothing but code"),
        pytest.param(f"{HEADED}{FENCED}\n\nThis is 2x faster.", id="words after the code"),
        pytest.param(
            f"1. **Performance Analysis**: slow.\n3. **Code Implementation**:\n{FENCED}", id="numbered headings"
        ),
        pytest.param(f"**Code Implementation**\n{FENCED}", id="bold heading"),
        pytest.param(f"## 3. code implementation\n{FENCED}", id="lower case"),
        pytest.param(f"### Algorithm Design\n{DRAFT}\n### Code Implementation\n{FENCED}", id="a draft in the design"),
        pytest.param(f"{HEADED}{DRAFT}\nBetter:\n{FENCED}", id="the last of two"),
        pytest.param(f"{HEADED}{FENCED}\nUse:\n```python\nprint(ModelNew(8))\n```", id="a usage example after it"),
        pytest.param(f"{HEADED}{FENCED}\n```bash\npython test.py\n```", id="a command after it"),
        pytest.param(f"{HEADED}{FENCED}\nShorter still:\n```python\nclass ModelNew(", id="a second cut off"),
        pytest.param(f"{HEADED}{FENCED}\n```cpp\nint x;", id="another language cut off"),
        pytest.param(f"{HEADED}```python\n{CODE}", id="the fence never closed"),
        pytest.param(f"{HEADED}```python\n{CODE.rstrip()}```", id="the fence closed at the end of a line"),
        pytest.param(f"{HEADED}```\n{CODE}```", id="no language"),
        pytest.param(f"{HEADED}~~~python\n{CODE}~~~", id="tildes"),
        pytest.param(f"{HEADED}````python\n{CODE}````", id="four backticks"),
        pytest.param("3. Code Implementation\n" + indent(FENCED, "   "), id="indented as part of a list"),
        pytest.param(f"{HEADED}{FENCED}".replace("\n", "\r\n"), id="carriage returns"),
        pytest.param(f"<think>\nMaybe\n{DRAFT}\n</think>\n{HEADED}{FENCED}", id="a draft in the thoughts"),
        pytest.param(f"Maybe\n{DRAFT}\n</think>\n{HEADED}{FENCED}", id="thoughts opened by the template"),
        pytest.param(f"<thinking>no</thinking>{HEADED}{FENCED}", id="another tag"),
        pytest.param(f"{HEADED}{FENCED}<think>or\n{DRAFT}", id="thoughts after the answer"),
        pytest.param(f"{HEADED}{FENCED}<|im_end|>\n<|im_start|>user\n{DRAFT}", id="the next turn made up"),
        pytest.param(f"{HEADED}```python\n{CODE}<|endoftext|>", id="an end token in an open block"),
        pytest.param(f"{HEADED}{FENCED}<\uff5cend\u2581of\u2581sentence\uff5c>", id="another end token"),
        pytest.param(f"{build_prompt(SCALED, [], style='instruct')}\n{HEADED}{FENCED}", id="the prompt repeated first"),
        pytest.param(CODE, id="code and nothing else, unfenced"),
        pytest.param(f"{CODE}<|im_end|>", id="unfenced with an end token"),
    ],
)
def test_the_code_that_is_meant_is_found(answer):
    assert parse_completion(answer, style="instruct").replace("\r", "") == CODE


@pytest.mark.parametrize(
    ("answer", "read"),
    [
        pytest.param(f"{HEADED}```python\nclass ModelNew(nn.Mod", "class ModelNew(nn.Mod", id="cut off in the code"),
        pytest.param(
            f"{DRAFT}\n{HEADED}```python\nimport to", "import to", id="cut off, with a draft before the heading"
        ),
        pytest.param(f"{HEADED}```python", "", id="cut off behind the fence"),
        pytest.param("I cannot do that.", "I cannot do that.", id="words only"),
        pytest.param(f"<think>\n{DRAFT}\nor rather", "", id="cut off while thinking"),
        pytest.param("", "", id="nothing"),
        pytest.param("<|im_end|>", "", id="an end token only"),
        pytest.param("``", "``", id="half a fence"),
        pytest.param("use ```x``` here", "use ```x``` here", id="a fence within a line"),
    ],
)
def test_what_holds_no_code_is_still_read_as_something(answer, read):
    assert parse_completion(answer, style="instruct") == read + "\n"


def test_a_compact_answer_is_taken_as_it_is():
    text = "x = '<think>' # ```"
    assert parse_completion(text, style="compact") == text + "\n"


def test_what_is_taught_is_read_back_even_if_it_holds_fences():
    source = CODE.replace("return out", '"""\n        ```\n        x\n        ```\n        """\n        return out')
    assert parse_completion(as_completion(source, style="instruct"), style="instruct") == source
