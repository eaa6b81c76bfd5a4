// The page: its state stands in the address behind #, so that any view of it can be passed on.

const MOST_SOURCES = 6;

class Page {
  constructor(episodes) {
    this.episodes = episodes;
    this.row = null;
    this.view = "turns";
    this.turn = null;
    this.list = new EpisodeList(byId("list"), episodes, (row) => this.go({ row }));
    this.pane = new EpisodePane(byId("episode"), episodes, (change) => this.go(change));
    this.filters = new Filters(byId("filters"), episodes, () => this.filter());
    this.notices();
    addEventListener("hashchange", () => this.read());
    document.addEventListener("keydown", (event) => this.key(event));
    byId("help").addEventListener("click", () => byId("keys").showModal());
    byId("skip").addEventListener("click", () => byId("episode").focus());
  }

  /** Takes the state from the address. */
  async read() {
    const values = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    this.filters.values = values;
    const number = (name) => (/^\d+$/.test(values[name] ?? "") ? Number(values[name]) : null);
    const asked = number("episode");
    this.row = asked === null ? null : this.episodes.find((number("file") ?? 1) - 1, asked, number("line"));
    byId("missing").hidden = asked === null || this.row !== null;
    byId("missing").textContent = `Episode ${asked} is not on this page.`;
    this.view = values.view === "tokens" ? "tokens" : "turns";
    this.turn = number("turn");
    await this.filter({ keep: this.row !== null });
  }

  write() {
    const values = { ...this.filters.values };
    if (this.row) {
      values.episode = this.row.number;
      if (this.row.source > 0) values.file = this.row.source + 1;
      if (this.row.twin) values.line = this.row.line;
    }
    if (this.turn !== null) values.turn = this.turn;
    if (this.view === "tokens") values.view = "tokens";
    try {
      history.replaceState(null, "", `#${new URLSearchParams(values)}`);
    } catch {
      // Some browsers forbid more than so many changes in half a minute; the address then lags behind.
    }
  }

  /** Lists what passes the filters; `keep` shows the present episode even where it doesn't pass. */
  async filter({ keep = false } = {}) {
    const rows = await this.filters.rows();
    if (rows === null) return;
    this.list.show(rows);
    this.summarise(rows);
    if (!keep && !rows.includes(this.row)) {
      this.row = null;
      this.turn = null;
    }
    this.row ??= rows[0] ?? null;
    this.draw();
  }

  /** Changes episode (`row`, or `steps` in the list), turn or view. */
  go(change) {
    if ("steps" in change) {
      const row = this.list.beside(change.steps);
      if (row === null) return;
      change = { row };
    }
    if ("row" in change) {
      if (change.row !== this.row) this.turn = null;
      this.row = change.row;
    }
    if ("view" in change) this.view = change.view;
    if ("turn" in change) this.turn = change.turn;
    this.draw();
  }

  draw() {
    this.write();
    this.list.select(this.row);
    if (this.row === null) this.pane.clear("No episode passes the filters.");
    else this.pane.show(this.row, this.view, this.turn);
    document.title = this.row ? `Episode ${this.row.number}: ${this.row.task}` : "Episodes";
  }

  goTurn(steps) {
    if (this.row === null) return;
    const turn = this.turn === null ? (steps > 0 ? 1 : this.row.turns) : this.turn + steps;
    if (turn >= 1 && turn <= this.row.turns) this.go({ turn, view: "turns" });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys").open) return;
    const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (typing) {
      if (event.key === "Escape") byId("list").focus();
      return;
    }
    const scrolls = event.target.closest("#episode, button, summary");
    const actions = {
      j: () => this.go({ steps: 1 }),
      k: () => this.go({ steps: -1 }),
      ArrowDown: scrolls ? null : () => this.go({ steps: 1 }),
      ArrowUp: scrolls ? null : () => this.go({ steps: -1 }),
      n: () => this.goTurn(1),
      p: () => this.goTurn(-1),
      t: () => this.go({ view: this.view === "tokens" ? "turns" : "tokens" }),
      s: () => byId("shade")?.click(),
      "/": () => byId("q").focus(),
      "?": () => byId("keys").showModal(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** What the page leaves out, file by file, and then where it is from. */
  notices() {
    const words = { newest: "the newest", first: "the first", even: "evenly spread ones," };
    const { sources } = this.episodes;
    const tell = (kind, text) => byId("notices").append(make("li", { class: kind, text }));
    for (const source of sources) {
      const name = shortName(source, sources);
      const left = source.episodes - source.shown;
      if (left > 0) {
        const which = `Only ${words[source.keep]} ${whole(source.shown)} of the ${counted(source.episodes, "episode")}`;
        tell("warning", `${which} in ${name} are on this page; the other ${whole(left)} are in no list and no figure here.`);
      }
      if (source.half_lines) tell("warning", `${name} ends in a half-written line, which was dropped (${source.half_lines}).`);
    }
    for (const source of sources) {
      const written = source.changed ? `, written ${source.changed}` : "";
      tell("source", `${source.name}: ${counted(source.episodes, "episode")}${written}`);
    }
  }

  /** Count, success and means of the listed episodes; with several files, success of each beside it. */
  summarise(rows) {
    const scored = rows.filter((row) => row.scored);
    const total = this.episodes.rows.length;
    const title = `${rows.length === total ? "" : `${whole(rows.length)} of `}${counted(total, "episode")}`;
    const lines = [];
    const tell = (text, kind = "") => lines.push(make("span", { class: kind, text }));
    if (scored.length) {
      tell(this.solved(scored));
      const mean = (read) => short(scored.reduce((sum, row) => sum + read(row), 0) / scored.length, 2);
      tell(`mean return ${mean((row) => row.return)} · mean turns ${mean((row) => row.turns)}`);
    }
    if (rows.length > scored.length) {
      tell(`${counted(rows.length - scored.length, "episode")} outside these figures (infrastructure, unfinished)`);
    }
    const { sources } = this.episodes;
    for (const [place, source] of sources.slice(0, MOST_SOURCES).entries()) {
      const own = scored.filter((row) => row.source === place);
      if (own.length && own.length < scored.length) tell(`${shortName(source, sources)}: ${this.solved(own)}`, "of");
    }
    byId("summary").replaceChildren(make("strong", { text: title }), ...lines);
  }

  /** Success of scored rows in words, with its interval where one means something. */
  solved(rows) {
    const { share, low, high, kind, wins, tasks } = success(rows);
    const percent = (value) => (100 * value).toFixed(1);
    const interval = this.filters.byResult
      ? "no interval: the filters choose by what came out"
      : `95 % interval ${percent(low)} to ${percent(high)}, ${kind}, ${counted(tasks, "task")}`;
    return `${percent(share)} % solved: ${whole(wins)} of ${whole(rows.length)} scored (${interval})`;
  }
}

function stop(error) {
  const old = typeof DecompressionStream === "undefined";
  byId("stop").textContent = old
    ? "This browser is too old for the page: it needs Chromium 111, Firefox 113 or Safari 16.4, or newer."
    : `The page cannot be shown: ${error}`;
  byId("stop").hidden = false;
}

try {
  const page = new Page(await Episodes.load());
  await page.read();
  document.documentElement.dataset.ready = `${Math.round(performance.now())} ms`;
} catch (error) {
  stop(error);
}
