"""How the program is found in a language model's answer."""

import pytest

from tasks.variants.llm.programs import Form, read_program

PROGRAM = "import torch\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
OTHER = "import torch\n\nclass ModelNew(torch.nn.Module):\n    x = 1\n"
PROMPT = "Make it faster.\n```python\nclass Model: pass\n```\n"


def read(content: str, finish_reason: str = "stop") -> tuple[Form, str]:
    reading = read_program(content, prompt=PROMPT, finish_reason=finish_reason)
    return reading.form, reading.source


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(f"```python\n{PROGRAM}```", id="one block"),
        pytest.param(f"```\n{PROGRAM}\n```", id="no language"),
        pytest.param(f"```Python title=new.py\r\n{PROGRAM}```\r\n", id="a title and carriage returns"),
        pytest.param(f"~~~py\n{PROGRAM}~~~", id="tildes"),
        pytest.param(f"````python\n{PROGRAM}````", id="a longer fence"),
        pytest.param(f"Sure!\n\n```python\n{PROGRAM}```\nHope it helps.", id="chatty"),
        pytest.param(PROGRAM, id="no fence at all"),
        pytest.param(f"```python\n{OTHER}```\nBetter:\n```python\n{PROGRAM}```", id="two programs: the last"),
        pytest.param(f"```python\n{PROGRAM}```\nTry:\n```python\nModelNew()(x)\n```", id="usage after it"),
        pytest.param(f"```bash\npip install x\n```\n```python\n{PROGRAM}```", id="another language before it"),
        pytest.param(f"<think>```python\n{OTHER}```</think>\n```python\n{PROGRAM}```", id="thinking before it"),
        pytest.param(f"```python\n{OTHER}```</think>\n```python\n{PROGRAM}```", id="thinking without its beginning"),
        pytest.param(f"{PROMPT}```python\n{PROGRAM}```<eos>", id="the prompt repeated and an end token"),
        pytest.param(f"{PROGRAM}<|im_end|></s>\n", id="end tokens after bare code"),
        pytest.param(f"```python\n{PROGRAM}```\n```python\nclass ModelNew(", id="a second one cut off"),
        pytest.param(f"```python\n{PROGRAM}", id="a last fence left open"),
    ],
)
def test_a_program_is_found(content):
    assert read(content.replace("\r\n", "\n") if "title" not in content else content) == (Form.PROGRAM, PROGRAM)


@pytest.mark.parametrize(
    ("content", "finish_reason", "form"),
    [
        pytest.param("", "stop", Form.EMPTY, id="empty"),
        pytest.param(" \n\t", "stop", Form.EMPTY, id="only white space"),
        pytest.param(f"{PROMPT}<eos>", "stop", Form.EMPTY, id="only the prompt repeated"),
        pytest.param("", "length", Form.TRUNCATED, id="all spent on hidden thinking"),
        pytest.param("<think>Let me see", "length", Form.TRUNCATED, id="cut off while thinking"),
        pytest.param("I cannot help with that.", "stop", Form.NO_PROGRAM, id="a refusal"),
        pytest.param("First of all", "length", Form.TRUNCATED, id="cut off before the code"),
        pytest.param(f"```python\n{PROGRAM}    x = (1,", "length", Form.TRUNCATED, id="cut off within the code"),
        pytest.param(f"```python\n{PROGRAM}", "length", Form.TRUNCATED, id="cut off where it happens to parse"),
        pytest.param(f"```python\n{PROGRAM}    x = (1,", "stop", Form.TRUNCATED, id="ends within the code"),
        pytest.param("```python\nclass Model: pass\n```", "stop", Form.NO_PROGRAM, id="only the reference"),
        pytest.param(f"My class ModelNew is\n{PROGRAM}", "stop", Form.NO_PROGRAM, id="prose and code without a fence"),
        pytest.param("```json\n{}\n```", "stop", Form.NO_PROGRAM, id="another language"),
        pytest.param("The word ModelNew alone", "stop", Form.NO_PROGRAM, id="the name in prose"),
        pytest.param("```python\nModelNewer = 1\n```", "stop", Form.NO_PROGRAM, id="a longer name"),
    ],
)
def test_what_is_no_program_is_named(content, finish_reason, form):
    found, source = read(content, finish_reason)
    assert found is form
    assert source.endswith("\n")


def test_a_name_bound_by_assignment_is_a_program():
    assert read("```python\nclass Fast: pass\nModelNew = Fast\n```")[0] is Form.PROGRAM


def test_code_that_does_not_parse_is_the_judges_to_refuse():
    assert read("```python\nclass ModelNew(:\n```") == (Form.PROGRAM, "class ModelNew(:\n")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(" " * 4_000_000 + "x", id="spaces"),
        pytest.param("```" + " " * 4_000_000 + "`", id="a fence with an endless title"),
        pytest.param("```\n" * 200_000, id="fences"),
        pytest.param("<|a|>" * 800_000 + "x", id="end tokens that end nothing"),
        pytest.param("</think>" * 500_000, id="thoughts"),
        pytest.param("class " * 700_000, id="almost classes"),
        pytest.param("class ModelNew:" + "(" * 300_000, id="nesting"),
    ],
)
@pytest.mark.timeout(60)
def test_no_answer_takes_long_to_read(content):
    read(content)  # where a pattern is quadratic, for hours
