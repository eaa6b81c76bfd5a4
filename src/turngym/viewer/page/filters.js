// Which episodes are listed, and in which order.

const FILTERS = [
  "q", "deep", "outcome", "result", "sort", "source", "env", "agent", "author", "turns_from", "turns_to",
  "return_from", "return_to", "version_from", "version_to",
];
// Those that choose episodes by what came out: of such a choice, an interval of success means nothing.
const BY_RESULT = ["outcome", "result", "author", "deep", "turns_from", "turns_to", "return_from", "return_to"];
const OPEN_FILTERS = new Set(["q", "deep", "outcome", "sort"]);

const ORDERS = {
  order: (a, b) => a.order - b.order,
  number: (a, b) => a.number - b.number || a.source - b.source,
  return: (a, b) => a.return - b.return,
  turns: (a, b) => a.turns - b.turns,
  tokens: (a, b) => a.tokens - b.tokens,
  task: (a, b) => a.task.localeCompare(b.task, "en", { numeric: true }),
};

class Filters {
  constructor(form, episodes, onChange) {
    this.form = form;
    this.episodes = episodes;
    this.search = 0;
    this.fillOutcomes();
    this.fillChoices();
    const change = settled(onChange, 120);
    form.addEventListener("input", change);
    form.addEventListener("submit", (event) => event.preventDefault());
    // Not the form's reset event: an address that is read resets the form too.
    byId("clear").addEventListener("click", () => setTimeout(onChange, 0));
  }

  fillOutcomes() {
    const counts = new Map();
    for (const row of this.episodes.rows) counts.set(row.outcome, (counts.get(row.outcome) ?? 0) + 1);
    for (const outcome of Object.keys(OUTCOMES)) {
      if (!counts.has(outcome)) continue;
      const box = make("input", { type: "checkbox", name: "outcome", value: outcome });
      const count = make("span", { class: "count", text: whole(counts.get(outcome)) });
      byId("outcomes").append(make("label", { class: `chip ${outcome}` }, box, OUTCOMES[outcome], count));
    }
  }

  /** Fills the lists of choices; one without a choice is taken away. */
  fillChoices() {
    const { rows, sources } = this.episodes;
    const names = sources.map((source, place) => [String(place), shortName(source, sources)]);
    this.fill("source", names);
    this.fill("env", distinct(rows, (row) => row.env_id));
    this.fill("agent", distinct(rows, (row) => row.agent));
    const authors = new Set(rows.flatMap((row) => row.authors.split(" ")));
    authors.delete("");
    this.fill("author", [...authors].sort().map((author) => [author, author]));
    if (!this.episodes.manyVersions) this.form.elements.version_from.parentElement.hidden = true;
  }

  fill(name, choices) {
    const select = this.form.elements[name];
    select.append(make("option", { value: "", text: "all" }));
    for (const [value, text] of choices) select.append(make("option", { value, text }));
    select.parentElement.hidden = choices.length < 2;
  }

  /** The filters that are set, by name, as they stand in the address. */
  get values() {
    const values = {};
    for (const [name, value] of new FormData(this.form)) {
      if (value === "") continue;
      values[name] = name in values ? `${values[name]},${value}` : value;
    }
    return values;
  }

  set values(values) {
    this.form.reset();
    for (const name of FILTERS) {
      if (!(name in values)) continue;
      const value = values[name];
      if (name === "outcome") {
        const wanted = value.split(",");
        for (const box of this.form.querySelectorAll("[name=outcome]")) box.checked = wanted.includes(box.value);
      } else if (name === "deep") this.form.elements.deep.checked = true;
      else this.form.elements[name].value = value;
      if (!OPEN_FILTERS.has(name)) byId("more").open = true;
    }
  }

  get byResult() {
    const values = this.values;
    return BY_RESULT.some((name) => name in values && (name !== "deep" || "q" in values));
  }

  /** Rows that pass, in order; null when a later search has overtaken this one. */
  async rows() {
    const search = ++this.search;
    const values = this.values;
    let rows = this.episodes.rows.filter((row) => passes(row, values));
    const words = (values.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) {
      const found = values.deep ? await this.inTurns(rows, words, search) : rows.filter((row) => said(row.text, words));
      if (search !== this.search) return null;
      rows = found;
    }
    const name = values.sort ?? "order";
    const order = ORDERS[name.replace("-", "")] ?? ORDERS.order;
    const sign = name.startsWith("-") ? -1 : 1;
    return rows.sort((a, b) => sign * order(a, b) || a.order - b.order);
  }

  async inTurns(rows, words, search) {
    const found = [];
    for (const row of rows) {
      const [observation, turns] = (await this.episodes.chunk(row.chunk))[row.place];
      if (search !== this.search) return found;
      const texts = turns.flatMap((turn) => [turn[0], turn[1], turn[6]]);
      if (said([row.text, observation, ...texts].join("\n").toLowerCase(), words)) found.push(row);
    }
    return found;
  }
}

function passes(row, values) {
  if (values.outcome && !values.outcome.split(",").includes(row.outcome)) return false;
  if (values.result === "solved" && !row.solved) return false;
  if (values.result === "failed" && (row.solved || !row.scored)) return false;
  if (values.result === "unscored" && row.scored) return false;
  if (values.source && row.source !== Number(values.source)) return false;
  if (values.env && row.env_id !== values.env) return false;
  if (values.agent && row.agent !== values.agent) return false;
  if (values.author && !row.authors.split(" ").includes(values.author)) return false;
  for (const name of ["turns", "return", "version"]) {
    if (values[`${name}_from`] && !(row[name] >= Number(values[`${name}_from`]))) return false;
    if (values[`${name}_to`] && !(row[name] <= Number(values[`${name}_to`]))) return false;
  }
  return true;
}

const said = (text, words) => words.every((word) => text.includes(word));

function distinct(rows, read) {
  const values = [...new Set(rows.map(read))];
  return values.sort().map((value) => [String(value), String(value)]);
}

/** A file's own name, where no other file here has the same. */
function shortName(source, sources) {
  const last = (one) => one.name.split(/[\\/]/).pop().replace(/\.jsonl$/, "");
  return sources.filter((other) => last(other) === last(source)).length === 1 ? last(source) : source.name;
}
