"""For every PyTorch-level rewrite a small problem that it applies to, by name."""

from tests.program_builders import problem

NORMALISED = """
mean = torch.mean(x, dim={d}, keepdim=True)
var = torch.mean((x - mean) * (x - mean), dim={d}, keepdim=True)
x = (x - mean) / torch.sqrt(var + 1e-5)
"""
STATISTICS = """
self.register_buffer("mean", torch.randn(size0))
self.register_buffer("var", torch.rand(size0) + 0.5)
self.weight = nn.Parameter(torch.randn(size0))
self.bias = nn.Parameter(torch.randn(size0))
"""
STANDARDISED = "x = (x - self.mean) / torch.sqrt(self.var + 1e-5)\nreturn x * self.weight + self.bias"
BATCH_NORM = "return F.batch_norm({}, self.mean, self.var, self.weight, self.bias)"
LINEAR = "self.linear = nn.Linear(size0, size1)"
ONE_LINEAR = {"init": LINEAR, "init_arguments": "6, 5"}
TWO_LINEARS = {"init": f"{LINEAR}\nself.other = nn.Linear(size0, size1)", "init_arguments": "6, 6"}
SCAN = """
h = torch.zeros_like(x[:, 0])
out = []
for t in range(x.shape[1]):
    h = {}
    out.append(h)
out = torch.stack(out, dim=1)
return out
"""
SERIES = """
term = torch.ones_like(y)
total = torch.ones_like(y)
for k in range(1, 36):
    term = term * y / (k * k)
    total = total + term
return torch.log(total)
"""
STACKED = """
out = []
for t in range({count}):
    out.append({slice})
out = torch.stack(out, dim={dim})
"""
WINDOWS = STACKED.format(count="b.shape[0]", slice="a[t:t + b.shape[0]]", dim=0)
ROLLED = STACKED.format(count="a.shape[0]", slice="torch.roll(a, t)", dim=0)
INTERLEAVED = """
out = a.new_zeros(a.shape[0], 2 * a.shape[1])
for t in range(a.shape[1]):
    out[:, 2 * t] = a[:, t]
    out[:, 2 * t + 1] = b[:, t]
return out
"""
PATCHES = """
out = []
for i in range(0, x.shape[2], 2):
    for j in range(0, x.shape[3], 2):
        patch = x[:, :, i:i + 2, j:j + 2]
        out.append(patch.reshape(x.shape[0], -1))
out = torch.stack(out, dim=1)
return self.linear(out)
"""
SOFTMAX = """
top = torch.max(x, dim=-1, keepdim=True).values
total = torch.sum(torch.exp(x - top), dim=-1, keepdim=True)
"""
LOG_SOFTMAX = f"{SOFTMAX}x = x - top - torch.log(total)\n"
HUBER = "diff = torch.abs(a - b)\nreturn torch.where(diff < 1.0, 0.5 * torch.pow(diff, 2), diff - 0.5)"
SCORES = "x = torch.matmul(a, b.transpose(-2, -1)) / a.shape[-1] ** 0.5\n"
DISTANCES = "diff = a[:, None, :] - b[None, :, :]\nreturn torch.sum(diff * diff, dim=-1)"
RNN = "torch.tanh(self.linear(x[:, t]) + self.second(h))"

ROW = "torch.randn(6, 6)"
MATRIX = "torch.randn(7, 6)"
CUBE = "torch.randn(2, 5, 6)"
PICTURE = "torch.randn(2, 4, 6, 8)"


def two(first: str, second: str, forward: str, **others: str) -> str:
    return problem(forward, f"{first}, {second}", arguments="a, b", **others)


def one(forward: str, inputs: str = MATRIX, **others: str) -> str:
    return problem(forward, inputs, **others)


EXAMPLES = {
    "broadcast_diagonal": two("torch.randn(5)", "torch.randn(5, 4)", "return torch.matmul(torch.diag(a), b)"),
    "separate_diagonal": problem(
        "return torch.matmul(x, torch.matmul(a, b) + torch.diag(s))",
        "torch.randn(4, 6), torch.randn(6, 2), torch.randn(2, 6), torch.randn(6)",
        arguments="x, a, b, s",
    ),
    "reassociate": problem(
        "return (a @ b) @ c", "torch.randn(8, 8), torch.randn(8, 8), torch.randn(8, 1)", arguments="a, b, c"
    ),
    "multiply_kronecker_factors": problem(
        "return torch.matmul(torch.kron(a, b), c)",
        "torch.randn(3, 4), torch.randn(5, 2), torch.randn(8, 6)",
        arguments="a, b, c",
    ),
    "call_mm": two(MATRIX, ROW, "return torch.matmul(a, b)"),
    "multiply_transposed": two(MATRIX, ROW, "return torch.matmul(a, b)"),
    "multiply_diagonals": problem(
        "a = torch.diag(a) + torch.diag(b, 1) + torch.diag(c, -1)\nreturn a @ x",
        "torch.randn(6), torch.randn(5), torch.randn(5), torch.randn(6, 3)",
        arguments="a, b, c, x",
    ),
    "multiply_band": two(ROW, "torch.randn(6, 3)", "a = torch.triu(torch.tril(a, 2), -2)\nreturn a @ b"),
    "skip_upper_blocks": two(
        "torch.randn(200, 200)", "torch.randn(200, 200)", "return torch.matmul(torch.tril(a), torch.tril(b))"
    ),
    "drop_outer_triangle": two(ROW, ROW, "return torch.tril(torch.tril(a) @ torch.tril(b))"),
    "contract_vector_first": problem(
        'x = torch.einsum("bij,bjk->bik", a, b)\nreturn torch.einsum("bik,bk->bi", x, c)',
        "torch.randn(2, 4, 5), torch.randn(2, 5, 6), torch.randn(2, 6)",
        arguments="a, b, c",
    ),
    "call_bmm": two(CUBE, "torch.randn(2, 6, 3)", 'return torch.einsum("bij,bjk->bik", a, b)'),
    "sum_before_product": two(MATRIX, ROW, "return torch.sum(a @ b, dim=1)"),
    "reduce_before_linear": one("return self.linear(x).mean(-1, keepdim=True)", **ONE_LINEAR),
    "expand_squared_distances": two(MATRIX, ROW, DISTANCES),
    "call_cdist": two(MATRIX, ROW, DISTANCES),
    "scan_without_flips": one("return torch.flip(torch.cumsum(torch.flip(x, [0]), dim=0), [0])"),
    "call_amax": one("return torch.max(x, dim=1, keepdim=True).values"),
    "call_vector_norm": one("return torch.sqrt(torch.sum(x * x, dim=1))"),
    "call_logsumexp": one(f"{SOFTMAX}return torch.log(total) + top"),
    "scale_after_reducing": one("return torch.mean(x * 3.0, dim=1)"),
    "sum_by_product": two(MATRIX, MATRIX, "return (a * b).sum(1)"),
    "multiply_from_the_left": one(
        "x = self.linear(x.transpose(1, 2))\nx = self.other(F.silu(x))\nreturn x.transpose(1, 2)",
        "torch.randn(2, 6, 5)",
        **TWO_LINEARS,
    ),
    "cancel_transposes": one("return x.t().transpose(-2, -1) + 1.0"),
    "stack_windows_by_unfold": two("torch.randn(9)", "torch.randn(5)", f"{WINDOWS}return out * b"),
    "stack_windows_by_index": one(STACKED.format(count="5", slice="x[:, t:t + 2]", dim=1) + "return out"),
    "multiply_windows_by_fft": two(
        "torch.randn(9)", "torch.randn(5, 3)", f"{WINDOWS}out = torch.matmul(out, b)\nreturn out"
    ),
    "roll_by_unfold": one(f"{ROLLED}return out * 2.0".replace("a", "x").replace("rxnge", "range"), "torch.randn(5)")
    if False
    else problem(f"{ROLLED}return out * 2.0", "torch.randn(5)", arguments="a"),
    "roll_by_index": problem(f"{ROLLED}return out * 2.0", "torch.randn(5)", arguments="a"),
    "multiply_rotations_by_fft": two(
        "torch.randn(6)", "torch.randn(6, 3)", f"{ROLLED}out = torch.matmul(out, b)\nreturn out"
    ),
    "interleave_by_stack": two(MATRIX, MATRIX, INTERLEAVED),
    "cut_patches_by_view": one(PATCHES, PICTURE, init=LINEAR, init_arguments="16, 5"),
    "group_convolution": one(
        "out = []\nfor t in range(x.shape[1]):\n"
        "    out.append(F.conv2d(x[:, t:t + 1], self.w[t:t + 1], padding=1))\nreturn torch.cat(out, dim=1)",
        PICTURE,
    ),
}
