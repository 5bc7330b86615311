// Selection in the partition grid by drag, Shift, Ctrl, touch and keyboard. The field with the text
// of the selection grammar is the truth: the server tells which cells a text selects, and those are
// marked, whether the text was typed or written by a drag.
import { links, rove } from "./grid.js";
import { Cells } from "./selection.js";

const picked = "picked";
const selections = new Map();

const cellOf = (target) => target?.closest?.(links);
const adding = (event) => event.ctrlKey || event.metaKey;

class Selection {
  constructor(field) {
    this.field = field;
    this.line = document.getElementById("selection-count");
    this.mode = document.querySelector("[data-select-mode]");
    this.chosen = new Set();
    this.anchor = null;
    // The cells of earlier ranges, beside the range from the anchor on.
    this.kept = new Set();
    this.drag = null;
    this.requestCount = 0;
  }

  // A polled grid exchanges all cells: the new cells of the same addresses take their places. Returns
  // whether the grid has other cells than before, of which the server knows which are selected.
  attach(grid) {
    const before = this.cells?.all.map((cell) => cell.href) ?? [];
    this.cells = new Cells(grid, links);
    const byAddress = new Map(this.cells.all.map((cell) => [cell.href, cell]));
    const renewed = (cells) => new Set([...cells].map((cell) => byAddress.get(cell.href)).filter(Boolean));
    this.anchor = byAddress.get(this.anchor?.href) ?? null;
    this.kept = renewed(this.kept);
    this.mark(renewed(this.chosen));
    grid.classList.add("selectable");
    grid.classList.toggle("tapping", this.byTapping);
    return before.join() !== [...byAddress.keys()].join();
  }

  get byTapping() {
    return this.mode?.getAttribute("aria-pressed") === "true";
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

  // A new range begins at a cell; earlier cells stay selected beside the range.
  begin(cell, kept = []) {
    this.anchor = cell;
    this.kept = new Set(kept);
  }

  span(cell) {
    return [...this.kept, ...this.cells.between(this.anchor, cell)];
  }

  toggle(cells) {
    const chosen = new Set(this.chosen);
    const all = cells.every((cell) => chosen.has(cell));
    for (const cell of cells) if (all) chosen.delete(cell); else chosen.add(cell);
    this.choose(chosen);
  }

  clear() {
    this.begin(null);
    this.choose([]);
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

// A grid with a drag in progress is not exchanged (`live.js`).
function endDrag(selection) {
  selection.drag = null;
  delete selection.cells.grid.dataset.dragging;
}

function dragCells(selection, grid) {
  grid.addEventListener("dragstart", (event) => event.preventDefault());
  grid.addEventListener("pointerdown", (event) => {
    const cell = cellOf(event.target);
    if (!cell || event.button !== 0 || event.shiftKey) return;
    if (event.pointerType === "touch" && !selection.byTapping) return;
    const adds = adding(event) || selection.byTapping;
    selection.drag = { from: cell, moved: false, kept: adds ? selection.chosen : [] };
    grid.dataset.dragging = "";
    // A touch stays with the cell that it began on, unless the cell lets go of it.
    if (cell.hasPointerCapture?.(event.pointerId)) cell.releasePointerCapture(event.pointerId);
  });
  grid.addEventListener("pointermove", (event) => {
    const { drag, cells } = selection;
    // The button was released where the page heard nothing of it.
    if (drag && event.buttons === 0) endDrag(selection);
    if (!drag || event.buttons !== 1) return;
    const cell = cellOf(document.elementFromPoint(event.clientX, event.clientY));
    if (!cell || !cells.places.has(cell) || (cell === drag.from && !drag.moved)) return;
    if (!drag.moved) selection.begin(drag.from, drag.kept);
    drag.moved = true;
    selection.mark(new Set(selection.span(cell)));
  });
}

function clickCells(selection, grid) {
  // Before any listener that opens the cell.
  grid.addEventListener("click", (event) => {
    const cell = cellOf(event.target);
    const wasDragged = selection.drag?.moved;
    endDrag(selection);
    if (!cell) {
      headClicked(selection, event);
      return;
    }
    if (!wasDragged && !event.shiftKey && !adding(event) && !selection.byTapping) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (wasDragged) return;
    if (event.shiftKey) {
      selection.begin(selection.anchor ?? cell, adding(event) ? selection.chosen : []);
      selection.choose(selection.span(cell));
    } else {
      selection.toggle([cell]);
      selection.begin(cell, selection.chosen);
    }
  }, true);
}

// Heads of rows and columns select their cells.
function headClicked(selection, event) {
  const head = event.target.closest("th, thead td:not(.label)");
  if (!head) return;
  const table = head.closest("table");
  const column = head.cellIndex;
  const rows = head.scope === "row" ? [head.parentElement] : [...table.tBodies[0].rows];
  const under = head.scope === "row"
    ? [...head.parentElement.querySelectorAll("a[href]")]
    : rows.map((row) => row.cells[column]?.querySelector("a[href]")).filter(Boolean);
  if (!under.length) return;
  if (adding(event) || event.shiftKey || selection.byTapping) selection.toggle(under);
  else selection.choose(under);
  selection.begin(under[0]);
}

// Shift extends the range from the anchor; Ctrl, or Space at the first cell, keeps earlier ranges.
function pressKeys(selection, grid) {
  rove(selection.cells, (from, to, event) => {
    if (!event.shiftKey) return;
    if (!selection.anchor) selection.begin(from, adding(event) ? selection.chosen : []);
    selection.choose(selection.span(to));
  });
  grid.addEventListener("keydown", (event) => {
    const cell = cellOf(event.target);
    if (!cell) return;
    if (event.key === " ") {
      event.preventDefault();
      selection.toggle([cell]);
      selection.begin(cell, selection.chosen);
    } else if (event.key === "Escape") {
      selection.clear();
    } else if (!event.shiftKey && event.key.startsWith("Arrow")) {
      selection.begin(null);
    }
  });
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

function watchDocument(selection) {
  document.addEventListener("pointerup", () => {
    if (selection.drag?.moved) selection.write();
    else if (selection.drag) endDrag(selection);
    delete selection.cells.grid.dataset.dragging;
  });
  document.addEventListener("pointercancel", () => endDrag(selection));
  let typed;
  selection.field.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(() => selection.ask(), 250);
  });
  keepOverPages(selection.field);
}

function watchButtons(selection, clearId) {
  document.getElementById(clearId)?.addEventListener("click", (event) => {
    event.preventDefault();
    selection.clear();
  });
  const { mode } = selection;
  if (mode) {
    mode.hidden = !matchMedia("(any-pointer: coarse)").matches;
    mode.addEventListener("click", () => {
      mode.setAttribute("aria-pressed", String(!selection.byTapping));
      mode.classList.toggle("active", selection.byTapping);
      selection.cells.grid.classList.toggle("tapping", selection.byTapping);
    });
  }
  for (const hint of document.querySelectorAll("[data-needs-script]")) hint.hidden = false;
}

// Called again for a grid that took the place of another one.
export function selectable(grid) {
  const field = document.getElementById(grid.dataset.select);
  if (!field || grid.dataset.roving !== undefined) return;
  grid.dataset.roving = "";
  const isFirst = !selections.has(field);
  if (isFirst) selections.set(field, new Selection(field));
  const selection = selections.get(field);
  const isOther = selection.attach(grid);
  dragCells(selection, grid);
  clickCells(selection, grid);
  pressKeys(selection, grid);
  if (isFirst) {
    watchDocument(selection);
    watchButtons(selection, grid.dataset.clear);
  }
  if (isOther && field.value.trim()) selection.ask();
}
