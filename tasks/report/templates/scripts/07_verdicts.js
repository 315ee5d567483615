// What became of everything judged, compared by stage or by another column: the choice, the table and the charts.

const GROUP_COLUMNS = ["stage", "origin", "level", "split", "track"];

class Verdicts extends VerdictCharts {
  build() {
    const select = byId("compare");
    for (const column of GROUP_COLUMNS) {
      select.append(element("option", { value: column }, column === "origin" ? "who wrote it" : column));
    }
    select.addEventListener("change", () => {
      this.column = select.value;
      this.update();
      Chart.refresh();
    });
    const host = byId("verdict-charts");
    new Chart(host, "How far candidates got", "Share of all judged, by status.", () => this.statusChart());
    new Chart(
      host,
      "How fast the correct ones are",
      "Share of the correct at each speedup; the tick is the median.",
      () => this.histograms(),
    );
    new Chart(host, "Correct and faster than p", "Share of all judged: fast_p for every p.", () => this.survival());
    new Chart(
      host,
      "Best so far",
      "Geometric mean over problems of the fastest kernel yet, as judged; without a faster one a problem counts as 1x.",
      () => this.bestSoFar(),
    );
  }

  update() {
    this.rows = this.filters.rows(this.data.verdicts);
    this.groups = grouped(this.data, this.rows, this.column);
    byId("shown").textContent =
      `${count(this.rows.length)} of ${count(this.data.verdicts.problem.length)} verdicts shown`;
    this.showTable();
  }

  showTable() {
    const header = [
      this.column,
      "verdicts",
      "correct",
      "share correct",
      "geomean",
      "median",
      "best",
      "faster than 1x",
    ];
    const rows = this.groups.map(({ name, total, speedups }) => [
      name,
      count(total),
      count(speedups.length),
      share(speedups.length / total),
      speed(geomean(speedups)),
      speed(quantile(speedups, 0.5)),
      speed(speedups.at(-1)),
      share(above(speedups, 1) / total),
    ]);
    byId("verdict-table").replaceChildren(plainTable(`Verdicts by ${this.column}`, header, rows, 1));
  }
}
