"""Kernels in C for classes with methods besides forward: only those that can matter to a call keep them away."""

import pytest

from tasks.variants.rewrites.affine import linear_by_addmm
from tasks.variants.rewrites.kernel import elementwise_in_c
from tests.program_builders import MATRIX, problem, rewritten
from tests.rewrite_refusals import with_block
from tests.rewrite_texts import LINEAR, one

INIT_WEIGHTS = """
    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
            module.bias.data.zero_()
"""

CHANGES = (
    "self.register_parameter('s', None)",
    "self.register_buffer('s', torch.ones(3))",
    "del self.s",
    "self.__dict__['_modules']['s'] = 1",
    "vars(self)['_modules']['s'] = 1",
    "vars(self).get('_modules').clear()",
    "self.__dict__['_parameters']['s'] = None",
    "getattr(self, '_buffers').clear()",
    "getattr(self, 'register_buffer')('s', torch.ones(3))",
    "self.__setstate__({'s': 4})",
    "builtins.delattr(self, 's')",
)


def with_methods(methods: str, *, init: str = "", forward: str = "return torch.relu(x * 2.0) / 3.0") -> str:
    source = problem(forward, MATRIX, init=f"self.s = size0\n{init}", init_arguments="3")
    return source.replace("\n\ndef get_inputs():", f"{methods}\n\ndef get_inputs():", 1)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(with_methods("\n    def _note(self):\n        return 'hello'\n"), id="that nothing calls"),
        pytest.param(
            with_methods(
                "\n    def _note(self):\n        return 1\n\n    def note(self):\n        return self._note()\n"
            ),
            id="that another one calls that nothing calls",
        ),
        pytest.param(
            with_methods("\n    def _count(self):\n        return [*self._modules.values(), *vars(self).items()]\n"),
            id="that looks at what the model holds",
        ),
        pytest.param(with_methods(INIT_WEIGHTS, init="self.apply(self._init_weights)"), id="that fills in weights"),
        pytest.param(
            with_methods(
                "\n    def reset_parameters(self):\n        with torch.no_grad():\n"
                "            for each in self.parameters():\n                each.uniform_(-1, 1)\n",
                init="self.reset_parameters()",
            ),
            id="that the constructor calls to fill in weights",
        ),
    ],
)
def test_methods_that_have_nothing_to_do_with_forward_do_not_matter(source: str) -> None:
    assert rewritten(source, elementwise_in_c) is not None


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(
            with_methods(
                "\n    def _scale(self):\n        return 2.0\n", forward="return torch.relu(x * self._scale()) / 3.0"
            ),
            id="that forward calls",
        ),
        pytest.param(with_methods("\n    def _set(self):\n        self.s = 4\n"), id="that sets an attribute"),
        pytest.param(
            with_methods("\n    def _set(self):\n        setattr(self, 's', 4)\n"), id="that sets one by name"
        ),
        pytest.param(
            with_methods("\n    def _set(self):\n        self._modules['s'] = nn.Identity()\n"),
            id="that replaces a module",
        ),
        pytest.param(
            with_methods("\n    def _set(self):\n        self._parameters['s'] = None\n"),
            id="that replaces a parameter",
        ),
        pytest.param(
            with_methods("\n    def _set(self):\n        self._buffers.update(s=torch.ones(3))\n"),
            id="that replaces a buffer",
        ),
        pytest.param(
            with_methods("\n    def _set(self):\n        self.add_module('s', nn.Identity())\n"),
            id="that adds a module",
        ),
        *(
            pytest.param(with_methods(f"\n    def _set(self):\n        {line}\n"), id=f"that says {line}")
            for line in CHANGES
        ),
        pytest.param(with_methods("\n    def _apply(self, fn):\n        return self\n"), id="that torch calls"),
        pytest.param(with_methods("\n    def __getattr__(self, name):\n        return 1\n"), id="that Python calls"),
        pytest.param(
            with_methods(
                "\n    def _half(self, module, given):\n        return (given[0] / 2,)\n",
                init="self.register_forward_pre_hook(self._half)",
            ),
            id="that is a hook",
        ),
        pytest.param(
            with_methods(
                "\n    def _build(self):\n        self.register_forward_pre_hook(lambda *_: None)\n",
                init="self._build()",
            ),
            id="that the constructor calls for more than weights",
        ),
    ],
)
def test_methods_that_can_matter_keep_kernels_away(source: str) -> None:
    assert rewritten(source, elementwise_in_c) is None


@pytest.mark.parametrize(
    "lines",
    [
        "self.apply(self._init_weights)",
        "nn.init.normal_(self.linear.weight, std=0.02)",
        "self.linear.weight.data.copy_(self.linear.weight)",
        "for each in self.parameters():\n    each.requires_grad = False\n    each.data = each.data * 2",
        "for each in self.parameters():\n    each.register_hook(torch.neg)",
        "self.other = nn.Linear(size0, size1)\nself.other.bias = None",
        "blocks = nn.Sequential()\nblocks.add_module('b' + '0', nn.Linear(size0, size1))",
    ],
)
def test_a_layer_is_known_whatever_a_constructor_does_to_its_numbers_or_to_others(lines: str) -> None:
    source = one("return self.linear(x)", init=f"{LINEAR}\n{lines}", init_arguments="6, 6")
    source = source.replace("\n\ndef get_inputs():", f"{INIT_WEIGHTS}\n\ndef get_inputs():", 1)
    assert rewritten(source, linear_by_addmm) is not None


def test_a_layer_of_a_block_is_known_though_its_weights_are_filled() -> None:
    assert rewritten(with_block("nn.init.zeros_(self.block.linear.weight)"), linear_by_addmm) is not None
