// What is shown: one value, or all, of each column. Speedups of different devices, protocols or baselines never mix, so
// of those one is always chosen.

const ALL = -1;
const SINGLE = ["device", "protocol", "baseline"];
const FILTERS = ["device", "protocol", "baseline", "stage", "split", "level", "track", "origin"];

class Filters {
  constructor(data, changed) {
    this.data = data;
    this.chosen = Object.fromEntries(FILTERS.map((column) => [column, ALL]));
    this.chosen.device = this.mostFrequent("device");
    this.chooseWay();
    this.changed = changed;
  }

  // The value most verdicts have, among those that match what is chosen of the columns given.
  mostFrequent(column, ...given) {
    const counts = new Map();
    const codes = this.data.verdicts[column];
    for (let row = 0; row < codes.length; row += 1) {
      const matches = given.every((other) => this.data.verdicts[other][row] === this.chosen[other]);
      if (codes[row] >= 0 && matches) counts.set(codes[row], (counts.get(codes[row]) ?? 0) + 1);
    }
    return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best), [0, 0])[0];
  }

  chooseWay() {
    this.chosen.protocol = this.mostFrequent("protocol", "device");
    this.chosen.baseline = this.mostFrequent("baseline", "device", "protocol");
  }

  // Rows of a table that match; a column that the table lacks or that is empty in a row excludes nothing.
  rows(table) {
    const active = FILTERS.filter((column) => this.chosen[column] !== ALL && table[column]);
    const tests = active.map((column) => [table[column], this.chosen[column]]);
    const found = [];
    for (let row = 0, end = table.problem.length; row < end; row += 1) {
      if (tests.every(([codes, code]) => codes[row] === code || codes[row] < 0)) found.push(row);
    }
    return found;
  }

  // Whether something that names its values, such as a curve, is among what is chosen.
  admits(named) {
    return FILTERS.every(
      (column) =>
        this.chosen[column] === ALL ||
        named[column] === undefined ||
        String(named[column]) === String(this.data.names[column][this.chosen[column]]),
    );
  }

  set(column, code) {
    this.chosen[column] = code;
    if (column === "device") this.chooseWay();
    this.show();
    this.changed();
  }

  reset() {
    for (const column of FILTERS) if (!SINGLE.includes(column)) this.chosen[column] = ALL;
    this.show();
    this.changed();
  }

  build(host) {
    for (const column of FILTERS) {
      const names = this.data.names[column];
      const select = element("select", { id: `filter-${column}` });
      if (!SINGLE.includes(column)) select.append(element("option", { value: ALL }, "all"));
      names.forEach((name, code) => select.append(element("option", { value: code }, String(name))));
      select.addEventListener("change", () => this.set(column, Number(select.value)));
      const label = element("label", { for: select.id }, column === "origin" ? "written by" : column);
      // One baseline is no choice; one device is, since every number hangs on it.
      host.append(
        element("div", { class: "filter", hidden: column === "baseline" && names.length < 2 }, label, select),
      );
    }
    host.append(element("button", { type: "button", id: "reset", onclick: () => this.reset() }, "Show all"));
    this.show();
  }

  show() {
    for (const column of FILTERS) byId(`filter-${column}`).value = this.chosen[column];
    byId("reset").disabled = FILTERS.every((column) => SINGLE.includes(column) || this.chosen[column] === ALL);
  }

  name(column) {
    return this.data.names[column][this.chosen[column]];
  }
}
