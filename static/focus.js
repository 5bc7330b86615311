// The focus in a fragment that is exchanged for its successor of the same id: the successor of the
// focused element gets the focus, so that the Tab key goes on from there.
const acting = "a, button, input, select, textarea";

function labelOf(element) {
  return element.getAttribute("aria-label") ?? element.textContent.trim();
}

// Elements that act have the same name; a part that opens or scrolls may have new counts in its text.
function alike(fragment, element) {
  const elements = [...fragment.querySelectorAll(element.localName)];
  return element.matches(acting) ? elements.filter((other) => labelOf(other) === labelOf(element)) : elements;
}

export function focusIn(fragment) {
  const element = document.activeElement;
  if (!fragment.id || element === fragment || !fragment.contains(element)) return null;
  return { id: fragment.id, element, at: alike(fragment, element).indexOf(element) };
}

export function focusAgain(place) {
  const fragment = place && document.getElementById(place.id);
  if (!fragment || document.activeElement !== document.body) return;
  alike(fragment, place.element)[place.at]?.focus({ preventScroll: true });
}
