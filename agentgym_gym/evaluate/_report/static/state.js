
// The runs, tasks and episodes of the index. Episodes are unpacked when they are opened.

const OUTCOMES = {
  __proto__: null, // agents choose the names of endings, such as "constructor"
  solved: { sign: "✓", label: "solved" },
  partial: { sign: "◐", label: "not solved, with some score" },
  unsolved: { sign: "✕", label: "not solved" },
  truncated: { sign: "…", label: "turn limit" },
  gave_up: { sign: "–", label: "gave up" },
  context_overflow: { sign: "≫", label: "context overflow" },
  reply_cut: { sign: "¦", label: "reply cut" },
  unknown: { sign: "•", label: "scored" },
  fault: { sign: "!", label: "environment fault" },
  agent_fault: { sign: "⊘", label: "agent fault" },
};
const ENDINGS = {
  __proto__: null,
  terminated: "ended by the environment",
  truncated: "turn limit reached",
  fault: "environment fault",
  agent_fault: "agent fault",
  gave_up: "the agent gave up",
  context_overflow: "the context overflowed",
  reply_cut: "the reply was cut by its length",
};
const BY_ENDING = new Set(["truncated", "gave_up", "context_overflow", "reply_cut"]);
const BLOCKS_KEPT = 6; // number of unpacked blocks, so that the next episode opens at once

const state = { index: null, runs: [], groups: [], open: null, steps: [], step: null };
Object.assign(state, { outcomes: new Set(), failure: "", matches: null }); // filters of episodes
const blocks = new Map();

/** Return the packed text of an element of the file. A served page requests it: served.js. */
let textOf = async (id) => {
  await present(id);
  return document.getElementById(id).textContent;
};

/** Return the JSON value of a name: base64 of gzip. */
async function unpack(id) {
  const letters = await textOf(id);
  const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Wait for an element of the file, because the page is usable while the rest is loading. */
function present(id) {
  return new Promise((resolve, reject) => {
    const look = () => {
      const complete = document.readyState !== "loading";
      if (document.getElementById(id) && (complete || document.getElementById(id).nextSibling)) resolve();
      else if (complete) reject(new Error(`the file is not whole: it has no ${id}`));
      else setTimeout(look, 20);
    };
    look();
  });
}

/** Return the record of an episode. */
async function episodeOf(cell) {
  const { starts, blocks: names } = cell.run;
  let block = starts.length - 1;
  while (starts[block] > cell.place) block -= 1;
  const id = names[block];
  if (!blocks.has(id)) {
    if (blocks.size >= BLOCKS_KEPT) blocks.delete(blocks.keys().next().value);
    const unpacked = unpack(id);
    unpacked.catch(() => blocks.delete(id)); // so that it can be retried
    blocks.set(id, unpacked);
  }
  return (await blocks.get(id))[cell.place - starts[block]];
}

function outcomeOf({ success, score, fault, ending }) {
  if (fault) return fault;
  if (success) return "solved";
  if (success === null) return "unknown";
  if (score > 0) return "partial";
  return BY_ENDING.has(ending) ? ending : "unsolved";
}

function shortEnv(id) {
  return id.slice(id.lastIndexOf("/") + 1);
}

/** Return the environment of a run or a group, with its world, as in "WebShop-v0 (local world 2, seed 0)". */
function playedOn({ env, world }) {
  return world === null ? shortEnv(env) : `${shortEnv(env)} (${world})`;
}

/** Build the runs from the index, and the groups of runs in the same environment and world. */
function build(index) {
  state.index = index;
  state.runs = index.runs.map((run, place) => ({ ...run, place, hidden: false }));
  const groups = new Map();
  for (const run of state.runs) {
    const key = JSON.stringify([run.env, run.world]); // scores on different worlds are not comparable
    if (!groups.has(key)) groups.set(key, { env: run.env, world: run.world, runs: [] });
    groups.get(key).runs.push(run);
    makeCells(run);
  }
  state.groups = [...groups.values()];
  const steps = new Set(state.runs.flatMap(({ cells }) => cells.map(({ step }) => step)));
  state.steps = [...steps].filter((step) => step !== null).sort((a, b) => a - b); // with episodes in the page
  state.step = state.steps.at(-1) ?? null;
  state.groups.forEach(fill);
}

/** Return whether an episode belongs to the selected training step. */
function ofStep(cell) {
  return state.step === null || cell.step === null || cell.step === state.step;
}

/** Add the tasks with visible episodes to a group. */
function fill(group) {
  Object.assign(group, { tasks: [], byKey: new Map(), stop: null, table: null, chunks: [] });
  for (const run of group.runs) addCells(group, run);
  group.tasks.sort((a, b) => a.task - b.task);
}

function makeCells(run) {
  const { task, sample, step, success, score, turns, fault, ending, goal, failures, endings, goals } = run.episodes;
  run.byName = new Map();
  run.cells = task.map((id, place) => {
    const cell = { run, place, task: id, sample: sample[place], success: success[place], score: score[place] };
    cell.step = step ? step[place] : null;
    cell.turns = turns[place];
    cell.failures = failures[place];
    cell.goal = goals[goal[place]];
    cell.ending = endings[ending[place]];
    cell.outcome = outcomeOf({ ...cell, fault: fault[place] });
    run.byName.set(nameOf(cell), cell);
    return cell;
  });
}

function nameOf({ step, task, sample }) {
  return `${step ?? ""} ${task} ${sample}`;
}

function addCells(group, run) {
  // Two servers may number the same goals differently, so only tasks with the same goal are compared.
  const goalOf = new Map();
  for (const cell of run.cells) if (cell.goal !== null && !goalOf.has(cell.task)) goalOf.set(cell.task, cell.goal);
  for (const cell of run.cells.filter(ofStep)) {
    cell.button = null;
    const found = rowOf(group, cell.task, goalOf.get(cell.task) ?? null);
    if (!found.cells.has(run)) found.cells.set(run, []);
    found.cells.get(run).push(cell);
    cell.row = found;
  }
}

function rowOf(group, task, goal) {
  if (!group.byKey.has(task)) group.byKey.set(task, []);
  const rows = group.byKey.get(task);
  let row = rows.find((each) => goal === null || each.goal === null || each.goal === goal);
  if (!row) {
    row = { group, task, goal, cells: new Map(), shown: true };
    rows.push(row);
    group.tasks.push(row);
  }
  row.goal ??= goal;
  return row;
}

function describe(cell) {
  const parts = [`${cell.run.letter}, task ${cell.task}`];
  if (cell.step !== null) parts.push(`step ${cell.step}`);
  if (cell.row.samples > 1) parts.push(`sample ${cell.sample}`);
  parts.push(OUTCOMES[cell.outcome].label);
  if (cell.outcome === "unsolved" && cell.ending !== "terminated") parts.push(ENDINGS[cell.ending] ?? cell.ending);
  if (cell.score !== null) parts.push(`score ${number(cell.score)}`);
  parts.push(counted(cell.turns, "turn"));
  return plain(parts.join(", "));
}

/** Return the cell for a fragment `#run=0&task=3&sample=1`, with `&step=12` for a training, or null. */
function cellOf(fragment) {
  const asked = new URLSearchParams(fragment.replace(/^#/, ""));
  const run = state.runs[Number(asked.get("run") ?? NaN)];
  return run?.byName.get(nameOf({ step: asked.get("step"), task: asked.get("task"), sample: asked.get("sample") ?? 0 })) ?? null;
}

function fragmentOf(cell) {
  const step = cell.step === null ? "" : `&step=${cell.step}`;
  return `#run=${cell.run.place}${step}&task=${cell.task}&sample=${cell.sample}`;
}

/** Return the kinds of failures of an episode. */
function failuresOf(cell) {
  return Object.keys(state.index.failures).filter((_, bit) => cell.failures & (1 << bit));
}

/** Return whether an episode passes the filters of episodes. */
function passes(cell) {
  if (state.outcomes.size && !state.outcomes.has(cell.outcome)) return false;
  if (state.failure && !failuresOf(cell).includes(state.failure)) return false;
  return state.matches === null || state.matches.has(cell);
}

/** Return whether an episode passes all filters. */
function left(cell) {
  return !cell.run.hidden && cell.row.shown && passes(cell);
}
