"""Settings for every test, and the browser of those that look at a page."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

# Small networks on shared cores: threads that wait for each other cost more than they bring.
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; its tests are skipped where it or Playwright is missing."""
    pytest.importorskip("playwright.sync_api")
    from tests.chromium import PATH, launched  # noqa: PLC0415 - needs Playwright

    if PATH is None:
        pytest.skip("there is no Chromium")
    with launched() as chromium:
        yield chromium


@pytest.fixture
def open_tab(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Opens a page (HTML) in a ``chromium.Tab``, which at the end must have had no complaint."""
    from tests.chromium import Tab  # noqa: PLC0415 - needs Playwright

    tabs: list[Tab] = []

    def opened(html: str, **options: Any) -> Tab:
        tabs.append(Tab(browser, tmp_path / f"{len(tabs)}.html", html, **options))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()
