"""Made-up episodes, a tokenizer that reads them, and a browser that opens their page."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from turngym.agents.tiny import build_tokenizer
from turngym.types import Episode, PlayedTurn, Segment, Span

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MS = 60_000  # What a busy machine may take; a page that is right is never waited for that long.
WORDS = ("find", "the", "red", "key", "a", "room", "look", "go", "north", "you", "see")

MakeEpisode = Callable[..., Episode]
Open = Callable[..., Any]


@pytest.fixture
def turn() -> Callable[..., PlayedTurn]:
    """Makes a turn; keywords replace its fields."""

    def make(command: str = "look", observation: str = "You see the key.", **fields: Any) -> PlayedTurn:
        values: dict[str, Any] = {
            "reward": 0.5,
            "score": 1.0,
            "valid": True,
            "author": "policy",
            "latency_s": 0.0012,
        }
        return PlayedTurn(command, observation, **(values | fields))

    return make


@pytest.fixture
def make_episode(turn: Callable[..., PlayedTurn]) -> MakeEpisode:
    """Makes an episode of a number; keywords replace its fields."""

    def make(number: int = 0, **fields: Any) -> Episode:
        values: dict[str, Any] = {
            "number": number,
            "group": number,
            "env_id": "turngym/Rooms-v0",
            "env_kwargs": {"level": "w2-o3-q4"},
            "task": f"small/{number}",
            "seed": 2**62 + number,
            "attempt": 0,
            "agent": "policy",
            "instructions": "Find the red key.",
            "observation": "A room.",
            "turns": (turn(), turn("go north", "You see a room.")),
            "outcome": "won",
            "score": 2.0,
            "max_score": 2.0,
            "start_key": "ab12",
        }
        return Episode(**(values | fields))

    return make


@pytest.fixture
def segment() -> Segment:
    """Tokens of the made-up episode by the made-up tokenizer, two of them sampled: one sure, one not."""
    tokenizer = build_tokenizer(WORDS)
    ids = tokenizer.encode("find the red key a room look", add_special_tokens=False)
    spans = (Span(0, 6, 0, "env"), Span(6, 7, 0, "policy"), Span(7, 8, 1, "env"), Span(8, 9, 1, "policy"))
    more = tokenizer.encode("you go", add_special_tokens=False)
    return Segment((*ids, *more), (0.0,) * 6 + (-0.01, 0.0, -3.0), spans)


@pytest.fixture
def tokenizer_folder(tmp_path: Path) -> Path:
    """A folder with the tokenizer of the made-up episodes."""
    folder = tmp_path / "checkpoint"
    build_tokenizer(WORDS).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A Chromium without a window; tests are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium here; on Debian: apt-get install chromium")
    # One module at a time: while it runs, Playwright keeps an event loop of its own in this thread.
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a page file and waits until it has shown itself; then no error and no request may have come up."""
    errors: list[str] = []
    contexts: list[Any] = []

    def open_file(path: Path, fragment: str = "", **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        address = path.resolve().as_uri()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        page.on("request", lambda asked: None if asked.url.startswith(address) else errors.append(asked.url))
        page.goto(address + fragment)
        page.wait_for_selector("html[data-ready]", state="attached")
        page.wait_for_selector("article, #episode .void")
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert errors == []
