// An episode as its tokens: who wrote each, whether it is an action token, and how likely the policy thought it.

const FIRST_TOKENS = 8000;
const ACTION_AUTHORS = new Set(["policy", "expert", "noise", "human"]);
const LEAST_LIKELY = 5; // nats: shading is full from here on

const TOKEN_AUTHORS = {
  env: "environment: instructions and observations",
  template: "template",
  policy: "policy",
  expert: "expert",
  noise: "noise: the expert's slips",
  human: "a person",
};
const LOSSES = {
  env: "observation token, masked",
  template: "observation token, masked",
  policy: "action token: in the loss of RL, and of SFT on these episodes",
  expert: "action token: in the loss of SFT",
  noise: "action token: in the loss of SFT with train_on: all only",
  human: "action token: in the loss of SFT",
};

/** The token view of an episode. */
class TokenView {
  constructor(details, pieces, shaded, onShade) {
    this.segments = details.segments;
    this.pieces = pieces ? pieces.pieces : {};
    this.line = make("p", { class: "inspector", role: "status" });
    this.line.append("Point at a token, or walk with ← and →.");
    this.root = make("div", { class: "tokens" });
    if (!this.segments.length) {
      this.root.append(make("p", { class: "void" }, "This episode has no tokens: its agent plays without a model."));
      return;
    }
    this.root.append(this.head(pieces, shaded, onShade), this.line);
    this.segments.forEach((segment, place) => this.root.append(this.segment(segment, place)));
    this.root.classList.toggle("shaded", shaded);
    for (const kind of ["pointerover", "focusin", "click"]) {
      this.root.addEventListener(kind, (event) => this.inspect(event.target.closest(".token")));
    }
    this.root.addEventListener("keydown", (event) => this.walk(event));
  }

  head(pieces, shaded, onShade) {
    const authors = [...new Set(this.segments.flatMap((segment) => segment.spans.map((span) => span[3])))];
    const legend = authors.map((author) =>
      make(
        "li",
        {},
        make("span", { class: `token ${author}${ACTION_AUTHORS.has(author) ? " action" : ""}`, text: "abc" }),
        ` ${TOKEN_AUTHORS[author] ?? author}`,
      ),
    );
    const box = make("input", { type: "checkbox", id: "shade" });
    box.checked = shaded;
    box.addEventListener("change", () => {
      this.root.classList.toggle("shaded", box.checked);
      onShade(box.checked);
    });
    const source = pieces
      ? `Texts by the tokenizer of ${pieces.folder}.`
      : "Ids only: no tokenizer of these episodes was found. `turngym view FILE --tokenizer FOLDER` names one.";
    return make(
      "div",
      { class: "token-head" },
      make("ul", { class: "legend" }, ...legend),
      make("p", {}, make("span", { class: "action token policy", text: "underlined" }), " tokens are action tokens, on which training puts its loss; the others are masked."),
      make("p", { class: "sampled", text: this.sampled() }),
      make("p", { class: "facts", text: source }),
      make("label", { class: "shade" }, box, " shade by probability: the less likely, the more orange"),
    );
  }

  /** One line on how sure the policy was. */
  sampled() {
    let count = 0;
    let sum = 0;
    for (const { logProbs, spans } of this.segments) {
      for (const [start, end, , author] of spans) {
        if (author !== "policy") continue;
        for (let i = start; i < end; i++) sum += Number(logProbs[i]);
        count += end - start;
      }
    }
    if (count === 0) return "";
    return `${counted(count, "token")} by the policy, mean log-prob ${short(sum / count, 3)}.`;
  }

  segment(segment, place) {
    const flow = make("div", { class: "flow", tabindex: "0", role: "group", "aria-label": `Tokens of segment ${place + 1}` });
    const draw = (from, to) => {
      for (const [number, [start, end, turn, author]] of segment.spans.entries()) {
        if (end <= from || start >= to) continue;
        const begins = number === 0 || segment.spans[number - 1][2] !== turn;
        if (begins && start >= from) flow.append(this.turnMark(turn));
        for (let i = Math.max(start, from); i < Math.min(end, to); i++) {
          flow.append(this.token(segment, i, place, turn, author));
        }
      }
    };
    draw(0, FIRST_TOKENS);
    const left = segment.ids.length - FIRST_TOKENS;
    if (left > 0) {
      const more = make("button", { type: "button", text: `Show ${counted(left, "more token")}` });
      more.addEventListener("click", () => {
        more.remove();
        draw(FIRST_TOKENS, Infinity);
      });
      flow.append(more);
    }
    const title = this.segments.length > 1 ? `Segment ${place + 1}` : "Tokens";
    const count = make("span", { class: "facts", text: ` ${counted(segment.ids.length, "token")}` });
    return make("section", {}, make("h3", {}, title, count), flow);
  }

  turnMark(turn) {
    return make("span", { class: "turn-mark", text: turn < 0 ? "before the first turn" : `turn ${turn + 1}` });
  }

  token(segment, i, place, turn, author) {
    const id = segment.ids[i];
    const text = this.pieces[id];
    const shown = text === undefined ? String(id) : visible(text);
    const kinds = ["token", author];
    if (ACTION_AUTHORS.has(author)) kinds.push("action");
    if (text === undefined) kinds.push("id");
    const token = make("span", { class: kinds.join(" "), text: shown });
    const logProb = Number(segment.logProbs[i]);
    token.facts = { id, text, place, position: i, turn, author, logProb };
    if (author === "policy") {
      token.style.setProperty("--unlikely", Math.min(1, Math.max(0, -logProb / LEAST_LIKELY)).toFixed(3));
    }
    token.title = describe(token.facts, this.segments.length);
    return token;
  }

  inspect(token) {
    if (!token || !token.facts) return;
    this.current?.classList.remove("current");
    this.current = token;
    token.classList.add("current");
    this.line.textContent = describe(token.facts, this.segments.length);
  }

  walk(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const flow = event.target.closest(".flow");
    if (!step || !flow) return;
    const tokens = [...flow.querySelectorAll(".token")];
    const place = tokens.indexOf(this.current);
    const next = tokens[place < 0 ? 0 : place + step];
    if (!next) return;
    event.preventDefault();
    this.inspect(next);
    next.scrollIntoView({ block: "nearest" });
  }
}

function describe({ id, text, place, position, turn, author, logProb }, segments) {
  const facts = [`id ${id}`];
  if (text !== undefined) facts.unshift(JSON.stringify(text));
  if (author === "policy") {
    facts.push(`log-prob ${short(logProb, 4)}, probability ${short(Math.exp(logProb), 4)}`);
  }
  facts.push(author, LOSSES[author] ?? "", turn < 0 ? "before the first turn" : `turn ${turn + 1}`);
  facts.push(segments > 1 ? `segment ${place + 1}, token ${position}` : `token ${position}`);
  return facts.filter(Boolean).join(" · ");
}

/** A piece with its blanks and line ends made visible. */
function visible(text) {
  if (text === "") return "∅";
  const shown = text.replaceAll("\r", "␍").replaceAll("\n", "⏎\n").replaceAll("\t", "⇥");
  return seen(shown).replace(/^ +| +$/g, (blanks) => "·".repeat(blanks.length));
}
