"""Streams of chance: distinct by their whole path, equal on every machine."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from turngym import seeding

PATHS = st.lists(st.one_of(st.text(max_size=5), st.integers(-(2**70), 2**70)), min_size=1, max_size=4)


def draws(rng: np.random.Generator, count: int = 3) -> list[int]:
    return [int(one) for one in rng.integers(0, 1000, count)]


def test_a_trailing_zero_gives_another_stream() -> None:
    # numpy itself makes no difference between entropy 7 and [7, 0] (case 50).
    assert draws(np.random.default_rng(7)) == draws(np.random.default_rng([7, 0])) == [944, 625, 684]
    assert draws(seeding.generator(7)) != draws(seeding.generator(7, 0))


def test_workers_runs_and_groups_draw_as_they_should() -> None:
    runs = [[tuple(draws(seeding.generator(run, "env", worker))) for worker in range(3)] for run in (7, 8)]
    assert len(set(runs[0])) == 3
    # Seed plus index would share 2 of 3 streams between runs 7 and 8.
    assert not set(runs[0]) & set(runs[1])
    tasks = [draws(seeding.generator(7, "tasks", group), 1) for group in (0, 0, 1, 1)]
    assert tasks[0] == tasks[1] != tasks[2] == tasks[3]


def test_streams_are_the_same_on_every_machine() -> None:
    assert (
        seeding.digest("env", 7).hex() == "b06d1a296c6ce82de7b88cc52b176c16ef6e538838d9d3731452d253a900e1da"
    )
    assert seeding.integer("env", 7) == 6356423044175918102
    assert draws(seeding.generator("env", 7)) == [186, 517, 22]
    assert seeding.turn_uniforms(7, 1, 0, 2, 3).tolist() == [
        0.5394233110000046,
        0.6153252421269774,
        0.7058473434157128,
    ]


def test_a_number_and_its_text_are_two_paths() -> None:
    assert seeding.digest(7) != seeding.digest("7")
    assert seeding.digest("ab", "c") != seeding.digest("a", "bc") != seeding.digest("abc")


@given(PATHS, PATHS)
def test_digests_are_equal_only_for_equal_paths(one: list[str | int], other: list[str | int]) -> None:
    assert (seeding.digest(*one) == seeding.digest(*other)) == (one == other)


@given(PATHS)
def test_integer_fits_a_signed_64_bit_seed(path: list[str | int]) -> None:
    assert 0 <= seeding.integer(*path) < 2**63


def test_draws_of_a_turn_do_not_depend_on_their_number() -> None:
    assert seeding.turn_uniforms(7, 3, 0, 2, 5).tolist() == seeding.turn_uniforms(7, 3, 0, 2, 50)[:5].tolist()
    assert seeding.turn_uniforms(7, 3, 0, 2, 0).shape == (0,)


def test_each_seed_episode_attempt_turn_and_token_draws_anew() -> None:
    paths = [(7, 0, 0, 0), (8, 0, 0, 0), (7, 1, 0, 0), (7, 0, 1, 0), (7, 0, 0, 1)]
    drawn = np.concatenate([seeding.turn_uniforms(*path, 200) for path in paths])
    assert len(set(drawn.tolist())) == 1000


def test_uniforms_lie_in_the_unit_interval_and_spread_over_it() -> None:
    drawn = seeding.turn_uniforms(0, 0, 0, 0, 4000)
    assert drawn.dtype == np.float64
    assert drawn.min() >= 0 and drawn.max() < 1
    # 4000 uniforms in 10 bins: 400 each, standard deviation 19.
    assert abs(np.histogram(drawn, bins=10, range=(0, 1))[0] - 400).max() < 100
