"""The page in a browser: list, filters, figures, keys and addresses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from turngym.benchmarks.statistics import success_interval
from turngym.episode_file import write_episodes
from turngym.types import Episode, Outcome, PlayedTurn
from turngym.viewer.view import view

pytestmark = pytest.mark.browser  # starts Chromium
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

MakeEpisode = Callable[..., Episode]
Open = Callable[..., Any]


def expect_numbers(page: Any, wanted: list[str]) -> None:
    """The list comes to show just these episode numbers, in this order."""
    expect(page.locator("#list .number")).to_have_text([f"#{number}" for number in wanted])


def expect_summary(page: Any, text: str) -> None:
    expect(page.locator("#summary")).to_contain_text(text)


def expect_episode(page: Any, number: int) -> None:
    expect(page.locator("article h2")).to_have_text(f"Episode {number}")


def go(page: Any, fragment: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#{fragment}")


@pytest.fixture
def page(tmp_path: Path, make_episode: MakeEpisode, turn: Callable[..., PlayedTurn], open_page: Open) -> Any:
    """A page with an episode of each outcome, of growing length, and a few special ones."""
    endings = [outcome for outcome in get_args(Outcome) if outcome != "won"]
    episodes = [make_episode(0)]
    episodes += [
        make_episode(n, outcome=outcome, turns=(turn(reward=0.0),) * n, weights_version=n)
        for n, outcome in enumerate(endings, start=1)
    ]
    episodes.append(
        make_episode(
            20,
            env_id="my/Lamps-v0",
            task="lamps/3",
            agent="expert",
            instructions="Switch the lamps on.",
            turns=(turn("press white", "A moth flutters.", author="expert", thought="Zugzwang?"),),
        )
    )
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, episodes)
    return open_page(view(path))


def test_the_list_shows_every_episode_and_the_first_is_open(page: Any) -> None:
    expect_numbers(page, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "20"])
    expect(page.locator("#list [aria-selected=true] .number")).to_have_text("#0")
    expect_episode(page, 0)
    expect(page).to_have_title("Episode 0: small/0")


def test_success_leaves_out_infrastructure_and_the_unfinished(page: Any) -> None:
    # Of ten, two are outside; two of the other eight are won.
    expect_summary(page, "25.0 % solved: 2 of 8 scored")
    expect_summary(page, "2 episodes outside these figures")


ADDRESSES = {
    "outcome=lost": ["2"],
    "outcome=lost,won": ["0", "2", "20"],
    "result=solved": ["0", "20"],
    "result=unscored": ["1", "8"],
    "result=failed&sort=-turns": ["7", "6", "5", "4", "3", "2"],
    "env=my/Lamps-v0": ["20"],
    "agent=expert": ["20"],
    "author=expert": ["20"],
    "q=lamps+switch": ["20"],
    "q=small/3": ["3"],
    "q=moth": [],
    "q=moth&deep=on": ["20"],
    "q=zugzwang&deep=on": ["20"],
    "turns_from=7": ["7", "8"],
    "turns_to=1&sort=-order": ["20", "1"],
    "return_from=0.5": ["0", "20"],
    "version_from=3&version_to=4": ["3", "4"],
    "sort=-turns&outcome=won": ["0", "20"],
}


def test_an_address_sets_filters_and_keeps_them(page: Any) -> None:
    for fragment, wanted in ADDRESSES.items():
        go(page, fragment)
        expect_numbers(page, wanted)
        for part in fragment.split("&"):
            assert part.partition("=")[0] in page.url, fragment


def test_filters_by_hand(page: Any) -> None:
    page.get_by_label("turn limit").check()
    page.locator("#q").fill("small")
    expect_numbers(page, ["3"])
    expect_episode(page, 3)
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#list .number")).to_have_count(10)
    page.locator("#q").fill("no such thing")
    expect_numbers(page, [])
    expect(page.locator("#episode")).to_contain_text("No episode passes")


def test_an_interval_is_not_given_for_a_choice_by_what_came_out(page: Any) -> None:
    expect_summary(page, "95 % interval")
    page.get_by_label("turn limit").check()
    expect_summary(page, "no interval")


def test_keys_walk_the_list_and_the_turns(page: Any) -> None:
    for key, number in (("j", 1), ("j", 2), ("k", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("k", 0), ("k", 0)):
        page.keyboard.press(key)
        expect_episode(page, number)
    page.keyboard.press("n")
    page.keyboard.press("n")
    expect(page.locator(".turn.current h3")).to_contain_text("Turn 2")
    assert page.url.endswith("#episode=0&turn=2")
    page.keyboard.press("p")
    expect(page.locator(".turn.current h3")).to_contain_text("Turn 1")
    page.keyboard.press("t")
    expect(page.get_by_role("tab", name="Tokens")).to_have_attribute("aria-selected", "true")


def test_keys_of_search_and_help(page: Any) -> None:
    page.keyboard.press("/")
    page.keyboard.type("jk3")
    expect(page.locator("#q")).to_have_value("jk3")  # A letter in the search is no command.
    page.keyboard.press("Escape")
    expect(page.locator("#list")).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_an_address_leads_to_a_turn(page: Any) -> None:
    go(page, "episode=7&turn=5")
    expect_episode(page, 7)
    expect(page.locator(".turn.current")).to_have_id("turn-5")
    go(page, "outcome=lost&episode=7")
    expect_numbers(page, ["2"])
    expect_episode(page, 7)  # Asked for by its address, it is shown though the filters leave it out.
    go(page, "episode=999")
    expect(page.locator("#missing")).to_have_text("Episode 999 is not on this page.")
    go(page, "episode=2")
    expect(page.locator("#missing")).to_be_hidden()


def test_two_files_keep_their_episodes_apart(
    tmp_path: Path, make_episode: MakeEpisode, open_page: Open
) -> None:
    for name, outcome in (("before", "lost"), ("after", "won")):
        episodes = [make_episode(number, outcome=outcome, agent=name) for number in range(4)]
        write_episodes(tmp_path / f"{name}.jsonl", episodes)
    page = open_page(view([tmp_path / "before.jsonl", tmp_path / "after.jsonl"]), "#file=2&episode=1")
    expect(page.locator("article .task")).to_contain_text("after")
    assert page.url.endswith("#episode=1&file=2")
    expect_summary(page, "before: 0.0 % solved: 0 of 4 scored")
    expect_summary(page, "after: 100.0 % solved: 4 of 4 scored")


def test_episodes_that_share_a_number_are_told_apart_by_line(
    tmp_path: Path, make_episode: MakeEpisode, open_page: Open
) -> None:
    page_path = view([make_episode(5, task="one"), make_episode(5, task="two")], out=tmp_path / "page.html")
    page = open_page(page_path, "#episode=5&line=2")
    expect(page.locator("article .task")).to_contain_text("two")
    page.keyboard.press("k")
    expect(page.locator("article .task")).to_contain_text("one")


@pytest.mark.parametrize(
    "wins",
    [
        {"a": [True], "b": [False], "c": [True]},
        {"a": [True], "b": [True]},
        {"a": [True, True], "b": [True, True], "c": [True, True]},
        {"a": [True, False], "b": [False, True]},
        {f"task {n}": [n % 3 == 0, n % 4 == 0, n % 5 == 0] for n in range(60)},
    ],
)
def test_the_interval_is_that_of_the_benchmark(
    wins: dict[str, list[bool]], tmp_path: Path, make_episode: MakeEpisode, open_page: Open
) -> None:
    episodes = [
        make_episode(number, task=task, outcome="won" if won else "lost")
        for number, (task, won) in enumerate((task, won) for task, repeats in wins.items() for won in repeats)
    ]
    text = open_page(view(episodes, out=tmp_path / "page.html")).locator("#summary").inner_text()
    expected = success_interval(wins, panel_hash="any")
    assert f"{100 * expected.value:.1f} % solved" in text
    low, high = (
        float(part.split()[0].strip(",")) for part in text.partition("interval ")[2].split(" to ")[:2]
    )
    # The page resamples less often than the benchmark, and from another stream.
    within = 1.5 if expected.kind == "task bootstrap" else 0.051
    assert abs(low - 100 * expected.low) <= within
    assert abs(high - 100 * expected.high) <= within


def test_a_long_list_makes_few_elements(tmp_path: Path, make_episode: MakeEpisode, open_page: Open) -> None:
    episodes = [make_episode(number) for number in range(2000)]
    page = open_page(view(episodes, out=tmp_path / "page.html"), "#episode=1500")
    expect_summary(page, "2,000 episodes")
    assert page.locator("#list [role=option]").count() < 60
    chosen = page.locator("#list [aria-selected=true]")
    assert chosen.get_attribute("aria-posinset") == "1501"
    assert chosen.get_attribute("aria-setsize") == "2000"
    assert page.locator("#list").get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
    page.get_by_text("#1999").wait_for()


def test_what_is_left_out_is_said(tmp_path: Path, make_episode: MakeEpisode, open_page: Open) -> None:
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [make_episode(number) for number in range(12)])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"format":1,')
    page = open_page(view(path, limit=5))
    notices = page.locator("#notices .warning").all_inner_texts()
    assert notices == [
        "Only the newest 5 of the 12 episodes in episodes are on this page; the other 7 are in no list and no "
        "figure here.",
        "episodes ends in a half-written line, which was dropped (1).",
    ]
    expect_numbers(page, ["7", "8", "9", "10", "11"])
