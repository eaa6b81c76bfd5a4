"""Long work as the terminal shows it: of training a line per update and bars, of speed a bar for its programs."""

from collections.abc import Mapping

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class TrainingReporter:
    """Shows a run in the terminal: one line per update, a bar for long work."""

    COLUMNS = (
        ("success", "rollout/success", "{:.3f}"),
        ("return", "rollout/return_mean", "{:.3f}"),
        ("turns", "rollout/turns_per_episode", "{:.1f}"),
        ("loss", "loss/sft", "{:.4f}"),
        ("entropy", "policy/entropy", "{:.3f}"),
        ("kl", "policy/approx_kl", "{:.4f}"),
        ("grad", "policy/grad_norm", "{:.2f}"),
        ("trained", "episodes/trained", "{}"),
        ("greedy", "validation/greedy_success", "{:.3f}"),
        ("sampled", "validation/sampled_success", "{:.3f}"),
    )

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "TrainingReporter":
        return self

    def __exit__(self, *error: object) -> None:
        for what in list(self._tasks):
            self._end(what)

    def progress(self, what: str, done: int, total: int) -> None:
        """Moves the bar of some long work, and takes it away when the work is done."""
        if what not in self._tasks:
            self._progress.start()
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)
        if done >= total:
            self._end(what)

    def row(self, row: Mapping[str, float | int | str]) -> None:
        """Prints the line of an update; of SFT's many steps, every tenth."""
        if "loss/sft" in row and int(row["update"]) % 10 and "validation/greedy_success" not in row:
            return
        parts = [f"{row['stage']} {row['update']:>4}"]
        parts += [f"{name} {form.format(row[key])}" for name, key, form in self.COLUMNS if key in row]
        parts.append(f"{float(row['time/total_s']):.0f} s")
        self.console.print("  ".join(parts), highlight=False, markup=False)

    def _end(self, what: str) -> None:
        self._progress.remove_task(self._tasks.pop(what))
        if not self._tasks:
            self._progress.stop()


class SpeedReporter:
    """Shows on a terminal which of many programs runs now; elsewhere nothing."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> "SpeedReporter":
        return self

    def __exit__(self, *error: object) -> None:
        if self.console.is_terminal:
            self._progress.stop()

    def progress(self, what: str, done: int, total: int) -> None:
        """Names what runs now, and moves the bar, which is drawn from the first call on."""
        self._progress.update(self._task, description=what, completed=done, total=total)
        if self.console.is_terminal:
            self._progress.start()
