"""The page in a browser: an episode's turns, its tokens, and text that wants to be more than text."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from turngym.types import Episode, Outcome, PlayedTurn, Segment
from turngym.viewer.view import view

pytestmark = pytest.mark.browser  # starts Chromium
expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect

MakeEpisode = Callable[..., Episode]
MakeTurn = Callable[..., PlayedTurn]
Open = Callable[..., Any]

HOSTILE = (
    "</script><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
    "<!-- <b>bold</b> &amp; \u2028 \u2029 \x00 \x1b[31m \u202e"
)
SHOWN = HOSTILE
for _sign in ("\u2028", "\u2029", "\x00", "\x1b", "\u202e"):
    SHOWN = SHOWN.replace(_sign, f"⟨U+{ord(_sign):04X}⟩")


def test_hostile_text_stays_text(
    tmp_path: Path, make_episode: MakeEpisode, turn: MakeTurn, open_page: Open
) -> None:
    bad = make_episode(
        instructions=HOSTILE, observation=HOSTILE, task=HOSTILE, agent=HOSTILE, env_kwargs={"level": HOSTILE},
        env_id=HOSTILE, error=HOSTILE, outcome="env_fault", start_key=HOSTILE,
        turns=(turn(HOSTILE, HOSTILE, thought=HOSTILE, finish_reason=HOSTILE),) * 2,
    )  # fmt: skip
    page = open_page(view([bad, make_episode(1)], out=tmp_path / "page.html"))
    assert page.locator("#turn-1 pre").all_inner_texts() == [SHOWN] * 3
    assert page.locator(".start pre").all_inner_texts() == [SHOWN] * 2
    page.keyboard.press("t")
    expect(page.get_by_role("tabpanel")).to_contain_text("no tokens")
    assert page.locator("img").count() == 0
    assert page.locator("article b, article script").count() == 0
    assert page.title() != "owned"
    assert page.evaluate("document.scripts.length") == 3  # two blocks of data, one script


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_every_ending_is_told(
    outcome: Outcome, tmp_path: Path, make_episode: MakeEpisode, open_page: Open
) -> None:
    error = "InfraError: worker 3 was killed" if outcome in ("infra", "env_fault") else ""
    page = open_page(view([make_episode(outcome=outcome, error=error)], out=tmp_path / "page.html"))
    text = page.locator(".banner").inner_text()
    assert text.lower().startswith(page.locator("#list .badge").inner_text())
    assert "2 turns" in text and "return 1 · score 2 of 2" in text
    assert ("failure" in text) == (outcome not in ("won", "infra", "running"))
    assert ("outside every figure" in text) == (outcome in ("infra", "running"))
    assert error in text


def test_a_turn_shows_all_that_is_known_of_it(
    tmp_path: Path, make_episode: MakeEpisode, turn: MakeTurn, open_page: Open
) -> None:
    turns = (
        turn("go north", "A wall.\r\nHigh.", reward=0.25, score=1, latency_s=0.0123),
        turn(
            "fly",
            "No.",
            reward=-0.5,
            score=0,
            valid=False,
            author="noise",
            finish_reason="length",
            latency_s=2.5,
        ),
        turn("", "", reward=math.nan, thought="I wonder.", author="human", latency_s=0.000_02),
    )
    page = open_page(view([make_episode(turns=turns)], out=tmp_path / "page.html"))
    first, second, third = (page.locator(f"#turn-{number}").inner_text() for number in (1, 2, 3))
    for needle in ("policy", "go north", "A wall.\nHigh.", "+0.25", "1 of 2", "12 ms"):
        assert needle in first
    for needle in ("noise", "not carried out", "reply cut by length", "−0.5", "−0.25", "2.5 s"):
        assert needle in second
    for needle in ("human", "I wonder.", "(empty)", "NaN", "0.02 ms"):
        assert needle in third
    assert "not carried out" not in first


def test_an_episode_tells_its_origin_and_its_group(
    tmp_path: Path, make_episode: MakeEpisode, open_page: Open
) -> None:
    episodes = [
        make_episode(n, group=4, task="small/4", outcome="won" if n < 2 else "lost") for n in range(3)
    ]
    page = open_page(view(episodes, out=tmp_path / "page.html"))
    assert "Group 4: 3 episodes, 2 solved" in page.locator("article").inner_text()
    page.get_by_label("#2: lost").click()
    expect(page.locator("article h2")).to_have_text("Episode 2")
    page.get_by_text("All about this episode").click()
    about = page.locator(".facts-of").inner_text()
    for needle in ('{"level": "w2-o3-q4"}', str(2**62 + 2), "ab12", "small/4"):
        assert needle in about


def test_long_episodes_and_long_texts_come_in_parts(
    tmp_path: Path, make_episode: MakeEpisode, turn: MakeTurn, open_page: Open
) -> None:
    long = make_episode(0, turns=tuple(turn(f"go {n}", reward=0.0) for n in range(700)))
    wide = make_episode(1, turns=(turn(observation="x" * 30_000 + "END"),))
    page = open_page(view([long, wide], out=tmp_path / "page.html"))
    assert page.locator(".turn").count() < 400
    page.get_by_role("button", name="Show 400 more turns").click()
    assert page.locator(".turn").count() == 701
    page.keyboard.press("j")
    expect(page.locator("article h2")).to_have_text("Episode 1")
    assert "END" not in page.locator("#turn-1").inner_text()
    page.get_by_role("button", name="10,003 more characters").click()
    assert "END" in page.locator("#turn-1").inner_text()
    page.goto(f"{page.url.partition('#')[0]}#episode=0&turn=650")
    page.locator("#turn-650.current").wait_for()


def test_tokens_show_text_author_mask_and_probability(
    tmp_path: Path, make_episode: MakeEpisode, segment: Segment, tokenizer_folder: Path, open_page: Open
) -> None:
    episode = make_episode(segments=(segment,))
    page = open_page(view([episode], out=tmp_path / "page.html", tokenizer=tokenizer_folder), "#view=tokens")
    tokens = page.locator(".flow .token")
    assert tokens.all_inner_texts() == ["find", "the", "red", "key", "a", "room", "look", "you", "go"]
    assert page.locator(".flow .token.policy.action").all_inner_texts() == ["look", "go"]
    assert page.locator(".flow .token.env.action").count() == 0
    assert page.locator(".flow .turn-mark").all_inner_texts() == ["turn 1", "turn 2"]
    tokens.nth(8).hover()
    told = page.locator(".inspector").inner_text()
    for needle in (
        '"go"',
        f"id {segment.token_ids[8]}",
        "log-prob −3",
        "probability 0.0498",
        "turn 2",
        "token 8",
    ):
        assert needle in told
    tokens.nth(0).hover()
    assert "log-prob" not in page.locator(".inspector").inner_text()
    assert "observation token, masked" in page.locator(".inspector").inner_text()
    assert "2 tokens by the policy, mean log-prob −1.505" in page.locator(".token-head").inner_text()


def test_shading_by_probability_can_be_switched(
    tmp_path: Path, make_episode: MakeEpisode, segment: Segment, open_page: Open
) -> None:
    page = open_page(view([make_episode(segments=(segment,))], out=tmp_path / "page.html"), "#view=tokens")
    colour = "token => getComputedStyle(token).backgroundColor"
    sure, unsure = page.locator(".flow .token.policy").all()
    assert sure.evaluate(colour) != unsure.evaluate(colour)
    page.keyboard.press("s")
    assert not page.get_by_label("shade by probability").is_checked()
    assert sure.evaluate(colour) == unsure.evaluate(colour)


def test_tokens_without_a_tokenizer_are_ids_and_say_so(
    tmp_path: Path, make_episode: MakeEpisode, segment: Segment, open_page: Open
) -> None:
    episodes = [make_episode(0, segments=(segment, segment)), make_episode(1)]
    page = open_page(view(episodes, out=tmp_path / "page.html"), "#view=tokens")
    assert page.locator(".flow").first.locator(".token").all_inner_texts() == [
        str(i) for i in segment.token_ids
    ]
    assert "Ids only" in page.locator(".token-head").inner_text()
    assert page.locator(".tokens h3").all_inner_texts() == ["Segment 1 9 tokens", "Segment 2 9 tokens"]
    page.locator(".flow").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert f"id {segment.token_ids[1]}" in page.locator(".inspector").inner_text()
    page.keyboard.press("j")
    page.get_by_text("This episode has no tokens").wait_for()


CONTRAST = """
() => {
  const channels = (colour) => {
    const found = colour.match(/[\\d.]+/g).map(Number);
    const scale = colour.startsWith("color(") ? 1 : 255;
    return { rgb: found.slice(0, 3).map((c) => c / scale), alpha: found.length > 3 ? found[3] : 1 };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour.alpha === 1) return colour.rgb;
    }
    return [1, 1, 1];
  };
  const low = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest("script, noscript, .hidden, .skip, option")) continue;
    const [a, b] = [light(channels(getComputedStyle(element).color).rgb), light(ground(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) low.push(`${element.className || element.tagName} ${contrast.toFixed(2)}`);
  }
  return low;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", ["turns", "tokens"])
def test_text_stands_out_from_its_ground(
    scheme: str,
    tab: str,
    tmp_path: Path,
    make_episode: MakeEpisode,
    turn: MakeTurn,
    segment: Segment,
    open_page: Open,
) -> None:
    turns = tuple(
        turn(author=author, valid=author != "noise") for author in ("policy", "noise", "human", "expert")
    )
    episodes = [
        make_episode(
            n, outcome=outcome, turns=turns, segments=(segment,), group=1, task="small/1", error="Boom"
        )
        for n, outcome in enumerate(get_args(Outcome))
    ]
    page = open_page(view(episodes, out=tmp_path / "page.html", limit=8), f"#view={tab}", color_scheme=scheme)
    for episode in episodes[1:]:
        expect(page.locator("article h2")).to_have_text(f"Episode {episode.number}")
        assert page.evaluate(CONTRAST) == []
        page.keyboard.press("j")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(part) for part in ground[4:-1].split(",")) < 200) == (scheme == "dark")


def test_every_control_has_a_name(
    tmp_path: Path, make_episode: MakeEpisode, segment: Segment, open_page: Open
) -> None:
    page = open_page(view([make_episode(segments=(segment,))], out=tmp_path / "page.html"), "#view=tokens")
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, [role=listbox], [role=group]")]
          .filter((one) => !(one.labels?.length || one.textContent.trim() || one.getAttribute("aria-label")))
          .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    assert page.get_by_role("main").count() == page.get_by_role("navigation").count() == 1


def test_a_narrow_window_has_no_sideways_scrolling(
    tmp_path: Path, make_episode: MakeEpisode, open_page: Open
) -> None:
    page = open_page(view([make_episode(task="x" * 300)], out=tmp_path / "page.html"))
    page.set_viewport_size({"width": 380, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
