// The few numbers that say what the filters leave, and who was caught cheating.

class Summary {
  constructor(data, filters, leaderboard) {
    Object.assign(this, { data, filters, leaderboard });
  }

  update() {
    this.showTiles();
    this.showHacks();
  }

  showTiles() {
    const { kernels } = this.leaderboard;
    const verdicts = this.data.verdicts;
    const rows = this.filters.rows(verdicts);
    const correct = rows.filter((row) => verdicts.speedup[row] !== null).length;
    const problems = new Set(rows.map((row) => verdicts.problem[row])).size;
    const logs = kernels.reduce((sum, kernel) => sum + Math.log(kernel.speedup), 0);
    const faster = kernels.filter((kernel) => kernel.low > 1).length;
    const hacks = this.data.names.status.indexOf("cheated");
    const caught = rows.filter((row) => verdicts.status[row] === hacks).length;
    const tiles = [
      [
        "verdicts",
        count(rows.length),
        `verdicts, ${count(correct)} correct (${share(correct / Math.max(rows.length, 1))})`,
      ],
      [
        "geomean",
        problems ? speed(Math.exp(logs / problems)) : "-",
        "of the best kernels; a problem without one counts as 1.00x",
      ],
      ["solved", `${kernels.length} of ${problems}`, "problems with a correct kernel"],
      ["faster", `${faster} of ${problems}`, "problems whose best kernel is above 1.00x by all of its interval"],
      ["hacks", count(caught), "candidates caught cheating"],
    ];
    byId("tiles").replaceChildren(
      ...tiles.map(([name, value, note]) =>
        element(
          "div",
          { class: "headline", "data-tile": name },
          element("p", { class: "value" }, value),
          element("p", { class: "note" }, note),
        ),
      ),
    );
  }

  showHacks() {
    const { hacks, names } = this.data;
    const rows = this.filters.rows(hacks);
    byId("hacks-body").replaceChildren(
      ...rows.map((row) => {
        const id = hacks.candidate_id[row],
          name = names.problem[hacks.problem[row]];
        return element(
          "tr",
          {},
          element(
            "th",
            { scope: "row" },
            this.leaderboard.pages.has(id) ? element("a", { href: `#kernel-${id}` }, name) : name,
          ),
          element("td", {}, names.stage[hacks.stage[row]]),
          element("td", {}, names.origin[hacks.origin[row]]),
          element("td", { class: "text" }, hacks.reason[row].split("\n")[0].slice(0, 300)),
        );
      }),
    );
    byId("hacks-table").hidden = !rows.length;
    byId("no-hacks").hidden = rows.length > 0;
  }
}
