for (const chart of document.querySelectorAll(".chart")) {
  const figure = JSON.parse(chart.querySelector("script").textContent);
  chart.replaceChildren();
  const narrow = chart.clientWidth < 480;
  if (narrow) {
    figure.layout.font.size = 10;
    figure.layout.title.font.size = 13;
    // The legend stacks below the plot and would take its height from it.
    figure.layout.height += 14 * figure.data.length;
    chart.style.height = `${figure.layout.height}px`;
  }
  Plotly.newPlot(chart, figure.data, figure.layout, { responsive: true, displayModeBar: false });
}
