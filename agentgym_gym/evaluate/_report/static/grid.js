
// The grid: a row for each task, a column for each run, a cell for each sample. Rows exist as elements only near
// the viewport, because a grid may have 100,000 cells.

const CHUNK = 40; // maximum number of rows that are made together
const CHUNK_CELLS = 800; // desired number of cells in these rows
const NEAR = 400; // pixels from the viewport at which rows are made
const ROW = 34; // estimated height of a row in pixels
const CELL = 28; // pixels from one cell to the next
const WIDEST = 8; // samples in a row
const GAP = 14; // pixels between two columns
const UPRIGHT = 84; // column width in pixels below which names are written vertically
const NARROW = 290; // column width in pixels that leaves room for goals in half a page
const GOAL = 200; // pixels for goals without which the grid scrolls sideways

function drawGrid() {
  for (const group of state.groups) group.near?.disconnect();
  const place = document.getElementById("grids");
  place.replaceChildren(...state.groups.filter(({ tasks }) => tasks.length).map(gridOf));
  drawOutcomes();
  drawFailureFilter();
  filterGrid();
}

function gridOf(group) {
  Object.assign(group, { samples: 1, rowHeight: ROW, chunks: [], near: null });
  group.heads = new Map();
  group.widths = new Map();
  for (const run of group.runs) {
    const samples = Math.max(1, ...group.tasks.map((row) => row.cells.get(run)?.length ?? 0));
    group.samples = Math.max(group.samples, samples);
    group.widths.set(run, Math.max(group.runs.length > 6 ? 30 : 88, Math.min(samples, WIDEST) * CELL + 2));
    const name = el("span", { class: "column-name" }, said(run.agent));
    group.heads.set(run, el("div", { class: group.widths.get(run) < UPRIGHT ? "column upright" : "column", role: "columnheader", title: plain(run.agent) }, badge(run), name));
  }
  const head = el("div", { class: "row head", role: "row" }, el("div", { class: "goal", role: "columnheader" }, "Task"), ...group.heads.values());
  const table = el("div", { class: "cells-table", role: "grid", "aria-label": plain(`Episodes in ${playedOn(group)}`) });
  table.append(el("div", { role: "rowgroup", class: "heads" }, head));
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("button")?.cell;
    if (cell) openCell(cell);
  });
  table.addEventListener("keydown", moveInGrid);
  table.addEventListener("focusin", (event) => {
    if (event.target.cell) makeStop(event.target.cell);
  });
  group.table = table;
  group.card = el("div", { class: "card" }, el("h3", {}, said(playedOn(group))), table);
  if (widthOf(group) > NARROW) group.card.classList.add("wide");
  if (group.tasks.every(({ goal }) => goal === null)) group.card.classList.add("without-goals");
  return group.card;
}

function shownRuns(group) {
  return group.runs.filter(({ hidden }) => !hidden);
}

function widthOf(group) {
  return shownRuns(group).reduce((sum, run) => sum + group.widths.get(run) + GAP, 0);
}

/** Let grids scroll sideways if their columns do not fit. */
function fitGrids() {
  for (const group of state.groups) {
    if (!group.table) continue;
    const scrolls = widthOf(group) + GOAL > group.card.clientWidth;
    if (scrolls !== group.card.classList.contains("scrolls")) layOut(group);
  }
}

/** Replace the rows of a group by those that pass the filters. */
function layOut(group) {
  if (!group.table) return;
  const focused = group.table.contains(document.activeElement) ? document.activeElement.cell : null;
  group.near?.disconnect();
  for (const chunk of group.chunks) drop(chunk);
  const runs = shownRuns(group);
  for (const [run, head] of group.heads) head.hidden = run.hidden;
  group.table.style.setProperty("--widths", runs.map((run) => `${group.widths.get(run)}px`).join(" ") || "1px");
  group.card.classList.toggle("scrolls", widthOf(group) + GOAL > group.card.clientWidth);
  const rows = group.tasks.filter(({ shown }) => shown);
  const size = Math.min(CHUNK, Math.max(2, Math.floor(CHUNK_CELLS / (group.samples * Math.max(1, runs.length)))));
  group.near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) (isIntersecting ? fillChunk : emptyChunk)(target);
  }, { root: group.card.classList.contains("scrolls") ? group.table : null, rootMargin: `${NEAR}px 1000000px` }); // wherever it is scrolled to sideways
  group.chunks = [];
  for (let from = 0; from < rows.length; from += size) {
    const chunk = el("div", { class: "chunk", role: "rowgroup" });
    Object.assign(chunk, { group, rows: rows.slice(from, from + size), filled: false });
    for (const row of chunk.rows) row.chunk = chunk;
    group.chunks.push(chunk);
  }
  group.table.setAttribute("aria-rowcount", String(rows.length + 1));
  group.table.append(...group.chunks);
  if (rows.length) {
    fillChunk(group.chunks[0]);
    group.rowHeight = group.chunks[0].offsetHeight / group.chunks[0].rows.length || ROW;
  }
  for (const chunk of group.chunks) {
    if (!chunk.filled) chunk.style.minHeight = `${chunk.rows.length * group.rowHeight}px`;
    group.near.observe(chunk);
  }
  if (focused && left(focused)) buttonOf(focused)?.focus({ preventScroll: true });
}

function fillChunk(chunk) {
  if (chunk.filled) return;
  chunk.filled = true;
  chunk.style.minHeight = "";
  chunk.replaceChildren(...chunk.rows.map((row) => rowElement(chunk.group, row)));
}

/** Remove the rows of a chunk, except those with the focus or the tab stop. */
function emptyChunk(chunk) {
  const stop = chunk.group.stop;
  if (!chunk.filled || chunk.contains(document.activeElement) || (stop && stop.row.chunk === chunk)) return;
  chunk.style.minHeight = `${chunk.offsetHeight}px`;
  chunk.filled = false;
  forget(chunk);
  chunk.replaceChildren();
}

function drop(chunk) {
  forget(chunk);
  for (const row of chunk.rows) row.chunk = null;
  chunk.remove();
}

function forget(chunk) {
  for (const row of chunk.rows) {
    for (const cells of row.cells.values()) for (const cell of cells) cell.button = null;
  }
}

function rowElement(group, row) {
  row.samples = group.samples;
  const goal = el("div", { class: "goal", role: "rowheader" }, el("span", { class: "task" }, String(row.task)));
  if (row.goal !== null) goal.append(said(row.goal, { class: "goal-text", title: plain(row.goal) }));
  const element = el("div", { class: "row", role: "row" }, goal);
  for (const run of shownRuns(group)) {
    const cells = el("div", { class: "cells", "data-run": run.place, role: "presentation" });
    for (const cell of row.cells.get(run) ?? []) {
      cell.button = button(cell, { tabindex: group.stop === cell ? "0" : "-1" });
      if (!passes(cell)) cell.button.classList.add("dim");
      if (cell === state.open) mark(cell, true);
      cells.append(cell.button);
    }
    element.append(cells);
  }
  return element;
}

function button(cell, properties = {}) {
  const { sign } = OUTCOMES[cell.outcome];
  const label = describe(cell);
  const made = el("button", { type: "button", class: `cell ${cell.outcome}`, role: "gridcell", title: label, "aria-label": label, ...properties }, sign);
  made.cell = cell;
  return made;
}

/** Return the button of a cell in the grid, which is made if it is not there; null if a filter hides it. */
function buttonOf(cell) {
  if (!cell.button && cell.row.chunk) fillChunk(cell.row.chunk);
  return cell.button;
}

/** Make a cell the tab stop of its grid. */
function makeStop(cell) {
  const { group } = cell.row;
  if (group.stop?.button) group.stop.button.tabIndex = -1;
  group.stop = cell;
  const made = buttonOf(cell);
  if (made) made.tabIndex = 0;
}
