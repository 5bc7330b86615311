// Strips of the grid that are wider than their window: a strip whose cells are all beyond the right
// edge begins at its newest cell. The page does not move.
const started = new Set();

// The fade at the right edge covers cells.
function fadeOf(strip) {
  return Number.parseFloat(getComputedStyle(strip, "::after").width) || 0;
}

function showNewest(strip) {
  const cells = [...strip.querySelectorAll("td > a[href]")];
  if (!cells.length || strip.scrollLeft !== 0) return;
  const edge = strip.getBoundingClientRect().right - fadeOf(strip);
  if (cells.some((cell) => cell.getBoundingClientRect().left < edge)) return;
  strip.scrollLeft = cells.at(-1).getBoundingClientRect().right - edge;
}

// Only once for each strip of a page: a fragment that is polled keeps the place of its strips
// (`live.js`), wherever the reader has scrolled the strips to.
export function beginAtNewest(grid) {
  const fragment = grid.closest("[hx-trigger]")?.id ?? "";
  grid.querySelectorAll(".block .scroll").forEach((strip, at) => {
    const key = `${fragment} ${at}`;
    if (started.has(key)) return;
    started.add(key);
    showNewest(strip);
  });
}
