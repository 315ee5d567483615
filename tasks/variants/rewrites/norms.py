"""Fusion of hand-written normalisations into the library's, or into the weights of the layer before."""

import random

import libcst as cst

from tasks.variants.rewrites.conditions import both, numbers, ranks, trailing, vectors_of
from tasks.variants.rewrites.matching import Match
from tasks.variants.rewrites.reading import code_of
from tasks.variants.rewrites.rules import replace_one, rule
from tasks.variants.rewriting import rewrite

_MEAN = "torch.mean({x}, dim={d}, keepdim=True)"
_VARIANCE = f"torch.mean(({{x}} - {_MEAN}) ** 2, dim={{d}}, keepdim=True)"
_NORMALISED = f"({{x}} - {_MEAN}) / torch.sqrt({_VARIANCE} + _e)"
_ROOT_MEAN_SQUARE = "torch.sqrt(torch.mean(_x ** 2, dim={d}, keepdim=True) + _e)"
_BATCH_NORM = "F.batch_norm({x}, _mean, _var, _weight, _bias)"
_STANDARDISED = "({x} - _mean) / torch.sqrt(_var + _e) * _weight + _bias"
_TRAILING = both(trailing("d", of="x"), numbers("e"))


def _last_sizes(match: Match) -> dict[str, str]:
    dims = match.holes["_d"]
    return {"_last": str(-len(dims.args)) if dims.head == "sequence" else "-1"}


def _is_spelt_out(match: Match) -> bool:
    return "var(" not in code_of(match.site.node) if match.site.node else False


@rewrite("fusion")
def call_layer_norm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """(x - mean) / sqrt(var + eps) * w + b is F.layer_norm. Assumes that the last dimensions are normalised."""
    normalised = _NORMALISED.format(x="_x", d="_d")
    rules = [
        rule(
            f"({normalised}) * _w + _b",
            "F.layer_norm(_x, _w.shape, _w, _b, _e)",
            when=both(_TRAILING, vectors_of("w", "b", of="x")),
        ),
        rule(normalised, "F.layer_norm(_x, _x.shape[_last:], eps=_e)", when=_TRAILING, given=_last_sizes),
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_instance_norm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Pictures normalised over both their axes are F.instance_norm. Assumes four dimensions."""
    normalised = _NORMALISED.format(x="_x", d="(-2, -1)")
    return replace_one(
        program, rng, [rule(normalised, "F.instance_norm(_x, eps=_e)", when=both(ranks(x=4), numbers("e")))]
    )


@rewrite("fusion")
def call_group_norm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Channels normalised in groups are F.group_norm. Assumes [batch, channels, length] inputs."""
    grouped = "_x.reshape(_x.shape[0], _g, -1)"
    affine = "({}).reshape(_x.shape) * _weight[None, :, None] + _bias[None, :, None]"
    condition = both(ranks(x=3), numbers("g", "e"), vectors_of("weight", "bias", of="x", dim=1))
    rules = [
        rule(affine.format(inner), "F.group_norm(_x, _g, _weight, _bias, _e)", when=condition)
        for inner in (_NORMALISED.format(x=grouped, d="-1"), f"F.layer_norm({grouped}, _s, eps=_e)")
    ]
    return replace_one(program, rng, rules)


@rewrite("fusion")
def call_rms_norm(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """x / sqrt(mean(x ** 2) + eps) * w is F.rms_norm. Assumes that the last dimension is normalised."""
    pattern = f"_x / {_ROOT_MEAN_SQUARE.format(d='-1')} * _w"
    condition = both(numbers("e"), vectors_of("w", of="x"))
    return replace_one(program, rng, [rule(pattern, "F.rms_norm(_x, _w.shape, _w, _e)", when=condition)])


@rewrite("algebra")
def normalise_without_transposing(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Normalising a transposed tensor and transposing back normalises another dimension. Assumes three of them."""
    transposed = f"_x.mT / {_ROOT_MEAN_SQUARE.format(d='-1').replace('_x', '_x.mT')} * _w"
    replacement = "_x * torch.rsqrt(torch.mean(_x * _x, dim=-2, keepdim=True) + _e) * _w[:, None]"
    condition = both(ranks(x=3, w=1), numbers("e"))
    return replace_one(program, rng, [rule(f"({transposed}).mT", replacement, when=condition)])


@rewrite("fusion")
def call_variance(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """The mean of squared distances from the mean is torch.var without correction. Assumes nothing."""
    replacement = "torch.var(_x, dim=_d, correction=0, keepdim=True)"
    return replace_one(program, rng, [rule(_VARIANCE.format(x="_x", d="_d"), replacement, when=_is_spelt_out)])


@rewrite("fusion")
def fold_norm_into_linear(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A normalisation with stored statistics scales the rows of the linear layer before it.

    Assumes vectors as long as the layer's output. Folded at every call, so changed weights count.
    """
    replacement = """
        scale = _weight * torch.rsqrt(_var + _e)
        F.linear(_x, _v * scale[:, None], (_c - _mean) * scale + _bias)
    """
    condition = both(numbers("e"), vectors_of("mean", "var", "weight", "bias", of="c"))
    pattern = _STANDARDISED.format(x="F.linear(_x, _v, _c)")
    return replace_one(program, rng, [rule(pattern, replacement, when=condition)])


@rewrite("algebra")
def standardise_by_scale_and_shift(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """(x - mean) / sqrt(var + eps) * w + b with vectors is one multiplication and one addition.

    Assumes vectors along the last dimension, whose statistics do not depend on x.
    """
    replacement = """
        scale = _weight * torch.rsqrt(_var + _e)
        shift = _bias - _mean * scale
        torch.addcmul(shift, _x, scale)
    """
    condition = both(numbers("e"), vectors_of("mean", "var", "weight", "bias", of="x"))
    return replace_one(program, rng, [rule(_STANDARDISED.format(x="_x"), replacement, when=condition)])


@rewrite("algebra")
def batch_norm_by_scale_and_shift(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Batch normalisation with stored statistics is a scale and a shift per channel. Assumes pictures."""
    replacement = """
        scale = _weight * torch.rsqrt(_var + 1e-5)
        shift = _bias - _mean * scale
        _x * scale[:, None, None] + shift[:, None, None]
    """
    condition = both(ranks(x=4, mean=1, var=1, weight=1, bias=1))
    return replace_one(program, rng, [rule(_BATCH_NORM.format(x="_x"), replacement, when=condition)])


@rewrite("fusion")
def fold_norm_into_convolution(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """Batch normalisation with stored statistics scales the filters of the convolution before it.

    Assumes a convolution with nothing but zero padding to configure. Folded at every call, so changed weights count.
    """
    replacement = """
        scale = _weight * torch.rsqrt(_var + 1e-5)
        F.conv2d(_x, _v * scale[:, None, None, None], (_c - _mean) * scale + _bias, padding=_p)
    """
    pattern = _BATCH_NORM.format(x="nn.Conv2d(_x, _conv, _v, _c, padding=_p)")
    return replace_one(program, rng, [rule(pattern, replacement, when=ranks(x=4, c=1))])


@rewrite("algebra")
def convolve_pixels_by_product(program: cst.Module, rng: random.Random) -> cst.Module | None:
    """A convolution with filters of one pixel is a matrix product over channels. Assumes pictures."""
    replacement = """
        pixels = torch.matmul(_v.flatten(1), _x.flatten(2)) + _c[:, None]
        pixels.unflatten(2, _x.shape[2:])
    """
    return replace_one(program, rng, [rule("nn.Conv2d(_x, _conv, _v, _c)", replacement, when=_is_one_pixel)])


def _is_one_pixel(match: Match) -> bool:
    filters = match.value("_v")
    return filters is not None and filters.shape[2:] == (1, 1)
