// The list of all runs, asked for every few seconds while somebody looks.
import { ask, byId, connection, count, element, moment, row, short } from "/assets/dash.js";

const PAUSE_MS = 3000;
const state = connection();
let runs = [];

function link(run) {
  const made = element("a", run.run);
  made.href = `/runs/${encodeURIComponent(run.run)}`;
  return made;
}

function show() {
  const wanted = byId("search").value.toLowerCase().split(/\s+/);
  const rows = runs.map((run) => row(
    [link(run), run.recipe, run.seed, element("span", run.status, { name: `badge ${run.status.replace(/\W/g, "-")}` }),
      count(run.steps), run.metric, short(run.score), moment(run.began), (run.tags || []).join(" ")],
    [2, 4, 6],
  ));
  for (const each of rows) each.hidden = !wanted.every((word) => each.textContent.toLowerCase().includes(word));
  byId("runs").replaceChildren(...rows);
  byId("none").hidden = rows.some((each) => !each.hidden);
  byId("none").textContent = runs.length ? `None of the ${runs.length} runs is like that.` : "There is no run yet: hookloop train cartpole makes one.";
}

async function look() {
  try {
    const found = await ask("/api/runs");
    state.well();
    document.title = `runs (${found.runs.length})`;
    // Rows that nobody needs to see again stay as they are: a link under the mouse is not taken away.
    if (JSON.stringify(found.runs) !== JSON.stringify(runs)) {
      runs = found.runs;
      show();
    } else if (!runs.length) show();
  } catch (error) {
    state.ill(error instanceof TypeError ? "The dashboard does not answer" : error.message);
  }
  setTimeout(look, document.hidden ? 5 * PAUSE_MS : PAUSE_MS);
}

byId("search").addEventListener("input", show);
look();
