// What all pages share: elements, figures in words, and asking the server.

export const byId = (id) => document.getElementById(id);

export function element(kind, text, { name, parent } = {}) {
  const made = document.createElement(kind);
  if (text !== undefined && text !== null) made.textContent = text;
  if (name) made.className = name;
  if (parent) parent.append(made);
  return made;
}

// A row of texts and elements; those under "number" stand to the right.
export function row(cells, numbers = []) {
  const made = document.createElement("tr");
  cells.forEach((cell, k) => {
    const place = element("td", undefined, { name: numbers.includes(k) ? "number" : "", parent: made });
    place.append(cell instanceof Node ? cell : String(cell ?? ""));
  });
  return made;
}

export const count = (value) => (value === null || value === undefined ? "-" : Math.round(value).toLocaleString("en"));
export const share = (value) => (value === null || value === undefined ? "-" : `${(100 * value).toFixed(1)} %`);

export function short(value) {
  if (value === null || value === undefined) return "-";
  if (typeof value !== "number") return String(value);
  return Math.abs(value) >= 10000 && Number.isInteger(value) ? count(value) : String(Number(value.toPrecision(4)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "-";
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export const moment = (seconds) => (seconds ? new Date(1000 * seconds).toLocaleString() : "-");

// Whether something differs from what was shown in a place before: what has not changed is not made anew, so that nothing
// is taken from under a mouse, a finger or a reader.
export function isNew(place, found) {
  const text = JSON.stringify(found);
  if (place.dataset.shown === text) return false;
  place.dataset.shown = text;
  return true;
}

export function fill(place, found, make) {
  if (isNew(place, found)) place.replaceChildren(...make(found));
}

export const UNHEARD = "The dashboard does not answer";
const PATIENCE_MS = 30000;

// What the server says, or an error in its words; who is not let in is told so by "isRefused".
export async function ask(path) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", signal: AbortSignal.timeout(PATIENCE_MS) });
  } catch (error) {
    throw new Error(UNHEARD, { cause: error });
  }
  const isJson = (answer.headers.get("content-type") || "").startsWith("application/json");
  const found = isJson ? await answer.json() : { fault: (await answer.text()).trim() };
  if (answer.ok) return found;
  throw Object.assign(new Error(found.fault || `The server answered ${answer.status}.`), { isRefused: answer.status === 401 });
}

// Says since when nothing has been heard; silence is the one thing that a page must not hide. It is the same text for as
// long as it lasts, which is read out once.
export function connection(onSilence = () => {}) {
  const place = byId("connection");
  let heard = Date.now();
  let fault = "";
  const tell = () => {
    const isSilent = !document.hidden && Date.now() - heard > 10000;
    const words = fault || (isSilent ? UNHEARD : "");
    const text = words && `${words.replace(/\.$/, "")}; what is shown is of ${new Date(heard).toLocaleTimeString()}.`;
    if (place.textContent !== text) place.textContent = text;
    if (isSilent) onSilence();
  };
  setInterval(tell, 1000);
  return {
    well() { heard = Date.now(); fault = ""; tell(); },
    ill(words) { fault = words; tell(); },
    // A page that nobody has looked at has asked for nothing.
    awake() { heard = Date.now(); },
  };
}
