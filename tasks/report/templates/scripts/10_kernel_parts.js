// The parts of a kernel's page that need nothing but their own data.

function roundChart(timed, style) {
  if (!timed.length) return null;
  const symbols = ["circle", "diamond", "square", "cross", "triangle-up"];
  const data = [],
    shapes = [],
    rows = [];
  let start = 1;
  timed.forEach((verdict, place) => {
    const color = style.series[place % style.series.length];
    const ratios = verdict.reference_ms.map((reference_ms, round) => reference_ms / verdict.kernel_ms[round]);
    const end = start + ratios.length;
    data.push({
      name: `${verdict.stage}, ${verdict.judged_at}`,
      mode: "markers",
      x: ratios.map((_, round) => start + round),
      y: ratios,
      customdata: verdict.reference_ms.map((reference_ms, round) => [reference_ms, verdict.kernel_ms[round]]),
      marker: { color, symbol: symbols[place % symbols.length], size: 7 },
      hovertemplate: "%{y:.2f}x: %{customdata[0]:.4g} ms / %{customdata[1]:.4g} ms",
    });
    shapes.push({
      type: "line",
      x0: start - 0.5,
      x1: end - 0.5,
      y0: verdict.speedup,
      y1: verdict.speedup,
      line: { color, width: 2 },
    });
    ratios.forEach((ratio, round) =>
      rows.push([
        verdict.stage,
        String(round + 1),
        verdict.reference_ms[round].toPrecision(4),
        verdict.kernel_ms[round].toPrecision(4),
        speed(ratio),
      ]),
    );
    start = end;
  });
  const ratios = data.flatMap((trace) => trace.y);
  const low = Math.min(0.95, ...ratios),
    high = Math.max(1.05, ...ratios);
  const even = { ...evenLine, x0: 0, x1: 1, xref: "paper", yref: "y", y0: 1, y1: 1 };
  return {
    data,
    layout: layout(300, {
      xaxis: { title: { text: "round" } },
      yaxis: speedAxis(low, high),
      shapes: [even, ...shapes],
      showlegend: true,
    }),
    table: { header: ["timing", "round", "reference_ms", "kernel_ms", "speedup"], rows, labels: 1 },
  };
}

// Pygments' classes and texts, alternating.
function highlighted(cut, title) {
  const code = element("code", {});
  for (let at = 0; at < cut.length; at += 2) {
    code.append(cut[at] ? element("span", { class: `tok-${cut[at]}` }, cut[at + 1]) : cut[at + 1]);
  }
  return element("pre", { class: "source", tabindex: "0", role: "region", "aria-label": title }, code);
}
