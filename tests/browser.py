"""A real browser for tests of pages: Chromium without a window, driven from trio.

One browser serves all tests of a process; each test has tabs of its own. Whatever a page logs as a warning or an error,
and whatever its Content-Security-Policy stopped, fails the test.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import trio
from selenium import webdriver
from selenium.common.exceptions import (
    ElementClickInterceptedException,
    ElementNotInteractableException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from selenium.webdriver.remote.webelement import WebElement

__all__ = ["NARROW", "WIDE", "Browser", "Keys", "Tab", "open_browser"]

T = TypeVar("T")

WIDE = (1200, 800)
NARROW = (390, 844)

_PATIENCE = 20.0  # seconds for one step: more means that something is broken
_PAUSE = 0.02  # seconds between two looks at a page

_FLAGS = (
    "headless=new",
    "no-sandbox",
    "disable-gpu",
    "disable-dev-shm-usage",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
)

_FOUND = """
  const [selector, text, enabled] = arguments;
  const texts = (e) => [e.innerText, e.getAttribute("aria-label"), e.value].map((one) => String(one ?? ""));
  const shown = (e) => e.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const fits = (e) => shown(e) && texts(e).some((one) => one.includes(text)) && !(enabled && e.matches(":disabled"));
  return [...document.querySelectorAll(selector)].filter(fits).at(-1) ?? null;
"""

_UNNAMED = """
  const label = (e) => [
    e.getAttribute("aria-label"),
    ...(e.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent),
    ...[...(e.labels ?? [])].map((one) => one.textContent),
    e.matches("input, select, textarea, dialog") ? "" : e.textContent,
    e.matches("img") ? e.alt : "",
  ].some((text) => (text ?? "").trim());
  const all = "button, input, select, textarea, a[href], dialog[open], progress, img:not([alt='']), nav, aside";
  const shown = [...document.querySelectorAll(all)].filter((e) => e.checkVisibility());
  return shown.filter((e) => !label(e)).map((e) => e.outerHTML.slice(0, 200));
"""

_SMALL = """
  const small = (e) => { const box = e.getBoundingClientRect(); return box.height < 39.5 || box.width < 39.5; };
  const all = document.querySelectorAll("button, input, select, textarea, a[href]");
  return [...all].filter((e) => e.checkVisibility() && small(e)).map((e) => e.outerHTML.slice(0, 200));
"""

_OUTSIDE = """
  const seen = (e) => {
    let { left, right } = e.getBoundingClientRect();
    for (let up = e.parentElement; up; up = up.parentElement) {
      if (getComputedStyle(up).overflowX === "visible") continue;
      const box = up.getBoundingClientRect();
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
    }
    return { left, right };
  };
  const outside = (e) => {
    const { left, right } = seen(e);
    return right > left && (right > innerWidth + 1 || left < -1);
  };
  const shown = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && !e.closest(".aside"));
  const wide = [...document.querySelectorAll(".scroll")].filter((e) => e.scrollWidth > e.clientWidth + 1);
  return [...shown.filter(outside), ...wide].map((e) => e.outerHTML.slice(0, 200));
"""

_FAINT = """
  const rgb = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return { c: [r, g, b], a }; };
  const over = (top, under) => top.c.map((value, i) => value * top.a + under[i] * (1 - top.a));
  const ground = (e) => {
    if (!e) return [255, 255, 255];
    const own = rgb(getComputedStyle(e).backgroundColor);
    return own.a === 1 ? own.c : over(own, ground(e.parentElement));
  };
  const opacity = (e) => e ? Number(getComputedStyle(e).opacity) * opacity(e.parentElement) : 1;
  const light = (c) => {
    const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (e) => {
    const under = ground(e), ink = rgb(getComputedStyle(e).color);
    const [dim, bright] = [light(under), light(over({ c: ink.c, a: ink.a * opacity(e) }, under))].sort((x, y) => x - y);
    return (bright + 0.05) / (dim + 0.05);
  };
  const written = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const shown = [...document.body.querySelectorAll("*")].filter((e) => e.checkVisibility() && written(e));
  const faint = shown.filter((e) => !e.matches(":disabled") && !e.closest(".aside") && contrast(e) < 4.5);
  return faint.map((e) => `${contrast(e).toFixed(2)} ${e.outerHTML.slice(0, 120)}`);
"""


class Browser:
    """Chromium; one thread at a time talks to it."""

    def __init__(self, driver: webdriver.Chrome, downloads: Path) -> None:
        self.driver = driver
        self.downloads = downloads
        self._busy = threading.Lock()
        self._first = driver.current_window_handle

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Browser]:
        """For one server: its tabs are closed at the end, and none may have complained of something that the test did
        not look at."""
        try:
            yield self
            if said := await self.complaints():
                raise AssertionError("A page complained:\n" + "\n".join(said))
        finally:
            with trio.CancelScope(shield=True):
                await self.do(self._close_tabs)

    async def tab(self, url: str, size: tuple[int, int] = WIDE) -> Tab:
        """A new tab with this page."""
        return Tab(self, await self.do(lambda: self._open(url, size)))

    async def do(self, work: Callable[[], T]) -> T:
        """Carry it out in a thread; others wait."""

        def alone() -> T:
            with self._busy:
                return work()

        return await trio.to_thread.run_sync(alone)

    async def complaints(self) -> list[str]:
        """What pages logged as warnings and errors since the last look."""
        log = await self.do(lambda: self.driver.get_log("browser"))  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in log if entry["level"] in ("WARNING", "SEVERE")]

    def _open(self, url: str, size: tuple[int, int]) -> str:
        self.driver.switch_to.new_window("tab")
        # A window has a least width: what the page sees is set instead.
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.get(url)
        return self.driver.current_window_handle

    def _close_tabs(self) -> None:
        for handle in self.driver.window_handles:
            if handle != self._first:
                self.driver.switch_to.window(handle)
                self.driver.close()
        self.driver.switch_to.window(self._first)


class Tab:
    """One page; `selector` is CSS, `text` a part of what the element shows or is called."""

    def __init__(self, browser: Browser, handle: str) -> None:
        self.browser, self.handle = browser, handle

    async def see(self, selector: str, text: str = "") -> str:
        """Wait for an element that is shown; its text."""
        return await self._with(selector, text, lambda element: str(element.get_property("innerText")))

    async def click(self, selector: str, text: str = "") -> None:
        """Wait for an element that can be clicked, the last of several, and click it."""
        await self._with(selector, text, lambda element: element.click(), enabled=True)

    async def type(self, selector: str, keys: str) -> None:
        """Type into an element."""
        await self._with(selector, "", lambda element: element.send_keys(keys))

    async def choose_file(self, selector: str, path: Path) -> None:
        """Give a file to an input, shown or not."""
        await self.do(lambda driver: driver.find_element("css selector", selector).send_keys(str(path)))

    async def press(self, *keys: str) -> None:
        """Press keys one after the other where the focus is."""
        for key in keys:
            await self.do(lambda driver, key=key: driver.switch_to.active_element.send_keys(key))

    async def js(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return await self.do(lambda driver: driver.execute_script(script, *arguments))

    async def until(self, script: str, *arguments: Any) -> Any:
        """What a script returns, as soon as it is something."""
        return await self._wait(lambda driver: driver.execute_script(script, *arguments), script)

    async def count(self, selector: str) -> int:
        """How many there are, shown or not."""
        return int(await self.js("return document.querySelectorAll(arguments[0]).length", selector))

    async def focused(self) -> str:
        """What the element with the focus is called or shows."""
        script = "const e = document.activeElement; return e.getAttribute('aria-label') ?? e.innerText"
        return str(await self.js(script))

    async def overflow(self) -> list[str]:
        """Elements that reach out of the window at its sides."""
        return list(await self.js(_OUTSIDE))

    async def unnamed(self) -> list[str]:
        """Controls, pictures and landmarks on the page that have no name for a screen reader."""
        return list(await self.js(_UNNAMED))

    async def small(self) -> list[str]:
        """Controls on the page that a finger can hardly hit: under 40 pixels."""
        return list(await self.js(_SMALL))

    async def faint(self) -> list[str]:
        """Texts on the page whose contrast is under 4.5."""
        return list(await self.js(_FAINT))

    async def dark(self, *, on: bool) -> None:
        """The colour scheme that the person prefers."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        await self.do(lambda driver: driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features}))

    async def do(self, work: Callable[[webdriver.Chrome], T]) -> T:
        """Carry something out on this page."""

        def there() -> T:
            driver = self.browser.driver
            if driver.current_window_handle != self.handle:
                driver.switch_to.window(self.handle)
            return work(driver)

        return await self.browser.do(there)

    async def _with(self, selector: str, text: str, work: Callable[[WebElement], T], *, enabled: bool = False) -> T:
        def attempt(driver: webdriver.Chrome) -> tuple[T] | None:
            element = driver.execute_script(_FOUND, selector, text, enabled)
            return (work(element),) if element else None

        return (await self._wait(attempt, f"{selector} {text!r}"))[0]

    async def _wait(self, attempt: Callable[[webdriver.Chrome], Any], what: str) -> Any:
        # Look again while an element is being replaced, or covered by one that goes.
        passing = (StaleElementReferenceException, ElementClickInterceptedException, ElementNotInteractableException)

        def wait(driver: webdriver.Chrome) -> Any:
            try:
                return WebDriverWait(driver, _PATIENCE, _PAUSE, ignored_exceptions=passing).until(attempt)
            except TimeoutException as error:
                shown = driver.execute_script("return document.body.innerText")
                raise AssertionError(f"{what} does not come. The page shows:\n{shown}") from error

        return await self.do(wait)


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start Chromium with a profile of its own."""
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as folder:
        downloads = Path(folder) / "downloads"
        options = webdriver.ChromeOptions()
        options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
        for flag in _FLAGS:
            options.add_argument(f"--{flag}")
        options.add_argument(f"--user-data-dir={folder}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(_program("chromedriver")))
        try:
            yield Browser(driver, downloads)
        finally:
            driver.quit()


def _program(*names: str) -> str:
    for name in names:
        if path := shutil.which(name):
            return path
    raise AssertionError(f"{names[0]} is missing. On Debian: apt-get install chromium chromium-driver")
