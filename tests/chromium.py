"""The browser of the tests that look at a page: Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

PATH = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@contextmanager
def launched() -> Iterator[Any]:
    """A browser, closed at the end."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=PATH)
        yield chromium
        chromium.close()


class Tab:
    """A page in a browser that must not complain nor ask for anything."""

    def __init__(self, browser: Any, path: Path, html: str, width: int = 1280, **more: Any) -> None:
        path.write_text(html, encoding="utf-8")
        self.address, self.said, self.asked = path.as_uri(), [], []
        self.page = browser.new_page(viewport={"width": width, "height": 800}, **more)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append("dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(self.address)

    def close(self) -> None:
        said, asked = self.said, self.asked
        self.page.close()
        assert (said, asked) == ([], [self.address])

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)

    def place(self) -> str:
        """Where the page says that it is."""
        return str(self.page.locator("#said b").inner_text())

    def eyes(self) -> str:
        """Who looks."""
        return str(self.page.locator("[aria-pressed=true]").get_attribute("data-seat"))
