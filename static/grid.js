// The partition grid: names of cells as tips, and one tab stop that arrow keys move.
import { Cells } from "./cell_texts.js";
import { cellLinks } from "./selectors.js";

// The address of the cell that is the tab stop, by the id of the polled fragment: the fragment
// exchanges its cells.
const stops = new Map();

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

function stopOf(grid) {
  return grid.closest("[hx-trigger]")?.id ?? "";
}

// One tab stop for all cells; arrow keys move it, with Ctrl only for ranges.
export function rove(cells, onMove) {
  const { grid, all } = cells;
  if (!all.length) return;
  for (const cell of all) cell.tabIndex = -1;
  const stop = stopOf(grid);
  let current = all.find((cell) => cell.href === stops.get(stop)) ?? all[0];
  current.tabIndex = 0;
  grid.addEventListener("focusin", (event) => {
    const cell = event.target.closest(cellLinks);
    if (!cell || cell === current) return;
    current.tabIndex = -1;
    current = cell;
    current.tabIndex = 0;
    stops.set(stop, cell.href);
  });
  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest?.(cellLinks);
    if (!cell || event.altKey) return;
    if ((event.ctrlKey || event.metaKey) && !(event.shiftKey && onMove)) return;
    const next = neighbour(cells, cell, event.key);
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
  rove(new Cells(grid));
}
