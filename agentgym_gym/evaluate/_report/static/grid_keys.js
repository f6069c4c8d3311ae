
// Moving in the grid by keys.

const PAGE = 10; // rows per Page Down

/** Return the visible rows of a group, each as the cells that can be opened. */
function shownRows(group) {
  return group.tasks
    .filter(({ shown }) => shown)
    .map((row) => group.runs.flatMap((run) => (run.hidden ? [] : (row.cells.get(run) ?? []))));
}

function moveInGrid(event) {
  const cell = event.target.cell;
  if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
  const rows = shownRows(cell.row.group);
  const at = rows.findIndex((row) => row.includes(cell));
  if (at < 0) return;
  const place = rows[at].indexOf(cell);
  const map = document.body.classList.contains("map");
  const keys = map
    ? { ArrowLeft: "ArrowUp", ArrowRight: "ArrowDown", ArrowUp: "ArrowLeft", ArrowDown: "ArrowRight" }
    : {};
  const row = (to) => {
    const found = rows[Math.min(rows.length - 1, Math.max(0, to))];
    return found[Math.min(place, found.length - 1)];
  };
  const target = {
    ArrowLeft: () => rows[at][place - 1],
    ArrowRight: () => rows[at][place + 1],
    ArrowUp: () => (at > 0 ? row(at - 1) : null),
    ArrowDown: () => (at + 1 < rows.length ? row(at + 1) : null),
    PageUp: () => row(at - PAGE),
    PageDown: () => row(at + PAGE),
    Home: () => rows[0][0],
    End: () => rows.at(-1).at(-1),
  }[keys[event.key] ?? event.key];
  if (!target) return;
  event.preventDefault();
  const to = target();
  if (to) {
    makeStop(to);
    buttonOf(to)?.focus();
  }
}
