"""Calls of what a class replaces otherwise than by an assignment: what is put into forward is what is there then."""

import libcst as cst
import pytest
import torch

from tasks.variants.rewrites.inlining import inlined
from tests.test_rewrites_inlining_names import computed, program

NORM = "class Norm(nn.Module):\n    def forward(self, x):\n        return x * 2\n\n\n"
OUTER = (
    f"{NORM}class Outer(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.norm = Norm()\n\n    def forward(self, x):\n        return self.norm(x)\n"
)
REPLACED = [
    "self.add_module('norm', nn.Identity())",
    "self.add_module('no' + 'rm', nn.Identity())",
    "self.add_module(module=nn.Identity(), name='norm')",
    "super().add_module('norm', nn.Identity())",
    "add = self.add_module\nadd('norm', nn.Identity())",
    "self.register_module('norm', nn.Identity())",
    "self.set_submodule('norm', nn.Identity())",
    "setattr(self, 'norm', nn.Identity())",
    "setattr(self, 'no' + 'rm', nn.Identity())",
    "for each in (setattr,):\n    each(self, 'norm', nn.Identity())",
    "delattr(self, 'no' + 'rm')\nself.add_module('norm', nn.Identity())",
    "self.__setattr__('norm', nn.Identity())",
    "nn.Module.__setattr__(self, 'norm', nn.Identity())",
    "self._modules['norm'] = nn.Identity()",
    "self._modules['no' + 'rm'] = nn.Identity()",
    "self._modules.update(norm=nn.Identity())",
    "self._modules |= {'norm': nn.Identity()}",
    "held = self._modules\nheld['norm'] = nn.Identity()",
    "self.__dict__['norm'] = nn.Identity()",
    "vars(self)['norm'] = nn.Identity()",
    "vars(self).update(norm=nn.Identity())",
    "self.__dict__['_modules']['norm'] = nn.Identity()",
    "vars(self)['_modules'].update(norm=nn.Identity())",
    "vars(self)['_mod' + 'ules']['norm'] = nn.Identity()",
    "vars(self).get('_modules').update(norm=nn.Identity())",
    "import builtins\nbuiltins.setattr(self, 'no' + 'rm', nn.Identity())",
    "import builtins\nbuiltins.vars(self)['_modules']['norm'] = nn.Identity()",
    "getattr(self, '_modules')['norm'] = nn.Identity()",
    "getattr(self, 'add_module')('norm', nn.Identity())",
    "self.norm.__class__ = nn.Identity",
    "setattr(self.norm, '__class__', nn.Identity)",
    "self.__setstate__({**self.__dict__, '_modules': {'norm': nn.Identity()}})",
    "setattr(self, '_modules', {'norm': nn.Identity()})",
]
HOOKED = [
    "self.norm.register_forward_hook(lambda m, i, o: o * 3)",
    "self.norm.register_forward_pre_hook(lambda m, i: (i[0] * 3,))",
    "hook = self.norm.register_forward_hook\nhook(lambda m, i, o: o * 3)",
    "for each in self.children():\n    each.register_forward_hook(lambda m, i, o: o * 3)",
    "for each in self.modules():\n    each.register_forward_pre_hook(lambda m, i: (i[0] * 3, *i[1:]))",
    "norm = self.norm\nnorm.register_forward_hook(lambda m, i, o: o * 3)",
    "self._modules['norm'].register_forward_hook(lambda m, i, o: o * 3)",
    "self.apply(lambda m: m.register_forward_hook(lambda m, i, o: o * 3) and None)",
    "hook(self.norm)",
]
HOOKING = "def hook(module):\n    module.register_forward_hook(lambda m, i, o: o * 3)\n\n\n"


def forward_of(source: str) -> str:
    return inlined(cst.parse_module(source)).code.partition("def forward(self, x, y)")[2]


def method(lines: str) -> str:
    return "def replace(self):\n" + "".join(f"    {line}\n" for line in lines.splitlines())


def same_without(text: str, source: str) -> None:
    assert text not in forward_of(source).partition("    def ")[0]
    assert torch.equal(computed(source), computed(inlined(cst.parse_module(source)).code))


@pytest.mark.parametrize("lines", REPLACED)
def test_a_module_that_the_constructor_replaces_is_called(lines: str) -> None:
    source = program("return self.norm(x)", above=NORM, init=f"self.norm = Norm()\n{lines}\n")
    same_without("* 2", source)


@pytest.mark.parametrize("lines", REPLACED)
def test_a_module_that_another_method_replaces_is_called(lines: str) -> None:
    init = "self.norm = Norm()\nself.replace()\n"
    source = program("return self.norm(x)", above=NORM, init=init, methods=method(lines))
    same_without("* 2", source)


@pytest.mark.parametrize("lines", [each for each in REPLACED if "super()" not in each])
def test_a_module_that_is_replaced_within_a_module_is_called(lines: str) -> None:
    init = f"self.outer = Outer()\n{lines.replace('self', 'self.outer')}\n"
    same_without("* 2", program("return self.outer(x)", above=OUTER, init=init))


def test_a_module_that_is_replaced_by_its_path_is_called() -> None:
    init = "self.outer = Outer()\nself.set_submodule('outer.norm', nn.Identity())\n"
    same_without("* 2", program("return self.outer(x)", above=OUTER, init=init))


@pytest.mark.parametrize("lines", HOOKED)
def test_a_module_that_the_constructor_hooks_is_called(lines: str) -> None:
    init = f"self.norm = Norm()\n{lines}\n"
    same_without("* 2", program("return self.norm(x)", above=HOOKING + NORM, init=init))


@pytest.mark.parametrize("lines", HOOKED)
def test_a_module_that_another_method_hooks_is_called(lines: str) -> None:
    init = "self.norm = Norm()\nself.replace()\n"
    source = program("return self.norm(x)", above=HOOKING + NORM, init=init, methods=method(lines))
    same_without("* 2", source)


def test_a_module_that_is_hooked_within_a_module_is_called() -> None:
    init = "self.outer = Outer()\nself.outer.norm.register_forward_hook(lambda m, i, o: o * 3)\n"
    same_without("* 2", program("return self.outer(x)", above=OUTER, init=init))


def test_a_module_that_hooks_itself_is_called() -> None:
    lines = ("def __init__(self):", "    super().__init__()", "    self.register_forward_hook(lambda m, i, o: o * 3)")
    above = NORM.replace("    def forward", "".join(f"    {line}\n" for line in lines) + "\n    def forward")
    same_without("* 2", program("return self.norm(x)", above=above, init="self.norm = Norm()\n"))


@pytest.mark.parametrize(
    "line",
    [
        "setattr(self, 'ha' + 'lf', torch.neg)",
        "self.__setattr__('half', torch.neg)",
        "self.__dict__['half'] = torch.neg",
        "vars(self).update(half=torch.neg)",
    ],
)
def test_a_method_that_the_constructor_replaces_is_called(line: str) -> None:
    halving = "def half(self, z):\n    return z / 2\n"
    same_without("/ 2", program("return self.half(x)", init=f"{line}\n", methods=halving))


@pytest.mark.parametrize(
    "lines",
    [
        "self.add_module('other', nn.Identity())",
        "setattr(self, 'other', nn.Identity())",
        "self._modules['other'] = nn.Identity()",
        "assert self._modules['norm'] is not None",
        "for each in self._modules.values():\n    each.train()",
        "print(*vars(self).items(), {**vars(self)}, dict(**self.__dict__))",
        "assert len(self._modules) == 2 and 'norm' in self._modules and list(self._modules) and len(vars(self))",
        "for name in self._modules:\n    assert [each for each in self._modules] and name",
        "assert getattr(self, '_modules')['norm'] is not None and self.__dict__.get('training')",
        "blocks = nn.Sequential()\nfor i in range(3):\n    blocks.add_module(f'b{i}', nn.Identity())",
        "self.blocks = nn.ModuleDict()\nfor i in range(3):\n    self.blocks.add_module(str(i), nn.Identity())",
        "self.linear.register_forward_hook(lambda m, i, o: o * 3)",
        "self.weight.register_hook(lambda grad: grad * 3)",
        "self.register_forward_hook(lambda m, i, o: o * 3)",
        "for i in range(3):\n    self.register_buffer(f'buffer{i}', torch.zeros(1))",
    ],
)
def test_a_module_is_put_in_beside_what_concerns_others_or_only_looks(lines: str) -> None:
    source = program("return self.norm(x)", above=NORM, init=f"self.norm = Norm()\n{lines}\n")
    same_without("self.norm(", source)


@pytest.mark.parametrize(
    "lines",
    [
        "blocks = nn.Sequential()\nblocks = self.norm\nblocks.add_module('no' + 'rm', nn.Identity())",
        "blocks = nn.Sequential()\nfor blocks in self.children():\n    blocks.add_module('no' + 'rm', nn.Identity())",
        "blocks = nn.utils.spectral_norm(nn.Linear(4, 4))\nblocks.add_module('no' + 'rm', nn.Identity())",
        "self.blocks = nn.Sequential()\nself.blocks = self.outer\nself.blocks.add_module('no' + 'rm', nn.Identity())",
        "self.blocks = nn.Sequential()\nself.add_module('blocks', self.outer)\n"
        "self.blocks.add_module('no' + 'rm', nn.Identity())",
    ],
)
def test_no_module_is_put_in_beside_one_of_a_computed_name_within_what_may_be_of_the_file(lines: str) -> None:
    init = f"self.outer = Outer()\nself.norm = self.outer\n{lines}\n"
    same_without("* 2", program("return self.outer(x)", above=OUTER, init=init))


def test_a_method_is_put_in_beside_modules_with_computed_names() -> None:
    init = "for i in range(3):\n    self.add_module(f'block{i}', nn.Identity())\n"
    source = program("return self.half(x)", init=init, methods="def half(self, z):\n    return z / 2\n")
    same_without("self.half(", source)
