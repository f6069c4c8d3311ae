
// The grid: a row for each task, a column for each run, a cell for each sample.

const CHUNK = 40; // rows that are laid out together when they approach the viewport
const CELL = 28; // pixels from one cell to the next
const WIDEST = 8; // samples in a row
const GAP = 14; // pixels between two columns
const NAMED_COLUMNS = 6; // with more runs, columns show only their letters
const NARROW = 290; // column width in pixels that leaves room for goals in half a page
const PAGE = 10; // rows per Page Down

function drawGrid() {
  const place = document.getElementById("grids");
  place.replaceChildren(...state.groups.filter(({ tasks }) => tasks.length).map(gridOf));
  drawOutcomes();
  filterGrid();
}

function gridOf(group) {
  Object.assign(group, { samples: 1, hiddenBefore: null });
  const widths = group.runs.map((run) => {
    const samples = Math.max(1, ...group.tasks.map((row) => row.cells.get(run)?.length ?? 0));
    group.samples = Math.max(group.samples, samples);
    return Math.max(group.runs.length > NAMED_COLUMNS ? 30 : 88, Math.min(samples, WIDEST) * CELL + 2);
  });
  const total = widths.reduce((sum, width) => sum + width + GAP, 0);
  const heads = group.runs.map((run) =>
    el("div", { class: "column", role: "columnheader", "data-run": run.place }, badge(run), el("span", { class: "column-name" }, said(run.agent))),
  );
  const head = el("div", { class: "row head", role: "row" }, el("div", { class: "goal", role: "columnheader" }, "Task"), ...heads);
  const table = el("div", { class: "cells-table", role: "grid", "aria-label": plain(`Episodes in ${playedOn(group)}`) });
  table.style.setProperty("--widths", widths.map((width) => `${width}px`).join(" "));
  table.style.setProperty("--total", `${total}px`);
  table.append(el("div", { role: "rowgroup", class: "heads" }, head));
  for (let from = 0; from < group.tasks.length; from += CHUNK) {
    const rows = group.tasks.slice(from, from + CHUNK);
    const chunk = el("div", { class: "chunk", role: "rowgroup" }, ...rows.map((row) => rowElement(group, row)));
    chunk.style.setProperty("contain-intrinsic-height", `auto ${rows.length * 34}px`);
    table.append(chunk);
  }
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.cell;
    if (cell) openCell(cell);
  });
  table.addEventListener("keydown", moveInGrid);
  table.addEventListener("focusin", (event) => {
    if (event.target.cell) makeStop(event.target.cell);
  });
  group.table = table;
  const classes = ["card"];
  if (total > NARROW) classes.push("wide");
  if (group.runs.length > NAMED_COLUMNS) classes.push("narrow-columns");
  if (group.tasks.every(({ goal }) => goal === null)) classes.push("without-goals");
  return el("div", { class: classes.join(" ") }, el("h3", {}, said(playedOn(group))), table);
}

function rowElement(group, row) {
  row.samples = group.samples;
  const goal = el("div", { class: "goal", role: "rowheader" }, el("span", { class: "task" }, String(row.task)));
  if (row.goal !== null) goal.append(said(row.goal, { class: "goal-text", title: plain(row.goal) }));
  row.element = el("div", { class: "row", role: "row" }, goal);
  for (const run of group.runs) {
    const cells = el("div", { class: "cells", "data-run": run.place, role: "presentation" });
    for (const cell of row.cells.get(run) ?? []) cells.append(button(cell));
    row.element.append(cells);
  }
  return row.element;
}

function button(cell, properties = {}) {
  const { sign } = OUTCOMES[cell.outcome];
  const label = describe(cell);
  const made = el(
    "button",
    { type: "button", class: `cell ${cell.outcome}`, role: "gridcell", tabindex: "-1", title: label, "aria-label": label, ...properties },
    sign,
  );
  made.cell = cell;
  if (!("aria-current" in properties)) cell.button ??= made;
  return made;
}

/** Make a cell the tab stop of its grid. */
function makeStop(cell) {
  const { group } = cell.row;
  if (group.stop) group.stop.button.tabIndex = -1;
  group.stop = cell;
  cell.button.tabIndex = 0;
}

function drawOutcomes() {
  const counts = new Map();
  for (const run of state.runs) {
    for (const { outcome } of run.cells.filter(ofStep)) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  const place = document.getElementById("outcomes");
  place.replaceChildren();
  for (const [outcome, { sign, label }] of Object.entries(OUTCOMES)) {
    if (!counts.has(outcome) && !state.outcomes.has(outcome)) continue;
    const chip = el(
      "button",
      { type: "button", class: "chip", "aria-pressed": String(state.outcomes.has(outcome)) },
      el("span", { class: `cell ${outcome}`, "aria-hidden": "true" }, sign),
      `${label} `,
      el("span", { class: "muted" }, (counts.get(outcome) ?? 0).toLocaleString("en")),
    );
    chip.addEventListener("click", () => {
      const wanted = !state.outcomes.has(outcome);
      if (wanted) state.outcomes.add(outcome);
      else state.outcomes.delete(outcome);
      chip.setAttribute("aria-pressed", String(wanted));
      filterGrid();
    });
    place.append(chip);
  }
}

/** Return how often the visible runs solved a task: `always`, `sometimes`, `never`, or null. */
function solvedHowOften(cells) {
  const scored = cells.filter(({ outcome }) => !["fault", "agent_fault", "unknown"].includes(outcome));
  const solved = scored.filter(({ outcome }) => outcome === "solved").length;
  if (!scored.length) return null;
  return solved === 0 ? "never" : solved === scored.length ? "always" : "sometimes";
}

/** Return whether the runs solved different shares of a task's samples. */
function runsDiffer(row) {
  const shares = new Set();
  for (const [run, cells] of row.cells) {
    const scored = cells.filter(({ outcome }) => !["fault", "agent_fault"].includes(outcome));
    if (run.hidden || !scored.length) continue;
    shares.add(scored.reduce((sum, cell) => sum + (cell.success ?? cell.score), 0) / scored.length);
  }
  return shares.size > 1;
}

function filterGrid() {
  const text = document.getElementById("filter").value.trim().toLowerCase();
  const which = document.getElementById("solved-filter").value;
  let shown = 0;
  let all = 0;
  for (const group of state.groups) {
    for (const row of group.tasks) {
      const cells = [...row.cells].flatMap(([run, each]) => (run.hidden ? [] : each));
      const named = !text || String(row.task) === text || (row.goal ?? "").toLowerCase().includes(text);
      const wanted = !which || (which === "differ" ? runsDiffer(row) : solvedHowOften(cells) === which);
      const met = !state.outcomes.size || cells.some(({ outcome }) => state.outcomes.has(outcome));
      row.shown = named && wanted && met && cells.length > 0;
      row.element.hidden = !row.shown;
      if (state.outcomes.size || row.dimmed) {
        for (const cell of cells) cell.button.classList.toggle("dim", !left(cell));
        row.dimmed = state.outcomes.size > 0;
      }
      shown += row.shown ? 1 : 0;
      all += 1;
    }
    hideRuns(group);
    const first = group.stop && left(group.stop) ? group.stop : firstLeft(group);
    if (first) makeStop(first);
  }
  const count = shown === all ? counted(all, "task") : `${shown.toLocaleString("en")} of ${counted(all, "task")}`;
  document.getElementById("count").textContent = count;
}

function firstLeft(group) {
  for (const row of group.tasks) {
    for (const cells of row.cells.values()) for (const cell of cells) if (left(cell)) return cell;
  }
  return null;
}

function hideRuns(group) {
  if (!group.table) return;
  const hidden = group.runs.map(({ hidden }) => hidden);
  if (String(hidden) === String(group.hiddenBefore ?? group.runs.map(() => false))) return;
  group.hiddenBefore = hidden;
  for (const run of group.runs) {
    for (const each of group.table.querySelectorAll(`[data-run="${run.place}"]`)) each.hidden = run.hidden;
  }
  const widths = group.table.style.getPropertyValue("--all-widths") || group.table.style.getPropertyValue("--widths");
  group.table.style.setProperty("--all-widths", widths);
  group.table.style.setProperty("--widths", widths.split(" ").filter((_, place) => !hidden[place]).join(" ") || "1px");
}

/** Return the visible rows of a group, each as the cells that can be opened. */
function shownRows(group) {
  return group.tasks
    .filter(({ shown }) => shown)
    .map((row) => group.runs.flatMap((run) => (run.hidden ? [] : (row.cells.get(run) ?? []))));
}

function moveInGrid(event) {
  const cell = event.target.cell;
  if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
  const rows = shownRows(cell.row.group);
  const at = rows.findIndex((row) => row.includes(cell));
  if (at < 0) return;
  const place = rows[at].indexOf(cell);
  const map = document.body.classList.contains("map");
  const keys = map
    ? { ArrowLeft: "ArrowUp", ArrowRight: "ArrowDown", ArrowUp: "ArrowLeft", ArrowDown: "ArrowRight" }
    : {};
  const row = (to) => {
    const found = rows[Math.min(rows.length - 1, Math.max(0, to))];
    return found[Math.min(place, found.length - 1)];
  };
  const target = {
    ArrowLeft: () => rows[at][place - 1],
    ArrowRight: () => rows[at][place + 1],
    ArrowUp: () => (at > 0 ? row(at - 1) : null),
    ArrowDown: () => (at + 1 < rows.length ? row(at + 1) : null),
    PageUp: () => row(at - PAGE),
    PageDown: () => row(at + PAGE),
    Home: () => rows[0][0],
    End: () => rows.at(-1).at(-1),
  }[keys[event.key] ?? event.key];
  if (!target) return;
  event.preventDefault();
  const to = target();
  if (to) {
    makeStop(to);
    to.button.focus();
  }
}
