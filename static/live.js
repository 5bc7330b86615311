// Parts of a page that are asked for again and again. Nobody looks at a hidden tab, so nothing is
// asked there; and who reads or selects is not moved by what is put in the place of the old.
const again = "seen-again";

function polled(element) {
  return element.getAttribute("hx-trigger")?.includes("every ");
}

// The first row in sight, if the reader has come down to it: at the top, news are welcome.
function rowInSight(part) {
  if (window.scrollY === 0) return null;
  return [...part.querySelectorAll("tr[id]")].find((row) => row.getBoundingClientRect().top >= 0);
}

function selecting(part) {
  const selection = document.getSelection();
  return !selection.isCollapsed && part.contains(selection.anchorNode);
}

// What has to be put back once `part` has been exchanged for its successor of the same id.
function placeIn(part) {
  const row = rowInSight(part);
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  return {
    id: part.id,
    row: row?.id,
    top: row?.getBoundingClientRect().top,
    href: focused?.getAttribute("href"),
    button: focused?.matches("button[id]") ? focused.id : null,
    ticked: [...part.querySelectorAll("input:checked")].map((box) => box.value),
    box: focused?.matches("input") ? focused.value : null,
    sideways: [...part.querySelectorAll(".table-responsive")].map((box) => box.scrollLeft),
  };
}

function stayAt(place) {
  const row = place.row && document.getElementById(place.row);
  if (row) window.scrollBy({ top: row.getBoundingClientRect().top - place.top, behavior: "instant" });
}

function putBack(place) {
  const part = document.getElementById(place.id);
  if (!part) return;
  part.querySelectorAll(".table-responsive").forEach((box, at) => {
    box.scrollLeft = place.sideways[at] ?? 0;
  });
  stayAt(place);
  for (const box of part.querySelectorAll("input[type=checkbox]")) {
    box.checked = place.ticked.includes(box.value);
    if (box.value === place.box) box.focus({ preventScroll: true });
  }
  if (place.button) document.getElementById(place.button)?.focus({ preventScroll: true });
  const links = place.href ? [...part.querySelectorAll("a[href]")] : [];
  links.find((link) => link.getAttribute("href") === place.href)?.focus({ preventScroll: true });
}

export function keepAlive() {
  let place = null;
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && polled(event.detail.elt)) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { target, elt } = event.detail;
    place = null;
    if (!polled(elt) || target !== elt) return;
    // It stays at its version, so the next time brings what is left out now.
    if (selecting(target)) event.detail.shouldSwap = false;
    else place = placeIn(target);
  });
  document.addEventListener("htmx:afterSwap", () => {
    if (place) putBack(place);
  });
  // Times are told in the reader's zone by then, which may make rows lower or higher.
  document.addEventListener("htmx:afterSettle", () => {
    if (place) stayAt(place);
    place = null;
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    for (const part of document.querySelectorAll(`[hx-trigger*="${again}"]`)) {
      part.dispatchEvent(new CustomEvent(again));
    }
  });
}
