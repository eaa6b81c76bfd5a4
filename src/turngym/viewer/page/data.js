// The packed data of this page: data-0 is the index, data-1 and on hold the details of runs of episodes.

const KEPT_CHUNKS = 6;

async function unpack(number) {
  const binary = atob(byId(`data-${number}`).textContent);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const OUTCOMES = {
  won: "won",
  lost: "lost",
  turn_limit: "turn limit",
  token_limit: "token limit",
  time_limit: "time limit",
  invalid: "invalid",
  env_fault: "environment fault",
  infra: "infrastructure",
  running: "unfinished",
};

/** Everything that the page holds; rows are the episodes in the order of the files. */
class Episodes {
  static async load() {
    const index = await unpack(0);
    return new Episodes(index);
  }

  constructor({ sources, tokenizers, instructions, table }) {
    this.sources = sources;
    this.tokenizers = tokenizers;
    this.chunks = new Map();
    const names = Object.keys(table);
    const firsts = new Map();
    this.rows = table.number.map((_, order) => {
      const row = { order };
      for (const name of names) row[name] = table[name][order];
      row.instructions = instructions[row.instructions];
      row.return = Number(row.return);
      row.place = firsts.has(row.chunk) ? order - firsts.get(row.chunk) : 0;
      if (row.place === 0) firsts.set(row.chunk, order);
      row.solved = row.outcome === "won";
      row.scored = row.outcome !== "infra" && row.outcome !== "running";
      row.key = `${row.env_id} ${row.env_kwargs} ${row.task}`;
      row.text = [row.task, row.env_id, row.agent, row.instructions, row.error].join("\n").toLowerCase();
      return row;
    });
    this.manyVersions = new Set(table.version).size > 1;
    this.byNumber = new Map();
    this.groups = new Map();
    for (const row of this.rows) {
      const name = `${row.source} ${row.number}`;
      row.twin = this.byNumber.has(name);
      if (!row.twin) this.byNumber.set(name, row);
      const group = `${row.source} ${row.group} ${row.key}`;
      if (!this.groups.has(group)) this.groups.set(group, []);
      this.groups.get(group).push(row);
      row.siblings = this.groups.get(group);
    }
  }

  /** The row of a source and episode number, or of a line where a number stands twice. */
  find(source, number, line) {
    if (line === null) return this.byNumber.get(`${source} ${number}`) ?? null;
    return this.rows.find((row) => row.source === source && row.line === line) ?? null;
  }

  /** Details of a run of episodes; the last few stay unpacked. */
  chunk(number) {
    const found = this.chunks.get(number) ?? unpack(number + 1);
    this.chunks.delete(number);
    this.chunks.set(number, found);
    if (this.chunks.size > KEPT_CHUNKS) this.chunks.delete(this.chunks.keys().next().value);
    return found;
  }

  async details(row) {
    const [observation, turns, segments] = (await this.chunk(row.chunk))[row.place];
    const names = ["command", "observation", "reward", "score", "valid", "author", "thought", "finish", "latency_s"];
    return {
      observation,
      turns: turns.map((turn) => Object.fromEntries(turn.map((value, i) => [names[i], value]))),
      segments: segments.map(([ids, logProbs, spans]) => ({ ids, logProbs, spans })),
    };
  }

  pieces(row) {
    const place = this.sources[row.source].tokenizer;
    return place === null ? null : this.tokenizers[place];
  }
}
