// The charts of what became of everything judged. Their rows and groups are chosen by whoever extends this.

const MOST_POINTS = 300;
const BINS = 36;

class VerdictCharts {
  constructor(data, style, filters) {
    Object.assign(this, { data, style, filters });
    this.column = "stage";
    this.rows = [];
    this.groups = [];
  }

  colour(group, place) {
    return (
      this.style.stages[this.data.names[this.column][group.code]] ??
      this.style.series[place % this.style.series.length]
    );
  }

  statusChart() {
    if (!this.groups.length) return null;
    const names = this.groups.map((group) => group.name);
    const statuses = this.data.names.status
      .map((name, code) => ({ name, code }))
      .filter(({ code }) => this.groups.some((group) => group.statuses[code]));
    const data = statuses.map(({ name, code }) => {
      const [color, shape] = this.style.statuses[name];
      const counts = this.groups.map((group) => group.statuses[code] ?? 0);
      return {
        type: "bar",
        orientation: "h",
        name,
        y: names,
        x: counts.map((number, place) => number / this.groups[place].total),
        customdata: counts,
        marker: { color, pattern: { shape, fillmode: "overlay", fgopacity: 0.4 } },
        hovertemplate: "%{customdata} (%{x:.1%})",
      };
    });
    const rows = this.groups.map((group) => [
      group.name,
      ...statuses.map(({ code }) => count(group.statuses[code] ?? 0)),
    ]);
    const more = {
      barmode: "stack",
      bargap: 0.3,
      legend: { orientation: "h", x: 0, y: -0.12, yanchor: "top", traceorder: "normal" },
      xaxis: { tickformat: ".0%", range: [0, 1] },
      yaxis: { autorange: "reversed", type: "category" },
    };
    return {
      data,
      layout: layout(170 + 34 * names.length, more),
      table: { header: [this.column, ...statuses.map(({ name }) => name)], rows, labels: 1 },
    };
  }

  range(groups) {
    const low = Math.min(...groups.map((group) => quantile(group.speedups, 0.002)), 0.9);
    const high = Math.max(...groups.map((group) => quantile(group.speedups, 0.998)), 1.25);
    return [low, high];
  }

  // One row of bars under another, on one axis; what lies beyond it is counted in the outermost bars.
  histograms() {
    const groups = this.groups.filter((group) => group.speedups.length);
    if (!groups.length) return null;
    const [low, high] = this.range(groups);
    const width = Math.log(high / low) / BINS;
    const middles = Array.from({ length: BINS }, (_, bin) => low * Math.exp((bin + 0.5) * width));
    const data = [],
      annotations = [],
      axes = {},
      shapes = [evenLine],
      rows = [];
    groups.forEach((group, place) => {
      const shares = new Array(BINS).fill(0);
      for (const speedup of group.speedups) {
        const bin = Math.floor(Math.log(speedup / low) / width);
        shares[Math.max(0, Math.min(BINS - 1, bin))] += 1 / group.speedups.length;
      }
      const axis = place ? `y${place + 1}` : "y",
        top = 1 - place / groups.length,
        bottom = 1 - (place + 0.78) / groups.length;
      axes[place ? `yaxis${place + 1}` : "yaxis"] = {
        domain: [Math.max(bottom, 0), top],
        showticklabels: false,
        showgrid: false,
        zeroline: false,
        range: [0, Math.max(...shares) * 1.05],
      };
      const middle = quantile(group.speedups, 0.5);
      data.push({
        x: middles,
        y: shares,
        yaxis: axis,
        name: group.name,
        mode: "lines",
        line: { shape: "hvh", width: 1.5, color: this.colour(group, place) },
        fill: "tozeroy",
        hovertemplate: "%{y:.1%} near %{x:.2f}x",
        showlegend: false,
      });
      shapes.push({
        type: "line",
        x0: middle,
        x1: middle,
        yref: `${axis} domain`,
        y0: 0,
        y1: 0.5,
        line: { width: 3, color: this.colour(group, place) },
      });
      annotations.push({
        text: `<b>${escaped(group.name)}</b>, ${count(group.speedups.length)} correct`,
        xref: "paper",
        x: 1,
        yref: "paper",
        y: top,
        xanchor: "right",
        yanchor: "top",
        showarrow: false,
      });
      rows.push([
        group.name,
        count(group.speedups.length),
        ...[0.05, 0.25, 0.5, 0.75, 0.95].map((p) => speed(quantile(group.speedups, p))),
      ]);
    });
    const bottom = { anchor: groups.length > 1 ? `y${groups.length}` : "y" };
    const made = layout(70 + 78 * groups.length, {
      xaxis: { ...speedAxis(low, high, `speedup over ${this.filters.name("baseline")}`), ...bottom },
    });
    return {
      data,
      layout: { ...made, ...axes, annotations, shapes, hovermode: "closest" },
      table: { header: [this.column, "correct", "5 %", "25 %", "median", "75 %", "95 %"], rows, labels: 1 },
    };
  }

  survival() {
    const groups = this.groups.filter((group) => group.speedups.length);
    if (!groups.length) return null;
    const [low, high] = this.range(groups);
    const data = groups.map((group, place) => {
      const step = Math.max(1, Math.ceil(group.speedups.length / MOST_POINTS));
      const places = group.speedups.map((_, index) => index).filter((index) => index % step === 0);
      return {
        name: group.name,
        mode: "lines",
        x: [low, ...places.map((index) => group.speedups[index]), group.speedups.at(-1)],
        y: [
          group.speedups.length / group.total,
          ...places.map((index) => (group.speedups.length - index) / group.total),
          0,
        ],
        line: {
          color: this.colour(group, place),
          dash: this.style.dashes[place % this.style.dashes.length],
          width: 2.5,
          shape: "hv",
        },
        hovertemplate: "%{y:.0%} are faster than %{x:.2f}x",
      };
    });
    const limits = [0, 1, 1.2, 2, 5];
    const rows = groups.map((group) => [
      group.name,
      ...limits.map((limit) => share(above(group.speedups, limit) / group.total)),
    ]);
    const more = {
      xaxis: speedAxis(low, high, "p"),
      yaxis: { tickformat: ".0%", rangemode: "tozero" },
      shapes: [evenLine],
    };
    return {
      data,
      layout: layout(320, more),
      table: { header: [this.column, ...limits.map((limit) => `fast_${limit}`)], rows, labels: 1 },
    };
  }

  bestSoFar() {
    const { verdicts } = this.data;
    const problems = new Set(this.rows.map((row) => verdicts.problem[row])).size;
    const best = new Map(),
      x = [0],
      y = [1];
    let logs = 0;
    this.rows.forEach((row, place) => {
      const problem = verdicts.problem[row],
        held = best.get(problem) ?? 1,
        speedup = verdicts.speedup[row];
      if (speedup === null || speedup <= held) return;
      logs += Math.log(speedup / held);
      best.set(problem, speedup);
      x.push(place + 1);
      y.push(Math.exp(logs / problems));
    });
    if (!best.size) return null;
    x.push(this.rows.length);
    y.push(y.at(-1));
    const step = Math.ceil(x.length / MOST_POINTS);
    const kept = x.map((_, index) => index).filter((index) => index % step === 0 || index === x.length - 1);
    const trace = {
      x: kept.map((index) => x[index]),
      y: kept.map((index) => y[index]),
      mode: "lines",
      name: "best so far",
      line: { shape: "hv", width: 2.5, color: this.style.series[0] },
      hovertemplate: "%{y:.3f}x after %{x} verdicts",
    };
    const more = {
      xaxis: { title: { text: "verdicts" }, rangemode: "tozero" },
      yaxis: { ticksuffix: "x ", title: { text: "geomean" } },
    };
    return {
      data: [trace],
      layout: layout(320, more),
      table: {
        header: ["verdicts", "geomean of the best"],
        labels: 0,
        rows: trace.x.map((at, index) => [count(at), speed(trace.y[index])]),
      },
    };
  }
}

// Plotly reads a little markup in its labels.
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
