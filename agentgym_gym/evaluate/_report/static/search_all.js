
// Search in the transcripts of all episodes. It unpacks one block after another and keeps none.

const LISTED_MATCHES = 100; // maximum number of listed episodes; the grid shows all
const AROUND = 70; // characters before and after a match
const searching = { number: 0, query: "" };

/** Yield the texts of an episode. */
function* textsOf(episode) {
  if (episode.goal) yield episode.goal;
  for (const { content } of episode.messages) yield content;
  for (const fault of [episode.fault, episode.agent_fault]) if (fault) yield `${fault.kind}: ${fault.message}`;
  for (const step of episode.steps ?? []) {
    if (step.reasoning) yield step.reasoning;
    if (step.action) yield step.action;
    for (const call of step.tool_calls ?? []) yield `${call.name} ${call.arguments}`;
  }
}

function patternOf(query) {
  return new RegExp(query.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&"), "iu");
}

/** Return the text around the first match in an episode, or null. */
function matchIn(episode, pattern) {
  for (const text of textsOf(episode)) {
    const match = pattern.exec(text);
    if (match) {
      const from = Math.max(0, match.index - AROUND);
      const to = match.index + match[0].length + AROUND;
      return `${from ? "…" : ""}${text.slice(from, to)}${to < text.length ? "…" : ""}`;
    }
  }
  return null;
}

async function searchAll() {
  const query = document.getElementById("search-all").value.trim();
  const number = ++searching.number; // a later search ends this one
  searching.query = query;
  const status = document.getElementById("search-status");
  const list = document.getElementById("matches");
  list.replaceChildren();
  document.getElementById("search-clear").hidden = !query;
  state.matches = query ? new Set() : null;
  if (!query) {
    status.textContent = "";
    filterGrid();
    return;
  }
  const pattern = patternOf(query);
  const all = state.runs.reduce((sum, { cells }) => sum + cells.length, 0);
  let done = 0;
  for (const run of state.runs) {
    for (const [at, name] of run.blocks.entries()) {
      let episodes;
      try {
        episodes = await unpack(name);
      } catch (error) {
        if (number === searching.number) status.textContent = `Not all episodes can be read: ${error.message}`;
        return;
      }
      if (number !== searching.number) return;
      for (const [offset, episode] of episodes.entries()) {
        const found = matchIn(episode, pattern);
        if (found === null) continue;
        const cell = run.cells[run.starts[at] + offset];
        state.matches.add(cell);
        if (state.matches.size <= LISTED_MATCHES) list.append(matchItem(cell, found, pattern));
      }
      done += episodes.length;
      status.textContent = `${counted(state.matches.size, "episode")} found; ${Math.floor((100 * done) / all)} % searched`;
    }
  }
  const more = state.matches.size > LISTED_MATCHES ? `; the list shows the first ${LISTED_MATCHES}` : "";
  status.textContent = `${counted(state.matches.size, "episode")} of ${all.toLocaleString("en")} found${more}`;
  filterGrid();
}

function matchItem(cell, found, pattern) {
  const text = el("bdi", { class: "match-text" });
  write(text, found, new RegExp(pattern.source, "giu"));
  const step = cell.step === null ? "" : ` · step ${cell.step}`;
  const sample = cell.row?.samples > 1 || cell.sample ? ` · sample ${cell.sample}` : "";
  const open = el("button", { type: "button", class: "match", onclick: () => openMatch(cell) }, badge(cell.run), el("span", { class: "muted" }, `task ${cell.task}${step}${sample}`), text);
  return el("li", {}, open);
}

/** Open an episode that was found, with the matches highlighted. */
function openMatch(cell) {
  search.input.value = searching.query;
  openCell(cell);
}

function clearSearch() {
  document.getElementById("search-all").value = "";
  searchAll();
}

function listenToSearch() {
  const input = document.getElementById("search-all");
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") searchAll();
  });
  input.addEventListener("search", () => {
    if (!input.value && searching.query) clearSearch(); // the cross in the field
  });
  document.getElementById("search-button").addEventListener("click", searchAll);
  document.getElementById("search-clear").addEventListener("click", clearSearch);
}
