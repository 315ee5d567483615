"""The weights of a problem's model under several seeds, and others that a trained model could have."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tasks.judge.distributions import Domain, in_reals, one_sided
from tasks.judge.equality import as_array, put_array
from tasks.judge.structure import is_structured
from tasks.judge.trained import has_gaps, is_real, lasting, perturbed, square_size, strengthened
from tasks.judge.wire import TensorSpec, offsets


@dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    """One tensor of a candidate's state that is several of the reference's, one after the other in its memory."""

    name: str
    spec: TensorSpec
    indices: tuple[int, ...]


class Weights:
    """Everything in the reference's state dict: its forms, its bytes under each seed, and what of it may change."""

    def __init__(
        self,
        rows: Sequence[tuple[str, TensorSpec, str]],
        states: Mapping[int, np.ndarray],
        *,
        first_alike: Sequence[int] | None = None,
    ) -> None:
        """Compare the states.

        Args:
            rows: name, form and kind ("parameter", "frozen", "statistic" or "buffer") of each tensor.
            states: by seed, all tensors one after the other.
            first_alike: for each tensor the first that lies in the same memory; without it, none is tied to another.
        """
        self.rows: list[list[Any]] = [[name, spec.dtype, list(spec.shape)] for name, spec, _ in rows]
        self.specs = [spec for _, spec, _ in rows]
        self.states = states
        self._starts = offsets(self.specs)[0]
        self.is_free = [self._may_change(index, kind) for index, (_, _, kind) in enumerate(rows)]
        self._is_moved = [
            free and not (kind == "buffer" and spec.dtype.startswith("complex"))  # such as rotations, all of length 1
            for free, (_, spec, kind) in zip(self.is_free, rows, strict=True)
        ]
        kinds = [kind for _, _, kind in rows]
        self.is_learned = [free and kind != "statistic" for free, kind in zip(self.is_free, kinds, strict=True)]
        """Statistics are gathered instead, and count only where a layer is not being trained."""
        self.stay_as_made = False
        """Whether the reference fails with weights that its constructor did not make, such as rows that sum to one."""
        self.first_alike = list(range(len(rows))) if first_alike is None else list(first_alike)
        """For each tensor the first that it is tied to, which may be itself. Copies are not tied: training parts them,
        as it does the layers of nn.TransformerEncoder.
        """
        self.is_filled = [kind == "parameter" and self._has_gaps(index) for index, kind in enumerate(kinds)]
        """Whether zeros of a tensor become other values, as they do in training; none where the reference minds."""

    @property
    def num_bytes(self) -> int:
        return offsets(self.specs)[1]

    def perturbed(
        self, state: np.ndarray, rng: np.random.Generator, *, share: float = 1.0, only: Sequence[int] | None = None
    ) -> np.ndarray:
        """Another state near this one.

        Args:
            share: of the places of each tensor that are changed; where not all are, the first is not.
            only: the tensors that may be changed, instead of all that are free.
        """
        is_moved = self._is_moved if only is None else [index in only for index in range(len(self._is_moved))]
        changed = perturbed(state, self.specs, is_moved, rng, is_filled=self.is_filled)
        if share < 1.0:
            self._keep_most(changed, state, rng, share=share, of=np.flatnonzero(is_moved).tolist())
        return self.alike_where_tied(changed)

    def some_free(self, rng: np.random.Generator, count: int) -> list[int]:
        """So many of the tensors that may change, or all where there are fewer, in a random order."""
        changeable = [
            index
            for index, spec in enumerate(self.specs)
            if self._is_moved[index] and self.first_alike[index] == index and is_real(spec)
        ]
        found: list[int] = rng.permutation(changeable)[:count].tolist()
        return found

    def strengthened(
        self, state: np.ndarray, rng: np.random.Generator, *, factor: float, with_signs: bool, fills: bool = True
    ) -> np.ndarray:
        """A state far from this one, see strengthened.

        Args:
            fills: whether zeros become other values where perturbed makes them so.
        """
        is_filled = [fills and filled for filled in self.is_filled]
        changed = strengthened(
            state, self.specs, self._grown, rng, factor=factor, with_signs=with_signs, is_filled=is_filled
        )
        return self.alike_where_tied(changed)

    @property
    def has_squares(self) -> bool:
        """Whether anything that is learned may be the step from one state to the next."""
        return any(size and moved for size, moved in zip(map(square_size, self.specs), self._grown, strict=True))

    def lasting(self, state: np.ndarray, rng: np.random.Generator, *, stays: bool, share: float) -> np.ndarray:
        """A state with which a model forgets little from step to step, see lasting."""
        names = [name for name, *_ in self.rows]
        changed = lasting(state, self.specs, names, self._grown, rng, stays=stays, share=share)
        return self.alike_where_tied(changed)

    @property
    def _grown(self) -> list[bool]:
        return [learned and moved for learned, moved in zip(self.is_learned, self._is_moved, strict=True)]

    def one_sided(self, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A state near this one, of values that rounding to few bits always moves away from zero; zeros stay."""
        changed = state.copy()
        for spec, start, moved in zip(map(in_reals, self.specs), self._starts, self._is_moved, strict=True):
            if moved and is_real(spec) and spec.dtype in ("float32", "float64"):
                values = as_array(state, spec, start)
                others = one_sided(values, spec, Domain(kind="signed"), rng)
                put_array(changed, spec, start, np.where((values == 0) | ~np.isfinite(values), values, others))
        return self.alike_where_tied(changed)

    def alike_where_tied(self, state: np.ndarray) -> np.ndarray:
        """The same state, with what is tied made alike in place."""
        for index, first in enumerate(self.first_alike):
            self._bytes(state, index)[:] = self._bytes(state, first)
        return state

    def with_unlearned_of(self, state: np.ndarray, other: np.ndarray) -> np.ndarray:
        """The state with what nobody learns, such as signs that a seed made, as in another."""
        return self._with(state, other, [index for index, is_learned in enumerate(self.is_learned) if not is_learned])

    def others(self, seed: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """Other states for the model of one seed: two near its own, then those of the other seeds.

        Only the latter differ in whole numbers, such as an order that is drawn, and in complex buffers.
        """
        for _ in range(0 if self.stay_as_made else 2):  # a single factor may be drawn very near 1
            yield self.perturbed(self.states[seed], rng)
        yield from (state for other, state in self.states.items() if other != seed)

    def only(self, index: int, changed: np.ndarray, state: np.ndarray) -> np.ndarray:
        """The state with one tensor, and what is tied to it, as in another state."""
        tied = [other for other, first in enumerate(self.first_alike) if first == self.first_alike[index]]
        return self._with(state, changed, tied)

    def names_in(self, rows: Sequence[tuple[str, TensorSpec, str]], block: np.ndarray, seed: int) -> list[str | None]:
        """Under which name a model made from the same seed keeps each tensor: one of equal dtype and bytes.

        Args:
            rows: of that model's state.
            block: its bytes.
        """
        starts = offsets([spec for _, spec, _ in rows])[0]
        left = {
            name: (spec, block[start : start + spec.num_bytes])
            for (name, spec, _), start in zip(rows, starts, strict=True)
        }
        names: list[str | None] = []
        for index, (own_name, *_) in enumerate(self.rows):
            wanted = (self.specs[index], self._bytes(self.states[seed], index))
            fitting = (
                name
                for name in sorted(left, key=lambda name: name != own_name)
                if left[name][0].dtype == wanted[0].dtype and np.array_equal(left[name][1], wanted[1])
            )
            names.append(next(fitting, None))
            left.pop(names[-1] or "", None)
        return names

    def joined_in(
        self, rows: Sequence[tuple[str, TensorSpec, str]], block: np.ndarray, seed: int, names: Sequence[str | None]
    ) -> list[Joined]:
        """The tensors of a model made from the same seed that are made of several which have no name there.

        Where pieces are alike, such as two biases of zeros, they are taken for being in the reference's order.

        Args:
            rows: of that model's state.
            block: its bytes.
            names: what names_in has found.
        """
        left = {index for index, name in enumerate(names) if name is None and self.specs[index].num_bytes}
        found = []
        for (name, spec, _), start in zip(rows, offsets([spec for _, spec, _ in rows])[0], strict=True):
            if name in names:
                continue
            pieces = self._pieces_of(block[start : start + spec.num_bytes], spec.dtype, seed, sorted(left))
            if len(pieces) > 1:
                found.append(Joined(name=name, spec=spec, indices=tuple(pieces)))
                left.difference_update(pieces)
        return found

    def _pieces_of(self, values: np.ndarray, dtype: str, seed: int, left: list[int]) -> list[int]:
        """Tensors that make up these bytes one after the other; none if the bytes are anything besides."""
        at, pieces = 0, []
        while at < values.size:
            for index in left:
                own = self._bytes(self.states[seed], index)
                if self.specs[index].dtype == dtype and np.array_equal(values[at : at + own.size], own):
                    break
            else:
                return []
            pieces.append(index)
            left = [other for other in left if other != index]
            at += own.size
        return pieces

    def under_names(
        self,
        state: np.ndarray,
        names: Sequence[str | None],
        shapes: Mapping[str, Sequence[int]],
        joined: Sequence[Joined],
    ) -> tuple[np.ndarray, list[list[Any]]]:
        """The tensors that have a name, alone or joined with others, as a block of their own with its rows.

        Args:
            shapes: by name, where they are others than the reference's.
        """
        alone = [(index, name) for index, name in enumerate(names) if name is not None]
        rows = [(name, self.specs[index], shapes.get(name, self.specs[index].shape)) for index, name in alone]
        rows += [(each.name, each.spec, each.spec.shape) for each in joined]
        parts = [[index] for index, _ in alone] + [list(each.indices) for each in joined]
        starts, num_bytes = offsets([spec for _, spec, _ in rows])
        block = np.zeros(num_bytes, dtype=np.uint8)
        for start, (_, spec, _), indices in zip(starts, rows, parts, strict=True):
            block[start : start + spec.num_bytes] = np.concatenate([self._bytes(state, index) for index in indices])
        return block, [[name, spec.dtype, list(shape)] for name, spec, shape in rows]

    def groups_alike(self, names: Sequence[str | None]) -> list[list[int]]:
        """Groups of tensors of which no value tells which is which, such as two biases of zeros under other names."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index, (name, spec) in enumerate(zip(names, self.specs, strict=True)):
            if name is not None and name != self.rows[index][0] and self.is_free[index]:
                contents = tuple(self._bytes(state, index).tobytes() for state in self.states.values())
                groups.setdefault((spec.dtype, contents), []).append(index)
        return [group for group in groups.values() if len(group) > 1]

    def alike(self, state: np.ndarray, group: Sequence[int]) -> np.ndarray:
        """The state with all tensors of a group like its first."""
        found = state.copy()
        for index in group:
            self._bytes(found, index)[:] = self._bytes(state, group[0])
        return found

    def is_same_under_all_seeds(self, index: int) -> bool:
        first, *others = (self._bytes(state, index) for state in self.states.values())
        return all(np.array_equal(first, other) for other in others)

    def _with(self, state: np.ndarray, other: np.ndarray, indices: Iterable[int]) -> np.ndarray:
        """The state with these tensors as in another."""
        found = state.copy()
        for index in indices:
            self._bytes(found, index)[:] = self._bytes(other, index)
        return found

    def _keep_most(
        self, changed: np.ndarray, state: np.ndarray, rng: np.random.Generator, *, share: float, of: Iterable[int]
    ) -> None:
        for index in of:
            spec = self.specs[index]
            ours, theirs = (self._bytes(block, index).reshape(max(spec.num_items, 1), -1) for block in (changed, state))
            kept = rng.random(len(ours)) >= share
            kept[: 1 if len(kept) > 1 else 0] = True
            kept[rng.integers(min(1, len(ours) - 1), len(ours))] = False
            ours[kept] = theirs[kept]

    def _bytes(self, block: np.ndarray, index: int) -> np.ndarray:
        start = self._starts[index]
        return block[start : start + self.specs[index].num_bytes]

    def _may_change(self, index: int, kind: str) -> bool:
        """Buffers that no seed changes are constants of the program, unless their values are all the same.

        Those that seeds change and that have a structure, such as signs, masks or an order, are only ever made by one.
        Values that are all zeros or ones are gathered statistics before any have been gathered; tables and masks differ
        from place to place, and what is all some other number was computed from the constructor's arguments.
        """
        if kind != "buffer":
            return True
        spec = self.specs[index]
        first = self._bytes(next(iter(self.states.values())), index)
        if not self.is_same_under_all_seeds(index):
            is_float = spec.dtype in ("float32", "float64") and spec.num_items > 0
            blocks = [self._bytes(state, index) for state in self.states.values()]
            return not (is_float and all(is_structured(spec, as_array(block, spec, 0)) for block in blocks))
        if not spec.dtype.startswith("float") or not spec.num_items:
            return False
        values = as_array(first, spec, 0)
        return bool((values == values[0]).all() and values[0] in (0, 1))

    def _has_gaps(self, index: int) -> bool:
        spec = self.specs[index]
        blocks = (self._bytes(state, index) for state in self.states.values())
        return is_real(spec) and all(has_gaps(as_array(block, spec, 0)) for block in blocks)
