"""Prefect's pages in a real browser: the schedule of retrainings is edited by clicking."""

import time

import pytest

from tasks.params import RetrainParams
from tests.browser import CHROMIUM, browser
from tests.prefect_server import prefect_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium, chromium-browser or google-chrome"),
]

SAVED_S = 20.0
BUTTONS = "[...document.querySelectorAll('button, [role=menuitem], [role=tab]')]"
NAMED = BUTTONS + ".find((button) => button.textContent.trim() === '{}')"
SCHEDULE = "document.querySelector('button[role=switch][aria-label^=\"toggle \"]')"
MENU = f"{SCHEDULE}?.closest(':has([aria-haspopup=menu])')?.querySelector('[aria-haspopup=menu]')"
CRON = "document.querySelector('[role=dialog] input[name=\"schedule.cron\"]')"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with prefect_server(tmp_path_factory.mktemp("prefect")) as url, temporary_settings({PREFECT_API_URL: url}):
        yield url


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as tab:
        tab.size(1400, 1000)
        tab.prefer("light")
        yield tab


def schedule_at(url):
    from prefect.client.orchestration import SyncPrefectClient

    with SyncPrefectClient(url) as client:
        (known,) = client.read_deployment_by_name("retrain/nightly").schedules
    return known


def test_the_schedule_is_edited_by_clicking_and_survives_a_restart(url, tab):
    from flows.deployment import register

    nightly = register(RetrainParams(cron="30 3 * * 6", timezone="Europe/Berlin"))[0]
    address = url.removesuffix("/api")
    from prefect.client.orchestration import SyncPrefectClient

    with SyncPrefectClient(url) as client:
        deployment_id = client.read_deployment_by_name(f"retrain/{nightly.name}").id
    tab.visit(f"{address}/v2/deployments/deployment/{deployment_id}", until=SCHEDULE)
    tab.click(MENU)
    tab.click(NAMED.format("Edit"))
    tab.write(CRON, "15 4 * * 1-5")
    tab.click(NAMED.format("Save"))
    end = time.monotonic() + SAVED_S
    while schedule_at(url).schedule.cron == "30 3 * * 6":
        assert time.monotonic() < end, tab.value("document.body.innerText")
        time.sleep(0.1)
    register(RetrainParams())
    known = schedule_at(url)
    assert (known.schedule.cron, known.schedule.timezone, known.active) == ("15 4 * * 1-5", "Europe/Berlin", True)
    assert known.parameters == {}  # the dialog shows them all, and overrides none
