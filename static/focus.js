// The focus in a fragment that is exchanged for its successor of the same id: the successor of the
// focused element gets the focus, so that the Tab key goes on from there.
const acting = "a, button, input, select, textarea";
const valued = "button, input[type=checkbox], input[type=radio]";

function labelOf(element) {
  return element.getAttribute("aria-label") ?? element.textContent.trim();
}

// The traits that an element and its successor share, the surest first; null where an element has none.
// A part that opens or scrolls may have new counts in its text.
const traits = [
  (element) => element.id || null,
  (element) => element.getAttribute("href"),
  (element) => (element.matches(valued) && element.value) || null,
  (element) => (element.matches(acting) ? labelOf(element) : element.localName),
];

// The elements of a row or a fragment that are like an element, for each of the traits.
function alike(scope, element) {
  const elements = [...scope.querySelectorAll(element.localName)];
  return traits.map((trait) => {
    const value = trait(element);
    return value === null ? [] : elements.filter((other) => trait(other) === value);
  });
}

function successorIn({ id, places }, element) {
  const scope = document.getElementById(id);
  return scope && alike(scope, element).map((like, at) => like[places[at]]).find(Boolean);
}

// Rows of a list are alike: the row of the same id comes before the whole fragment.
export function focusIn(fragment) {
  const element = document.activeElement;
  if (!fragment.id || element === fragment || !fragment.contains(element)) return null;
  const scopes = [element.parentElement.closest("[id]"), fragment].map((scope) =>
    ({ id: scope.id, places: alike(scope, element).map((like) => like.indexOf(element)) }));
  return { element, scopes };
}

export function focusAgain(place) {
  if (!place || document.activeElement !== document.body) return;
  const successors = place.scopes.map((scope) => successorIn(scope, place.element));
  successors.find(Boolean)?.focus({ preventScroll: true });
}
