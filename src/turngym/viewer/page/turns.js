// An episode as a conversation: what the agent read, what it said, what came of it.

const FIRST_TURNS = 300;

/** The conversation; `onTurn` is called with the number of a turn whose place in the address is asked for. */
function renderTurns(row, details, onTurn) {
  const start = make(
    "section",
    { class: "turn start", "aria-label": "Start" },
    make("h3", {}, "Start"),
    make("div", { class: "said" }, labelled("Instructions", textBlock(row.instructions, "text"))),
    make("div", { class: "said" }, labelled("Observation", textBlock(details.observation, "text"))),
  );
  const body = make("div", { class: "turns" }, start);
  let running = 0;
  const cards = details.turns.map((turn, number) => {
    running += Number(turn.reward);
    const sum = running;
    return () => renderTurn(turn, number + 1, sum, row, onTurn);
  });
  body.append(...cards.slice(0, FIRST_TURNS).map((card) => card()));
  if (cards.length > FIRST_TURNS) {
    const left = cards.length - FIRST_TURNS;
    const more = make("button", { type: "button", id: "all-turns", text: `Show ${counted(left, "more turn")}` });
    more.addEventListener("click", () => more.replaceWith(...cards.slice(FIRST_TURNS).map((card) => card())));
    body.append(more);
  }
  return body;
}

function renderTurn(turn, number, running, row, onTurn) {
  const link = make("a", { href: "#", class: "turn-link", title: "Address of this turn" }, `Turn ${number}`);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    onTurn(number);
  });
  const said = [];
  if (turn.thought) said.push(labelled("Thought", textBlock(turn.thought, "thought")));
  said.push(labelled(AUTHOR_WORDS[turn.author] ?? turn.author, textBlock(turn.command, "command")));
  return make(
    "section",
    { class: `turn by-${turn.author}${turn.valid ? "" : " refused"}`, id: `turn-${number}`, tabindex: "-1", "aria-label": `Turn ${number}` },
    make("h3", {}, link, ...marks(turn)),
    make("div", { class: "said" }, ...said, labelled("Observation", textBlock(turn.observation, "text"))),
    figures(turn, running, row),
  );
}

const AUTHOR_WORDS = { policy: "Command", expert: "Command", noise: "Command", human: "Command" };

function marks(turn) {
  const found = [make("span", { class: `author ${turn.author}`, text: turn.author })];
  if (!turn.valid) found.push(make("span", { class: "badge invalid", text: "not carried out" }));
  if (turn.finish !== "stop") {
    const text = turn.finish === "length" ? "reply cut by length" : `reply ended by ${turn.finish}`;
    found.push(make("span", { class: "badge turn_limit", text }));
  }
  return found;
}

function figures(turn, running, row) {
  const reward = Number(turn.reward);
  const kind = reward > 0 ? "gain" : reward < 0 ? "loss" : "";
  const cell = (name, text, more = "") => make("div", {}, make("dt", { text: name }), make("dd", { class: more, text }));
  return make(
    "dl",
    { class: "figures" },
    cell("reward", signed(turn.reward), kind),
    cell("return", short(running)),
    cell("score", `${short(turn.score)} of ${short(row.max_score)}`),
    cell("latency", duration(turn.latency_s)),
  );
}

function labelled(label, block) {
  return make("div", { class: "labelled" }, make("div", { class: "label", text: label }), block);
}
