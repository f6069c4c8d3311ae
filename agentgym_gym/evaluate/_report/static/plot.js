
// Success against tokens, cost, turns and time, with a point for each run.

const PLOT = { width: 640, height: 320, left: 48, right: 20, top: 16, bottom: 40 };
const AXES = {
  tokens: ["Tokens per episode", ({ tokens, episodes }) => (typeof tokens?.completion === "number" && episodes ? ((tokens.prompt ?? 0) + tokens.completion) / episodes : null)],
  cost: ["Cost", ({ cost, timing }) => cost ?? timing?.cost ?? null],
  turns: ["Turns per episode", ({ mean_turns: turns }) => turns],
  time: ["Seconds per episode", ({ seconds: all, timing, episodes }) => (episodes ? (all ?? timing?.seconds ?? 0) / episodes : null)],
};

/** Draw a plot for each group of runs, for the chosen axis. */
function drawPlots() {
  const list = document.getElementById("plot-axis");
  const known = Object.keys(AXES).filter((name) => state.runs.some(({ summary }) => typeof AXES[name][1](summary) === "number"));
  const chosen = known.includes(list.value) ? list.value : known[0];
  list.replaceChildren(...known.map((name) => el("option", { value: name }, AXES[name][0])));
  if (!chosen) return;
  list.value = chosen;
  document.getElementById("plots").replaceChildren(...state.groups.map((group) => plotOf(group, chosen)));
}

/** Return round numbers around all values, from 0 unless the values are close together. */
function ticksAround(values) {
  const [low, high] = extremes(values);
  const from = low > high / 2 ? low : 0;
  const range = high - from || high || 1;
  const size = 10 ** Math.floor(Math.log10(range));
  const step = [0.2, 0.5, 1, 2].map((part) => part * size).find((each) => range / each <= 5);
  const ticks = [Math.floor(from / step) * step];
  while (ticks.at(-1) <= high) ticks.push((Math.round(ticks[0] / step) + ticks.length) * step);
  return ticks;
}

function plotOf(group, axis) {
  const [label, valueOf] = AXES[axis];
  const points = group.runs.map((run) => [run, valueOf(run.summary), run.summary.success_rate]).filter(([, x, y]) => typeof x === "number" && typeof y === "number");
  const title = el("h3", {}, said(playedOn(group)));
  if (!points.length) return el("div", { class: "card" }, title, el("p", { class: "muted" }, "No run has both figures."));
  const { width, height, left: x0, right, top, bottom } = PLOT;
  const ticks = ticksAround(points.map(([, value]) => value));
  const x = (value) => x0 + ((width - right - x0) * (value - ticks[0])) / (ticks.at(-1) - ticks[0]);
  const y = (share) => height - bottom - (height - bottom - top) * share;
  const drawn = svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": plain(`Success against ${label.toLowerCase()} in ${playedOn(group)}: ${points.map(([run, value, rate]) => `${run.letter} ${decimal(rate)} at ${number(value)}`).join("; ")}`) });
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    drawn.append(svg("line", { class: "tick", x1: x0, x2: width - right, y1: y(share), y2: y(share) }));
    drawn.append(svg("text", { x: x0 - 8, y: y(share) + 4, "text-anchor": "end" }, String(share)));
  }
  for (const tick of ticks) drawn.append(svg("text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, number(tick)));
  drawn.append(svg("text", { x: (x0 + width - right) / 2, y: height - 4, "text-anchor": "middle" }, label));
  for (const [run, value] of points) {
    const interval = run.summary.success_interval;
    if (Array.isArray(interval)) drawn.append(svg("line", { class: "whisker", x1: x(value), x2: x(value), y1: y(interval[0]), y2: y(interval[1]) }));
  }
  for (const [run, value, rate] of points) {
    const told = svg("title", {}, plain(`${run.letter} ${run.agent}: success ${decimal(rate)}, ${label.toLowerCase()} ${number(value)}`));
    drawn.append(svg("g", { class: "plot-point", transform: `translate(${x(value)} ${y(rate)})` }, told, svg("circle", { r: 10 }), svg("text", { y: 4, "text-anchor": "middle" }, run.letter)));
  }
  const key = points.map(([run, value, rate]) => el("li", {}, badge(run), said(run.agent), el("span", { class: "muted" }, `${decimal(rate)} · ${number(value)}`)));
  return el("div", { class: "card" }, title, el("div", { class: "plot-body" }, drawn, el("ul", { class: "plot-key" }, ...key)));
}
