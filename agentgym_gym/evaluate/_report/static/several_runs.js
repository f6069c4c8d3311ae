
// Several runs: success by environment and model, the comparison of two runs, and failures by kind. All figures
// are computed by the command that made the page.

const comparison = { a: null, b: null, pairs: null };
let matrixOrder = null; // number of the column by which the matrix is sorted

/** Show one of the views above the tasks. */
function showView(name) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const chosen = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    document.getElementById(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  if (name === "runs") fitSummary();
  if (name === "compare") drawComparison();
}

function listenToTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const tab of tabs) tab.addEventListener("click", () => showView(tab.id.slice(4)));
  document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const usable = tabs.filter(({ hidden }) => !hidden);
    const next = usable[(usable.indexOf(document.activeElement) + by + usable.length) % usable.length];
    next.focus();
    showView(next.id.slice(4));
  });
}

function drawViews() {
  const { matrix } = state.index;
  const several = matrix.rows.reduce((sum, { runs }) => sum + Object.keys(runs).length, 0) > 1;
  const usable = {
    runs: true,
    matrix: several,
    compare: comparableGroups().length > 0,
    plot: several && state.runs.some(({ summary }) => typeof summary.success_rate === "number"),
    failures: state.runs.some(({ summary }) => Object.keys(summary.failures).length),
  };
  for (const [name, wanted] of Object.entries(usable)) document.getElementById(`tab-${name}`).hidden = !wanted;
  const open = document.querySelector("[role=tab][aria-selected=true]");
  if (open.hidden) showView("runs");
  drawMatrix(matrix);
  drawPlots();
  drawFailures();
  drawRunLists();
  if (open.id === "tab-compare" && !open.hidden) drawComparison();
}

function scrolled(...children) {
  return el("div", { class: "scroll" }, ...children);
}

/** Show success by model and environment, as `agentgym table`. */
function drawMatrix({ models, rows, notes }) {
  const runOf = (model, row) => state.runs[row.runs[model] ?? NaN];
  const rate = (run) => run?.summary.success_rate ?? -1;
  const ordered = matrixOrder === null || !rows[matrixOrder] ? models : [...models].sort((a, b) => rate(runOf(b, rows[matrixOrder])) - rate(runOf(a, rows[matrixOrder])));
  const heads = rows.map((row, at) => {
    const sort = () => {
      matrixOrder = matrixOrder === at ? null : at;
      drawMatrix({ models, rows, notes });
    };
    const chosen = matrixOrder === at;
    const title = el("button", { type: "button", class: "plain", title: "Sort by this column", onclick: sort }, said(row.environment), chosen ? " ▾" : "");
    const told = ["split", "protocol"].filter((name) => row[name] !== null).map((name) => el("span", { class: "muted range" }, `${name} `, said(row[name])));
    return el("th", { scope: "col", "aria-sort": chosen ? "descending" : null }, title, ...told);
  });
  const best = rows.map((row) => Math.max(...models.map((model) => rate(runOf(model, row)))));
  const body = ordered.map((model) => {
    const cells = rows.map((row, at) => {
      const run = runOf(model, row);
      if (!run || typeof run.summary.success_rate !== "number") return el("td", { class: "muted" }, "–");
      const cell = el("td", { class: rate(run) === best[at] && models.length > 1 ? "best" : null }, ...successCell(run.summary));
      const k = run.summary.samples;
      if (k > 1) cell.append(el("span", { class: "muted range" }, `pass@${k} ${decimal(run.summary.pass_at?.[k])}`));
      return cell;
    });
    return el("tr", {}, el("th", { scope: "row" }, said(model)), ...cells);
  });
  const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Model"), ...heads));
  const told = el("p", { class: "muted note" }, "Success with its 95 % interval. The best success of an environment is in bold. These are the figures of agentgym table.");
  const more = notes.map((note) => el("p", { class: "muted note" }, said(note), "."));
  document.getElementById("view-matrix").replaceChildren(el("div", { class: "card" }, scrolled(el("table", { class: "data" }, head, el("tbody", {}, ...body))), told, ...more));
}

/** Return the groups with at least two runs of agentgym eval. */
function comparableGroups() {
  return state.groups.filter(({ runs }) => runs.filter(isEvaluation).length > 1);
}

function isEvaluation(run) {
  return run.facts.phase === undefined;
}

function runOption(run) {
  return el("option", { value: run.letter }, plain(`${run.letter} · ${run.agent}`));
}

/** Fill the lists of runs to compare: all runs, and those that are comparable with the chosen one. */
function drawRunLists() {
  const groups = comparableGroups();
  if (!groups.length) return;
  const letters = groups.flatMap(({ runs }) => runs.filter(isEvaluation)).map(({ letter }) => letter);
  if (!letters.includes(comparison.a)) comparison.a = letters[0];
  const own = groups.find(({ runs }) => runs.some(({ letter }) => letter === comparison.a));
  const others = own.runs.filter((run) => isEvaluation(run) && run.letter !== comparison.a);
  if (!others.some(({ letter }) => letter === comparison.b)) comparison.b = others[0].letter;
  const [first, second] = ["compare-a", "compare-b"].map((id) => document.getElementById(id));
  first.replaceChildren(...groups.map((group) => el("optgroup", { label: plain(playedOn(group)) }, ...group.runs.filter(isEvaluation).map(runOption))));
  second.replaceChildren(...others.map(runOption));
  first.value = comparison.a;
  second.value = comparison.b;
}

function chooseRun(key, letter) {
  comparison[key] = letter;
  drawRunLists();
  drawComparison();
}

/** Show the comparison of the two chosen runs, as `agentgym compare`. */
async function drawComparison() {
  const place = document.getElementById("comparison");
  const asked = [comparison.a, comparison.b].join();
  if (!comparison.pairs) place.replaceChildren(el("p", { class: "muted" }, "Reading the comparisons…"));
  comparison.pairs ??= unpack("comparisons");
  let pairs;
  try {
    pairs = await comparison.pairs;
  } catch (error) {
    comparison.pairs = null; // so that it can be retried
    place.replaceChildren(el("p", { class: "notice" }, `The comparisons cannot be read: ${error.message}`));
    return;
  }
  if (asked !== [comparison.a, comparison.b].join()) return;
  const pair = pairs.find(({ a, b }) => [a, b].sort().join() === [comparison.a, comparison.b].sort().join());
  if (!pair) {
    place.replaceChildren(el("p", { class: "muted" }, "There are too many runs to compare all pairs. Choose the first run, or use agentgym compare."));
    return;
  }
  place.replaceChildren(...comparisonOf(pair));
}

function comparisonOf(pair) {
  const [a, b] = [pair.a, pair.b].map((letter) => state.runs.find((run) => run.letter === letter));
  const several = pair.pairs > 1;
  const heads = ["", "Tasks", `${b.letter} − ${a.letter}`, "Difference", "95 %", "p", several ? `p (Holm, ${pair.pairs} pairs)` : null, "Won", "Lost", "Equal"].filter((each) => each !== null);
  const row = (name, paired) => {
    const interval = paired.interval ? `${signed(paired.interval[0])} to ${signed(paired.interval[1])}` : "–";
    const p = paired.p_value_holm ?? paired.p_value;
    const values = [
      number(paired.tasks),
      paired.tasks ? `${decimal(paired.b)} − ${decimal(paired.a)}` : "–",
      el("span", { class: paired.difference === null || p >= 0.05 ? null : paired.difference > 0 ? "good" : "bad" }, signed(paired.difference)),
      interval,
      pValue(paired.p_value),
      ...(several ? [pValue(paired.p_value_holm)] : []),
      number(paired.wins),
      number(paired.losses),
      number(paired.ties),
    ];
    return el("tr", {}, el("th", { scope: "row" }, name), ...values.map((value) => el("td", {}, value)));
  };
  const head = el("thead", {}, el("tr", {}, ...heads.map((each) => el("th", { scope: "col" }, each))));
  const table = el("table", { class: "data" }, head, el("tbody", {}, row("Success", pair.success), row("Score", pair.score)));
  const names = el("p", { class: "pair" }, badge(b), said(b.agent), el("span", { class: "muted" }, "compared with"), badge(a), said(a.agent));
  const told = "p: paired permutation test over tasks, two-sided. Won: tasks on which the first-named run is better.";
  const parts = [names, scrolled(table), el("p", { class: "muted note" }, told)];
  parts.push(changed(`Fixed: solved in ${b.letter} and not in ${a.letter}`, pair.fixed, b), changed(`Broken: solved in ${a.letter} and not in ${b.letter}`, pair.broken, b));
  const left = Object.entries(pair.left_out).map(([reason, tasks]) => `${counted(tasks.length, "task")} left out: ${reason}`);
  for (const line of [...pair.warnings.map((each) => `Warning: ${each}`), ...left]) parts.push(el("p", { class: "muted note" }, said(line), "."));
  return parts;
}

/** List tasks, each as a button that opens an episode of the run. */
function changed(title, tasks, run) {
  const list = el("details", { class: "made", open: tasks.length > 0 && tasks.length <= LISTED }, el("summary", {}, `${title}: ${counted(tasks.length, "task")}`));
  const buttons = tasks.map((task) => {
    const cell = run.cells.find((each) => String(each.task) === String(task));
    return el("button", { type: "button", disabled: !cell, onclick: () => openCell(cell) }, String(task));
  });
  list.append(el("p", { class: "task-list" }, ...buttons));
  return list;
}

const LISTED = 40; // maximum number of tasks in a list that is open

function signed(value) {
  return typeof value === "number" ? `${value < 0 ? "−" : "+"}${decimal(Math.abs(value))}` : "–";
}

function pValue(value) {
  if (typeof value !== "number") return "–";
  return value < 0.001 ? "< 0.001" : value.toFixed(3);
}

/** Show the number of unsolved episodes by kind of failure; a number filters the tasks. */
function drawFailures() {
  const { failures: definitions, failure_endings: endings } = state.index;
  const cards = state.groups.map((group) => {
    const kinds = Object.keys(definitions).filter((kind) => group.runs.some(({ summary }) => summary.failures[kind]));
    const heads = kinds.map((kind) => el("th", { scope: "col", title: definitions[kind] }, kind.replaceAll("_", " ")));
    const rows = group.runs.map((run) => {
      const counts = run.summary.failures;
      const unsolved = endings.reduce((sum, kind) => sum + (counts[kind] ?? 0), 0);
      const cells = kinds.map((kind) => {
        if (!counts[kind]) return el("td", { class: "muted" }, "–");
        const choose = el("button", { type: "button", class: "plain", title: "Show these episodes", onclick: () => chooseFailure(kind) }, number(counts[kind]));
        return el("td", {}, choose, el("span", { class: "muted range" }, percent(counts[kind] / unsolved)));
      });
      return el("tr", {}, el("th", { scope: "row" }, el("span", { class: "run" }, badge(run), said(run.agent))), el("td", {}, number(unsolved)), ...cells);
    });
    const head = el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Run"), el("th", { scope: "col" }, "unsolved"), ...heads));
    const key = kinds.map((kind) => [el("dt", {}, kind.replaceAll("_", " ")), el("dd", {}, definitions[kind])]).flat();
    const meaning = el("details", { class: "made" }, el("summary", {}, "What the kinds mean"), el("dl", { class: "kinds-key" }, ...key));
    return el("div", { class: "card" }, el("h3", {}, said(playedOn(group))), scrolled(el("table", { class: "data" }, head, el("tbody", {}, ...rows))), meaning);
  });
  document.getElementById("view-failures").replaceChildren(...cards);
}
