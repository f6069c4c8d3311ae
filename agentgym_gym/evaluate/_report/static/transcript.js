
// Copy and download of an episode.

/** Return an episode as text. */
function transcriptOf(cell, episode) {
  const step = cell.step === null ? "" : `, step ${cell.step}`;
  const lines = [`${cell.run.agent} on ${playedOn(cell.run)}, task ${cell.task}${step}, sample ${cell.sample}`];
  if (episode.goal) lines.push(`Goal: ${episode.goal}`);
  const score = episode.score === null ? "" : `, score ${number(episode.score)}`;
  lines.push(`Outcome: ${OUTCOMES[cell.outcome].label}${score}, ${counted(episode.turns, "turn")}`);
  for (const fault of [episode.fault, episode.agent_fault]) if (fault) lines.push(`Fault: ${fault.kind}: ${fault.message}`);
  let turn = 0;
  for (const { role, content } of episode.messages) {
    if (role === "assistant") turn += 1;
    lines.push("", role === "assistant" ? `--- agent, turn ${turn} ---` : `--- ${role === "user" ? "environment" : role} ---`, content);
  }
  return `${lines.join("\n")}\n`;
}

/** Return an episode as a line of an `episodes.jsonl`. */
function recordOf(cell, episode) {
  const own = { env_id: cell.run.env, agent: cell.run.agent, task_id: cell.task, sample: cell.sample };
  if (cell.step !== null) own.step = cell.step;
  return JSON.stringify({ ...own, ...episode });
}

/** Return a file name out of letters, digits, dots, hyphens and underscores. */
function fileNameOf(cell) {
  const safe = (text) => String(text).replaceAll(/[^A-Za-z0-9_-]+/g, "-").replaceAll(/^-+|-+$/g, "").slice(0, 60);
  const step = cell.step === null ? "" : `-step-${cell.step}`;
  const parts = [shortEnv(cell.run.env), cell.run.agent].map(safe).filter(Boolean);
  return `${[...parts, `task-${safe(cell.task)}${step}-sample-${cell.sample}`].join("-").toLowerCase()}.jsonl`;
}

/** Return a button that copies the episode as text. */
function copyButton(cell, episode) {
  const made = el("button", { type: "button", class: "copy", title: "Copy the transcript as text (c)" }, "Copy");
  made.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(transcriptOf(cell, episode));
      made.textContent = "Copied";
    } catch {
      made.textContent = "Not allowed"; // by the browser or its user
    }
    setTimeout(() => (made.textContent = "Copy"), 1500);
  });
  return made;
}

function downloadButton(cell, episode) {
  return el("button", { type: "button", class: "download", title: "Download the record as JSON Lines (d)", onclick: () => download(cell, episode) }, "Download");
}

function download(cell, episode) {
  const url = URL.createObjectURL(new Blob([recordOf(cell, episode), "\n"], { type: "application/jsonl" }));
  el("a", { href: url, download: fileNameOf(cell) }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
