// Selection in the partition grid by drag, Shift, Ctrl, touch and keyboard. The field with the text
// of the selection grammar is the truth: the server tells which cells a text selects, and those are
// marked, whether the text was typed or written by a drag.
import { Cells } from "./cell_texts.js";
import { rove } from "./grid.js";
import { awaitText, foldOnPhone, keepOverPages } from "./selection_form.js";
import { cellLinks } from "./selectors.js";

const selectedClass = "selected";
// The answer of the server about an empty selection.
const nothing = { runs: [], count: 0, error: "" };
const selections = new Map();

const cellOf = (target) => target?.closest?.(cellLinks);
const adding = (event) => event.ctrlKey || event.metaKey;

class Selection {
  constructor(field) {
    this.field = field;
    this.line = document.getElementById("selection-count");
    this.mode = document.querySelector("[data-select-mode]");
    this.selected = new Set();
    this.anchor = null;
    // The cells of earlier ranges, beside the range from the anchor on.
    this.kept = new Set();
    this.drag = null;
    this.wasDragged = false;
    this.requestCount = 0;
    // The request for the text of cells, until the answer.
    this.pending = null;
  }

  // A polled grid exchanges all cells: the new cells of the same addresses take their places. Returns
  // whether the grid has other cells than before, of which the server knows which are selected.
  attach(grid) {
    const before = this.cells?.all.map((cell) => cell.href) ?? [];
    this.cells = new Cells(grid);
    const byAddress = new Map(this.cells.all.map((cell) => [cell.href, cell]));
    const renewed = (cells) => new Set([...cells].map((cell) => byAddress.get(cell.href)).filter(Boolean));
    this.anchor = byAddress.get(this.anchor?.href) ?? null;
    this.kept = renewed(this.kept);
    this.mark(renewed(this.selected));
    grid.classList.add("selectable");
    grid.classList.toggle("tapping", this.byTapping);
    return before.join() !== [...byAddress.keys()].join();
  }

  get byTapping() {
    return this.mode?.getAttribute("aria-pressed") === "true";
  }

  mark(cells) {
    for (const cell of this.selected) if (!cells.has(cell)) cell.classList.remove(selectedClass);
    for (const cell of cells) cell.classList.add(selectedClass);
    this.selected = cells;
  }

  // Cells of a backfill may stand for fewer partitions than the texts of cells and of ranges name: the
  // server answers with the exact text.
  write() {
    const text = this.cells.text([...this.selected]);
    if (text && this.cells.grid.dataset.within !== undefined) {
      this.pending = this.narrow(text);
      return;
    }
    this.fill(text);
    this.ask();
  }

  fill(text) {
    this.field.value = text;
    this.field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  select(cells) {
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
    const selected = new Set(this.selected);
    const all = cells.every((cell) => selected.has(cell));
    for (const cell of cells) if (all) selected.delete(cell); else selected.add(cell);
    this.select(selected);
  }

  clear() {
    this.begin(null);
    this.select([]);
  }

  async ask() {
    this.pending = null;
    const text = this.field.value.trim();
    const answer = await this.answerTo(text);
    if (answer) this.show(answer);
  }

  // Writes the text that the server answers.
  async narrow(text) {
    const requestNumber = this.requestCount + 1;
    const answer = await this.answerTo(text, { within: "1" });
    if (requestNumber !== this.requestCount) return;
    this.pending = null;
    this.fill(answer?.text ?? "");
    this.show(answer ?? { ...nothing, error: "The server did not answer. Select the cells again." });
  }

  // Only the newest answer counts: for others, and without an answer, null.
  async answerTo(text, options = {}) {
    this.requestCount += 1;
    const requestNumber = this.requestCount;
    if (!text) return nothing;
    const query = new URLSearchParams({ selection: text, ...options });
    const answer = await fetch(`${this.cells.grid.dataset.marks}&${query}`).catch(() => null);
    if (!answer?.ok || !answer.headers.get("content-type")?.includes("json")) return null;
    const values = await answer.json();
    return requestNumber === this.requestCount ? values : null;
  }

  show({ runs, count, error }) {
    this.mark(new Set(runs.flatMap(([first, last]) => this.cells.all.slice(first, last + 1))));
    const counted = `${count.toLocaleString()} partition${count === 1 ? "" : "s"} selected`;
    this.say(error || (this.field.value.trim() && counted), Boolean(error));
  }

  say(text, isError) {
    this.line.textContent = text;
    this.line.classList.toggle("text-danger", isError);
    this.field.classList.toggle("is-invalid", isError);
  }
}

// A grid with a drag in progress is not exchanged (`live.js`). The end of a drag may click a cell, at once
// or, by touch, a moment later, but before the next press of a button or a key. However a drag ends, the
// marked cells are the selection.
function endDrag(selection) {
  if (!selection.drag) return;
  selection.wasDragged = selection.drag.moved;
  selection.drag = null;
  delete selection.cells.grid.dataset.dragging;
  if (selection.wasDragged) selection.write();
}

function dragCells(selection, grid) {
  grid.addEventListener("dragstart", (event) => event.preventDefault());
  grid.addEventListener("pointerdown", (event) => {
    selection.wasDragged = false;
    const cell = cellOf(event.target);
    if (!cell || event.button !== 0 || event.shiftKey) return;
    if (event.pointerType === "touch" && !selection.byTapping) return;
    const adds = adding(event) || selection.byTapping;
    selection.drag = { from: cell, moved: false, kept: adds ? selection.selected : [] };
    grid.dataset.dragging = "";
    // A touch stays with the cell that it began on, unless the cell lets go of it.
    if (cell.hasPointerCapture?.(event.pointerId)) cell.releasePointerCapture(event.pointerId);
  });
  grid.addEventListener("pointermove", (event) => {
    const { drag, cells } = selection;
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
    const { wasDragged } = selection;
    selection.wasDragged = false;
    if (!cell) {
      headClicked(selection, event);
      return;
    }
    if (!wasDragged && !event.shiftKey && !adding(event) && !selection.byTapping) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (wasDragged) return;
    if (event.shiftKey) {
      selection.begin(selection.anchor ?? cell, adding(event) ? selection.selected : []);
      selection.select(selection.span(cell));
    } else {
      selection.toggle([cell]);
      selection.begin(cell, selection.selected);
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
  else selection.select(under);
  selection.begin(under[0]);
}

// Shift extends the range from the anchor; Ctrl, or Space at the first cell, keeps earlier ranges.
function pressKeys(selection, grid) {
  rove(selection.cells, (from, to, event) => {
    if (!event.shiftKey) return;
    if (!selection.anchor) selection.begin(from, adding(event) ? selection.selected : []);
    selection.select(selection.span(to));
  });
  grid.addEventListener("keydown", (event) => {
    selection.wasDragged = false;
    const cell = cellOf(event.target);
    if (!cell) return;
    if (event.key === " ") {
      event.preventDefault();
      selection.toggle([cell]);
      selection.begin(cell, selection.selected);
    } else if (event.key === "Escape") {
      selection.clear();
    } else if (!event.shiftKey && event.key.startsWith("Arrow")) {
      selection.begin(null);
    }
  });
}

function watchDocument(selection) {
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => endDrag(selection));
  // The page may miss the release of the button: the pointer comes back with no button pressed.
  document.addEventListener("pointermove", (event) => {
    if (event.buttons === 0) endDrag(selection);
  });
  let typed;
  selection.field.addEventListener("input", () => {
    // An answer about cells would replace the typed text.
    selection.requestCount += 1;
    selection.pending = null;
    clearTimeout(typed);
    typed = setTimeout(() => selection.ask(), 250);
  });
  foldOnPhone(selection.field);
  keepOverPages(selection.field);
  awaitText(selection);
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
  if (isOther && field.value.trim() && !selection.pending) selection.ask();
}
