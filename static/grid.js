// The partition grid: keys of the arrows, and selection by drag, Shift, Ctrl, touch and keyboard.
// The field with the text of the selection grammar is the truth: the server tells which cells a
// text selects, and those are marked, whether the text was typed or written by a drag.
import { Cells } from "./selection.js";

const picked = "picked";
// Cells of tables and of lists; titles of blocks are links as well and are none.
const links = "td > a[href], .partition-grid.wide > a[href]";

// The name of a cell is its tip as well. It is not sent twice: a page has a thousand cells.
export function showNames(root) {
  for (const cell of root.querySelectorAll(".partition-grid a[aria-label]:not([title])")) {
    cell.title = cell.getAttribute("aria-label");
  }
}

function middle(cell) {
  const box = cell.getBoundingClientRect();
  return { x: box.left + box.width / 2, y: box.top + box.height / 2, height: box.height };
}

// The cell above or below: of the nearest row in that direction, the nearest one.
function vertical(cells, cell, direction) {
  const here = middle(cell);
  const candidates = cells.all.map((candidate) => ({ candidate, ...middle(candidate) }))
    .filter(({ y }) => (y - here.y) * direction > here.height / 2);
  const near = Math.min(...candidates.map(({ y }) => Math.abs(y - here.y)));
  const row = candidates.filter(({ y }) => Math.abs(y - here.y) < near + here.height / 2);
  row.sort((a, b) => Math.abs(a.x - here.x) - Math.abs(b.x - here.x));
  return row[0]?.candidate;
}

function neighbour(cells, cell, key) {
  const { segment, at } = cells.places.get(cell);
  const row = cells.rows.get(segment);
  switch (key) {
    case "ArrowLeft": return row[at - 1];
    case "ArrowRight": return row[at + 1];
    case "ArrowUp": return vertical(cells, cell, -1);
    case "ArrowDown": return vertical(cells, cell, 1);
    case "Home": return row[0];
    case "End": return row.at(-1);
    default: return undefined;
  }
}

// One tab stop for all cells; arrow keys move it.
function rove(cells, onMove) {
  const { grid, all } = cells;
  if (!all.length) return;
  for (const cell of all) cell.tabIndex = -1;
  let current = all[0];
  current.tabIndex = 0;
  grid.addEventListener("focusin", (event) => {
    const cell = event.target.closest(links);
    if (!cell || cell === current) return;
    current.tabIndex = -1;
    current = cell;
    current.tabIndex = 0;
  });
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest?.(links);
    const next = cell && !event.ctrlKey && !event.altKey && !event.metaKey && neighbour(cells, cell, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
    onMove?.(cell, next, event);
  });
}

export function arrowKeys(grid) {
  if (grid.dataset.roving !== undefined || grid.dataset.select) return;
  grid.dataset.roving = "";
  rove(new Cells(grid, links));
}

class Selection {
  constructor(grid, field) {
    this.cells = new Cells(grid, links);
    this.field = field;
    this.line = document.getElementById("selection-count");
    this.chosen = new Set();
    this.anchor = null;
    this.requestCount = 0;
  }

  mark(cells) {
    for (const cell of this.chosen) if (!cells.has(cell)) cell.classList.remove(picked);
    for (const cell of cells) cell.classList.add(picked);
    this.chosen = cells;
  }

  write() {
    this.field.value = this.cells.text([...this.chosen]);
    this.field.dispatchEvent(new Event("change", { bubbles: true }));
    this.ask();
  }

  choose(cells) {
    this.mark(new Set(cells));
    this.write();
  }

  toggle(cells) {
    const chosen = new Set(this.chosen);
    const all = cells.every((cell) => chosen.has(cell));
    for (const cell of cells) if (all) chosen.delete(cell); else chosen.add(cell);
    this.choose(chosen);
  }

  // Only the newest answer counts.
  async ask() {
    const text = this.field.value.trim();
    this.requestCount += 1;
    const requestNumber = this.requestCount;
    if (!text) {
      this.mark(new Set());
      this.say("", false);
      return;
    }
    const query = new URLSearchParams({ selection: text });
    const answer = await fetch(`${this.cells.grid.dataset.marks}&${query}`).catch(() => null);
    if (requestNumber !== this.requestCount) return;
    if (!answer?.ok || !answer.headers.get("content-type")?.includes("json")) return;
    const { runs, count, error } = await answer.json();
    if (requestNumber !== this.requestCount) return;
    this.mark(new Set(runs.flatMap(([first, last]) => this.cells.all.slice(first, last + 1))));
    this.say(error || `${count.toLocaleString()} partition${count === 1 ? "" : "s"} selected`, Boolean(error));
  }

  say(text, isError) {
    this.line.textContent = text;
    this.line.classList.toggle("text-danger", isError);
    this.field.classList.toggle("is-invalid", isError);
  }
}

// Addresses of other pages of the grid keep the selection.
function keepOverPages(field) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='?zoom=']");
    if (!link || !field.value.trim() || link.search.includes("select=")) return;
    const query = new URLSearchParams(link.search);
    query.set("selection", field.value.trim());
    link.search = query;
  });
}

export function selectable(grid) {
  const field = document.getElementById(grid.dataset.select);
  if (!field) return;
  const selection = new Selection(grid, field);
  const { cells } = selection;
  const mode = document.querySelector("[data-select-mode]");
  const byTapping = () => mode?.getAttribute("aria-pressed") === "true";
  const cellOf = (target) => target?.closest?.(links);
  let drag = null;

  const span = (cell, kept) => [...kept, ...cells.between(selection.anchor, cell)];

  grid.classList.add("selectable");
  grid.addEventListener("dragstart", (event) => event.preventDefault());
  grid.addEventListener("pointerdown", (event) => {
    const cell = cellOf(event.target);
    if (!cell || event.button !== 0 || event.shiftKey) return;
    if (event.pointerType === "touch" && !byTapping()) return;
    const adds = event.ctrlKey || event.metaKey || byTapping();
    drag = { from: cell, moved: false, kept: adds ? new Set(selection.chosen) : new Set() };
    // A touch stays with the cell that it began on, unless the cell lets go of it.
    if (cell.hasPointerCapture?.(event.pointerId)) cell.releasePointerCapture(event.pointerId);
  });
  grid.addEventListener("pointermove", (event) => {
    if (!drag || event.buttons !== 1) return;
    const cell = cellOf(document.elementFromPoint(event.clientX, event.clientY));
    if (!cell || !cells.places.has(cell) || (cell === drag.from && !drag.moved)) return;
    drag.moved = true;
    selection.anchor = drag.from;
    selection.mark(new Set(span(cell, drag.kept)));
  });
  document.addEventListener("pointerup", () => {
    if (drag?.moved) selection.write();
    if (drag && !drag.moved) drag = null;
  });
  document.addEventListener("pointercancel", () => { drag = null; });
  // Before any listener that opens the cell.
  grid.addEventListener("click", (event) => {
    const cell = cellOf(event.target);
    const wasDragged = drag?.moved;
    drag = null;
    if (!cell) {
      headClicked(event);
      return;
    }
    if (!wasDragged && !event.shiftKey && !event.ctrlKey && !event.metaKey && !byTapping()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (wasDragged) return;
    if (event.shiftKey) {
      selection.anchor ??= cell;
      selection.choose(span(cell, event.ctrlKey || event.metaKey ? selection.chosen : []));
    } else {
      selection.anchor = cell;
      selection.toggle([cell]);
    }
  }, true);

  // Heads of rows and columns select their cells.
  function headClicked(event) {
    const head = event.target.closest("th, thead td:not(.label)");
    if (!head) return;
    const table = head.closest("table");
    const column = head.cellIndex;
    const rows = head.scope === "row" ? [head.parentElement] : [...table.tBodies[0].rows];
    const under = head.scope === "row"
      ? [...head.parentElement.querySelectorAll("a[href]")]
      : rows.map((row) => row.cells[column]?.querySelector("a[href]")).filter(Boolean);
    if (!under.length) return;
    [selection.anchor] = under;
    if (event.ctrlKey || event.metaKey || event.shiftKey || byTapping()) selection.toggle(under);
    else selection.choose(under);
  }

  rove(cells, (from, to, event) => {
    if (!event.shiftKey) return;
    selection.anchor ??= from;
    selection.choose(span(to, []));
  });
  grid.addEventListener("keydown", (event) => {
    const cell = cellOf(event.target);
    if (!cell) return;
    if (event.key === " ") {
      event.preventDefault();
      selection.anchor = cell;
      selection.toggle([cell]);
    } else if (event.key === "Escape") {
      selection.anchor = null;
      selection.choose([]);
    } else if (!event.shiftKey && event.key.startsWith("Arrow")) {
      selection.anchor = null;
    }
  });

  let typed;
  field.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => selection.ask(), 250);
  });
  document.getElementById(grid.dataset.clear)?.addEventListener("click", (event) => {
    event.preventDefault();
    selection.anchor = null;
    selection.choose([]);
  });
  if (mode) {
    mode.hidden = !matchMedia("(any-pointer: coarse)").matches;
    mode.addEventListener("click", () => {
      mode.setAttribute("aria-pressed", String(!byTapping()));
      mode.classList.toggle("active", byTapping());
      grid.classList.toggle("tapping", byTapping());
    });
  }
  for (const hint of document.querySelectorAll("[data-needs-script]")) hint.hidden = false;
  keepOverPages(field);
  if (field.value.trim()) selection.ask();
}
