"""Validation during a stage, and which weights it hands on."""

from pathlib import Path

from turngym.agents.load import load_model
from turngym.training.metrics import MetricValue
from turngym.training.session import Session


class Keeper:
    """Measures a stage on validation tasks and keeps its last or its best weights.

    The result lies in OUT/STAGE/final; OUT/STAGE/best holds the best so far where the recipe keeps it.
    """

    def __init__(self, session: Session, stage: str) -> None:
        self._session = session
        self._folder: Path = session.out / stage
        self._last: float | None = None

    def is_due(self, total: int) -> bool:
        """Whether the update just done is to be measured."""
        every, done = self._session.recipe.validation.every, self._session.state.stage_updates
        return done == total or (every > 0 and done % every == 0)

    def measure(self) -> dict[str, MetricValue]:
        """Measures the present weights and keeps them where they are the best."""
        session = self._session
        validated = session.validate()
        self._last = validated.greedy
        if session.recipe.validation.keep == "best" and validated.greedy >= session.state.best:
            session.save_weights(self._folder / "best", self._selected(validated.greedy))
        session.state = session.state.model_copy(update={"best": max(session.state.best, validated.greedy)})
        return validated.metrics()

    def finish(self) -> None:
        """Writes OUT/STAGE/final, and goes on with those weights."""
        session = self._session
        best = self._folder / "best"
        if session.recipe.validation.keep == "best" and best.is_dir():
            model, _ = load_model(best)
            session.engine.load(model.state_dict(), session.state.step)
            session.save_weights(self._folder / "final", self._selected(session.state.best))
        else:
            session.save_weights(self._folder / "final", "nothing: the last weights")

    def _selected(self, greedy: float) -> str:
        tasks = self._session.recipe.validation.tasks
        return f"greedy success {greedy:.3f} on {tasks} validation tasks"
