// One run, live: what the server sends is drawn, and curves are asked for while they grow.
import { ask, byId, connection, count, duration, element, row, share, short } from "/assets/dash.js";
import { showGame } from "/assets/game.js";

const VERSION = 1;
const CURVES_MS = 5000;
const name = decodeURIComponent(location.pathname.split("/").pop());
const api = `/api/runs/${encodeURIComponent(name)}`;
const state = connection();
let view = null;
let drawnEpoch = -1;

function show(found) {
  if (found.version !== VERSION) {
    state.ill(`The server speaks version ${found.version}, and this page ${VERSION}: load the page again`);
    return;
  }
  view = found;
  document.title = `${view.progress === null ? "" : `${Math.floor(100 * view.progress)} % `}${name}`;
  const status = byId("status");
  status.hidden = false;
  status.textContent = view.status;
  status.className = `badge ${view.status.replace(/\W/g, "-")}`;
  byId("about").textContent = `${view.recipe}${view.attempt > 1 ? `, attempt ${view.attempt}` : ""}`;
  byId("reason").hidden = !view.reason;
  byId("reason").textContent = view.reason;
  showProgress();
  showFacts();
  showGame(view);
  showEvaluations();
  showTime();
  showFailures();
}

function showProgress() {
  const bar = byId("progress");
  bar.hidden = view.progress === null;
  if (bar.hidden) return;
  bar.setAttribute("aria-valuenow", String(Math.floor(100 * view.progress)));
  bar.firstElementChild.style.width = `${100 * view.progress}%`;
}

function showFacts() {
  const facts = [
    [view.unit, view.total_steps ? `${count(view.step)} of ${count(view.total_steps)}` : count(view.step)],
    ["time", duration(view.elapsed_seconds)],
    [`${view.unit} per second`, view.steps_per_second === null ? "-" : short(view.steps_per_second >= 10 ? Math.round(view.steps_per_second) : view.steps_per_second)],
  ];
  if (view.is_on && view.eta_seconds !== null) facts.push(["time left", duration(view.eta_seconds)]);
  if (view.unit !== "epochs") facts.push(["epoch", count(view.epoch)]);
  if (view.latest["return/mean"] !== undefined && !view.game) facts.push(["mean return", short(view.latest["return/mean"])]);
  if (view.checkpoint) facts.push(["checkpoint", `at ${count(view.checkpoint.step)}`]);
  byId("facts").replaceChildren(...facts.map(([label, value]) => {
    const made = element("div");
    element("dt", label, { parent: made });
    element("dd", value, { parent: made });
    return made;
  }));
}

function showEvaluations() {
  byId("evaluated").hidden = !view.evaluations.length;
  byId("evaluations").replaceChildren(...view.evaluations.map((each) =>
    row([each.name, short(each.score), count(each.step), short(each.best), count(each.best_step)], [1, 2, 3, 4])));
}

function showTime() {
  const rows = [...Object.entries(view.phases), ...Object.entries(view.hooks).map(([hook, part]) => [`hook ${hook}`, part])];
  byId("time").hidden = !rows.length;
  byId("shares").replaceChildren(...rows.map(([label, part]) => {
    const bar = element("div", undefined, { name: "share" });
    bar.style.width = `${100 * Math.min(part, 1)}%`;
    return row([label, share(part), bar], [1]);
  }));
}

function showFailures() {
  byId("failed").hidden = !view.failures.length;
  byId("failures").replaceChildren(...view.failures.map((each) =>
    row([each.hook, count(each.count), each.last_error, each.is_disabled ? "yes" : ""], [1])));
}

// Panels stay where they are, and get new curves: a chart that somebody zooms is not taken away.
async function draw(place, panels) {
  const wanted = new Set(panels.map((panel) => panel.title));
  for (const old of [...place.children]) {
    if (!wanted.has(old.dataset.title)) {
      charts.forget(old.querySelector(".chart"));
      old.remove();
    }
  }
  for (const panel of panels) {
    let card = [...place.children].find((each) => each.dataset.title === panel.title);
    if (!card) {
      card = element("figure", undefined, { name: "card", parent: place });
      card.dataset.title = panel.title;
      element("figcaption", panel.title, { parent: card });
      element("div", undefined, { name: "chart", parent: card });
    }
    await charts.draw(card.querySelector(".chart"), panel.figure);
  }
}

function showClocks(found) {
  const select = byId("clock");
  if (!select.options.length) {
    for (const [clock, label] of Object.entries(found.clocks)) element("option", label, { parent: select }).value = clock;
  }
  select.value = found.clock;
}

function showGroups(groups) {
  const place = byId("groups");
  for (const group of groups) {
    if ([...place.children].some((each) => each.dataset.group === group)) continue;
    const fold = element("details", undefined, { parent: place });
    fold.dataset.group = group;
    element("summary", group, { parent: fold });
    element("div", undefined, { name: "grid", parent: fold });
    fold.addEventListener("toggle", () => drawGroup(fold));
  }
}

async function drawGroup(fold) {
  if (!fold.open) return;
  const found = await ask(`${api}/curves?clock=${byId("clock").value}&group=${encodeURIComponent(fold.dataset.group)}`);
  await draw(fold.querySelector(".grid"), found.panels);
}

async function drawCurves(clock = byId("clock").value) {
  const found = await ask(`${api}/curves?clock=${clock}`);
  byId("curves").hidden = !found.panels.length && !found.groups.length;
  showClocks(found);
  showGroups(found.groups);
  await draw(byId("panels"), found.panels);
  await Promise.all([...byId("groups").children].map(drawGroup));
  document.documentElement.dataset.isDrawn = "true";
}

async function followCurves() {
  if (view && view.epoch !== drawnEpoch && !document.hidden) {
    const epoch = view.epoch;
    try {
      await drawCurves();
      drawnEpoch = epoch;
    } catch (error) {
      if (!(error instanceof TypeError)) state.ill(error.message);  // silence is told by the stream
    }
  }
  setTimeout(followCurves, view ? CURVES_MS : 100);
}

function listen() {
  const stream = new EventSource(`${api}/live`);
  stream.onmessage = (message) => { state.well(); show(JSON.parse(message.data)); };
  stream.addEventListener("same", () => state.well());
  stream.addEventListener("fault", (message) => { stream.close(); state.ill(JSON.parse(message.data).fault); });
  stream.onerror = async () => {
    state.ill("The dashboard does not answer");
    if (stream.readyState !== EventSource.CLOSED) return;  // it tries again by itself
    try {
      show(await ask(api));
      setTimeout(listen, CURVES_MS);
    } catch (error) {
      if (error instanceof TypeError) setTimeout(listen, CURVES_MS);
      else state.ill(error.message);
    }
  };
}

byId("name").textContent = name;
byId("clock").addEventListener("change", (event) => drawCurves(event.target.value));
listen();
followCurves();
