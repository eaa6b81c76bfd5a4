"""The command line."""

import contextlib
import inspect
import logging
import os
import sys
from pathlib import Path
from typing import Annotated, Any, cast

# Idle OpenMP threads that spin steal the cores from the environments; read once, when torch loads.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import typer
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table

from turngym.errors import ConfigError, TurngymError, UnknownNameError, suggest
from turngym.reporter import SpeedReporter, TrainingReporter

app = typer.Typer(
    name="turngym",
    help="Environments of many turns for language-model agents, and the trainers that improve them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
INTERRUPTED = 130

console = Console()
errors = Console(stderr=True, soft_wrap=True)

RecipeName = Annotated[str, typer.Argument(help="Name of a bundled recipe, or a path.")]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(help="Settings as key=value, e.g. advantage=rloo run.seed=2.", metavar="[key=value]..."),
]


def main() -> None:
    """Runs the command line; bad input ends with code 2 and at most three lines."""
    sys.path.insert(0, os.getcwd())
    _set_up_logging()
    try:
        code = app(prog_name="turngym", standalone_mode=False) or 0
    except typer.Abort:
        code = INTERRUPTED
    except TurngymError as error:
        errors.print(f"{type(error).__name__}: {error}", markup=False, highlight=False)
        sys.exit(2)
    except OSError as error:
        if error.filename is None:
            raise
        reason = f"Cannot read or write {error.filename}: {error.strerror}. Give another path."
        errors.print(reason, markup=False, highlight=False)
        sys.exit(2)
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        errors.print(_usage_error(message(), getattr(error, "ctx", None)), markup=False, highlight=False)
        sys.exit(2)
    if code == INTERRUPTED:
        errors.print("Stopped. A training run goes on from its newest checkpoint with the same command.")
    sys.exit(code)


def _usage_error(message: str, context: Any) -> str:
    """One line about a wrong command line; with no command at all, the help."""
    if message.startswith("Usage:"):
        return message
    command = context.command_path if context is not None else "turngym"
    end = "" if message.endswith((".", "?")) else "."
    return f"{message}{end} `{command} --help` shows what there is."


@app.callback(invoke_without_command=True)
def _top(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from turngym import __version__

        print(__version__)
        raise typer.Exit


@app.command("list")
def list_command(
    kind: Annotated[
        str, typer.Argument(help="envs, suites, recipes, speed, or a kind of choice such as advantage.")
    ] = "",
) -> None:
    """List what there is: envs, suites, recipes, speed, advantage, ..."""
    from turngym.catalog import entries, kinds

    for name, summary in (entries(kind) if kind else kinds()).items():
        print(f"{name:28} {summary}".rstrip())


@app.command("help")
def help_command(
    kind: Annotated[str, typer.Argument(help="env, recipe, speed, or a kind of choice such as advantage.")],
    name: Annotated[str, typer.Argument(help="Which one.")] = "",
) -> None:
    """Explain one thing: `help advantage rloo`, `help env Rooms-v0`, `help speed textworld`, `help recipe`."""
    from turngym.catalog import env_text, registries

    if kind in ("env", "envs"):
        print(env_text(name))
    elif kind == "recipe":
        from turngym.training.settings import Recipe, RlSettings, RunSettings, SftSettings

        titled = {"Recipe": Recipe, "run": RunSettings, "Stage sft": SftSettings, "Stage rl": RlSettings}
        for title, model in titled.items():
            _print_settings(title, model)
    elif kind == "speed":
        from turngym.benchmarks.speed.entry import find_entry

        entry = find_entry(name)
        print(entry.text)
        _print_settings(f"Settings of {name}", entry.settings)
    else:
        registry = registries().get(kind)
        if registry is None:
            raise UnknownNameError(
                f"No kind {kind!r}. {suggest(kind, ['env', 'recipe', 'speed', *registries()])}"
            )
        method = registry[name]
        print(inspect.getdoc(method.function) or method.summary)
        _print_settings(f"Settings of {name}", method.settings)


@app.command()
def recipe(name: RecipeName) -> None:
    """Print a recipe, to be changed: `turngym recipe rooms-grpo > my.yaml`."""
    from turngym.training.recipe import recipe_text

    print(recipe_text(name), end="")


@app.command()
def check(
    env: Annotated[str, typer.Argument(help="Environment id: Name-v0, ns/Name-v0 or module:ns/Name-v0.")],
    kwargs: Overrides = None,
    strict: Annotated[bool, typer.Option(help="Show tracebacks of the environment.")] = False,
) -> None:
    """Check an environment: everything that gym, trainers and benchmarks rely on."""
    from turngym.config import parse_yaml
    from turngym.envs.checker import CheckLine, check_env

    given = {key: parse_yaml(text, source=key) for key, text in _pairs(kwargs)}
    styles = {"ok": "green", "warn": "yellow", "fail": "red"}

    def show(line: CheckLine) -> None:
        console.print(f"[{styles[line.status]}]{line.status:4}[/] {line.name:12} ", end="")
        console.print(line.detail, markup=False, highlight=False)
        if line.next_step and line.status != "ok":
            console.print(f"                  {line.next_step}", markup=False, highlight=False)

    report = check_env(env, kwargs=given, strict=strict, on_line=show)
    console.print(report.summary(), markup=False, highlight=False)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def play(
    env: Annotated[str, typer.Argument(help="Environment id: Name-v0, ns/Name-v0 or module:ns/Name-v0.")],
    kwargs: Overrides = None,
    task: Annotated[str | None, typer.Option(help="Task id; else one of the split, by the seed.")] = None,
    split: Annotated[str | None, typer.Option(help="train (the default), validation or test.")] = None,
    seed: Annotated[int, typer.Option(help="Root of all chance.")] = 0,
) -> None:
    """Play an environment yourself, in the terminal. (`turngym.play` in Python lets an agent play.)"""
    from turngym.config import parse_yaml
    from turngym.terminal.play import play_in_terminal

    given = {key: parse_yaml(text, source=key) for key, text in _pairs(kwargs)}
    play_in_terminal(env, given, task=task, split=split, seed=seed, console=console)


@app.command()
def view(
    files: Annotated[list[Path], typer.Argument(help="Episode files.")],
    out: Annotated[
        Path | None, typer.Option(help="The page; else FILE with the ending .html, beside the first file.")
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Checkpoint folder whose tokenizer tells what token ids say.")
    ] = None,
    limit: Annotated[int, typer.Option(help="Most episodes of each file.")] = 5000,
    keep: Annotated[
        str, typer.Option(help="Which ones: newest, first, or even (spread over it).")
    ] = "newest",
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write a page to look at episodes: one HTML file that opens without a server."""
    from turngym.viewer.view import view as write_view

    page = write_view(files, out=out, tokenizer=tokenizer, limit=limit, keep=cast(Any, keep), show=show)
    console.print(f"Page: {page}", highlight=False, markup=False, soft_wrap=True)


@app.command()
def train(recipe: RecipeName, overrides: Overrides = None) -> None:
    """Run a recipe, or go on with it where its folder holds an unfinished run."""
    _train(recipe, overrides, only=None)


@app.command()
def sft(recipe: RecipeName, overrides: Overrides = None) -> None:
    """Run only the SFT stages of a recipe."""
    _train(recipe, overrides, only="sft")


@app.command()
def bench(
    suite: Annotated[str, typer.Argument(help="Suite by name or path; `turngym list suites`.")],
    agent: Annotated[str, typer.Option(help="expert, random, or a checkpoint folder.")],
    json: Annotated[Path | None, typer.Option(help="Write the results to this file, by mode.")] = None,
    seed: Annotated[int, typer.Option(help="Root of all chance.")] = 0,
    repeats: Annotated[int | None, typer.Option(help="Sampled episodes per task.")] = None,
    episodes: Annotated[Path | None, typer.Option(help="Write the episodes to this file.")] = None,
    max_tasks: Annotated[
        int | None, typer.Option(help="Play the first tasks only; marked incomplete.")
    ] = None,
    threads: Annotated[int, typer.Option(help="CPU threads of torch.")] = 2,
    workers: Annotated[
        int, typer.Option(help="Worker processes of the environment; 0 runs it in this one.")
    ] = 0,
) -> None:
    """Measure an agent on a suite, greedily and sampled."""
    from turngym.agents.load import is_scripted
    from turngym.benchmarks.report import result_table, write_results
    from turngym.benchmarks.run import BenchOptions
    from turngym.benchmarks.run import bench as run_bench

    if episodes is not None and episodes.exists():
        raise ConfigError(f"{episodes} exists already. Give a new file for the episodes.")
    if not is_scripted(agent):
        import torch

        torch.set_num_threads(threads)
    options = BenchOptions(
        seed=seed, repeats=repeats, episodes_path=episodes, max_tasks=max_tasks, workers=workers
    )
    results = run_bench(suite, agent=agent, console=console, options=options)
    console.print(result_table(results))
    if json is not None:
        write_results(results, json)


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Root of all chance.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder of the runs and the report.")] = Path("runs/demo"),
    control: Annotated[
        bool, typer.Option(help="Also train SFT for as long as RL took, and on expert tokens only.")
    ] = False,
) -> None:
    """Train a small agent by SFT, then RL, and measure the gain on held-out tasks."""
    from turngym.demo import run_demo

    run_demo(seed, out, control=control, reporter=TrainingReporter(console))


@app.command()
def sweep(
    recipes: Annotated[list[str], typer.Argument(help="Recipes to compare.")],
    suite: Annotated[str, typer.Option(help="Suite on which the results are measured.")],
    seeds: Annotated[str, typer.Option(help="Root seeds, as in 1,2,3.")] = "1,2,3",
    start: Annotated[
        str,
        typer.Option(
            help="Recipe whose SFT gives each seed's start, or a run's folder from which all seeds start."
        ),
    ] = "",
    out: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs/sweep"),
    change: Annotated[
        list[str] | None, typer.Option(help="key=value for every recipe; may be repeated.")
    ] = None,
) -> None:
    """Train recipes with several seeds from one start, measure them, and compare."""
    from turngym.sweep import SweepOptions, run_sweep

    numbers = seeds.split(",")
    if not all(number.strip().isdecimal() for number in numbers):
        raise ConfigError(f"--seeds {seeds!r}: give whole numbers parted by commas, as in 1,2,3.")
    options = SweepOptions(start, suite, tuple(int(number) for number in numbers), tuple(change or ()))
    run_sweep(recipes, options, out, reporter=TrainingReporter(console))


@app.command()
def speed(
    name: Annotated[str, typer.Argument(help="What to measure; `turngym list speed`.")],
    overrides: Overrides = None,
    rounds: Annotated[int, typer.Option(help="Rounds, 2 or more; each side runs once in each.")] = 5,
    json: Annotated[
        str, typer.Option(help="Write the whole record to this file; - prints it instead of the tables.")
    ] = "",
    peer_python: Annotated[
        str,
        typer.Option(
            help="Python that has the peer; else the peer's environment is made, once, in the cache folder."
        ),
    ] = "",
) -> None:
    """Measure turngym against a peer, in one run, as a ratio with its interval."""
    from turngym.benchmarks.report import write_whole
    from turngym.benchmarks.speed.entry import find_entry
    from turngym.benchmarks.speed.harness import measure_speed
    from turngym.benchmarks.speed.report import report_tables
    from turngym.config import parse_yaml, validate

    entry = find_entry(name)
    given = {key: parse_yaml(text, source=key) for key, text in _pairs(overrides)}
    settings = validate(entry.settings, given, source=f"speed {name}")
    if json not in ("", "-") and Path(json).is_dir():
        raise ConfigError(f"--json {json} is a folder. Give a file, or - to print the record.")
    # Games that have to be made show bars of their own, and standard output may be the record.
    with SpeedReporter(errors) as reporter, contextlib.redirect_stdout(sys.stderr):
        report = measure_speed(
            entry, settings, rounds=rounds, peer_python=peer_python, on_progress=reporter.progress
        )
    text = report.model_dump_json(indent=2)
    if json == "-":
        print(text)
        return
    console.print(report_tables(report), highlight=False)
    if json:
        write_whole(text, Path(json))


def _train(recipe: str, overrides: list[str] | None, *, only: str | None) -> None:
    from turngym.training.run import train as run_train

    with TrainingReporter(console) as reporter:
        run = run_train(
            recipe,
            overrides=[f"{key}={value}" for key, value in _pairs(overrides)],
            only=only,
            on_row=reporter.row,
            on_progress=reporter.progress,
        )
    console.print(
        f"Done. Weights: {run.final}. Measure them: turngym bench SUITE --agent {run.out}", highlight=False
    )


def _pairs(texts: list[str] | None) -> list[tuple[str, str]]:
    pairs = []
    for text in texts or []:
        key, found, value = text.partition("=")
        if not found or not key:
            raise ConfigError(f"{text!r} is no setting. Write key=value, as in run.seed=2.")
        pairs.append((key, value))
    return pairs


def _print_settings(title: str, model: Any) -> None:
    table = Table(title=title, title_justify="left", show_edge=False)
    for column in ("setting", "default", "meaning"):
        table.add_column(column, overflow="fold")
    for name, field in model.model_fields.items():
        default = "required" if field.is_required() else str(field.default)
        table.add_row(name, default.replace("[", r"\["), (field.description or "").replace("[", r"\["))
    console.print(table)


def _set_up_logging() -> None:
    logging.basicConfig(
        level=logging.INFO,
        format="%(message)s",
        handlers=[RichHandler(console=errors, show_time=False, show_path=False, show_level=False)],
    )
    for noisy in ("httpx", "transformers", "matplotlib"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    # The bar of `bench` counts the episodes.
    logging.getLogger("turngym.benchmarks.run").setLevel(logging.WARNING)
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


if __name__ == "__main__":
    main()
