"""A champion is loaded in the form it was trained to answer, or not compared with at all."""

from dataclasses import replace

import pytest

from flows.champion_params import TAG, as_tag, champion_params
from flows.comparison import CHALLENGER, CHAMPION, begin_comparison
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


def test_another_form_of_the_champion_is_another_comparison(tmp_path, monkeypatch):
    params = load_params()
    monkeypatch.setattr("flows.comparison.FOLDER", tmp_path)
    roles = {CHALLENGER: tmp_path, CHAMPION: tmp_path}
    digests = {CHALLENGER: "a", CHAMPION: "b"}
    forms = {CHALLENGER: params.policy, CHAMPION: params.policy}
    first = begin_comparison(params, roles, digests, forms)
    assert begin_comparison(params, roles, digests, forms).key == first.key
    other = forms | {CHAMPION: replace(params.policy, completion_tokens=params.policy.completion_tokens + 1)}
    assert begin_comparison(params, roles, digests, other).key != first.key
