"""Texts and builders of the small problems that rewrites are tried on."""

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
out = self.linear(out)
return out
"""
SOFTMAX = """
top = torch.max(x, dim=-1, keepdim=True).values
total = torch.sum(torch.exp(x - top), dim=-1, keepdim=True)
"""
LOG_SOFTMAX = f"{SOFTMAX}x = x - top - torch.log(total)\n"
HUBER = "diff = torch.abs(a - b)\nreturn torch.where(diff < 1.0, 0.5 * torch.pow(diff, 2), diff - 0.5)"
SCORES = "x = torch.matmul(a, b.transpose(-2, -1)) / a.shape[-1] ** 0.5\n"
DISTANCES = "diff = a[:, None, :] - b[None, :, :]\nreturn torch.sum(diff * diff, dim=-1)"
ATTENTION = f"{SCORES}x = torch.softmax(x, dim=-1)\nreturn torch.matmul(x, b)"
SQUARE = "self.linear = nn.Linear(size0, size0)"
SQUARE_LINEAR = {"init": SQUARE, "init_arguments": "6"}
RNN = {"init": f"{SQUARE}\nself.second = nn.Linear(size0, size0, bias=False)", "init_arguments": "6"}
CHAIN = {"init": f"{LINEAR}\nself.second = nn.Linear(size1, 2)", "init_arguments": "6, 50"}
CONVOLUTION = "self.conv = nn.Conv2d(size0, size0, 3, padding=1)"
EINSUMS = 'torch.einsum("bik,bk->bi", torch.einsum("bij,bjk->bik", a, b), c)'
GROUPS = """
out = []
for t in range(a.shape[1]):
    out.append(F.conv2d(a[:, t:t + 1], b[t:t + 1], padding=1))
out = torch.cat(out, dim=1)
return out
"""
DIGAMMA = """
x = torch.abs(x) + 0.5
total = torch.zeros_like(x)
for k in range(12):
    total = total + 1.0 / x
    x = x + 1.0
y = 1.0 / (x * x)
out = torch.log(x) - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y / 252.0))
out = out - total
return out
"""
KL = "return p * (torch.log(p) - torch.log(q))"
CORNERS = "return (x[:, :, 0::2, 0::2] + x[:, :, 0::2, 1::2] + x[:, :, 1::2, 0::2] + x[:, :, 1::2, 1::2]) / 4.0"
GROUP_NORM = f"""
y = x.reshape(x.shape[0], 4, -1)
{NORMALISED.format(d=-1).strip().replace("x", "y")}
x = y.reshape(x.shape)
return x * self.weight[None, :, None] + self.bias[None, :, None]
"""
TRANSPOSED_NORM = """
a = a.transpose(1, 2).contiguous()
a = a / torch.sqrt(torch.mean(torch.pow(a, 2), dim=-1, keepdim=True) + 1e-5) * b
return a.transpose(1, 2).contiguous()
"""
SOFTPLUS = "(torch.log(1.0 + torch.exp(-torch.abs(x))) + torch.relu(x))"

ROW = "torch.randn(6, 6)"
MATRIX = "torch.randn(7, 6)"
CUBE = "torch.randn(2, 5, 6)"
PICTURE = "torch.randn(2, 4, 6, 8)"
LARGE = "torch.randn(200, 200) * 0.1"


def two(first: str, second: str, forward: str, **others: str) -> str:
    return problem(forward, f"{first}, {second}", arguments="a, b", **others)


def one(forward: str, inputs: str = MATRIX, **others: str) -> str:
    return problem(forward, inputs, **others)


def three(result: str, *sizes: str) -> str:
    return problem(f"return {result}", ", ".join(f"torch.randn({size})" for size in sizes), arguments="a, b, c")
