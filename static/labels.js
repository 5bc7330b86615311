// On a narrow screen a row of a list is a card without a head: each cell names its column then. The first cell is
// the name of the row; where it is a number, the page names the column.
export function labelCells(root) {
  for (const table of root.querySelectorAll("table.as-cards:not([data-labelled])")) {
    table.dataset.labelled = "";
    const heads = [...table.querySelectorAll("thead th")].map((head) =>
      head.querySelector(".visually-hidden") ? "" : head.textContent.trim().replace(/\s+/g, " "));
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, at) => {
        if (at > 0 && heads[at] && cell.textContent.trim()) cell.dataset.label ??= heads[at];
      });
    }
  }
}
