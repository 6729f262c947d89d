"use strict";
// Draws the figures of the page, keeps them in the colours of the page, and lets rows be searched.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const charts = [...document.querySelectorAll(".chart")];
  const options = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

  const colours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    const axis = { "gridcolor": of("--grid"), "linecolor": of("--line"), "tickcolor": of("--line") };
    const found = {
      "paper_bgcolor": of("--card"), "plot_bgcolor": of("--card"), "font.color": of("--pale"), "font.size": 11, "font.family": "system-ui, sans-serif",
      "hoverlabel.bgcolor": of("--card"), "hoverlabel.bordercolor": of("--line"), "hoverlabel.font.color": of("--ink"),
      "modebar.bgcolor": "rgba(0,0,0,0)", "modebar.color": of("--pale"), "modebar.activecolor": of("--accent"),
    };
    for (const [name, value] of Object.entries(axis)) {
      found[`xaxis.${name}`] = value;
      found[`yaxis.${name}`] = value;
    }
    return found;
  };

  const paint = () => Promise.all(charts.filter((chart) => chart.data).map((chart) => Plotly.relayout(chart, colours())));

  // A chart in what is folded has no width yet, and is drawn when it is opened.
  const draw = async (chart) => {
    if (chart.data || chart.offsetParent === null) return;
    const figure = figures[Number(chart.dataset.figure)];
    await Plotly.newPlot(chart, figure.data, figure.layout, options);
    await Plotly.relayout(chart, colours());
    chart.on("plotly_relayout", (change) => follow(chart, change));
  };

  // What is zoomed in one chart is zoomed in all that have the same clock below.
  let isFollowing = false;
  const clock = (chart) => chart.layout.xaxis.title && chart.layout.xaxis.title.text;
  const follow = async (source, change) => {
    const keys = ["xaxis.range[0]", "xaxis.range[1]", "xaxis.autorange"].filter((key) => key in change);
    if (isFollowing || keys.length === 0) return;
    isFollowing = true;
    const wanted = Object.fromEntries(keys.map((key) => [key, change[key]]));
    const others = charts.filter((chart) => chart !== source && chart.data && clock(chart) && clock(chart) === clock(source));
    await Promise.all(others.map((chart) => Plotly.relayout(chart, wanted)));
    isFollowing = false;
  };

  for (const button of document.querySelectorAll("button[data-run]")) {
    button.addEventListener("click", () => {
      const isShown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isShown));
      for (const chart of charts.filter((each) => each.data)) {
        const mine = chart.data.flatMap((trace, k) => (trace.meta && trace.meta.run === button.dataset.run ? [k] : []));
        if (mine.length > 0) Plotly.restyle(chart, { visible: isShown }, mine);
      }
    });
  }
  for (const field of document.querySelectorAll("input[type=search]")) {
    const rows = [...field.parentElement.querySelectorAll("tbody tr")];
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }
  for (const fold of document.querySelectorAll("details")) {
    fold.addEventListener("toggle", () => fold.querySelectorAll(".chart").forEach(draw));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  addEventListener("beforeprint", paint);
  addEventListener("afterprint", paint);
  Promise.all(charts.map(draw)).then(() => { document.documentElement.dataset.isDrawn = "true"; });
})();
