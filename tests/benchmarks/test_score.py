"""What counts as success (DEFINITIONS section 7; cases 15, 23 and 59)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from turngym.benchmarks.score import Played, score
from turngym.benchmarks.statistics import wilson
from turngym.benchmarks.suite import Panel
from turngym.errors import BalanceError, InfraError
from turngym.types import Episode, Outcome, Segment, Span

MakeEpisode = Callable[..., Episode]
MakePanel = Callable[..., Panel]
GREEDY = Played("hand", "greedy", 1)


def test_done_is_not_won(make_episode: MakeEpisode, make_panel: MakePanel) -> None:
    # Case 23: five endings, one won; reading "done" as success would say 0.8.
    endings: list[Outcome] = ["won", "turn_limit", "turn_limit", "lost", "token_limit"]
    episodes = [make_episode(at, f"t{at}", ending) for at, ending in enumerate(endings)]
    got = score(episodes, panel=make_panel(*(f"t{at}" for at in range(5))), played=GREEDY)
    assert got.success == 0.2
    assert got.outcomes["turn_limit"] == 2


def test_every_ending_but_won_and_infra_is_a_failure(
    make_episode: MakeEpisode, make_panel: MakePanel
) -> None:
    endings: list[Outcome] = [
        "won",
        "lost",
        "turn_limit",
        "token_limit",
        "time_limit",
        "invalid",
        "env_fault",
    ]
    episodes = [make_episode(at, ending, ending) for at, ending in enumerate(endings)]
    got = score(episodes, panel=make_panel(*endings), played=GREEDY)
    assert (got.success, got.num_episodes) == (1 / 7, 7)
    assert got.outcomes == {**dict.fromkeys(endings, 1), "infra": 0}


def test_infra_stands_beside_the_figure_not_in_it(make_episode: MakeEpisode, make_panel: MakePanel) -> None:
    # Case 15: won, won, lost and an infrastructure failure: 2 of 3, and 2 of 4 if it failed.
    endings: list[Outcome] = ["won", "won", "lost", "infra"]
    episodes = [make_episode(at, f"t{at}", ending) for at, ending in enumerate(endings)]
    got = score(episodes, panel=make_panel("t0", "t1", "t2", "t3"), played=GREEDY)
    assert (got.success, got.num_infra, got.success_if_infra_fails) == (2 / 3, 1, 0.5)
    assert (got.low, got.high, got.interval) == (wilson(2, 3).low, wilson(2, 3).high, "wilson")
    assert (got.num_tasks, got.num_episodes, got.incomplete) == (3, 3, True)
    assert got.mean_return == 2 / 3
    assert "50.0%" in " ".join(got.warnings())


def test_a_task_with_one_repeat_lost_to_infra_is_still_scored(
    make_episode: MakeEpisode, make_panel: MakePanel
) -> None:
    episodes = [make_episode(0, "a", "won"), make_episode(1, "a", "infra"), make_episode(2, "b", "lost"),
                make_episode(3, "b", "won")]  # fmt: skip
    got = score(episodes, panel=make_panel("a", "b"), played=Played("hand", "sampled", 2))
    assert (got.success, got.incomplete, got.interval) == (2 / 3, False, "task bootstrap")
    assert [(one.k, one.num_tasks, one.num_left_out) for one in got.pass_k] == [(1, 2, 0), (2, 1, 1)]


def test_fewer_tasks_than_the_panel_are_marked(make_episode: MakeEpisode, make_panel: MakePanel) -> None:
    # Case 59: seven tasks, four wins is 4/7 of 7; no copy fills up an eighth place.
    wins = [True, False, True, True, False, False, True]
    episodes = [make_episode(at, f"t{at}", "won" if won else "lost") for at, won in enumerate(wins)]
    whole = make_panel(*(f"t{at}" for at in range(7)))
    assert score(episodes, panel=whole, played=GREEDY).success == 4 / 7
    assert not score(episodes, panel=whole, played=GREEDY).incomplete
    short = score(episodes, panel=make_panel(*(f"t{at}" for at in range(8))), played=GREEDY)
    assert (short.success, short.num_tasks, short.num_panel, short.incomplete) == (4 / 7, 7, 8, True)
    assert short.warnings() == ("Incomplete: 7 of 8 tasks were scored.",)


def test_shares_are_over_all_turns_not_means_of_means(
    make_episode: MakeEpisode, make_panel: MakePanel
) -> None:
    # 1 of 1 commands invalid, and 0 of 3: 1/4, not 1/2; turns (1 + 3) / 2.
    episodes = [make_episode(0, "a", "lost", valid=(False,)), make_episode(1, "b", "won", valid=(True,) * 3)]
    got = score(episodes, panel=make_panel("a", "b"), played=GREEDY)
    assert (got.invalid_share, got.mean_turns, got.mean_return) == (0.25, 2.0, 0.5)


def test_order_of_episodes_changes_nothing(make_episode: MakeEpisode, make_panel: MakePanel) -> None:
    episodes = [make_episode(at, f"t{at % 3}", "won" if at % 4 else "lost") for at in range(9)]
    panel, played = make_panel("t0", "t1", "t2"), Played("hand", "sampled", 3)
    assert score(episodes, panel=panel, played=played) == score(episodes[::-1], panel=panel, played=played)


def test_only_the_policys_tokens_are_counted(make_episode: MakeEpisode, make_panel: MakePanel) -> None:
    spans = (Span(0, 5, -1, "env"), Span(5, 7, 0, "policy"), Span(7, 8, 0, "template"))
    episode = replace(make_episode(0, "a", "won"), segments=(Segment((0,) * 8, (0.0,) * 8, spans),))
    assert score([episode], panel=make_panel("a"), played=GREEDY).action_tokens == 2


def test_what_cannot_be_counted_stops(make_episode: MakeEpisode, make_panel: MakePanel) -> None:
    panel = make_panel("a")
    with pytest.raises(BalanceError, match="'b'"):
        score([make_episode(0, "b", "won")], panel=panel, played=GREEDY)
    with pytest.raises(BalanceError, match="running"):
        score([make_episode(0, "a", "running")], panel=panel, played=GREEDY)
    with pytest.raises(BalanceError, match="twice"):
        score([make_episode(0, "a", "won"), make_episode(0, "a", "won")], panel=panel, played=GREEDY)
    with pytest.raises(InfraError, match="could be scored. Last: worker died"):
        score([make_episode(0, "a", "infra", error="worker died")], panel=panel, played=GREEDY)


def test_trained_tasks_are_counted_by_id_or_by_key_and_warned_of(
    make_episode: MakeEpisode, make_panel: MakePanel, caplog: pytest.LogCaptureFixture
) -> None:
    from turngym.agents.policy import task_key

    episodes = [make_episode(at, task, "won") for at, task in enumerate("abc")]
    played = replace(GREEDY, trained_tasks=frozenset({"a", task_key("toy", "b"), task_key("other", "c")}))
    got = score(episodes, panel=make_panel("a", "b", "c"), played=played)
    assert got.num_contaminated == 2
    assert "hand was trained on 2 of 3 tasks of toy." in caplog.text
    assert "2 of 3 tasks of the panel were trained on." in got.warnings()
