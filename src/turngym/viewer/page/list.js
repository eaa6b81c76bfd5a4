// The list of episodes. Only rows in sight are elements, so that its length costs nothing.

const ROW_PX = 50;
const SPARE_ROWS = 8;

class EpisodeList {
  constructor(root, episodes, onPick) {
    this.root = root;
    this.episodes = episodes;
    this.rows = [];
    this.current = null;
    this.space = make("div", { class: "space", role: "presentation" });
    root.append(this.space);
    root.addEventListener("scroll", () => this.draw(), { passive: true });
    root.addEventListener("click", (event) => {
      const element = event.target.closest("[role=option]");
      if (element) onPick(this.rows[Number(element.dataset.place)]);
    });
    new ResizeObserver(() => this.draw()).observe(root);
  }

  show(rows) {
    this.rows = rows;
    this.space.style.height = `${rows.length * ROW_PX}px`;
    this.draw();
  }

  /** Marks an episode and brings it into sight; null marks none. */
  select(row) {
    this.current = row;
    const place = row === null ? -1 : this.rows.indexOf(row);
    if (place >= 0) {
      const top = place * ROW_PX;
      const { scrollTop, clientHeight } = this.root;
      if (top < scrollTop) this.root.scrollTop = top;
      else if (top + ROW_PX > scrollTop + clientHeight) this.root.scrollTop = top + ROW_PX - clientHeight;
    }
    this.draw();
  }

  /** The row some steps after the current one, or null at an end. */
  beside(steps) {
    const place = this.rows.indexOf(this.current);
    return this.rows[place < 0 ? 0 : place + steps] ?? null;
  }

  draw() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / ROW_PX) - SPARE_ROWS);
    const end = Math.ceil((this.root.scrollTop + this.root.clientHeight) / ROW_PX) + SPARE_ROWS;
    this.space.replaceChildren(...this.rows.slice(first, end).map((row, i) => this.element(row, first + i)));
    const marked = this.rows.includes(this.current) ? `row-${this.current.order}` : "";
    this.root.setAttribute("aria-activedescendant", marked);
  }

  element(row, place) {
    const number = make("span", { class: "number", text: `#${row.number}` });
    const outcome = make("span", { class: `badge ${row.outcome}`, text: OUTCOMES[row.outcome] });
    const facts = [`return ${short(row.return, 2)}`, counted(row.turns, "turn")];
    if (row.tokens) facts.push(counted(row.tokens, "token"));
    if (this.episodes.manyVersions) facts.push(`update ${row.version}`);
    const { sources } = this.episodes;
    if (sources.length > 1) facts.push(shortName(sources[row.source], sources));
    const element = make(
      "div",
      {
        role: "option", id: `row-${row.order}`, class: "row", "data-place": place, "aria-posinset": place + 1,
        "aria-setsize": this.rows.length, "aria-selected": row === this.current ? "true" : "false",
      },
      make("div", { class: "line" }, number, make("span", { class: "task", text: row.task, title: row.task }), outcome),
      make("div", { class: "line facts", text: facts.join(" · ") }),
    );
    element.style.top = `${place * ROW_PX}px`;
    return element;
  }
}
