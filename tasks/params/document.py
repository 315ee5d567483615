"""Reading params.yaml, checking it, and laying its profiles over it."""

import re
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError

from tasks.errors import ParamsError
from tasks.params.consistency import inconsistencies
from tasks.params.sections import Params

# YAML 1.1, which PyYAML reads, takes 1e-3 for a text, since it has no point; everybody else takes it for a number.
_SCIENTIFIC = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)[eE][-+]?[0-9]+\Z")


class _Loader(yaml.SafeLoader):
    """The safe loader, with the numbers of YAML 1.2."""


class _Dumper(yaml.SafeDumper):
    """Puts quotes around texts that the loader would take for numbers."""


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver("tag:yaml.org,2002:float", _SCIENTIFIC, list("-+.0123456789"))


def load_params(path: Path = Path("params.yaml")) -> Params:
    """Read and check every section before any stage spends time.

    The file's "profiles" section is not part of the result: it holds changes for apply_profile.

    Raises:
        ParamsError: listing every bad key at once, each with its dotted path.
    """
    document = read_document(path)
    profiles = document.pop("profiles", None) or {}
    if not isinstance(profiles, dict) or not all(isinstance(changes, dict) for changes in profiles.values()):
        raise ParamsError(f"{path}: profiles must hold sections by profile, such as 'smoke: {{sft: {{steps: 80}}}}'")
    mistakes = inconsistencies(document)
    try:
        params = TypeAdapter(Params).validate_python(document)
    except ValidationError as error:
        mistakes += [f"{'.'.join(map(str, mistake['loc']))}: {_explain(mistake)}" for mistake in error.errors()]
    if mistakes:
        raise ParamsError("\n  ".join([f"{path} has {len(mistakes)} mistake(s):", *mistakes]))
    return params


def read_document(path: Path) -> dict[str, Any]:
    """The file's sections as they stand, unchecked.

    Raises:
        ParamsError: if it cannot be read or is not a mapping.
    """
    try:
        document = parse_yaml(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ParamsError(f"{path} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ParamsError(f"{path} must hold sections such as 'seed: 0', but holds {document!r}")
    return document


def parse_yaml(text: str) -> Any:
    """What the text of params.yaml, or of one of its values, says.

    Raises:
        yaml.YAMLError: if it is no YAML.
    """
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def write_yaml(document: dict[str, Any]) -> str:
    """The document as a text that parse_yaml reads again."""
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False))


def apply_profile(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A copy of the document with the values of one of its profiles laid over it, and no profiles left.

    Raises:
        ParamsError: if there is no such profile.
    """
    profiles = document.get("profiles") or {}
    if name not in profiles:
        raise ParamsError(f"no profile {name!r}; there are: {', '.join(sorted(profiles)) or 'none'}")
    base = {key: value for key, value in document.items() if key != "profiles"}
    return _overlaid(base, profiles[name])


def _overlaid(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = _overlaid(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _explain(mistake: Any) -> str:
    if mistake["type"] == "unexpected_keyword_argument":
        return f"unknown key (got {mistake['input']!r}); remove it or correct its spelling"
    if mistake["type"] in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return "missing key; add it"
    if mistake["type"] == "tuple_type":
        such_as = f" such as [{mistake['input']}]" if isinstance(mistake["input"], str) else ""
        return f"must be a list{such_as} (got {mistake['input']!r})"
    return f"{mistake['msg'].removeprefix('Value error, ')} (got {mistake['input']!r})"


def as_document(params: Params) -> dict[str, Any]:
    """The params as plain dictionaries, lists and scalars, as they stand in the file."""
    return dict(TypeAdapter(Params).dump_python(params, mode="json"))
