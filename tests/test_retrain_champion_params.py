"""A champion is loaded in the form it was trained to answer, or not compared with at all."""

from dataclasses import replace

import pytest

from flows.retraining.champion_params import TAG, as_tag, champion_params
from tasks.errors import PolicyError
from tasks.params import load_params
from tasks.registry import PolicyVersion


def version(tags: dict[str, str]) -> PolicyVersion:
    return PolicyVersion(version=3, digest="0123", mlflow_run_id="run", created_at=0.0, tags=tags)


def test_what_a_policy_was_made_with_comes_back_with_its_version():
    params = replace(load_params().policy, prompt_style="instruct", context_tokens=999, completion_tokens=77)
    assert champion_params(version(as_tag(params))) == params


@pytest.mark.parametrize(
    ("tags", "says"),
    [
        pytest.param({}, "version 3 of cuda-l1-policy does not say", id="registered by hand"),
        pytest.param({TAG: "{"}, "version 3 .* cannot be loaded as it was trained", id="no JSON"),
        pytest.param(
            {TAG: '{"prompt_style": "haiku"}'}, "prompt_style: .*move the alias 'champion'", id="other params"
        ),
    ],
)
def test_a_champion_of_unknown_form_is_refused_by_name(tags, says):
    with pytest.raises(PolicyError, match=says):
        champion_params(version(tags))
