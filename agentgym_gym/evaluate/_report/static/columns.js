
// The columns of the summary: which are shown, and the order of the runs.

const ordering = { by: "Run", descending: false };
const chosenColumns = new Map(); // by name, for columns that were switched on or off

/** Return the columns that have values: the name, the contents of a cell, the value to sort by. */
function columnsOf(runs) {
  const has = (test) => runs.some(({ summary }) => test(summary));
  const evaluated = runs.some(({ by_step: figures }) => !figures.step.length);
  const sum = (counts) => Object.values(counts ?? {}).reduce((total, count) => total + count, 0);
  const time = (s) => s.wall_seconds ?? s.seconds ?? s.timing?.seconds;
  const column = (name, content, value, { known = true, usual = true } = {}) => ({ name, content, value, known, usual });
  return [
    column("Success", successCell, (s) => s.success_rate),
    column("Score", (s) => withInterval(s.mean_score, s.score_interval), (s) => s.mean_score),
    column("pass@k, pass^k", passCell, (s) => s.pass_at?.[s.samples], { known: evaluated && has((s) => Object.keys(s.pass_at ?? {}).length > 1) }),
    column("Tasks solved", solvedCell, (s) => s.solved?.always.length, { known: evaluated && has((s) => s.solved && s.samples > 1) }),
    column("Turns", (s) => [decimal(s.mean_turns, 1)], (s) => s.mean_turns),
    column("Parse errors", (s) => [percent(s.parse_error_share)], (s) => s.parse_error_share),
    column("Tokens", (s) => tokensCell(s.tokens ?? {}), (s) => s.tokens?.completion, { known: has((s) => typeof s.tokens?.completion === "number") }),
    column("Cost", (s) => [costOf(s)], (s) => s.cost ?? s.timing?.cost, { known: has((s) => costOf(s) !== "–") }),
    column("Faults", (s) => kindsCell(s.faults), (s) => sum(s.faults), { usual: has((s) => sum(s.faults)) }),
    column("Agent faults", (s) => kindsCell(s.agent_faults), (s) => sum(s.agent_faults), { usual: has((s) => sum(s.agent_faults)) }),
    column("Episodes", (s) => [number(s.episodes)], (s) => s.episodes),
    column("Time", (s) => [seconds(time(s))], time),
  ].filter(({ known }) => known);
}

function columnShown({ name, usual }) {
  return chosenColumns.get(name) ?? usual;
}

/** Return runs in the chosen order. Runs without a value are last. */
function sorted(runs) {
  const { by, descending } = ordering;
  const column = columnsOf(runs).find(({ name }) => name === by);
  const ordered = [...runs];
  if (column) {
    const valueOf = ({ summary }) => column.value(summary) ?? (descending ? -Infinity : Infinity);
    ordered.sort((a, b) => (descending ? valueOf(b) - valueOf(a) || 0 : valueOf(a) - valueOf(b) || 0));
  } else if (descending) ordered.reverse();
  return ordered;
}

function sortedBy(name) {
  if (ordering.by !== name) return null;
  return ordering.descending ? "descending" : "ascending";
}

function sortButton(name) {
  const arrow = ordering.by === name ? (ordering.descending ? " ▾" : " ▴") : "";
  return el("button", { type: "button", class: "plain", title: `Sort by ${name.toLowerCase()}`, onclick: () => sortBy(name) }, name, el("span", { "aria-hidden": "true" }, arrow));
}

/** Sort by a column; a second time reverses the order. Metrics begin with their largest value. */
function sortBy(name) {
  ordering.descending = ordering.by === name ? !ordering.descending : name !== "Run";
  ordering.by = name;
  drawColumnMenu();
  state.groups.forEach(fillSummary);
}

/** Fill the list of orders and the list of columns. */
function drawColumnMenu() {
  const columns = columnsOf(state.runs);
  const order = document.getElementById("sort");
  order.replaceChildren(...["Run", ...columns.map(({ name }) => name)].map((name) => el("option", { value: name }, `Sort by ${name.toLowerCase()}`)));
  order.value = ordering.by;
  const boxes = columns.map((column) => {
    const box = el("input", { type: "checkbox", checked: columnShown(column) });
    box.addEventListener("change", () => {
      chosenColumns.set(column.name, box.checked);
      state.groups.forEach(fillSummary);
    });
    return el("label", {}, box, column.name);
  });
  document.getElementById("column-list").replaceChildren(...boxes);
}
