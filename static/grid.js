// Selecting partitions in the grid: drag, or shift-click the first and the last.
// What is selected is text of the selection grammar in a field that can also be typed into.
const picked = "picked";
// Cells of tables and of lists; titles of blocks are links as well and are none.
const cellLinks = "td > a[href], .wide > a[href]";

// The name of a cell is its tip as well. It is not sent twice: a page has a thousand cells.
export function showNames(root) {
  for (const cell of root.querySelectorAll(".partition-grid a[aria-label]:not([title])")) {
    cell.title = cell.getAttribute("aria-label");
  }
}

function keyOf(cell) {
  const path = new URL(cell.href).pathname;
  return decodeURIComponent(path.split("/partitions/")[1].replace(/\/$/, ""));
}

function rowOf(cell) {
  return cell.closest("[data-segment]");
}

// Cells of the same segment, in the order of time.
function rowCells(grid, cell) {
  const segment = rowOf(cell)?.dataset.segment;
  const all = [...grid.parentElement.querySelectorAll(cellLinks)];
  return segment === undefined ? all : all.filter((one) => rowOf(one)?.dataset.segment === segment);
}

function between(grid, first, last) {
  const cells = rowCells(grid, first);
  const from = cells.indexOf(first);
  const to = cells.indexOf(last);
  return to < 0 ? [first] : cells.slice(Math.min(from, to), Math.max(from, to) + 1);
}

// Time dimensions of a product are named; one range of each makes the range of the product.
function selectionText(grid, cells) {
  const first = keyOf(cells[0]);
  const last = keyOf(cells[cells.length - 1]);
  const names = JSON.parse(grid.dataset.dimensions || "[]");
  if (grid.dataset.list !== undefined) return cells.map(keyOf).join(",");
  if (names.length < 2) return first === last ? first : `${first}..${last}`;
  const ends = last.split("|");
  return first.split("|")
    .map((part, at) => `${names[at]}=${part === ends[at] ? part : `${part}..${ends[at]}`}`)
    .join(" ");
}

export function selectable(grid) {
  const field = document.getElementById(grid.dataset.select);
  if (!field) return;
  let anchor = null;
  let dragged = false;

  const show = (cells) => {
    for (const cell of grid.querySelectorAll(`.${picked}`)) cell.classList.remove(picked);
    for (const cell of cells) cell.classList.add(picked);
    field.value = cells.length ? selectionText(grid, cells) : "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const cellOf = (event) => event.target.closest?.(cellLinks);

  grid.addEventListener("dragstart", (event) => event.preventDefault());
  grid.addEventListener("pointerdown", (event) => {
    const cell = cellOf(event);
    if (!cell || event.button !== 0 || event.shiftKey) return;
    anchor = cell;
    dragged = false;
  });
  grid.addEventListener("pointerover", (event) => {
    const cell = cellOf(event);
    if (!cell || !anchor || event.buttons !== 1 || (cell === anchor && !dragged)) return;
    dragged = true;
    show(between(grid, anchor, cell));
  });
  grid.addEventListener("click", (event) => {
    const cell = cellOf(event);
    if (!cell) return;
    if (event.shiftKey) {
      event.preventDefault();
      show(between(grid, anchor ?? cell, cell));
      anchor ??= cell;
    } else if (dragged) {
      event.preventDefault();
      dragged = false;
    }
  });
  document.getElementById(grid.dataset.clear)?.addEventListener("click", () => {
    anchor = null;
    show([]);
  });
}
