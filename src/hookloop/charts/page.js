"use strict";
// Draws the figures of the page, and lets rows be searched.
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const places = [...document.querySelectorAll(".chart")];

  // A chart in what is folded has no width yet, and is drawn when it is opened.
  const draw = async (place) => {
    if (place.data || place.offsetParent === null) return;
    await charts.draw(place, figures[Number(place.dataset.figure)]);
    place.on("plotly_relayout", (change) => follow(place, change));
  };

  // What is zoomed in one chart is zoomed in all that have the same clock below.
  let isFollowing = false;
  const clock = (chart) => chart.layout.xaxis.title && chart.layout.xaxis.title.text;
  const follow = async (source, change) => {
    const keys = ["xaxis.range[0]", "xaxis.range[1]", "xaxis.autorange"].filter((key) => key in change);
    if (isFollowing || keys.length === 0) return;
    isFollowing = true;
    const wanted = Object.fromEntries(keys.map((key) => [key, change[key]]));
    const others = places.filter((chart) => chart !== source && chart.data && clock(chart) && clock(chart) === clock(source));
    await Promise.all(others.map((chart) => Plotly.relayout(chart, wanted)));
    isFollowing = false;
  };

  for (const button of document.querySelectorAll("button[data-run]")) {
    button.addEventListener("click", () => {
      const isShown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isShown));
      for (const chart of places.filter((each) => each.data)) {
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
  Promise.all(places.map(draw)).then(() => { document.documentElement.dataset.isDrawn = "true"; });
})();
