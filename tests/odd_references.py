"""References in unusual forms: those that are good, those that cannot be the truth, and those with idle parts."""

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
        "return self.linear(parts['a'][0]) * 2 + parts['b'][1]['c']",
        arguments="parts",
        inputs="return [{'a': (torch.randn(8, 32),), 'b': [None, {'c': torch.randn(8, 48)}]}]",
    ),
    "a list of tensors": program(
        "return self.linear(torch.cat(rows)) * scale",
        arguments="rows, *, scale",
        inputs="return {'rows': [torch.randn(4, 32) for _ in range(3)], 'scale': torch.rand(()) + 1}",
    ),
    "positional and named inputs": program(
        "return self.linear(x) * parts['scale']",
        arguments="x, parts",
        inputs="return (torch.randn(4, 32), {'scale': torch.rand(48)})",
    ),
    "one tensor twice": program(
        "return self.linear(x) + y.sum()", arguments="x, y", inputs="x = torch.randn(4, 32)\n    return [x, x]"
    ),
    "an expanded input": program(inputs="return [torch.randn(1, 32).expand(16, 32)]"),
    "a part of a larger tensor": program(inputs="return [torch.randn(16, 64)[:, 3:35]]"),
    "whole numbers as inputs": program(
        "return self.linear(x.float())", inputs="return [torch.randint(0, 99, (16, 32), dtype=torch.int16)]"
    ),
    "a single weight": program("return x * self.scale", constructor="self.scale = nn.Parameter(torch.ones(()))"),
    "a single weight of zero": program(
        "return x + self.shift", constructor="self.shift = nn.Parameter(torch.zeros(1))"
    ),
    "a slope": program("return self.act(x)", constructor="self.act = nn.PReLU()"),
    "an order that is drawn": program(
        "return x[:, self.order]", constructor="self.register_buffer('order', torch.randperm(32))"
    ),
    "complex weights": program(
        "return (x * self.phases).abs().cumsum(1)",
        constructor="self.phases = nn.Parameter(torch.randn(32, dtype=torch.complex64))",
    ),
    "frozen weights": program(constructor=f"{LINEAR}; self.requires_grad_(False)"),
    "weights in a list": program(
        "return x @ self.rows[0] + x @ self.rows[1]",
        constructor="self.rows = nn.ParameterList(torch.randn(32, 8) for _ in range(2))",
    ),
    "tied weights": program(
        "return self.b(self.a(x))",
        constructor="self.a = nn.Linear(32, 32); self.b = nn.Linear(32, 32); self.b.weight = self.a.weight",
    ),
    "weights with a norm of their own": program(
        constructor="self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(32, 48))"
    ),
    "weights of spectral norm": program(
        constructor="self.linear = nn.utils.parametrizations.spectral_norm(nn.Linear(32, 48)); self.eval()"
    ),
    "lazy weights": program(constructor="self.linear = nn.LazyLinear(48)"),
    "statistics only": program("return self.norm(x)", constructor="self.norm = nn.BatchNorm1d(32, affine=False)"),
    "a plain class": program("return x.cumsum(1)", constructor="pass")
    .replace("(nn.Module)", "")
    .replace("forward", "__call__"),
    "a function": program(
        tail="\n\nClass = Model\n\n\ndef Model():\n    return nn.Sequential(nn.Linear(32, 48), nn.ReLU())\n"
    ),
    "scripted": program(tail="\n\nPlain = Model\n\n\ndef Model():\n    return torch.jit.script(Plain())\n"),
    "postponed annotations": "from __future__ import annotations\n" + program(),
    "carriage returns": program().replace("\n", "\r\n"),
    "changes its input": program("return self.linear(x.mul_(2))"),
    "inference mode": program("with torch.inference_mode():\n            return self.linear(x)"),
    "prints": program("print('hello')\n        return self.linear(x)"),
    "a view": program("return self.linear(x).t()[::2]"),
    "an expanded output": program("return self.linear(x)[:, :1].expand(16, 9)"),
    "a conjugate": program("return torch.fft.fft(self.linear(x)).conj()"),
    "an output twice": program("y = self.linear(x)\n        return y, y"),
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
    "one tensor instead of a list": program(inputs="return torch.randn(16, 32)"),
    "seeds itself for its inputs": program(inputs="torch.manual_seed(0)\n    return [torch.randn(16, 32)]"),
    "a number of numpy for the constructor": program(
        constructor="import numpy; self.linear = nn.Linear(32, size)",
        constructor_arguments=", size",
        init_inputs="import numpy; return [numpy.prod([4, 12])]",
    ),
    "a named tuple as input": program(
        "return self.linear(pair.left) + pair.right",
        arguments="pair",
        inputs="import collections\n    Pair = collections.namedtuple('Pair', 'left right')\n"
        "    return [Pair(torch.randn(16, 32), torch.randn(16, 48))]",
    ),
    "single precision by name": program(
        "y = self.linear(x).to(torch.float32) + torch.zeros(48, dtype=torch.float32)\n"
        "        return (y > 0).float() + y"
    ),
    "a normal distribution from a seed of its own": program(
        "torch.manual_seed(1)\n        return self.linear(x) + torch.normal(0.0, 1.0, size=(16, 48))"
    ),
    "looks at the bits of numbers": program(
        "return self.linear(x) + (x.float().view(torch.int32) >> 23 & 255).float().mean()"
    ),
    "seeds itself by name": program(inputs="torch.manual_seed(seed=0)\n    return [torch.randn(16, 32)]"),
    "random numbers in place from a seed of its own": program(
        "torch.manual_seed(1)\n        return self.linear(x) + torch.empty(16, 48).normal_()"
    ),
    "random numbers from a seed of its own": program(
        "torch.manual_seed(1)\n        return self.linear(x) + torch.randn(16, 48)"
    ),
    "weights that must sum to one": program(
        "assert abs(self.share.sum() - 1) < 1e-3\n        return x * self.share",
        constructor="self.share = nn.Parameter(torch.randn(32).softmax(0))",
    ),
    "a mapping": program("y = self.linear(x)\n        return {'mean': y.mean(1), 'all': y}"),
    "a nested tuple": program(
        "y, state = self.rnn(x)\n        return y, (state,)", constructor="self.rnn = nn.GRU(32, 8)"
    ),
    "a named tuple": program("return self.linear(x).max(dim=1)"),
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
        constructor="self.linear = nn.Linear(32, 48).bfloat16()",
        inputs="return [torch.randn(16, 32).bfloat16()]",
    ),
    "double precision": program(
        constructor="self.linear = nn.Linear(32, 48).double()", inputs="return [torch.randn(16, 32).double()]"
    ),
}
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
    "its weights do not matter": (
        program("y = self.linear(x)\n        return x"),
        "does not depend on its weights: other values of linear.weight, linear.bias change nothing",
    ),
    "noise": (program("return (self.linear(x) * 1e9).sin()"), "rounding alone changes"),
    "other shapes": (
        program(inputs="return [torch.randn(int(torch.randint(1, 99, ())), 32)]"),
        "returns other shapes",
    ),
    "an object as input": (program(inputs="return [object()]"), "object cannot be handed"),
    "an output of text": (program("return 'text'"), "str"),
    "a number instead of a list": (program(inputs="return 3"), "not a list"),
    "too large": (program(inputs="return [torch.empty(300_000_000)]"), "536870912 at most"),
    "ends the process": (program("import os; os._exit(0)"), "does not run"),
}
IDLE = {
    "an input": (
        program("return self.linear(x)", arguments="x, y", inputs="return [torch.randn(16, 32), torch.randn(4)]"),
        "input 1 changes nothing",
    ),
    "a weight": (program(constructor=f"{LINEAR}; self.extra = nn.Linear(3, 5)"), "extra.weight changes nothing"),
    "an output": (program("return self.linear(x), torch.ones(3)"), "output 1 is the same for all inputs"),
    "its own parameter": (program("return self.linear(x), self.linear.weight"), "output 1 is the same for all inputs"),
    "no inputs": (
        program("return self.linear.weight.softmax(1)", arguments="*_", inputs="return []"),
        "output 0 is the same for all inputs",
    ),
}


# Among the good ones: those that a judge could refuse all candidates for, the reference itself included.
EASILY_REFUSED = [
    "nested inputs",
    "a list of tensors",
    "an order that is drawn",
    "complex weights",
    "statistics only",
    "weights that must sum to one",
    "changes its input",
    "lazy weights",
]
