"""Which services there are, and where, as variables of the environment say."""

import pytest

from flows.services.table import services
from tasks.errors import ParamsError
from tasks.registry import PAGES_VARIABLE


def test_ports_and_folders_come_from_variables(monkeypatch):
    variables = {"CUDA_L1_PREFECT_PORT": "4999", "CUDA_L1_MLFLOW_PORT": "5999", "PREFECT_HOME": "/elsewhere"}
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:////elsewhere/mlflow.db")
    prefect, mlflow = services(variables)[:2]
    assert (prefect.url, mlflow.url) == ("http://127.0.0.1:4999/", "http://127.0.0.1:5999/")
    assert prefect.environment["PREFECT_HOME"] == "/elsewhere"
    assert prefect.environment["PREFECT_SERVER_UI_API_URL"] == "http://127.0.0.1:4999/api"
    assert mlflow.environment["MLFLOW_BACKEND_STORE_URI"] == "sqlite:////elsewhere/mlflow.db"


def test_there_is_no_mlflow_of_ours_where_numbers_go_to_a_server(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.org")
    assert "mlflow" not in [service.name for service in services({})]


def test_the_schedule_knows_where_people_find_the_pages_of_mlflow(monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    schedule = services({"CUDA_L1_MLFLOW_PORT": "5999"})[-1]
    assert schedule.environment[PAGES_VARIABLE] == "http://127.0.0.1:5999/"
    proxied = services({PAGES_VARIABLE: "https://mlflow.example.org"})[-1]
    assert proxied.environment[PAGES_VARIABLE] == "https://mlflow.example.org"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param({"CUDA_L1_PREFECT_PORT": "http"}, "CUDA_L1_PREFECT_PORT='http' is no port", id="a word"),
        pytest.param({"CUDA_L1_MLFLOW_PORT": "65536"}, "CUDA_L1_MLFLOW_PORT='65536' is no port", id="too large"),
        pytest.param({"CUDA_L1_MLFLOW_PORT": "4200"}, "are both 4200", id="one for two"),
    ],
)
def test_ports_that_cannot_be_are_refused(monkeypatch, variables, said):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(ParamsError, match=said):
        services(variables)
