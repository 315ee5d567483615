"""For every PyTorch-level rewrite a small problem that it applies to, by name."""

from tests.program_builders import problem
from tests.rewrite_texts import (
    ATTENTION,
    BATCH_NORM,
    CHAIN,
    CONVOLUTION,
    CORNERS,
    CUBE,
    DIGAMMA,
    DISTANCES,
    EINSUMS,
    GROUP_NORM,
    GROUPS,
    HUBER,
    INTERLEAVED,
    KL,
    LARGE,
    LINEAR,
    LOG_SOFTMAX,
    MATRIX,
    NORMALISED,
    ONE_LINEAR,
    PATCHES,
    PICTURE,
    RNN,
    ROLLED,
    ROW,
    SCAN,
    SERIES,
    SOFTMAX,
    SOFTPLUS,
    SQUARE,
    SQUARE_LINEAR,
    STACKED,
    STANDARDISED,
    STATISTICS,
    TRANSPOSED_NORM,
    TWO_LINEARS,
    WINDOWS,
    one,
    three,
    two,
)

PRODUCTS = [
    ("broadcast_diagonal", two("torch.randn(5)", "torch.randn(5, 4)", "return torch.matmul(torch.diag(a), b)")),
    ("separate_diagonal", three("torch.matmul(a, torch.matmul(b, b.t()) + torch.diag(c))", "4, 6", "6, 2", "6")),
    ("reassociate", three("(a @ b) @ c", "8, 8", "8, 8", "8, 1")),
    ("multiply_kronecker_factors contract_kronecker_factors", three("torch.kron(a, b) @ c", "3, 4", "5, 2", "8, 6")),
    ("call_mm multiply_transposed", two(MATRIX, ROW, "return torch.matmul(a, b)")),
    ("multiply_diagonals", three("(torch.diag(a) + torch.diag(b, 1) + torch.diag(b, -1)) @ c", "6", "5", "6, 3")),
    ("multiply_band", two(ROW, "torch.randn(6, 3)", "a = torch.triu(torch.tril(a, 2), -2)\nreturn a @ b")),
    ("skip_upper_blocks", two(LARGE, LARGE, "return torch.matmul(torch.tril(a), torch.tril(b))")),
    ("drop_outer_triangle", two(ROW, ROW, "return torch.tril(torch.tril(a) @ torch.tril(b))")),
    ("contract_vector_first multiply_column_first", three(EINSUMS, "2, 4, 5", "2, 5, 6", "2, 6")),
    ("call_bmm", two(CUBE, "torch.randn(2, 6, 3)", 'return torch.einsum("bij,bjk->bik", a, b)')),
    (
        "multiply_from_the_left",
        one(
            "x = self.linear(x.transpose(1, 2))\nx = self.other(F.silu(x))\nreturn x.transpose(1, 2)",
            "torch.randn(2, 6, 5)",
            **TWO_LINEARS,
        ),
    ),
    ("cancel_transposes", one("return x.t().transpose(-2, -1) + 1.0")),
]
REDUCTIONS = [
    ("sum_before_product", two(MATRIX, ROW, "return torch.sum(a @ b, dim=1)")),
    ("reduce_before_linear", one("return self.linear(x).mean(-1, keepdim=True)", **ONE_LINEAR)),
    ("expand_squared_distances expand_squared_distances_by_addmm call_cdist", two(MATRIX, ROW, DISTANCES)),
    ("scan_without_flips scan_by_triangle", one("return torch.flip(torch.cumsum(torch.flip(x, [0]), dim=0), [0])")),
    ("call_amax", one("return torch.max(x, dim=1, keepdim=True).values")),
    ("call_variance", one("m = x.mean(1, keepdim=True)\nreturn torch.mean((x - m) * (x - m), dim=1, keepdim=True)")),
    ("call_vector_norm", one("return torch.sqrt(torch.sum(x * x, dim=1))")),
    ("call_logsumexp", one(f"{SOFTMAX}return torch.log(total) + top")),
    ("scale_after_reducing", one("return torch.mean(x * 3.0, dim=1)")),
    ("sum_by_product", two(MATRIX, MATRIX, "return (a * b).sum(1)")),
]
LOOPS = [
    ("stack_windows_by_unfold", two("torch.randn(9)", "torch.randn(5)", f"{WINDOWS}return out * b")),
    ("stack_windows_by_index", one(STACKED.format(count="5", slice="x[:, t:t + 2]", dim=1) + "return out")),
    ("multiply_windows_by_fft", two("torch.randn(9)", "torch.randn(5, 3)", f"{WINDOWS}out = out @ b\nreturn out")),
    ("roll_by_unfold roll_by_index", two("torch.randn(6)", "torch.randn(6)", f"{ROLLED}return out * b")),
    ("multiply_rotations_by_fft", two("torch.randn(6)", ROW, f"{ROLLED}out = out @ b\nreturn out")),
    ("interleave_by_stack interleave_by_slices", two(MATRIX, MATRIX, INTERLEAVED)),
    (
        "cut_patches_by_view cut_patches_by_unfold patches_by_convolution",
        one(PATCHES, PICTURE, init=LINEAR, init_arguments="16, 5"),
    ),
    ("group_convolution", two(PICTURE, "torch.randn(4, 1, 3, 3)", GROUPS)),
    ("scan_by_cumsum write_steps_in_place", one(SCAN.format("h + 2.0 * x[:, t] * x[:, t]"), CUBE)),
    ("smooth_by_product", one(SCAN.format("0.9 * h + 0.1 * x[:, t]"))),
    ("hoist_out_of_loop", one(SCAN.format("0.5 * h + torch.tanh(self.linear(x[:, t]))"), CUBE, **SQUARE_LINEAR)),
    ("call_rnn", one(SCAN.format("torch.tanh(self.linear(x[:, t]) + self.second(h))"), CUBE, **RNN)),
    (
        "evaluate_series_backwards evaluate_series_in_place call_bessel accumulate_in_place",
        one(f"x = torch.clamp(torch.abs(x), max=20.0)\ny = 0.25 * x * x\n{SERIES}"),
    ),
    ("call_digamma", one(DIGAMMA)),
]
POINTWISE = [
    ("multiply_out_power", one("return torch.pow(x, 3) + torch.abs(x) ** 2")),
    ("multiply_by_reciprocal", one("return x / 3.0")),
    ("divide_by_root_once", two(MATRIX, "torch.rand(7, 1)", "return a / torch.sqrt(b)")),
    ("divide_by_multiplying", two(MATRIX, "torch.rand(7, 1) + 0.5", "return a / b")),
    (
        "one_logarithm call_kl_div",
        two("torch.rand(7, 6)", "torch.rand(7, 6)", "p, q = a, b\np = a.clamp(min=1e-6)\nq = b.clamp(min=1e-6)\n" + KL),
    ),
    ("call_smooth_l1_loss select_by_clamping", two(MATRIX, MATRIX, HUBER)),
    ("call_avg_pool", one(CORNERS, PICTURE)),
    ("call_addcmul", three("a + b * c", "5, 4", "5, 4", "4")),
    ("call_lerp factor_out", three("(1.0 - torch.sigmoid(c)) * a + torch.sigmoid(c) * b", "5, 4", "5, 4", "5, 4")),
    ("gather_scale", one("y = x * 0.5\nreturn y + x")),
    ("share_common_expression", one("y = torch.exp(x - 1.0)\nreturn y.sum() * torch.exp(x - 1.0)")),
    ("expand_late", two(MATRIX, "torch.rand(6)", "y = torch.log(b).expand_as(a).contiguous()\nreturn a * (y + 1.0)")),
]
FUSIONS = [
    ("merge_linears", one("y = self.linear(x)\nx = self.other(x)\nreturn x * torch.tanh(y)", **TWO_LINEARS)),
    ("call_addmm call_linear", three("(a @ b) * 0.5 + c", "7, 6", "6, 6", "6")),
    ("call_baddbmm", three("torch.bmm(a, b) * 0.5 + c", "2, 5, 6", "2, 6, 3", "5, 3")),
    ("linear_by_addmm", one("return torch.tanh(self.linear(x))", **ONE_LINEAR)),
    ("residual_by_addmm", one("return self.linear(x) + x", **SQUARE_LINEAR)),
    ("fold_scale_into_linear", one("return self.linear(x) * 3.0", **ONE_LINEAR)),
    ("chain_linears", one("return self.second(self.linear(x))", **CHAIN)),
    (
        "split_concatenated_input",
        two(MATRIX, MATRIX, "return self.linear(torch.cat([a, b], dim=1))", init=LINEAR, init_arguments="12, 5"),
    ),
    ("call_layer_norm", one(f"{NORMALISED.format(d=-1)}return x")),
    ("call_instance_norm", one(f"{NORMALISED.format(d='(2, 3)')}return x", PICTURE)),
    ("call_group_norm", one(GROUP_NORM, "torch.randn(2, 8, 5)", init=STATISTICS, init_arguments="8")),
    ("call_rms_norm", two(MATRIX, "torch.randn(6)", "return a / torch.sqrt(torch.mean(a * a, -1, True) + 1e-5) * b")),
    ("normalise_without_transposing", two(CUBE, "torch.randn(5)", TRANSPOSED_NORM)),
    (
        "fold_norm_into_linear",
        one(f"x = self.linear(x)\n{STANDARDISED}", init=f"{STATISTICS}{SQUARE}", init_arguments="6"),
    ),
    ("standardise_by_scale_and_shift", one(STANDARDISED, init=STATISTICS, init_arguments="6")),
    ("batch_norm_by_scale_and_shift", one(BATCH_NORM.format("x"), PICTURE, init=STATISTICS, init_arguments="4")),
    (
        "fold_norm_into_convolution convolve_channels_last",
        one(BATCH_NORM.format("self.conv(x)"), PICTURE, init=f"{STATISTICS}{CONVOLUTION}", init_arguments="4"),
    ),
    (
        "convolve_pixels_by_product",
        one("return self.conv(x)", PICTURE, init="self.conv = nn.Conv2d(size0, 3, 1)", init_arguments="4"),
    ),
    ("call_silu call_sigmoid", one("return x * (1.0 / (1.0 + torch.exp(-x))) + torch.sigmoid(x) * x")),
    ("call_gelu", one("return 0.5 * x * (1.0 + torch.erf(x / 2.0 ** 0.5))")),
    ("call_softplus call_mish", one(f"return x * torch.tanh({SOFTPLUS})")),
    ("call_hardswish call_hardsigmoid", one("y = torch.clamp(x + 3.0, 0.0, 6.0) / 6.0\nreturn x * y", f"{ROW} * 4.0")),
    ("call_softmax", one(f"{SOFTMAX}return torch.exp(x - top) / total")),
    ("call_log_softmax", one(f"{LOG_SOFTMAX}return x")),
    (
        "call_cross_entropy gather_before_normalising",
        problem(
            f"{LOG_SOFTMAX}return -torch.gather(x, 1, y[:, None])",
            f"{MATRIX}, torch.randint(0, 6, (7,))",
            arguments="x, y",
        ),
    ),
    ("call_attention scale_operand scale_inside_product", two(CUBE, CUBE, ATTENTION)),
]
MEMORY = [
    (
        "work_in_place work_in_place_everywhere write_into_temporary",
        one("y = x * 2.0\ny = torch.tanh(y)\nreturn y + x"),
    ),
    ("drop_copy", one("y = x.clone()\nz = torch.exp(x)\nreturn y + z")),
    ("work_by_rows", one("x = torch.tanh(x)\nreturn torch.softmax(x * 2.0, dim=1)", "torch.randn(99, 999)")),
    ("return_directly", one("x = x + 1.0\nreturn x")),
]

EXAMPLES = {
    name: source
    for names, source in (*PRODUCTS, *REDUCTIONS, *LOOPS, *POINTWISE, *FUSIONS, *MEMORY)
    for name in names.split()
}
