
// Keyboard shortcuts, theme and startup.

const THEMES = ["", "light", "dark"];
const help = document.getElementById("help");

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  document.getElementById("theme").textContent = theme ? `Theme: ${theme}` : "Theme: auto";
  try {
    if (theme) localStorage.setItem("agentgym-theme", theme);
    else localStorage.removeItem("agentgym-theme");
  } catch {
    // a browser may have no storage for local files
  }
}

function nextTheme() {
  const now = THEMES.indexOf(document.documentElement.dataset.theme ?? "");
  setTheme(THEMES[(now + 1) % THEMES.length]);
}

function storedTheme() {
  try {
    return localStorage.getItem("agentgym-theme") ?? "";
  } catch {
    return "";
  }
}

function toggleMap() {
  const map = document.body.classList.toggle("map");
  document.getElementById("density").setAttribute("aria-pressed", String(map));
  state.groups.forEach(layOut);
}

/** Scroll to the turn after the topmost visible one, or before it. */
function goToTurn(by) {
  const panel = document.getElementById("episode");
  const turns = [...panel.querySelectorAll(".reply")];
  const at = turns.indexOf(document.activeElement);
  if (!turns.length) return; // the episode is not loaded yet, or has no replies
  const bottom = panel.querySelector(".toolbar").getBoundingClientRect().bottom;
  const visible = turns.findIndex((turn) => turn.getBoundingClientRect().top >= bottom - 1);
  const from = at >= 0 ? at + by : by > 0 ? visible : visible - 1;
  const target = turns[Math.min(turns.length - 1, Math.max(0, from))];
  target?.focus({ preventScroll: true });
  target?.scrollIntoView({ block: "start" });
}

const KEYS = {
  "?": () => help.showModal(),
  t: nextTheme,
  m: toggleMap,
  "[": () => nextStep(-1),
  "]": () => nextStep(1),
  "/": () => (state.open ? search.input : document.getElementById("filter")).focus(),
  n: () => neighbour(state.open, 1),
  p: () => neighbour(state.open, -1),
  f: () => neighbour(state.open, 1, unsolved),
  F: () => neighbour(state.open, -1, unsolved),
  r: () => inOtherRun(state.open, 1),
  R: () => inOtherRun(state.open, -1),
  j: () => goToTurn(1),
  k: () => goToTurn(-1),
  c: () => document.querySelector("#episode .copy")?.click(),
  d: () => document.querySelector("#episode .download")?.click(),
  s: () => document.getElementById("search-all").focus(),
};
const IN_EPISODE = "npfFrRjkcd";

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || help.open) return;
  const typing = event.target.closest?.("input:not([type=checkbox]), select");
  if (event.key === "Escape") {
    if (typing && typing.value && typing.type === "search") return; // the browser clears the field
    if (state.open) closeEpisode();
    return;
  }
  if (typing || !Object.hasOwn(KEYS, event.key) || (IN_EPISODE.includes(event.key) && !state.open)) return;
  event.preventDefault();
  const cell = KEYS[event.key]();
  if (cell?.run) openCell(cell);
});

function route() {
  const cell = cellOf(location.hash);
  if (!cell) hideEpisode();
  else if (cell !== state.open) showEpisode(cell);
}

async function begin() {
  setTheme(storedTheme());
  document.getElementById("theme").addEventListener("click", nextTheme);
  document.getElementById("help-button").addEventListener("click", () => help.showModal());
  document.getElementById("density").addEventListener("click", toggleMap);
  document.getElementById("filter").addEventListener("input", filterGrid);
  document.getElementById("solved-filter").addEventListener("change", filterGrid);
  document.getElementById("failure-filter").addEventListener("change", (event) => chooseFailure(event.target.value));
  document.getElementById("step").addEventListener("change", ({ target }) => showStep(target.value === "" ? null : Number(target.value)));
  document.getElementById("sort").addEventListener("change", (event) => sortBy(event.target.value));
  document.getElementById("reverse").addEventListener("click", () => sortBy(ordering.by));
  document.getElementById("plot-axis").addEventListener("change", drawPlots);
  for (const key of ["a", "b"]) document.getElementById(`compare-${key}`).addEventListener("change", (event) => chooseRun(key, event.target.value));
  listenToTabs();
  listenToSearch();
  new ResizeObserver(fitSummary).observe(document.getElementById("summary"));
  new ResizeObserver(fitGrids).observe(document.getElementById("grids"));
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("grid").focus();
  });
  narrow.addEventListener("change", () => {
    document.getElementById("main").inert = narrow.matches && state.open !== null;
  });
  build(await unpack("index"));
  drawPage();
  document.body.classList.add("ready");
  window.addEventListener("hashchange", route);
  route();
  if (typeof watchRuns === "function") watchRuns();
}

/** Draw everything but the open episode. */
function drawPage() {
  const { index } = state;
  if (!state.open) document.title = plain(index.title);
  document.getElementById("report-title").replaceChildren(said(index.title));
  const episodes = state.runs.reduce((sum, run) => sum + run.cells.length, 0);
  document.getElementById("about").textContent =
    `${counted(state.runs.length, "run")}, ${counted(episodes, "episode")} · ` +
    `written ${index.written.slice(0, 16).replace("T", " ")} UTC by agentgym-gym ${index.version}`;
  markers.length = 0;
  drawSummary();
  drawViews();
  drawGrid();
  drawSteps();
}

begin().catch((error) => {
  const problem = document.getElementById("problem");
  problem.textContent = `This report cannot be shown: ${error.message}. It needs a browser of 2024 or later.`;
  problem.hidden = false;
});
