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

// What the server says, or an error in its words.
export async function ask(path) {
  const answer = await fetch(path, { credentials: "same-origin" });
  const isJson = (answer.headers.get("content-type") || "").startsWith("application/json");
  const found = isJson ? await answer.json() : { fault: (await answer.text()).trim() };
  if (!answer.ok) throw new Error(found.fault || `The server answered ${answer.status}.`);
  return found;
}

// Says since when nothing has been heard; silence is the one thing that a page must not hide.
export function connection() {
  const place = byId("connection");
  let heard = Date.now();
  let fault = "";
  const tell = () => {
    const silent = Math.round((Date.now() - heard) / 1000);
    const words = fault || (silent > 8 ? "The dashboard does not answer" : "");
    place.textContent = words && `${words}; what is shown is of ${silent} s ago.`;
  };
  setInterval(tell, 1000);
  return {
    well() { heard = Date.now(); fault = ""; tell(); },
    ill(words) { fault = words.replace(/\.$/, ""); tell(); },
  };
}
