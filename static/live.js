// Fragments of a page that are polled. Nobody looks at a hidden tab, so nothing is
// asked there; and who reads or selects is not moved by what is put in the place of the old.
import { focusAgain, focusIn } from "./focus.js";

const again = "seen-again";
// Boxes that the reader may have scrolled: wide tables, and strips of the grid.
const sideways = ".table-responsive, .partition-grid .scroll";

export function polled(element) {
  return element.getAttribute("hx-trigger")?.includes("every ");
}

// The first row in sight, if the reader has come down to it: at the top, news are welcome.
function rowInSight(fragment) {
  if (window.scrollY === 0) return null;
  return [...fragment.querySelectorAll("tr[id]")].find((row) => row.getBoundingClientRect().top >= 0);
}

function selecting(fragment) {
  if (fragment.querySelector("[data-dragging]")) return true;
  const selection = document.getSelection();
  return !selection.isCollapsed && fragment.contains(selection.anchorNode);
}

// What has to be put back once `fragment` has been exchanged for its successor of the same id.
function placeIn(fragment) {
  const row = rowInSight(fragment);
  return {
    id: fragment.id,
    row: row?.id,
    top: row?.getBoundingClientRect().top,
    ticked: [...fragment.querySelectorAll("input:checked")].map((box) => box.value),
    focus: focusIn(fragment),
    sideways: [...fragment.querySelectorAll(sideways)].map((box) => box.scrollLeft),
  };
}

function stayAt(place) {
  const row = place.row && document.getElementById(place.row);
  if (row) window.scrollBy({ top: row.getBoundingClientRect().top - place.top, behavior: "instant" });
}

function putBack(place) {
  const fragment = document.getElementById(place.id);
  if (!fragment) return;
  fragment.querySelectorAll(sideways).forEach((box, at) => {
    box.scrollLeft = place.sideways[at] ?? 0;
  });
  stayAt(place);
  for (const box of fragment.querySelectorAll("input[type=checkbox]")) {
    box.checked = place.ticked.includes(box.value);
  }
  focusAgain(place.focus);
}

// The fragment that a poll exchanges, and fragments elsewhere on the page that come with the answer.
function exchanged(target, answer) {
  const sent = new DOMParser().parseFromString(answer, "text/html").querySelectorAll("[hx-swap-oob]");
  return [target, ...[...sent].map(({ id }) => document.getElementById(id)).filter(Boolean)];
}

// "… is being canceled." is no longer true once the page shows the end of it.
const readable = 8_000;
function dropPassing() {
  const messages = document.querySelectorAll(".alert[data-passing]");
  // The end may come at once, and no later poll then.
  setTimeout(() => messages.forEach((message) => message.remove()), readable - performance.now());
}

export function keepAlive() {
  let places = [];
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && polled(event.detail.elt)) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, elt, serverResponse } = event.detail;
    places = [];
    if (!polled(elt) || target !== elt) return;
    const fragments = exchanged(target, serverResponse);
    // All stay at their version, so the next time brings what is left out now.
    if (fragments.some(selecting)) event.detail.shouldSwap = false;
    else places = fragments.map(placeIn);
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (!places.length) return;
    places.forEach(putBack);
    dropPassing();
  });
  // Times are told in the reader's zone by then, which may make rows lower or higher.
  document.addEventListener("htmx:afterSettle", () => {
    places.forEach(stayAt);
    places = [];
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const fragment of document.querySelectorAll(`[hx-trigger*="${again}"]`)) {
      fragment.dispatchEvent(new CustomEvent(again));
    }
  });
}
