"""A reference that cannot serve as the truth is found before anybody trains on it; one that can is not refused."""

import pytest

from tasks.judge.examine import Finding, examine_problem, examine_problems
from tests.judge_builders import problem_of

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
LINEAR = "self.linear = nn.Linear(32, 48)"


def program(
    forward: str = "return torch.relu(self.linear(x))",
    *,
    arguments: str = "x",
    inputs: str = "return [torch.randn(16, 32)]",
    constructor: str = LINEAR,
    constructor_arguments: str = "",
    init_inputs: str | None = "return []",
    tail: str = "",
) -> str:
    source = (
        f"{HEAD}class Model(nn.Module):\n    def __init__(self{constructor_arguments}):\n        super().__init__()\n"
        f"        {constructor}\n\n    def forward(self, {arguments}):\n        {forward}\n\n\n"
        f"def get_inputs():\n    {inputs}\n"
    )
    return source + (f"\n\ndef get_init_inputs():\n    {init_inputs}\n" if init_inputs else "") + tail


SIZED = {"constructor": "self.linear = nn.Linear(32, size)", "constructor_arguments": ", size"}
GOOD = {
    "the usual form": program(),
    "no get_init_inputs": program(init_inputs=None),
    "an empty tuple": program(init_inputs="return ()"),
    "an empty mapping": program(init_inputs="return {}"),
    "named constructor arguments": program(**SIZED, init_inputs="return {'size': 8}"),
    "a list and a mapping": program(**SIZED, init_inputs="return [[], {'size': 8}]"),
    "bound by assignment": program(init_inputs=None, tail="\n\nget_init_inputs = lambda: []\n"),
    "a main block": program(tail="\n\nif __name__ == '__main__':\n    raise SystemExit\n"),
    "a byte order mark": "\ufeff" + program(),
    "named inputs": program(inputs="return {'x': torch.randn(16, 32)}"),
    "a large tensor for the constructor": program(
        "return x @ self.table",
        constructor="self.register_buffer('table', table)",
        constructor_arguments=", table",
        init_inputs="return [torch.randn(32, 2000)]",
    ),
    "a class of torch for the constructor": program(
        "return self.act(self.linear(x))",
        constructor=f"{LINEAR}; self.act = act()",
        constructor_arguments=", act",
        init_inputs="return [nn.GELU]",
    ),
    "nested inputs": program(
        "return parts['a'][0] * 2 + parts['b']",
        arguments="parts",
        inputs="return [{'a': (torch.randn(8, 16),), 'b': torch.randn(8, 16)}]",
    ),
    "numbers that are drawn": program(
        "return x * factor if factor is not None else x",
        arguments="x, factor, nothing=None",
        inputs="return [torch.randn(16, 32), float(torch.rand(())) + 1, None]",
        constructor="pass",
    ),
    "inputs that are not contiguous": program(inputs="return [torch.randn(32, 16).t()]"),
    "a gradient inside": program(
        "with torch.enable_grad():\n            return torch.autograd.grad(x.pow(3).sum(), x)[0]",
        inputs="return [torch.randn(16, 32, requires_grad=True)]",
        constructor="pass",
    ),
    "a gradient without enabling it": program(
        "return torch.autograd.grad(x.pow(3).sum(), x)[0]",
        inputs="return [torch.randn(16, 32, requires_grad=True)]",
        constructor="pass",
    ),
    "normalisation that is being trained": program("return self.norm(x)", constructor="self.norm = nn.BatchNorm1d(32)"),
    "normalisation that is not": program(
        "return self.norm(x)", constructor="self.norm = nn.BatchNorm1d(32); self.eval()"
    ),
    "random numbers from a seed of its own": program("torch.manual_seed(1)\n        return x + torch.randn(16, 32)"),
    "a mapping": program("y = self.linear(x)\n        return {'mean': y.mean(1), 'all': y}"),
    "a nested tuple": program(
        "y, state = self.rnn(x)\n        return y, (state,)", constructor="self.rnn = nn.GRU(32, 8)"
    ),
    "a named tuple": program("return self.linear(x).max(dim=1)"),
    "its own parameter": program("return self.linear(x), self.linear.weight"),
    "its own input": program("return x, self.linear(x)"),
    "one number": program("return self.linear(x).square().mean()"),
    "an empty output beside another": program("return self.linear(x), x[:0]"),
    "whole numbers": program("return self.linear(x).argmax(1)"),
    "truth values": program("return self.linear(x) > 0"),
    "complex numbers": program("return torch.fft.fft(x)", constructor="pass"),
    "complex inputs": program(
        "return x.abs(), x * 2", inputs="return [torch.randn(16, 32, dtype=torch.complex64)]", constructor="pass"
    ),
    "infinities": program("return torch.log(torch.relu(self.linear(x)))"),
    "some that are not numbers": program("return self.linear(x).sqrt()"),
    "half precision": program(
        constructor="self.linear = nn.Linear(32, 48).bfloat16()", inputs="return [torch.randn(16, 32).bfloat16()]"
    ),
    "double precision": program(
        constructor="self.linear = nn.Linear(32, 48).double()", inputs="return [torch.randn(16, 32).double()]"
    ),
}
GOOD["random numbers from a seed of its own"] = program(
    "torch.manual_seed(1)\n        return self.linear(x) + torch.randn(16, 48)"
)
FATAL = {
    "raises": (program("raise ValueError('not today')"), "not today"),
    "no module": (program(constructor="import no_such_module"), "no_such_module"),
    "dropout": (program("return F.dropout(self.linear(x), 0.5)"), "self.eval()"),
    "a constant": (program("return torch.ones(16, 32)"), "does not depend on its inputs"),
    "a softmax over one": (program("return F.softmax(x[:, :1], dim=1)"), "does not depend on its inputs"),
    "hidden below the rounding": (program("return 1 + 1e-8 * x"), "would pass"),
    "nothing": (program("return None"), "returns no values"),
    "empty": (program("return x[:0]"), "returns no values"),
    "no numbers at all": (program("return x * float('nan')"), "not numbers"),
    "its weights do not matter": (program("y = self.linear(x)\n        return x"), "does not depend on its weights"),
    "noise": (program("return (self.linear(x) * 1e9).sin()"), "rounding alone changes"),
    "other shapes": (
        program(inputs="return [torch.randn(int(torch.randint(1, 99, ())), 32)]"),
        "other shapes at every call",
    ),
    "an object as input": (program(inputs="return [object()]"), "object cannot be handed"),
    "an output of text": (program("return 'text'"), "str"),
    "one tensor instead of a list": (program(inputs="return torch.randn(16, 32)"), "not a list"),
    "too large": (program(inputs="return [torch.empty(300_000_000)]"), "1073741824 at most"),
    "ends the process": (program("import os; os._exit(0)"), "does not run"),
}
IDLE = {
    "an input": (
        program("return self.linear(x)", arguments="x, y", inputs="return [torch.randn(16, 32), torch.randn(4)]"),
        "input 1 changes nothing",
    ),
    "a weight": (program(constructor=f"{LINEAR}; self.extra = nn.Linear(3, 5)"), "extra.weight changes nothing"),
    "an output": (program("return self.linear(x), torch.ones(3)"), "output 1 is the same for all inputs"),
}


@pytest.fixture(scope="module")
def findings() -> dict[str, list[Finding]]:
    """Of all programs, examined one after the other by one fork server."""
    sources = GOOD | {name: source for name, (source, _) in (FATAL | {f"idle {k}": v for k, v in IDLE.items()}).items()}
    examined = examine_problems([problem_of(source) for source in sources.values()])
    return dict(zip(sources, examined, strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_a_reference_in_any_usual_form_is_accepted(name: str, findings: dict[str, list[Finding]]) -> None:
    assert findings[name] == []


@pytest.mark.parametrize("name", FATAL)
def test_a_reference_that_cannot_be_the_truth_is_refused_in_words(
    name: str, findings: dict[str, list[Finding]]
) -> None:
    (finding,) = findings[name]
    assert finding.is_fatal
    assert FATAL[name][1] in finding.words


@pytest.mark.parametrize("name", IDLE)
def test_what_could_be_left_out_is_told_but_not_refused(name: str, findings: dict[str, list[Finding]]) -> None:
    found = findings[f"idle {name}"]
    assert any(IDLE[name][1] in finding.words for finding in found)
    assert not any(finding.is_fatal for finding in found)


def test_one_problem_alone_can_be_examined() -> None:
    assert examine_problem(problem_of(program())) == []
