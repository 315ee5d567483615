"""Loops that gather slices become one strided view or one library call."""

import random

import libcst as cst

from tasks.variants.rewrites.blocks import block_rule, replace_block
from tasks.variants.rewrites.conditions import both, numbers, ranks
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewriting import rewrite

_STACKED = """
    _out = []
    for _t in range({count}):
        _out.append({slice})
    _r = torch.stack(_out, dim={dim})
"""
_ROLLED = _STACKED.format(count="_a.shape[0]", slice="torch.roll(_a, _t)", dim=0)
_WINDOWS = _STACKED.format(count="_n", slice="_a[_t:_t + _k]", dim=0)
_PRODUCT = "    _p = torch.matmul(_r, _b)\n"
_INTERLEAVED = """
    _out = _z
    for _t in range(_n):
        _out[:, 2 * _t] = _a[:, _t]
        _out[:, 2 * _t + 1] = _b[:, _t]
"""
_PATCHES = """
    _out = []
    for _i in range(0, _x.shape[2], _s):
        for _j in range(0, _x.shape[3], _s):
            _patch = _x[:, :, _i:_i + _s, _j:_j + _s]
            _out.append(_patch.reshape(_x.shape[0], -1))
    _r = torch.stack(_out, dim=1)
"""


def _windows_cover_vector(match: Match) -> bool:
    a, count, width = match.value("_a"), match.number("_n"), match.number("_k")
    return a is not None and a.rank == 1 and count is not None and width is not None and a.shape[0] == count + width - 1


def _windows_cover_rows(match: Match) -> bool:
    x, count, width = match.value("_x"), match.number("_n"), match.number("_k")
    return x is not None and x.rank == 2 and count is not None and width is not None and x.shape[1] == count + width - 1


def _patches_cover_picture(match: Match) -> bool:
    x, side = match.value("_x"), match.number("_s")
    return x is not None and x.rank == 4 and side is not None and x.shape[2] % side == x.shape[3] % side == 0


def _twice_as_wide(match: Match) -> bool:
    whole, a, b = (match.value(hole) for hole in ("_z", "_a", "_b"))
    if whole is None or a is None or a != b or a.rank != 2:
        return False
    return whole.shape == (a.shape[0], 2 * a.shape[1]) and match.number("_n") == a.shape[1]


@rewrite("algebra")
def stack_windows_by_unfold(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Stacked slices that move by one are a strided view, Tensor.unfold. Assumes slices that cover the tensor."""
    rows = _STACKED.format(count="_n", slice="_x[:, _t:_t + _k]", dim=1)
    rules = [
        block_rule(_WINDOWS, "_r = _a.unfold(0, _k, 1)", when=_windows_cover_vector),
        block_rule(rows, "_r = _x.unfold(1, _k, 1)", when=_windows_cover_rows),
    ]
    return replace_block(program, rng, rules)


@rewrite("algebra")
def stack_windows_by_index(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Stacked slices that move by one are one lookup. Assumes slices that cover the tensor."""
    rows = _STACKED.format(count="_n", slice="_x[:, _t:_t + _k]", dim=1)
    replacement = """
        index = torch.arange(_n)[:, None] + torch.arange(_k)
        _r = {}
    """
    rules = [
        block_rule(_WINDOWS, replacement.format("_a[index]"), when=_windows_cover_vector),
        block_rule(rows, replacement.format("_x[:, index]"), when=_windows_cover_rows),
    ]
    return replace_block(program, rng, rules)


@rewrite("algebra")
def multiply_windows_by_fft(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A matrix of moving windows times a matrix is a correlation, by Fourier transforms. Assumes finite entries."""
    replacement = """
        left = torch.fft.rfft(_a)
        right = torch.fft.rfft(_b, n=_a.shape[0], dim=0)
        out = torch.fft.irfft(left[:, None] * right.conj(), n=_a.shape[0], dim=0)
        _p = out[:_b.shape[0]]
    """
    condition = both(_windows_cover_vector, ranks(b=2))
    return replace_block(program, rng, [block_rule(_WINDOWS + _PRODUCT, replacement, when=condition)])


@rewrite("algebra")
def roll_by_unfold(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """All rotations of a vector are windows of the vector written twice. Assumes a vector."""
    replacement = "_r = torch.cat([_a, _a]).unfold(0, _a.shape[0], 1)[1:].flip(0)"
    return replace_block(program, rng, [block_rule(_ROLLED, replacement, when=ranks(a=1))])


@rewrite("algebra")
def roll_by_index(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """All rotations of a vector are one lookup. Assumes a vector."""
    replacement = """
        step = torch.arange(_a.shape[0])
        _r = _a[(step - step[:, None]) % _a.shape[0]]
    """
    return replace_block(program, rng, [block_rule(_ROLLED, replacement, when=ranks(a=1))])


@rewrite("algebra")
def multiply_rotations_by_fft(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A circulant matrix times a matrix is a correlation, taken by Fourier transforms. Assumes finite entries."""
    replacement = """
        left = torch.fft.rfft(_a).conj()
        right = torch.fft.rfft(_b, dim=0)
        _p = torch.fft.irfft(left[:, None] * right, n=_a.shape[0], dim=0)
    """
    return replace_block(program, rng, [block_rule(_ROLLED + _PRODUCT, replacement, when=ranks(a=1, b=2))])


@rewrite("algebra")
def interleave_by_stack(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Columns written in turn are two tensors stacked and flattened. Assumes equal matrices' shapes."""
    return replace_block(
        program,
        rng,
        [block_rule(_INTERLEAVED, "_out = torch.stack([_a, _b], dim=2).reshape(_a.shape[0], -1)", when=_twice_as_wide)],
    )


@rewrite("memory")
def interleave_by_slices(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Columns written in turn are two strided copies. Assumes equal matrices' shapes."""
    replacement = """
        _out = _a.new_empty(_a.shape[0], 2 * _a.shape[1])
        _out[:, 0::2] = _a
        _out[:, 1::2] = _b
    """
    return replace_block(program, rng, [block_rule(_INTERLEAVED, replacement, when=_twice_as_wide)])


@rewrite("algebra")
def cut_patches_by_view(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Patches cut in a double loop are a strided view, copied once. Assumes patches that cover the picture."""
    replacement = """
        patch = _x.unfold(2, _s, _s).unfold(3, _s, _s)
        _r = patch.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
    """
    return replace_block(program, rng, [block_rule(_PATCHES, replacement, when=_patches_cover_picture)])


@rewrite("fusion")
def cut_patches_by_unfold(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Patches cut in a double loop are F.unfold. Assumes patches that cover the picture."""
    replacement = "_r = F.unfold(_x, _s, stride=_s).transpose(1, 2)"
    return replace_block(program, rng, [block_rule(_PATCHES, replacement, when=_patches_cover_picture)])


@rewrite("fusion")
def patches_by_convolution(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A linear layer on patches is a convolution by whole patches. Assumes patches that cover the picture."""
    pattern = _PATCHES + "    _q = F.linear(_r, _w, _b)\n"
    replacement = """
        filters = _w.reshape(-1, _x.shape[1], _s, _s)
        _q = F.conv2d(_x, filters, _b, stride=_s).flatten(2).transpose(1, 2)
    """
    condition = both(_patches_cover_picture, ranks(w=2, b=1), numbers("s"))
    return replace_block(program, rng, [block_rule(pattern, replacement, when=condition)])


@rewrite("fusion")
def group_convolution(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A convolution for each channel in turn is one with groups. Assumes one filter per channel."""
    pattern = """
        _out = []
        for _t in range(_x.shape[1]):
            _out.append(F.conv2d(_x[:, _t:_t + 1], _w[_t:_t + 1], padding=_s))
        _r = torch.cat(_out, dim=1)
    """
    replacement = "_r = F.conv2d(_x, _w, padding=_s, groups=_x.shape[1])"
    return replace_block(program, rng, [block_rule(pattern, replacement, when=ranks(x=4, w=4))])
