
// Follows runs as they go: requests the version of the index, and shows a new one.

const WATCH_SECONDS = 1.5;

async function watchRuns() {
  let problem = "";
  try {
    const version = await textOf("version");
    if (version !== state.index.number) refresh(await unpack("index"));
  } catch (error) {
    problem = ` · no longer updated: ${error.message}`;
  }
  document.getElementById("live").textContent = problem || " · watching";
  setTimeout(watchRuns, 1000 * WATCH_SECONDS);
}

/** Show another version of the index. What the user chose stays: runs, filters, the open episode, the scroll. */
function refresh(index) {
  const keyOf = ({ name, facts }) => JSON.stringify([name, facts.phase ?? null]);
  const hidden = new Set(state.runs.filter((run) => run.hidden).map(keyOf));
  const { open } = state;
  const { scrollX, scrollY } = window;
  const tops = new Map(state.groups.map((group) => [JSON.stringify([group.env, group.world]), [group.table?.scrollLeft, group.table?.scrollTop]]));
  const wasLast = state.step === (state.steps.at(-1) ?? null);
  const step = state.step;
  const found = state.matches && new Set([...state.matches].map((cell) => `${keyOf(cell.run)} ${nameOf(cell)}`));
  build(index);
  for (const run of state.runs) run.hidden = hidden.has(keyOf(run));
  if (!wasLast && (step === null || state.steps.includes(step))) {
    state.step = step;
    state.groups.forEach(fill);
  }
  if (found) state.matches = new Set(state.runs.flatMap(({ cells }) => cells).filter((cell) => found.has(`${keyOf(cell.run)} ${nameOf(cell)}`)));
  comparison.pairs = null;
  if (open) state.open = state.runs.find((run) => keyOf(run) === keyOf(open.run))?.byName.get(nameOf(open)) ?? null;
  drawPage();
  if (state.open) history.replaceState(null, "", fragmentOf(state.open));
  else if (open) hideEpisodePanel();
  for (const group of state.groups) {
    const [left, top] = tops.get(JSON.stringify([group.env, group.world])) ?? [0, 0];
    group.table?.scrollTo(left, top);
  }
  window.scrollTo(scrollX, scrollY);
}
