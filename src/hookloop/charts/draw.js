"use strict";
// Draws figures by plotly in the colours of the page, and draws them anew when those change.
const charts = (() => {
  const options = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };
  const drawn = new Map();

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

  // How somebody has zoomed a chart, by axis; what is drawn into it later is seen the same way.
  const noteZoom = (zoom, change) => {
    for (const axis of ["xaxis", "yaxis"]) {
      const range = [change[`${axis}.range[0]`], change[`${axis}.range[1]`]];
      if (range.every((end) => end !== undefined)) zoom[axis] = { range, autorange: false };
      if (change[`${axis}.autorange`]) delete zoom[axis];
    }
  };

  const draw = async (place, { data, layout }) => {
    const isNew = !drawn.has(place);
    const zoom = drawn.get(place) || {};
    const clock = layout.xaxis.title && layout.xaxis.title.text;
    if (zoom.clock !== clock) delete zoom.xaxis;  // of another clock the same numbers are another place
    zoom.clock = clock;
    const axes = { xaxis: { ...layout.xaxis, ...zoom.xaxis }, yaxis: { ...layout.yaxis, ...zoom.yaxis } };
    await Plotly.react(place, data, { ...layout, ...axes }, options);
    await Plotly.relayout(place, colours());
    drawn.set(place, zoom);
    if (isNew) place.on("plotly_relayout", (change) => noteZoom(zoom, change));
  };

  const forget = (place) => {
    if (drawn.delete(place)) Plotly.purge(place);
  };

  const paint = () => Promise.all([...drawn.keys()].map((place) => Plotly.relayout(place, colours())));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  addEventListener("beforeprint", paint);
  addEventListener("afterprint", paint);
  return { draw, forget };
})();
