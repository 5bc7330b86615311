// Durations of what still goes on count by themselves, between the answers of the server.
const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];

// The same words as the filter `duration` of the templates.
function inWords(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)}\u00a0s`;
  let rest = Math.round(seconds);
  const counts = units.map(([size, unit]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return [count, unit];
  });
  const first = counts.findIndex(([count]) => count > 0);
  const shown = counts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count}\u00a0${unit}`).join(" ");
}

// Starts are kept by this machine's clock: the server's may differ from it.
export function startCounting(root) {
  for (const span of root.querySelectorAll("[data-elapsed]:not([data-began])")) {
    span.dataset.began = Date.now() - 1000 * Number(span.dataset.elapsed);
  }
}

export function countOn() {
  setInterval(() => {
    for (const span of document.querySelectorAll("[data-began]")) {
      span.textContent = inWords((Date.now() - Number(span.dataset.began)) / 1000);
    }
  }, 1000);
}
