// The best kernel of every problem: a table that sorts, and a chart.

const FEW_ROWS = 25;
const MOST_DOTS = 70;

const COLUMNS = [
  { name: "problem", of: (row) => row.problem },
  { name: "level", of: (row) => row.level, isNumber: true },
  { name: "split", of: (row) => row.split },
  { name: "track", of: (row) => row.track },
  { name: "written by", of: (row) => row.origin },
  { name: "speedup", of: (row) => row.speedup, isNumber: true, text: (row) => speed(row.speedup) },
  { name: "90% interval", of: (row) => row.low, isNumber: true, text: (row) => interval(row.low, row.high) },
];

class Leaderboard {
  constructor(data, style, filters) {
    Object.assign(this, { data, style, filters });
    this.pages = new Set(data.pages);
    this.sorted = { column: 5, isDescending: true };
    this.showsAll = false;
    this.kernels = [];
    const found = data.names.baseline.length ? [...new Set(data.baselines.name)] : [];
    this.columns = [
      ...COLUMNS,
      ...found.map((name) => ({
        name,
        of: (row) => row.baselines[name] ?? null,
        isNumber: true,
        text: (row) => speed(row.baselines[name]),
      })),
    ];
  }

  build() {
    byId("find").addEventListener(
      "input",
      settled(() => this.show(), 120),
    );
    byId("all-kernels").addEventListener("click", () => {
      this.showsAll = !this.showsAll;
      this.show();
    });
    new Chart(
      byId("kernel-charts"),
      "Best kernel of every problem",
      "With its 90% interval, fastest first; grey ticks are other ways to run the reference.",
      () => this.dots(),
    );
  }

  update() {
    this.kernels = this.best();
    this.show();
  }

  // The fastest of each problem among the rows that match.
  best() {
    const { champions, names } = this.data;
    const fastest = new Map();
    for (const row of this.filters.rows(champions)) {
      const held = fastest.get(champions.problem[row]);
      if (held === undefined || champions.speedup[row] > champions.speedup[held])
        fastest.set(champions.problem[row], row);
    }
    const baselines = this.baselines();
    return [...fastest.values()].map((row) => ({
      id: champions.candidate_id[row],
      code: champions.problem[row],
      problem: names.problem[champions.problem[row]],
      level: names.level[champions.level[row]],
      split: names.split[champions.split[row]],
      track: names.track[champions.track[row]],
      origin: names.origin[champions.origin[row]],
      speedup: champions.speedup[row],
      low: champions.speedup_low[row],
      high: champions.speedup_high[row],
      baselines: baselines.get(champions.problem[row]) ?? {},
    }));
  }

  baselines() {
    const { baselines } = this.data;
    const found = new Map();
    if (this.filters.name("baseline") !== "eager") return found;
    for (const row of this.filters.rows(baselines)) {
      found.set(baselines.problem[row], {
        ...found.get(baselines.problem[row]),
        [baselines.name[row]]: baselines.speedup[row],
      });
    }
    return found;
  }

  ordered() {
    const { of } = this.columns[this.sorted.column];
    const sign = this.sorted.isDescending ? -1 : 1;
    return [...this.kernels].sort((one, other) => {
      const [a, b] = [of(one), of(other)];
      if (a === b) return other.speedup - one.speedup;
      if (a === null || b === null) return a === null ? 1 : -1;
      return sign * (a < b ? -1 : 1);
    });
  }

  show() {
    const wanted = byId("find").value.trim().toLowerCase();
    const rows = this.ordered().filter((row) => row.problem.toLowerCase().includes(wanted));
    const shown = this.showsAll ? rows : rows.slice(0, FEW_ROWS);
    byId("leaderboard-head").replaceChildren(...this.columns.map((_, place) => this.heading(place)));
    byId("leaderboard-body").replaceChildren(...shown.map((row) => this.line(row)));
    const button = byId("all-kernels");
    button.hidden = rows.length <= FEW_ROWS;
    button.textContent = this.showsAll ? `Show the first ${FEW_ROWS}` : `Show all ${count(rows.length)}`;
    byId("no-kernels").hidden = rows.length > 0;
  }

  heading(place) {
    const { name, isNumber } = this.columns[place];
    const isSorted = place === this.sorted.column;
    const direction = this.sorted.isDescending ? "descending" : "ascending";
    const sort = () => {
      this.sorted = { column: place, isDescending: isSorted ? !this.sorted.isDescending : Boolean(isNumber) };
      this.show();
      byId("leaderboard-head").children[place].firstChild.focus();
    };
    const arrow = element(
      "span",
      { "aria-hidden": "true" },
      isSorted ? (this.sorted.isDescending ? " ▼" : " ▲") : "",
    );
    return element(
      "th",
      { scope: "col", class: isNumber ? "number" : null, "aria-sort": isSorted ? direction : null },
      element("button", { type: "button", class: "sort", onclick: sort }, name, arrow),
    );
  }

  line(row) {
    return element(
      "tr",
      {},
      ...this.columns.map(({ of, text, isNumber }, place) => {
        const value = text ? text(row) : String(of(row));
        if (place) return element("td", { class: isNumber ? "number" : null }, value);
        const link = this.pages.has(row.id) ? element("a", { href: `#kernel-${row.id}` }, value) : value;
        return element("th", { scope: "row" }, link);
      }),
    );
  }

  dots() {
    const kernels = [...this.kernels].sort((one, other) => other.speedup - one.speedup).slice(0, MOST_DOTS);
    if (!kernels.length) return null;
    const data = this.columns.slice(COLUMNS.length).map(({ name, of }) => {
      const timed = kernels.filter((kernel) => of(kernel) !== null);
      return {
        name,
        mode: "markers",
        x: timed.map(of),
        y: timed.map((kernel) => kernel.problem),
        hovertemplate: "%{y}: %{x:.2f}x",
        marker: { symbol: "line-ns-open", size: 11, color: "#7f8894", line: { width: 2, color: "#7f8894" } },
      };
    });
    for (const track of new Set(kernels.map((kernel) => kernel.track))) {
      const chosen = kernels.filter((kernel) => kernel.track === track);
      const [color, symbol] = this.style.tracks[track];
      data.push({
        name: track,
        mode: "markers",
        x: chosen.map((kernel) => kernel.speedup),
        y: chosen.map((kernel) => kernel.problem),
        error_x: {
          type: "data",
          symmetric: false,
          array: chosen.map((kernel) => Math.max(kernel.high - kernel.speedup, 0)),
          arrayminus: chosen.map((kernel) => Math.max(kernel.speedup - kernel.low, 0)),
          color: "#7f8894",
          thickness: 1.5,
        },
        customdata: chosen.map((kernel) => kernel.origin),
        marker: { color, symbol, size: 10 },
        hovertemplate: "%{y}: %{x:.2f}x, by %{customdata}",
      });
    }
    const ends = [...data.flatMap((trace) => trace.x), ...kernels.flatMap((kernel) => [kernel.low, kernel.high])];
    const more = {
      xaxis: speedAxis(
        Math.min(0.9, ...ends),
        Math.max(1.2, ...ends),
        `speedup over ${this.filters.name("baseline")}`,
      ),
      yaxis: {
        type: "category",
        categoryorder: "array",
        categoryarray: kernels.map((kernel) => kernel.problem).reverse(),
        dtick: 1,
        range: [-0.8, kernels.length - 0.2],
      },
      shapes: [evenLine],
    };
    const rows = kernels.map((kernel) => [
      kernel.problem,
      kernel.track,
      speed(kernel.speedup),
      interval(kernel.low, kernel.high),
    ]);
    return {
      data,
      layout: layout(120 + 19 * kernels.length, more),
      table: { header: ["problem", "track", "speedup", "90% interval"], rows, labels: 2 },
    };
  }
}
