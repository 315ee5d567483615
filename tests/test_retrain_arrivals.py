"""What arrived is told once, also after a kill; and steps are tried again where that can help."""

import pytest
from prefect.states import Failed

from flows import retrain
from flows.retraining.arrivals import forget_arrivals, note_arrival, noted_arrivals
from flows.retraining.inbox import Arrival, Fate
from tasks.errors import MachineError, RetryableError

ADMITTED = Arrival(name="level1/a.py", fate=Fate.ADMITTED)
WAITING = Arrival(name="level1/b.py", fate=Fate.WAITING, reason="it changed")
LATER = Arrival(name="level1/b.py", fate=Fate.QUARANTINED, reason="is no Python file\nat all")


def test_arrivals_are_kept_until_they_are_announced(tmp_path):
    path = tmp_path / "retrain" / "arrivals.jsonl"
    assert noted_arrivals(path) == []
    note_arrival(ADMITTED, path)
    note_arrival(WAITING, path)
    with path.open("a") as file:
        file.write('{"name": "cut o')  # by a kill
    assert noted_arrivals(path) == [ADMITTED, WAITING]
    note_arrival(LATER, path)
    assert noted_arrivals(path) == [ADMITTED, LATER]
    for _ in range(2):
        forget_arrivals(path)
    assert noted_arrivals(path) == []


@pytest.mark.parametrize(("error", "helps"), [(RetryableError("busy"), True), (MachineError("disk full"), False)])
def test_a_step_is_tried_again_only_where_that_can_help(error, helps):
    assert retrain._may_help(None, None, Failed(data=error)) is helps
