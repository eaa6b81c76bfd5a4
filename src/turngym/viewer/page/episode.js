// The right side: one episode, with its outcome, its neighbours in the group, and its turns or tokens.

const OUTCOME_TEXT = {
  won: (n) => `Solved in ${n}.`,
  lost: (n) => `The environment ended it unsolved after ${n}. It counts as a failure.`,
  turn_limit: (n) => `Cut off by the turn limit after ${n}, unsolved. It counts as a failure.`,
  token_limit: (n) => `Cut off after ${n}: the agent's context was full. It counts as a failure.`,
  time_limit: (n) => `Cut off by the time limit after ${n}. It counts as a failure.`,
  invalid: (n) => `Ended after ${n}: too many commands that could not be carried out. It counts as a failure.`,
  env_fault: (n) => `The environment itself failed after ${n}, and again when replayed. It counts as a failure.`,
  infra: (n) => `A worker or server failed after ${n}; nobody's play. It stands outside every figure.`,
  running: (n) => `Saved after ${n} without an end. It stands outside every figure.`,
};

function banner(row) {
  const text = OUTCOME_TEXT[row.outcome](counted(row.turns, "turn"));
  const facts = [`return ${short(row.return)}`, `score ${short(row.score)} of ${short(row.max_score)}`];
  return make(
    "div",
    { class: `banner ${row.outcome}` },
    make("strong", { text: OUTCOMES[row.outcome] }),
    make("span", { text }),
    make("span", { class: "facts", text: facts.join(" · ") }),
    row.error ? textBlock(row.error, "error") : null,
  );
}

/** A strip with one cell per turn: gain, loss, refused; a click goes there. */
function strip(details, onTurn) {
  if (details.turns.length < 2) return null;
  const cells = details.turns.slice(0, FIRST_TURNS).map((turn, i) => {
    const reward = Number(turn.reward);
    const kind = !turn.valid ? "refused" : reward > 0 ? "gain" : reward < 0 ? "loss" : "none";
    const title = `Turn ${i + 1}: ${turn.command.slice(0, 80)} (${turn.valid ? `reward ${signed(reward)}` : "not carried out"})`;
    const cell = make("button", { type: "button", class: `cell ${kind}`, title, "aria-label": title });
    cell.addEventListener("click", () => onTurn(i + 1));
    return cell;
  });
  const more = details.turns.length > cells.length ? ` and ${whole(details.turns.length - cells.length)} more` : "";
  return make("div", { class: "glance", role: "group", "aria-label": "Turns at a glance" }, "Turns", make("span", { class: "strip" }, ...cells), more);
}

function groupChips(row, onPick) {
  if (row.siblings.length < 2) return null;
  const solved = row.siblings.filter((one) => one.solved).length;
  const chips = row.siblings.slice(0, 64).map((one) => {
    const title = `#${one.number}: ${OUTCOMES[one.outcome]}, return ${short(one.return, 2)}`;
    const chip = make("button", {
      type: "button", class: `cell ${one.outcome}`, title, "aria-label": title,
      "aria-current": one === row ? "true" : null,
    });
    chip.addEventListener("click", () => onPick(one));
    return chip;
  });
  const text = `Group ${row.group}: ${counted(row.siblings.length, "episode")}, ${solved} solved `;
  return make("div", { class: "glance", role: "group", "aria-label": "Group" }, text, make("span", { class: "strip" }, ...chips));
}

function facts(row, sources) {
  const pairs = [
    ["environment", row.env_id],
    ["arguments", row.env_kwargs],
    ["task", row.task],
    ["agent", row.agent],
    ["updates of the weights", row.version],
    ["episode", row.number],
    ["group", row.group],
    ["seed", row.seed],
    ["attempt", row.attempt + 1],
    ["key of the start", row.start_key],
    ["file", sources[row.source].name],
    ["line", row.line],
  ];
  const cells = pairs
    .filter(([, value]) => value !== "")
    .map(([name, value]) => make("div", {}, make("dt", { text: name }), make("dd", { text: String(value) })));
  return make("details", { class: "facts-of" }, make("summary", {}, "All about this episode"), make("dl", {}, ...cells));
}

class EpisodePane {
  constructor(root, episodes, go) {
    this.root = root;
    this.episodes = episodes;
    this.go = go; // changes the state of the page
    this.shaded = true;
    this.wanted = null;
    this.shown = "";
  }

  clear(text) {
    this.wanted = null;
    this.shown = "";
    this.root.replaceChildren(make("p", { class: "void", text }));
  }

  async show(row, view, turn) {
    const name = `${row.order} ${view}`;
    if (this.shown !== name) {
      this.wanted = name;
      const details = await this.episodes.details(row);
      if (this.wanted !== name) return; // another one was asked for meanwhile
      this.shown = name;
      this.draw(row, details, view);
    }
    this.mark(turn);
  }

  draw(row, details, view) {
    const onTurn = (turn) => this.go({ turn, view: "turns" });
    const tab = (one, text) =>
      make("button", {
        type: "button", role: "tab", id: `tab-${one}`, text, "aria-selected": one === view ? "true" : "false",
        "aria-controls": "panel", onclick: () => this.go({ view: one }),
      });
    const beside = (steps, text) =>
      make("button", { type: "button", class: "quiet", text, onclick: () => this.go({ steps }) });
    const head = make(
      "header",
      {},
      make("div", { class: "line" }, make("h2", {}, `Episode ${row.number}`), beside(-1, "Previous"), beside(1, "Next")),
      make("p", { class: "task", text: `${row.env_id} · ${row.task} · ${row.agent}` }),
      banner(row),
      groupChips(row, (one) => this.go({ row: one })),
      strip(details, onTurn),
      facts(row, this.episodes.sources),
      make("div", { role: "tablist", "aria-label": "View" }, tab("turns", "Turns"), tab("tokens", "Tokens")),
    );
    const body =
      view === "tokens"
        ? new TokenView(details, this.episodes.pieces(row), this.shaded, (on) => (this.shaded = on)).root
        : renderTurns(row, details, onTurn);
    const panel = make("div", { role: "tabpanel", id: "panel", "aria-labelledby": `tab-${view}` }, body);
    this.root.replaceChildren(make("article", {}, head, panel));
    this.root.scrollTop = 0;
  }

  /** Brings a turn into sight and marks it; null marks none. */
  mark(turn) {
    this.root.querySelector(".turn.current")?.classList.remove("current");
    if (turn === null) return;
    if (!byId(`turn-${turn}`)) byId("all-turns")?.click();
    const card = byId(`turn-${turn}`);
    if (!card) return;
    card.classList.add("current");
    this.bring(card, 3);
  }

  /** Scrolls to a card, again while the cards above it, which had only a guessed height, come to their own. */
  bring(card, times) {
    card.scrollIntoView({ block: "nearest" });
    if (times > 0) requestAnimationFrame(() => card.classList.contains("current") && this.bring(card, times - 1));
  }
}
