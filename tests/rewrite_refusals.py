"""Programs that a rewrite must leave alone although they look like what it applies to: name, problem, what it does."""

from tests.rewrite_texts import LINEAR, MATRIX, SCAN, SERIES, one, three, two

LAYER = {"init": LINEAR, "init_arguments": "6, 6"}
HOOKED = {**LAYER, "init": f"{LINEAR}\nself.linear.register_forward_hook(lambda *_: None)"}
HANDED_ON = {**LAYER, "init": f"{LINEAR}\nnn.utils.spectral_norm(self.linear)"}
CHANGED = {
    "hooks its children": "for m in self.children():\n    m.register_forward_hook(lambda *_: None)",
    "hooks all in it": "self.apply(lambda m: m.register_forward_hook(lambda *_: None) and None)",
    "hooks its layer under another name": "layer = self.linear\nlayer.register_forward_hook(lambda *_: None)",
    "gives its layer another forward": "self.linear.forward = torch.neg",
    "takes the bias from its layer": "self.linear.bias = None",
    "takes the bias from its layer by name": "setattr(self.linear, 'bias', None)",
    "takes the bias from all in it": "for m in self.modules():\n    m.bias = None",
    "adds another layer in its place": "self.add_module('linear', nn.Linear(size0, size1, bias=False))",
    "adds one of a computed name": "self.add_module('lin' + 'ear', nn.Linear(size0, size1, bias=False))",
    "sets another layer in its place": "setattr(self, 'linear', nn.Linear(size0, size1, bias=False))",
    "sets one of a computed name": "setattr(self, 'lin' + 'ear', nn.Linear(size0, size1, bias=False))",
    "sets another layer by a starred tuple": "setattr(*(self, 'linear'), nn.Linear(size0, size1, bias=False))",
    "stores another layer in its place": "self._modules['linear'] = nn.Linear(size0, size1, bias=False)",
    "may have another layer": "if size0 > 2:\n    self.linear = nn.Linear(size0, size1, bias=False)",
}
WITHIN = """
class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
"""
CHANGED_WITHIN = {
    "hooks a layer of its block": "self.block.linear.register_forward_hook(lambda *_: None)",
    "hands a layer of its block on": "nn.utils.spectral_norm(self.block.linear)",
    "replaces a layer of its block": "self.block.linear = nn.Linear(6, 6, bias=False)",
}


def with_block(lines: str) -> str:
    source = one("return self.block.linear(x)", init=f"self.block = Block(size0)\n{lines}", init_arguments="6, 6")
    return source.replace("\nclass Model(", f"{WITHIN}\n\nclass Model(", 1)


BLOCKS_OF_ROWS = "torch.randn(99, 999)"

PRODUCTS = [
    ("broadcast_diagonal", two(MATRIX, "torch.randn(6, 3)", "return torch.diag(a) @ b"), "takes a diagonal out"),
    ("reassociate", three("(a @ b) @ c", "1, 8", "8, 8", "8, 8"), "is cheapest as it is"),
    ("call_addmm", two("torch.randn(2, 3)", "torch.randn(5, 2, 3)", "return a @ torch.ones(3, 3) + b"), "broadcasts"),
    ("call_addmm", two("torch.randn(2, 3)", "torch.randn(3, 3)", "return a @ b + 1.0"), "adds a number"),
    (
        "merge_linears",
        one(
            "y = self.linear(x)\nx = torch.tanh(x)\nreturn self.other(x) + y",
            init=f"{LINEAR}\nself.other = nn.Linear(size0, size1)",
            init_arguments="6, 5",
        ),
        "has layers on different inputs",
    ),
]
FUSIONS = [
    ("call_silu", two(MATRIX, MATRIX, "return a * torch.sigmoid(b)"), "gates something else"),
    ("linear_by_addmm", one("return self.linear(x)", **HOOKED), "hooks its layer"),
    ("linear_by_addmm", one("return self.linear(x)", **HANDED_ON), "hands its layer on"),
    *(
        ("linear_by_addmm", one("return self.linear(x)", **{**LAYER, "init": f"{LINEAR}\n{lines}"}), what)
        for what, lines in CHANGED.items()
    ),
    *(("linear_by_addmm", with_block(lines), what) for what, lines in CHANGED_WITHIN.items()),
    ("call_lerp", one("return x * (1 - self.w) + self.w / x.shape[-1]", init="self.w = 0.1"), "mixes in a number"),
    ("call_silu", one("F = x * 2.0\nreturn F * torch.sigmoid(F)"), "calls something of its own F"),
    ("call_amax", two(MATRIX, MATRIX, "return torch.max(a, b)[0]"), "takes the larger of two"),
    ("call_amax", one("y = torch.max(x, 1)\nreturn y[0] * 2.0 + y[1]"), "wants the positions too"),
    ("call_gelu", one("return 0.5 * x * (1.0 + torch.erf(x / 2.0))"), "is no GELU"),
    ("call_softmax", one("return torch.exp(x) / torch.sum(torch.exp(x), 1, True)"), "overflows, unlike softmax"),
    (
        "call_softmax",
        one("y = torch.amax(x, 0, True)\nreturn torch.exp(x - y) / torch.exp(x - y).sum(1, keepdim=True)"),
        "mixes dimensions",
    ),
    (
        "call_layer_norm",
        one("m = x.mean(0, True)\nv = ((x - m) * (x - m)).mean(0, True)\nreturn (x - m) / torch.sqrt(v + 1e-5)"),
        "normalises the first dimension",
    ),
]
LOOPS = [
    ("call_bessel", one(f"y = 0.25 * x * x\n{SERIES}"), "has a series without bounds"),
    ("scan_by_cumsum", one(SCAN.format("h + x[:, t] * h")), "adds what depends on the total"),
    ("scan_by_cumsum", one(SCAN.format("h + x[:, 0]")), "adds one column again and again"),
    (
        "hoist_out_of_loop",
        one(SCAN.format("h + torch.tanh(self.linear(x[:, t]))"), init=LINEAR, init_arguments="7, 7"),
        "applies a layer across rows",
    ),
    (
        "stack_windows_by_unfold",
        one("out = []\nfor t in range(3):\n    out.append(x[:, t:t + 2])\nout = torch.stack(out, dim=1)\nreturn out"),
        "leaves columns out",
    ),
]
MEMORY = [
    ("work_in_place", one("y = torch.tanh(x)\nreturn y"), "would write to an input"),
    ("work_in_place", one("y = x * 2.0\nz = torch.tanh(y)\nreturn torch.cat([y, z])"), "reads its temporary again"),
    ("work_in_place", one("y = x.t()\ny = torch.tanh(y)\nreturn y"), "holds a view of an input"),
    (
        "work_in_place",
        one("y = self.w\nreturn y * 2.0", init="self.w = nn.Parameter(torch.randn(size0))", init_arguments="6"),
        "holds a parameter",
    ),
    ("work_in_place", two(MATRIX, "torch.randn(2, 7, 6)", "y = a * 2.0\nreturn y + b"), "grows by broadcasting"),
    ("write_into_temporary", one("y = self.linear(x)\ny = torch.tanh(y)\nreturn y", **LAYER), "may want gradients"),
    (
        "write_into_temporary",
        one("y = x * 2.0\ny = torch.tanh(y)\nreturn self.linear(y)", **HOOKED),
        "may want gradients although its layer is hooked",
    ),
    ("drop_copy", one("y = x.clone()\ny += 1.0\nreturn y"), "writes to its copy"),
    ("drop_copy", one("y = x.clone()\nreturn y"), "hands its copy out"),
    (
        "work_in_place",
        one("for k in range(2):\n    x = torch.stack([x, x])\ny = x * 2.0\nreturn y + torch.ones(7, 6)"),
        "reassigns its input to another shape",
    ),
    ("work_by_rows", one("x = x - torch.mean(x, dim=0)\nreturn x", BLOCKS_OF_ROWS), "mixes rows"),
]
SHARING = [
    (
        "share_common_expression",
        one("y = torch.exp(x)\nz = y * 2.0\ny.add_(1.0)\nreturn torch.exp(x) * z + y"),
        "changes what is shared in place",
    ),
    (
        "share_common_expression",
        one("y = torch.exp(x) + 1.0\nx = x * 2.0\nreturn torch.exp(x) + y"),
        "takes the exponential of something new",
    ),
    ("expand_late", two(MATRIX, "torch.rand(6)", "b = b.expand_as(a)\nreturn a + b.sum()"), "counts what it expands"),
    ("expand_late", two(MATRIX, "torch.rand(6)", "b = b.expand_as(a)\nreturn b * 2.0"), "returns what it expands"),
]

LEFT_ALONE = [*PRODUCTS, *FUSIONS, *LOOPS, *MEMORY, *SHARING]
