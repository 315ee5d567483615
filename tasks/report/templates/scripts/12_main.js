// Puts the parts together.

const TITLE = document.title;

// Curves by stage and value, one line for each run and split.
function buildCurves(data, style, filters) {
  const host = byId("curve-charts");
  const kinds = new Map();
  for (const curve of data.curves) {
    const kind = `${curve.stage}: ${words(curve.value)}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), curve]);
  }
  for (const [kind, curves] of kinds)
    new Chart(host, kind, null, () =>
      curveChart(
        curves.filter((curve) => filters.admits(curve)),
        style,
      ),
    );
  byId("no-curves").hidden = kinds.size > 0;
}

function curveChart(curves, style) {
  const drawn = curves.filter((curve) => curve.x.length);
  if (!drawn.length) return null;
  const data = drawn.map((curve, place) => ({
    name: curve.series,
    x: curve.x,
    y: curve.y,
    mode: curve.x.length <= 40 ? "lines+markers" : "lines",
    line: {
      width: 2,
      color:
        drawn.length === 1
          ? (style.stages[curve.stage] ?? style.series[0])
          : style.series[place % style.series.length],
      dash: style.dashes[place % style.dashes.length],
    },
  }));
  const isShare = drawn[0].value.includes("share");
  const more = {
    xaxis: { title: { text: "step" }, dtick: Math.max(...drawn.map((curve) => curve.x.length)) <= 10 ? 1 : null },
    yaxis: { tickformat: isShare ? ".0%" : null },
    showlegend: drawn.length > 1,
  };
  return { data, layout: layout(drawn.length > 1 ? 280 : 230, more), table: tableOfTraces(data) };
}

// Figures and tables of the evaluation, which Python made; filters hide what they say they are about.
function buildFigures() {
  for (const host of document.querySelectorAll(".made")) {
    const made = JSON.parse(host.querySelector("script").textContent);
    host.replaceChildren();
    const { title, ...rest } = made.layout;
    new Chart(host, title.text, null, () => ({
      data: made.data,
      layout: { ...rest, margin: { l: 10, r: 10, t: 8, b: 10 } },
      table: tableOfTraces(made.data),
    }));
  }
}

function hideUnasked(filters) {
  for (const part of document.querySelectorAll("[data-split], [data-origin]")) {
    part.hidden = !filters.admits({ split: part.dataset.split, origin: part.dataset.origin });
  }
}

async function start() {
  startTheme();
  const data = JSON.parse(await unpacked("data"));
  const style = JSON.parse(byId("style").textContent);
  let parts = [];
  const update = () => {
    for (const part of parts) part.update();
    hideUnasked(filters);
    Chart.refresh();
  };
  const filters = new Filters(data, update);
  filters.build(byId("filters"));
  const [verdicts, leaderboard] = [new Verdicts(data, style, filters), new Leaderboard(data, style, filters)];
  parts = [verdicts, leaderboard, new Summary(data, filters, leaderboard)];
  buildFigures();
  verdicts.build();
  leaderboard.build();
  buildCurves(data, style, filters);
  for (const part of parts) part.update();
  const page = new KernelPage(data, style);
  addEventListener("hashchange", () => page.route());
  addEventListener(
    "resize",
    settled(() => Chart.refresh(), 200),
  );
  await page.route();
  document.documentElement.dataset.ready = "true";
}

start();
