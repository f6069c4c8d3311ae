
// The filters of the grid.

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

/** Fill the list of kinds of failures with those that occur. */
function drawFailureFilter() {
  const counts = new Map();
  for (const run of state.runs) {
    for (const cell of run.cells.filter(ofStep)) for (const kind of failuresOf(cell)) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  const list = document.getElementById("failure-filter");
  const kinds = Object.keys(state.index.failures).filter((kind) => counts.has(kind) || kind === state.failure);
  const options = kinds.map((kind) => el("option", { value: kind }, `${kind.replaceAll("_", " ")} (${(counts.get(kind) ?? 0).toLocaleString("en")})`));
  list.replaceChildren(el("option", { value: "" }, "All failures"), ...options);
  list.value = state.failure;
  list.hidden = !kinds.length;
}

/** Show only the episodes with a kind of failure; "" shows all. */
function chooseFailure(kind) {
  state.failure = kind;
  document.getElementById("failure-filter").value = kind;
  filterGrid();
  if (kind) document.getElementById("grid").scrollIntoView();
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
      row.shown = named && wanted && cells.some(passes);
      shown += row.shown ? 1 : 0;
      all += 1;
    }
    layOut(group);
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
