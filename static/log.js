// Keeps a log that is followed at its end, unless the reader has scrolled up to read.
const near = 40;

function followers() {
  return document.querySelectorAll("[data-follow]");
}

export function keepAtEnd() {
  for (const log of followers()) log.scrollTop = log.scrollHeight;
  document.addEventListener("htmx:beforeSwap", () => {
    for (const log of followers()) {
      const follow = document.getElementById("follow")?.checked ?? true;
      log.dataset.atEnd = follow && log.scrollHeight - log.scrollTop - log.clientHeight < near ? "1" : "";
    }
  });
  document.addEventListener("htmx:afterSwap", () => {
    for (const log of followers()) if (log.dataset.atEnd) log.scrollTop = log.scrollHeight;
  });
}
