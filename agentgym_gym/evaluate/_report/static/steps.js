
// Trainings: metrics over the training steps, and the step whose episodes the grid shows.

const MOST_AT_ONCE = 5000; // maximum number of episodes for showing all steps in the grid
const CHART = { width: 260, height: 130, left: 44, right: 10, top: 10, bottom: 22 };
const LINES = 4; // number of line colours before they repeat
const FIGURES = [
  ["success", "Success", (value) => decimal(value)],
  ["score", "Score", (value) => decimal(value)],
  ["turns", "Turns", (value) => decimal(value, 1)],
  ["parse_errors", "Parse errors, share of replies", (value) => percent(value)],
  ["faults", "Faults, share of episodes", (value) => percent(value)],
];
const SHARES = new Set(["success"]); // drawn from 0 to 1
const markers = []; // functions that mark the selected step in a chart

/** Return the phase of a run, training or validation, and the step of its summary. */
function phaseOf(run, last = false) {
  const steps = run.by_step.step;
  if (!steps.length && !run.facts.phase) return null;
  const of = last && steps.length ? `, step ${steps.at(-1)}` : "";
  return el("span", { class: "tag" }, said(run.facts.phase ?? "training"), of);
}

/** Return the charts of a group of runs, with a line for each run, or null if no run is a training. */
function stepsOf(group) {
  const runs = group.runs.filter(({ by_step: figures }) => figures.step.length);
  if (!runs.length) return null;
  const key = el("p", { class: "chart-key" }, ...runs.map((run, at) => el("span", { class: "chart-run" }, swatch(run, at), badge(run), phaseOf(run))));
  const charts = FIGURES.map((figure) => chartOf(runs, ...figure));
  const table = el("details", { class: "made" }, el("summary", {}, "Figures of each training step"));
  table.addEventListener("toggle", () => {
    if (table.open && !table.querySelector("table")) table.append(tableOf(runs));
  });
  return el("div", { class: "steps" }, el("h4", {}, "Over the training steps"), key, el("div", { class: "charts" }, ...charts), table);
}

function classOf(run, at) {
  return `line line-${at % LINES}${run.facts.phase === "validation" ? " validation" : ""}`;
}

function swatch(run, at) {
  return svg("svg", { class: "swatch", viewBox: "0 0 28 8", "aria-hidden": "true" }, svg("line", { class: classOf(run, at), x1: 1, y1: 4, x2: 27, y2: 4 }));
}

function chartOf(runs, name, label, format) {
  const values = runs.flatMap(({ by_step: figures }) => figures[name]).filter((value) => value !== null);
  const steps = runs.flatMap(({ by_step: figures }) => figures.step);
  const [first, last] = [Math.min(...extremes(steps)), Math.max(...extremes(steps))];
  const low = Math.min(0, ...extremes(values));
  const highest = Math.max(...extremes(values));
  const high = SHARES.has(name) || highest <= low ? low + 1 : highest;
  const { width, height, left: x0, right, top, bottom } = CHART;
  const x = (step) => (last === first ? (x0 + width - right) / 2 : x0 + ((width - right - x0) * (step - first)) / (last - first));
  const y = (value) => height - bottom - ((height - bottom - top) * (value - low)) / (high - low);
  const drawn = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": toldOf(runs, name, label, format) });
  for (const value of values.length ? [low, high] : []) {
    drawn.append(svg("line", { class: "tick", x1: x0, x2: width - right, y1: y(value), y2: y(value) }));
    drawn.append(svg("text", { x: x0 - 6, y: y(value) + 4, "text-anchor": "end" }, format(value)));
  }
  drawn.append(svg("text", { x: x(first), y: height - 6, "text-anchor": last === first ? "middle" : "start" }, String(first)));
  if (last !== first) drawn.append(svg("text", { x: x(last), y: height - 6, "text-anchor": "end" }, String(last)));
  const marker = svg("line", { class: "marker", y1: top, y2: height - bottom });
  drawn.append(marker);
  markers.push(() => {
    marker.classList.toggle("none", state.step === null || state.step < first || state.step > last);
    for (const end of ["x1", "x2"]) marker.setAttribute(end, x(state.step ?? first));
  });
  runs.forEach((run, at) => drawn.append(...lineOf(run, at, name, x, y)));
  drawn.addEventListener("click", (event) => {
    const box = drawn.getBoundingClientRect();
    const asked = ((event.clientX - box.left) / box.width) * width;
    showStep(state.steps.reduce((best, step) => (Math.abs(x(step) - asked) < Math.abs(x(best) - asked) ? step : best)));
  });
  return el("figure", {}, el("figcaption", {}, label), drawn);
}

/** Return the minimum and maximum of numbers, which may be too many for function arguments. */
function extremes(values) {
  const ends = [Infinity, -Infinity];
  for (const value of values) {
    ends[0] = Math.min(ends[0], value);
    ends[1] = Math.max(ends[1], value);
  }
  return values.length ? ends : [0];
}

/** Return the line of a run, with gaps for missing values, and with points if they are few. */
function lineOf(run, at, name, x, y) {
  const { step: steps, [name]: values } = run.by_step;
  let path = "";
  let drawing = false;
  steps.forEach((step, place) => {
    const value = values[place];
    if (value !== null) path += `${drawing ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    drawing = value !== null;
  });
  const parts = [svg("path", { class: classOf(run, at), d: path })];
  if (steps.length > 40) return parts;
  steps.forEach((step, place) => {
    if (values[place] === null) return;
    parts.push(svg("circle", { class: classOf(run, at), cx: x(step), cy: y(values[place]), r: 2.5 }));
  });
  return parts;
}

/** Describe a chart in words: the first and the last value of each run. */
function toldOf(runs, name, label, format) {
  const parts = runs.map((run) => {
    const { step: steps, [name]: values } = run.by_step;
    const known = steps.map((step, place) => [step, values[place]]).filter(([, value]) => value !== null);
    if (!known.length) return `${run.letter} none`;
    const ends = known.length > 1 ? [known[0], known.at(-1)] : known;
    return `${run.letter} ${ends.map(([step, value]) => `${format(value)} at step ${step}`).join(", ")}`;
  });
  return plain(`${label}: ${parts.join("; ")}`);
}

function tableOf(runs) {
  const heads = ["Step", "Run", "Episodes", ...FIGURES.map(([, label]) => label)];
  const rows = runs.flatMap((run) => run.by_step.step.map((step, place) => [step, run, place]));
  rows.sort(([a, one], [b, other]) => a - b || one.place - other.place);
  const body = rows.map(([step, run, place]) => {
    const choose = el("button", { type: "button", disabled: !state.steps.includes(step), onclick: () => showStep(step) }, String(step));
    const values = FIGURES.map(([name, , format]) => el("td", {}, run.by_step[name][place] === null ? "–" : format(run.by_step[name][place])));
    return el("tr", {}, el("th", { scope: "row" }, choose), el("td", {}, badge(run)), el("td", {}, number(run.by_step.episodes[place])), ...values);
  });
  const head = el("thead", {}, el("tr", {}, ...heads.map((each) => el("th", { scope: "col" }, each))));
  return el("div", { class: "by-step", tabindex: "0", role: "region", "aria-label": "Figures of each training step" }, el("table", {}, head, el("tbody", {}, ...body)));
}

/** Fill the list of steps, if there are any. */
function drawSteps() {
  const list = document.getElementById("step");
  list.hidden = !state.steps.length;
  list.replaceChildren();
  const all = state.runs.reduce((sum, run) => sum + run.cells.length, 0);
  if (all <= MOST_AT_ONCE) list.append(el("option", { value: "" }, "All steps"));
  list.append(...state.steps.map((step) => el("option", { value: String(step) }, `Step ${step}`)));
  list.value = String(state.step ?? "");
  for (const show of markers) show();
}

/** Show the episodes of a training step in the grid; null shows all steps. */
function showStep(step) {
  state.step = step;
  document.getElementById("step").value = String(step ?? "");
  state.groups.forEach(fill);
  drawGrid();
  if (state.open && ofStep(state.open)) mark(state.open, true);
  for (const show of markers) show();
}

function nextStep(by) {
  if (!state.steps.length) return;
  const at = state.step === null ? (by > 0 ? -1 : state.steps.length) : state.steps.indexOf(state.step);
  showStep(state.steps[Math.min(state.steps.length - 1, Math.max(0, at + by))]);
}
