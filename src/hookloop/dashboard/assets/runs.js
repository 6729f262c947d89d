// The list of all runs, asked for every few seconds while somebody looks.
import { ask, byId, connection, count, element, isNew, moment, row, short } from "/assets/dash.js";

const PAUSE_MS = 3000;
const state = connection();
let runs = [];

function link(run) {
  const made = element("a", run.run);
  made.href = `/runs/${encodeURIComponent(run.run)}`;
  return made;
}

function line(run) {
  return row(
    [link(run), run.recipe, run.seed, element("span", run.status, { name: `badge ${run.status.replace(/\W/g, "-")}` }),
      count(run.steps), run.metric, short(run.score), moment(run.began), (run.tags || []).join(" ")],
    [2, 4, 6],
  );
}

// Rows of runs that have not changed stay as they are.
function show() {
  const body = byId("runs");
  const known = new Map([...body.children].map((each) => [each.dataset.shown, each]));
  const rows = runs.map((run) => {
    const made = known.get(JSON.stringify(run)) || line(run);
    isNew(made, run);
    return made;
  });
  if (rows.length !== body.children.length || rows.some((each, k) => each !== body.children[k])) body.replaceChildren(...rows);
  search();
}

function search() {
  const rows = [...byId("runs").children];
  const wanted = byId("search").value.toLowerCase().split(/\s+/);
  for (const each of rows) each.hidden = !wanted.every((word) => each.textContent.toLowerCase().includes(word));
  byId("none").hidden = rows.some((each) => !each.hidden);
  byId("none").textContent = runs.length ? `None of the ${runs.length} runs is like that.` : "There is no run yet: hookloop train cartpole makes one.";
}

let next = 0;

async function look() {
  clearTimeout(next);
  try {
    const found = await ask("/api/runs");
    state.well();
    document.title = `runs (${found.runs.length})`;
    runs = found.runs;
    show();
  } catch (error) {
    state.ill(error.message);
    if (error.isRefused) return;  // it will not change its mind
  }
  clearTimeout(next);
  if (!document.hidden) next = setTimeout(look, PAUSE_MS);
}

byId("search").addEventListener("input", search);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  state.awake();
  look();
});
look();
