// Charts are drawn by plotly, and only once they are seen: the library is unpacked when the first one is.

let library = null;

function plotly() {
  library ??= unpacked("plotly").then((source) => {
    document.head.append(element("script", {}, source));
    return window.Plotly;
  });
  return library;
}

const GRID = "rgba(127,136,148,0.3)";

function layout(height, more = {}) {
  const axis = { automargin: true, gridcolor: GRID, zeroline: false };
  return {
    height,
    margin: { l: 10, r: 10, t: 8, b: 10 },
    font: { family: "system-ui, sans-serif", size: 12 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    hovermode: "closest",
    ...more,
    xaxis: { ...axis, ...more.xaxis },
    yaxis: { ...axis, ticksuffix: " ", ...more.yaxis },
  };
}

// A log axis from low to high whose ticks read as speedups.
function speedAxis(low, high, title = "speedup") {
  const leading = high / low < 20 ? [1, 1.5, 2, 3, 5, 7] : high / low < 300 ? [1, 2, 5] : [1];
  const powers = Array.from({ length: 12 }, (_, index) => index - 5);
  const ticks = powers.flatMap((power) => leading.map((digit) => Number((digit * 10 ** power).toPrecision(2))));
  return {
    type: "log",
    title: { text: title },
    range: [Math.log10(low) - 0.04, Math.log10(high) + 0.04],
    tickvals: ticks,
    ticktext: ticks.map((tick) => `${tick}x`),
  };
}

const evenLine = {
  type: "line",
  x0: 1,
  x1: 1,
  yref: "paper",
  y0: 0,
  y1: 1,
  line: { color: "#7f8894", width: 1, dash: "dot" },
};

class Chart {
  static all = new Set();
  static seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) entry.target.chart.notice(entry.isIntersecting);
    },
    { rootMargin: "300px" },
  );

  // build() returns {data, layout, table: {header, rows, labels}} or null when there is nothing to draw.
  constructor(host, title, note, build) {
    this.title = title;
    this.build = build;
    this.plot = element("div", { class: "plot", role: "img", "aria-label": `Chart: ${title}` });
    this.empty = element("p", { class: "note", hidden: true }, "Nothing to draw for these filters.");
    this.numbers = element("details", { class: "numbers" }, element("summary", {}, "Numbers"));
    this.figure = element(
      "figure",
      { class: "chart" },
      element("figcaption", {}, element("strong", {}, title), note ? element("span", { class: "note" }, note) : null),
      this.plot,
      this.empty,
      this.numbers,
    );
    this.numbers.addEventListener("toggle", () => this.fillNumbers());
    this.figure.chart = this;
    host.append(this.figure);
    this.isStale = true;
    this.isVisible = false;
    Chart.all.add(this);
    Chart.seen.observe(this.figure);
  }

  notice(isVisible) {
    this.isVisible = isVisible;
    if (isVisible && this.isStale) this.draw();
  }

  async draw() {
    this.isStale = false;
    const content = (this.content = this.build());
    this.plot.hidden = this.numbers.hidden = content === null;
    this.empty.hidden = content !== null;
    if (content === null) return;
    this.plot.style.height = `${content.layout.height}px`;
    this.plot.style.minHeight = 0;
    this.plot.setAttribute("aria-label", `Chart: ${this.title}. Its numbers follow as a table.`);
    this.fillNumbers();
    const library = await plotly();
    if (content !== this.content || !this.plot.clientWidth) return;
    await library.react(this.plot, structuredClone(content.data), this.fitted(content.layout), CONFIG);
  }

  // Plotly writes into the layout it is given, and keeps the width that it drew first.
  fitted(layout) {
    const made = structuredClone({ ...layout, width: this.plot.clientWidth });
    if (made.width < 480) made.font.size = 10;
    return made;
  }

  fillNumbers() {
    while (this.numbers.children.length > 1) this.numbers.lastChild.remove();
    if (!this.numbers.open || !this.content) return;
    const { header, rows, labels } = this.content.table;
    this.numbers.append(plainTable(this.title, header, rows, labels));
  }

  static refresh() {
    for (const chart of Chart.all) {
      chart.isStale = true;
      if (chart.isVisible) chart.draw();
    }
  }

  static forget(host) {
    for (const figure of host.querySelectorAll("figure")) {
      Chart.all.delete(figure.chart);
      Chart.seen.unobserve(figure);
    }
  }
}

const CONFIG = { displayModeBar: false };

// Any figure's numbers, where nothing better is given.
function tableOfTraces(traces, most = 200) {
  const rows = traces.flatMap((trace) =>
    Array.from(trace.x ?? [], (x, index) => [trace.name ?? "", String(x), String(trace.y[index])]),
  );
  return { header: ["series", "x", "y"], rows: rows.slice(0, most), labels: 1 };
}
