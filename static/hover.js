// A hint beside a cell of the grid under the pointer: key, state, last run and its duration, asked
// of the server after a short rest. The hint stays while the pointer is on it, and Escape closes it.
import { partitionLinks } from "./selectors.js";
import { showTimes } from "./times.js";

const restMilliseconds = 350;
const leaveMilliseconds = 200;

let hint = null;
let shown = null;
let opening;
let closing;

function build() {
  hint = document.createElement("div");
  hint.className = "sw-hint card";
  hint.setAttribute("role", "tooltip");
  hint.hidden = true;
  document.body.append(hint);
}

// Below the cell, or above where there is no room, and never over the cell.
function place(cell) {
  const box = cell.getBoundingClientRect();
  const left = Math.min(box.left, document.documentElement.clientWidth - hint.offsetWidth - 8);
  const isRoomBelow = box.bottom + hint.offsetHeight + 12 < window.innerHeight;
  const top = isRoomBelow ? box.bottom + 6 : box.top - hint.offsetHeight - 6;
  hint.style.left = `${Math.max(left, 8)}px`;
  hint.style.top = `${Math.max(top, 8)}px`;
}

function hide() {
  clearTimeout(opening);
  clearTimeout(closing);
  if (shown?.dataset.tip) shown.title = shown.dataset.tip;
  shown = null;
  if (hint) hint.hidden = true;
}

// The tip of the browser says less, and would cover the hint.
function withoutTip(cell) {
  if (!cell.title) return;
  cell.dataset.tip = cell.title;
  cell.removeAttribute("title");
}

async function show(cell) {
  hide();
  shown = cell;
  withoutTip(cell);
  const answer = await fetch(`${cell.href}?fragment=hint`).catch(() => null);
  if (shown !== cell) return;
  if (!answer?.ok || answer.redirected || !cell.isConnected) {
    hide();
    return;
  }
  const markup = await answer.text();
  if (shown !== cell) return;
  if (!hint) build();
  hint.innerHTML = markup;
  hint.hidden = false;
  showTimes(hint);
  place(cell);
}

export function hoverHints() {
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    const cell = event.target.closest?.(partitionLinks);
    clearTimeout(closing);
    if ((shown && cell === shown) || hint?.contains(event.target)) return;
    clearTimeout(opening);
    if (shown) closing = setTimeout(hide, leaveMilliseconds);
    // No hint while cells are dragged.
    if (cell && event.buttons === 0) opening = setTimeout(() => show(cell), restMilliseconds);
  });
  document.addEventListener("pointerdown", (event) => {
    if (!hint?.contains(event.target)) hide();
  });
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  // Before the grid, where Escape clears the selection.
  document.addEventListener("keydown", (event) => {
    if (!shown || hint?.hidden !== false) hide();
    else {
      hide();
      if (event.key === "Escape") event.stopImmediatePropagation();
    }
  }, true);
}
