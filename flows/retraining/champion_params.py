"""How a champion writes: what its folder does not hold and loading it takes, as a tag of its version.

Loaded with today's params, a champion of yesterday's would be asked in a form that it was never trained on, and lose.
"""

from pydantic import TypeAdapter, ValidationError

from tasks.errors import PolicyError
from tasks.params import PolicyParams
from tasks.registry import CHAMPION, MODEL, PolicyVersion

TAG = "cuda_l1.policy_params"


def as_tag(params: PolicyParams) -> dict[str, str]:
    """The section policy that a policy was made with, to be registered with it."""
    return {TAG: TypeAdapter(PolicyParams).dump_json(params).decode()}


def champion_params(champion: PolicyVersion) -> PolicyParams:
    """The section policy that a champion was made with.

    Raises:
        PolicyError: if it was not registered with it, or with one that is none any more.
    """
    remedy = f"set the tag {TAG} to its section policy as JSON, or move the alias {CHAMPION!r} to a version that has it"
    if TAG not in champion.tags:
        raise PolicyError(
            f"version {champion.version} of {MODEL} does not say in what form it was trained to answer, so nothing can "
            f"be compared with it: {remedy}"
        )
    try:
        return TypeAdapter(PolicyParams).validate_json(champion.tags[TAG])
    except ValidationError as error:
        mistakes = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise PolicyError(
            f"version {champion.version} of {MODEL} cannot be loaded as it was trained ({mistakes}): {remedy}"
        ) from error
