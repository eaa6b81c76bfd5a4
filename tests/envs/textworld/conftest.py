"""The tests of TextWorld share one folder of games: each game costs over a second."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def games_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNGYM_CACHE", str(tmp_path_factory.mktemp("turngym_cache")))
        yield
