
// The summary: a table for each environment, with a row for each run and a column for each metric.

const CARDS = 560; // pixels below which the tables are cards
const BAR = { width: 132, height: 20, from: 4, to: 128, middle: 10 };

/** Draw a proportion with its 95 % confidence interval as whiskers. */
function intervalBar(rate, interval) {
  const x = (share) => BAR.from + (BAR.to - BAR.from) * Math.min(1, Math.max(0, share));
  const line = (className, x1, y1, x2, y2) => svg("line", { class: className, x1, y1, x2, y2 });
  const drawn = svg("svg", { class: "bar", viewBox: `0 0 ${BAR.width} ${BAR.height}`, "aria-hidden": "true" });
  for (const share of [0, 0.5, 1]) drawn.append(line("tick", x(share), 2, x(share), 18));
  drawn.append(svg("rect", { class: "track", x: BAR.from, y: 7, width: BAR.to - BAR.from, height: 6, rx: 3 }));
  drawn.append(svg("rect", { class: "rate", x: BAR.from, y: 7, width: Math.max(0.01, x(rate) - BAR.from), height: 6, rx: 3 }));
  if (interval) {
    const [low, high] = interval.map(x);
    drawn.append(line("whisker", low, BAR.middle, high, BAR.middle));
    for (const end of [low, high]) drawn.append(line("whisker", end, 5, end, 15));
  }
  drawn.append(svg("circle", { class: "point", cx: x(rate), cy: BAR.middle, r: 3.5 }));
  return drawn;
}

function successCell({ success_rate: rate, success_interval: interval }) {
  if (typeof rate !== "number") return ["–"];
  const range = Array.isArray(interval) ? `${decimal(interval[0])} to ${decimal(interval[1])}` : "";
  return [
    el("span", { class: "main" }, decimal(rate)),
    intervalBar(rate, Array.isArray(interval) ? interval : null),
    range ? el("span", { class: "muted range", title: "95 % interval" }, range) : null,
  ];
}

function withInterval(value, interval) {
  if (!Array.isArray(interval)) return [decimal(value)];
  return [decimal(value), el("span", { class: "muted range", title: "95 % interval" }, `${decimal(interval[0])} to ${decimal(interval[1])}`)];
}

/** Show counts by kind: the sum, with the kinds below it. */
function kindsCell(counts) {
  const kinds = Object.entries(counts ?? {});
  const sum = kinds.reduce((total, [, count]) => total + count, 0);
  if (!sum) return ["0"];
  const each = kinds.map(([kind, count]) => el("span", { class: "kind" }, `${count} `, said(kind)));
  return [el("span", { class: "bad" }, String(sum)), el("span", { class: "muted kinds" }, ...each)];
}

/** Show pass@k and pass^k for the smallest and largest k above 1. For k = 1, both equal the success rate. */
function passCell(summary) {
  const parts = [];
  for (const [key, mark] of [["pass_at", "pass@"], ["pass_hat", "pass^"]]) {
    const above = Object.entries(summary[key] ?? {}).filter(([k]) => k !== "1");
    for (const [k, value] of new Set([above[0], above.at(-1)].filter(Boolean))) {
      const range = summary[`${key}_intervals`]?.[k];
      const interval = Array.isArray(range) ? ` · ${decimal(range[0])} to ${decimal(range[1])}` : "";
      parts.push(el("span", { class: "kind" }, el("span", { class: "muted" }, `${mark}${k} `), decimal(value), el("span", { class: "muted" }, interval)));
    }
  }
  return [el("span", { class: "kinds" }, ...parts)];
}

function tokensCell(tokens) {
  const rounded = (count) => (count >= 1e6 ? `${(count / 1e6).toFixed(1)} M` : count >= 1e4 ? `${Math.round(count / 1e3)} k` : number(count));
  const parts = [["in", tokens.prompt], ["out", tokens.completion]].filter(([, count]) => typeof count === "number");
  return parts.length ? parts.map(([what, count]) => el("span", { class: "kind" }, `${rounded(count)} ${what}`)) : ["–"];
}

function costOf({ cost, timing }) {
  return number(cost ?? timing?.cost);
}

/** Show the numbers of tasks that were always, sometimes and never solved. */
function solvedCell({ solved }) {
  const counts = Object.entries(solved ?? {}).filter(([, tasks]) => tasks.length);
  const parts = counts.map(([when, tasks]) => el("span", { class: "kind" }, `${tasks.length} ${when}`));
  return parts.length ? [el("span", { class: "muted kinds" }, ...parts.reverse())] : ["–"];
}

function badge(run) {
  return el("span", { class: "badge", title: plain(`${run.agent}, ${run.name}`) }, run.letter);
}

/** Show a table on a page that is too narrow for columns as cards, one for each run. */
function fitSummary() {
  const narrow = document.body.classList.contains("reading") || document.getElementById("summary").clientWidth < CARDS;
  for (const table of document.querySelectorAll(".summary")) table.classList.toggle("cards", narrow);
}

function drawSummary() {
  const cards = state.groups.map((group) => {
    group.summaryHead = el("thead");
    group.summaryBody = el("tbody");
    const caption = el("caption", {}, said(playedOn(group)), el("span", { class: "muted" }, `  ${sizeOf(group)}`));
    const table = el("table", { class: "summary" }, caption, group.summaryHead, group.summaryBody);
    const made = el("details", { class: "made" }, el("summary", {}, "How these runs were made, and all their figures"));
    made.append(...group.runs.map(factsOf));
    return el("div", { class: "card" }, el("div", { class: "scroll" }, table), stepsOf(group), made);
  });
  document.getElementById("summary-tables").replaceChildren(...cards);
  drawColumnMenu();
  state.groups.forEach(fillSummary);
  fitSummary();
}

/** Fill the table of a group with the chosen columns, in the chosen order. */
function fillSummary(group) {
  const columns = columnsOf(group.runs).filter(columnShown);
  const heads = columns.map(({ name }) => el("th", { scope: "col", "aria-sort": sortedBy(name) }, sortButton(name)));
  group.summaryHead.replaceChildren(el("tr", {}, el("th", { scope: "col", "aria-sort": sortedBy("Run") }, sortButton("Run")), ...heads));
  group.summaryBody.replaceChildren(...sorted(group.runs).map((run) => summaryRow(run, columns)));
}

function sizeOf(group) {
  const steps = new Set(group.runs.flatMap(({ by_step: figures }) => figures.step)).size;
  return steps ? counted(steps, "training step") : counted(group.tasks.length, "task");
}

function summaryRow(run, columns) {
  const box = el("input", { type: "checkbox", checked: !run.hidden, "aria-label": `Show run ${run.letter} in the grid` });
  box.addEventListener("change", () => {
    run.hidden = !box.checked;
    row.classList.toggle("off", run.hidden);
    filterGrid();
  });
  const unfinished = run.facts.finished === false ? el("span", {}, el("span", { class: "tag" }, "not finished")) : null;
  const name = el("span", { class: "run-name" }, said(run.agent), el("span", { class: "muted" }, said(run.name)), unfinished, phaseOf(run, true));
  const head = el("th", { scope: "row" }, el("label", { class: "run" }, box, badge(run), name));
  const cells = columns.map(({ name: label, content }) => el("td", { "data-label": label }, el("span", { class: "value" }, ...content(run.summary))));
  const row = el("tr", { class: run.hidden ? "off" : null }, head, ...cells);
  return row;
}

/** Show the facts about a run and all its known metrics. */
function factsOf(run) {
  const summary = el("summary", {}, badge(run), " ", said(run.agent), " ", said(run.name, { class: "muted" }));
  const details = el("details", { class: "facts" }, summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.querySelector("dl")) return;
    details.append(pairs({ folder: run.name, ...run.facts }), el("h4", {}, "Figures"), pairs(run.summary));
    if (run.system_prompt) details.append(el("h4", {}, "System prompt"), new LongText(run.system_prompt, "mono").element);
  });
  return details;
}

function pairs(object) {
  const list = el("dl", {});
  for (const [key, value] of flattened(object)) {
    list.append(el("dt", {}, said(key.replaceAll("_", " "))), el("dd", {}, new LongText(value).element));
  }
  return list;
}

function flattened(object, before = "") {
  return Object.entries(object).flatMap(([key, value]) => {
    if (value === null || value === undefined) return [];
    if (Array.isArray(value)) return [[before + key, value.map(told).join(", ")]];
    if (typeof value === "object") return flattened(value, `${before}${key}, `);
    return [[before + key, told(value)]];
  });
}

function told(value) {
  if (typeof value === "number") return number(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
