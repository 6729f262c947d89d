// One run, live: what the server sends is drawn, and curves are asked for while they grow.
import { UNHEARD, ask, byId, connection, count, duration, element, fill, isNew, row, share, short } from "/assets/dash.js";
import { showGame } from "/assets/game.js";

const VERSION = 1;
const CURVES_MS = 5000;
const name = decodeURIComponent(location.pathname.split("/").pop());
const api = `/api/runs/${encodeURIComponent(name)}`;
const state = connection(() => listen());
let view = null;
let stream = null;

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

function facts() {
  const found = [
    [view.unit, view.total_steps ? `${count(view.step)} of ${count(view.total_steps)}` : count(view.step)],
    ["time", duration(view.elapsed_seconds)],
    [`${view.unit} per second`, view.steps_per_second === null ? "-" : short(view.steps_per_second >= 10 ? Math.round(view.steps_per_second) : view.steps_per_second)],
  ];
  if (view.is_on && view.eta_seconds !== null) found.push(["time left", duration(view.eta_seconds)]);
  if (view.unit !== "epochs") found.push(["epoch", count(view.epoch)]);
  if (view.latest["return/mean"] !== undefined && !view.game) found.push(["mean return", short(view.latest["return/mean"])]);
  if (view.checkpoint) found.push(["checkpoint", `at ${count(view.checkpoint.step)}`]);
  return found;
}

function showFacts() {
  const found = facts(), place = byId("facts");
  if (isNew(place, found.map(([label]) => label))) {
    place.replaceChildren(...found.map(([label]) => {
      const made = element("div");
      element("dt", label, { parent: made });
      element("dd", "", { parent: made });
      return made;
    }));
  }
  found.forEach(([, value], k) => {
    const cell = place.children[k].lastElementChild;
    if (cell.textContent !== value) cell.textContent = value;
  });
}

function showEvaluations() {
  byId("evaluated").hidden = !view.evaluations.length;
  fill(byId("evaluations"), view.evaluations, (found) => found.map((each) =>
    row([each.name, short(each.score), count(each.step), short(each.best), count(each.best_step)], [1, 2, 3, 4])));
}

function showTime() {
  const parts = [...Object.entries(view.phases), ...Object.entries(view.hooks).map(([hook, part]) => [`hook ${hook}`, part])]
    .map(([label, part]) => [label, share(part), Math.min(100 * part, 100).toFixed(1)]);
  byId("time").hidden = !parts.length;
  fill(byId("shares"), parts, (found) => found.map(([label, text, width]) => {
    const bar = element("div", undefined, { name: "share" });
    bar.style.width = `${width}%`;
    return row([label, text, bar], [1]);
  }));
}

function showFailures() {
  byId("failed").hidden = !view.failures.length;
  fill(byId("failures"), view.failures, (found) => found.map((each) =>
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
    fold.addEventListener("toggle", () => tryToDraw(() => drawGroup(fold)));
  }
}

async function drawGroup(fold) {
  if (!fold.open) return;
  const found = await ask(`${api}/curves?clock=${byId("clock").value}&group=${encodeURIComponent(fold.dataset.group)}`);
  if (found.clock === byId("clock").value) await draw(fold.querySelector(".grid"), found.panels);
}

let asked = 0;
let drawn = { epoch: -1, of: "" };

// What curves are made of: an evaluation may come after the last epoch, and statistics after the heartbeat.
const measured = () => JSON.stringify([view.epoch, view.status, view.evaluations]);

async function drawCurves(clock = byId("clock").value) {
  const turn = (asked += 1);
  const of = view && measured();
  const found = await ask(`${api}/curves?clock=${clock}`);
  if (turn !== asked) return;  // somebody has asked for something else meanwhile
  byId("curves").hidden = !found.panels.length && !found.groups.length;
  showClocks(found);
  showGroups(found.groups);
  await draw(byId("panels"), found.panels);
  await Promise.all([...byId("groups").children].map(drawGroup));
  drawn = { epoch: found.epoch, of };
  document.documentElement.dataset.isDrawn = "true";
}

// Asks for curves, and says in their place if there are none to be had.
async function tryToDraw(work) {
  const place = byId("curves-fault");
  try {
    await work();
    place.hidden = true;
  } catch (error) {
    if (error.message === UNHEARD) return;  // the stream says so
    byId("curves").hidden = false;
    place.hidden = false;
    place.textContent = error.message;
  }
}

async function followCurves() {
  if (view && !document.hidden && (drawn.epoch < view.epoch || drawn.of !== measured())) await tryToDraw(() => drawCurves());
  setTimeout(followCurves, view ? CURVES_MS : 250);
}

let later = 0;

function listen() {
  clearTimeout(later);
  if (stream) stream.close();
  if (document.hidden) return;
  state.awake();
  stream = new EventSource(`${api}/live`);
  stream.onmessage = (message) => { state.well(); show(JSON.parse(message.data)); };
  stream.addEventListener("same", () => state.well());
  stream.addEventListener("fault", (message) => { state.ill(JSON.parse(message.data).fault); tryAgain(); });
  stream.onerror = async () => {
    state.ill(UNHEARD);
    if (stream.readyState !== EventSource.CLOSED) return;  // it tries again by itself
    try {
      show(await ask(api));
    } catch (error) {
      state.ill(error.message);
      if (error.isRefused) return;  // it will not change its mind
    }
    tryAgain();
  };
}

function tryAgain() {
  stream.close();
  clearTimeout(later);
  later = setTimeout(listen, CURVES_MS);
}

byId("name").textContent = name;
byId("clock").addEventListener("change", (event) => tryToDraw(() => drawCurves(event.target.value)));
// A browser has six connections for all tabs of a server: those that nobody looks at let go of theirs.
document.addEventListener("visibilitychange", listen);
listen();
followCurves();
