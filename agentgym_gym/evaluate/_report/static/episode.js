
// An episode as a conversation, with the metadata of each turn.

const search = new Search();
const USUAL = new Set(["stop", "tool_calls"]); // normal finish reasons, which are not shown
const narrow = matchMedia("(max-width: 1099px)");
let shown = 0; // number of opened episodes, so that a block that loads late does not replace a newer one

function openCell(cell) {
  if (state.open) location.replace(fragmentOf(cell)); // so that one step back returns to the grid
  else location.hash = fragmentOf(cell);
  showEpisode(cell); // at once: the next key press may come before the hashchange event
}

async function showEpisode(cell) {
  const turn = ++shown;
  const before = state.open;
  if (!ofStep(cell)) showStep(cell.step);
  state.open = cell;
  mark(before, false);
  mark(cell, true);
  makeStop(cell);
  document.body.classList.add("reading");
  const panel = document.getElementById("episode");
  panel.hidden = false;
  document.getElementById("main").inert = narrow.matches;
  document.title = plain(`Task ${cell.task} · ${cell.run.agent} · ${state.index.title}`);
  search.reset();
  panel.replaceChildren(el("p", { class: "muted loading" }, "Reading the episode…"));
  let episode;
  try {
    episode = await episodeOf(cell);
  } catch (error) {
    if (turn === shown) panel.replaceChildren(toolbar(cell), el("p", { class: "notice", role: "alert" }, `This episode cannot be read: ${error.message}`));
    return;
  }
  if (turn !== shown) return;
  panel.replaceChildren(toolbar(cell, episode), headOf(cell, episode), ...bodyOf(cell, episode));
  panel.scrollTop = 0;
  search.run();
  document.getElementById("episode-title").focus({ preventScroll: true });
  if (!narrow.matches) buttonOf(cell)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function mark(cell, open) {
  cell?.button?.classList.toggle("open", open);
  if (open) cell.button?.setAttribute("aria-current", "true");
  else cell?.button?.removeAttribute("aria-current");
}

function hideEpisode() {
  const cell = state.open;
  if (!cell) return;
  shown += 1;
  state.open = null;
  mark(cell, false);
  hideEpisodePanel();
  const made = buttonOf(cell);
  if (made && made.checkVisibility?.() !== false) made.focus();
  else document.getElementById("grid").focus();
}

function hideEpisodePanel() {
  document.body.classList.remove("reading");
  document.getElementById("main").inert = false;
  document.getElementById("episode").hidden = true;
  document.getElementById("episode").replaceChildren();
  document.title = plain(state.index.title);
}

function closeEpisode() {
  history.pushState(null, "", location.href.replace(/#.*$/, ""));
  hideEpisode();
}

/** Return the next episode of the same run that passes the filters, or null. */
function neighbour(cell, by, wanted = () => true) {
  const order = cell.row.group.tasks.flatMap((row) => row.cells.get(cell.run) ?? []);
  for (let at = order.indexOf(cell) + by; at >= 0 && at < order.length; at += by) {
    if (left(order[at]) && wanted(order[at])) return order[at];
  }
  return null;
}

/** Return the episode with the same task and sample in another run. */
function inOtherRun(cell, by) {
  const runs = cell.row.group.runs.filter((run) => run === cell.run || (!run.hidden && cell.row.cells.has(run)));
  const run = runs[(runs.indexOf(cell.run) + by + runs.length) % runs.length];
  if (run === cell.run) return null;
  const cells = cell.row.cells.get(run);
  return cells.find(({ sample }) => sample === cell.sample) ?? cells[0];
}

const unsolved = ({ outcome }) => outcome !== "solved";

function toolbar(cell, episode = null) {
  const go = (label, title, target) =>
    el("button", { type: "button", title, disabled: !target, onclick: () => openCell(target) }, label);
  return el(
    "div",
    { class: "toolbar", role: "toolbar", "aria-label": "Episodes" },
    el("button", { type: "button", class: "close", title: "Close (Esc)", onclick: closeEpisode }, "✕ Close"),
    go("‹ Previous", "Previous episode (p)", neighbour(cell, -1)),
    go("Next ›", "Next episode (n)", neighbour(cell, 1)),
    go("Next unsolved ›", "Next episode that was not solved (f)", neighbour(cell, 1, unsolved)),
    ...(episode ? [copyButton(cell, episode), downloadButton(cell, episode)] : []),
    search.element,
  );
}

function headOf(cell, episode) {
  const { sign, label } = OUTCOMES[cell.outcome];
  const sample = cell.row.samples > 1 ? ` · sample ${cell.sample}` : "";
  const step = cell.step === null ? "" : ` · step ${cell.step}`;
  const title = el("h2", { id: "episode-title", tabindex: "-1" }, `Task ${cell.task}${step}${sample}`);
  const head = el(
    "header",
    { class: "episode-head" },
    el("p", { class: "eyebrow" }, badge(cell.run), said(cell.run.agent), el("span", { class: "muted" }, said(playedOn(cell.run))), phaseOf(cell.run)),
    title,
  );
  if (episode.goal) head.append(el("p", { class: "episode-goal" }, search.add(new LongText(episode.goal))));
  const outcome = el("span", { class: "outcome" }, el("span", { class: `cell ${cell.outcome}`, "aria-hidden": "true" }, sign), label);
  const ending = ENDINGS[episode.ending] ?? episode.ending;
  const facts = [["outcome", outcome], ["ending", said(ending)], ["score", number(episode.score)]];
  if (episode.return !== episode.score) facts.push(["return", number(episode.return)]);
  facts.push(["turns", number(episode.turns)]);
  const errors = Object.entries(episode.parse_errors ?? {});
  if (errors.length) facts.push(["parse errors", said(errors.map(([kind, count]) => `${count} ${kind}`).join(", "))]);
  const kinds = failuresOf(cell).map((kind) => kind.replaceAll("_", " "));
  if (kinds.length) facts.push(["failure", kinds.join(", ")]);
  const tokens = tokensOf(episode.steps);
  if (tokens) facts.push(["tokens", tokens]);
  head.append(el("dl", { class: "figures" }, ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
  head.append(timeOf(episode), sameTask(cell));
  for (const [key, whose] of [["fault", "Environment fault"], ["agent_fault", "Agent fault"]]) {
    if (episode[key]) head.append(faultOf(whose, episode[key]));
  }
  return head;
}

function faultOf(whose, fault) {
  const title = el("p", { class: "fault-title" }, `${whose}: `, said(fault.kind ?? "?"), el("span", { class: "muted" }, " · counted, not scored"));
  return el("div", { class: "fault-box" }, title, search.add(new LongText(fault.message ?? "", "mono")));
}

function tokensOf(steps) {
  const sum = (key) => steps.reduce((total, step) => total + (step[key] ?? 0), 0);
  if (!steps.some((step) => "completion_tokens" in step || "prompt_tokens" in step)) return null;
  return `${number(sum("prompt_tokens"))} in, ${number(sum("completion_tokens"))} out`;
}

/** Show the time of an episode: in the agent, in the environment and elsewhere. */
function timeOf({ seconds: all, agent_seconds: agent, env_seconds: env }) {
  const known = agent > 0 || env > 0;
  const total = Math.max(all, agent + env);
  const parts = known ? [["agent", agent], ["environment", env], ["other", Math.max(0, total - agent - env)]] : [];
  const told = [`${seconds(all)} in all`, ...parts.filter(([, value]) => value > 0).map(([name, value]) => `${name} ${seconds(value)}`)];
  return el("div", { class: "timing" }, known ? stacked(parts, total) : null, el("span", { class: "muted" }, told.join(" · ")));
}

function stacked(parts, total) {
  const bar = el("span", { class: "stacked", "aria-hidden": "true" });
  for (const [name, value] of parts) {
    const part = el("span", { class: name });
    part.style.width = `${total > 0 ? (100 * value) / total : 0}%`;
    bar.append(part);
  }
  return bar;
}

/** Link the episodes of the task in all runs. */
function sameTask(cell) {
  const strip = el("nav", { class: "same", "aria-label": "The same task" });
  const links = [...cell.row.cells].filter(([run]) => !run.hidden || run === cell.run);
  if (links.length < 2 && links[0][1].length < 2) return strip;
  strip.append(el("span", { class: "muted" }, "Same task"));
  for (const [run, cells] of links) {
    const buttons = cells.map((each) => {
      const made = button(each, { "aria-current": each === cell ? "true" : "false", tabindex: "0", role: "button", onclick: () => openCell(each) });
      return made;
    });
    strip.append(el("span", { class: "same-run" }, badge(run), ...buttons));
  }
  return strip;
}

function bodyOf(cell, episode) {
  const parts = [];
  if (cell.run.system_prompt) {
    const details = el("details", { class: "system" }, el("summary", {}, "System prompt"));
    details.append(search.add(new LongText(cell.run.system_prompt, "mono"), details));
    parts.push(details);
  }
  const list = el("ol", { class: "conversation" });
  const steps = episode.steps ?? [];
  const longest = Math.max(0, ...steps.map((step) => (step.agent_seconds ?? 0) + (step.env_seconds ?? 0)));
  let turn = 0;
  for (const message of episode.messages) {
    if (message.role !== "assistant") {
      list.append(messageOf(message.role === "user" ? "environment" : message.role, message.content));
      continue;
    }
    list.append(replyOf(turn, message.content, steps[turn] ?? {}, episode.rewards[turn], longest));
    turn += 1;
  }
  for (; turn < steps.length; turn += 1) list.append(replyOf(turn, null, steps[turn], episode.rewards[turn], longest));
  parts.push(list, endOf(cell, episode));
  return parts;
}

function messageOf(role, content) {
  const known = role === "environment" || role === "system" || role === "tool";
  const head = el("div", { class: "who" }, known ? role : said(role));
  return el("li", { class: "message observation" }, head, search.add(new LongText(content, "mono")));
}

function replyOf(turn, content, step, reward, longest) {
  const figures = el("span", { class: "turn-figures" });
  if (typeof reward === "number") {
    const kind = reward === 0 ? "" : reward > 0 ? "good" : "bad";
    figures.append(el("span", { class: `tag ${kind}` }, `reward ${reward > 0 ? "+" : ""}${number(reward)}`));
  }
  if (step.parse_error) figures.append(el("span", { class: "tag bad" }, "parse error: ", said(step.parse_error)));
  if (step.retries) figures.append(el("span", { class: "tag" }, `asked ${step.retries + 1} times`));
  if (step.finish_reason && !USUAL.has(step.finish_reason)) figures.append(el("span", { class: "tag" }, "finish: ", said(step.finish_reason)));
  const item = el("li", { class: "message reply", tabindex: "-1" }, el("div", { class: "who" }, `agent · turn ${turn + 1}`, figures));
  if (step.reasoning) {
    const details = el("details", { class: "reasoning" }, el("summary", {}, "Reasoning"));
    details.append(search.add(new LongText(step.reasoning), details));
    item.append(details);
  }
  if (content === null) item.append(el("p", { class: "muted" }, "no reply"));
  else if (content !== "" || !step.tool_calls) item.append(search.add(new LongText(content, content === "" ? "empty" : "")));
  for (const call of step.tool_calls ?? []) item.append(callOf(call));
  if ("action" in step) item.append(actionOf(step));
  if (step.ignored_actions?.length) item.append(ignoredOf(step.ignored_actions));
  const told = measures(step);
  if (told) item.append(el("div", { class: "timing" }, timeBar(step, longest), el("span", { class: "muted" }, told)));
  return item;
}

function actionOf(step) {
  const none = step.action === null;
  const action = none ? el("span", { class: "muted" }, "none was read") : search.add(new LongText(step.action, "mono"));
  return el("div", { class: "action" }, el("span", { class: "label" }, "action"), action);
}

function ignoredOf(actions) {
  const list = el("ul", {});
  for (const action of actions) list.append(el("li", {}, search.add(new LongText(action, "mono"))));
  return el("div", { class: "ignored" }, el("span", { class: "label" }, "ignored"), list);
}

function callOf(call) {
  let text = call.arguments;
  try {
    text = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // not JSON: shown unchanged
  }
  const head = el("span", { class: "label" }, "tool call ", said(call.name, { class: "mono" }), call.id ? el("span", { class: "muted" }, " ", said(call.id)) : null);
  return el("div", { class: "call" }, head, search.add(new LongText(text, "mono")));
}

function measures(step) {
  const parts = [];
  if ("prompt_tokens" in step || "completion_tokens" in step) {
    const more = [["reasoning", step.reasoning_tokens], ["cached", step.cached_tokens]].filter(([, count]) => count).map(([name, count]) => `${number(count)} ${name}`);
    parts.push(`tokens ${number(step.prompt_tokens)} in, ${number(step.completion_tokens)} out${more.length ? ` (${more.join(", ")})` : ""}`);
  }
  if ("agent_seconds" in step) parts.push(`agent ${seconds(step.agent_seconds)}`);
  if ("env_seconds" in step) parts.push(`environment ${seconds(step.env_seconds)}`);
  return parts.join(" · ");
}

function timeBar(step, longest) {
  const parts = [["agent", step.agent_seconds ?? 0], ["environment", step.env_seconds ?? 0]];
  return longest > 0 ? stacked(parts, longest) : null;
}

function endOf(cell, episode) {
  const { sign } = OUTCOMES[cell.outcome];
  const told = [el("span", { class: `cell ${cell.outcome}`, "aria-hidden": "true" }, sign), el("span", {}, said(ENDINGS[episode.ending] ?? episode.ending), " after ", counted(episode.turns, "turn"))];
  if (episode.score !== null) told.push(el("span", { class: "muted" }, `score ${number(episode.score)}`));
  return el("p", { class: "end" }, ...told);
}
