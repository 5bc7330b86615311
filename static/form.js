// The form for backfills: its page loads this module beside the entry of all pages.
import { datePickers } from "./dates.js";
import { focusAgain, focusIn } from "./focus.js";

// The address of a form holds what was filled in: back and reload bring it again.
const unsaid = ["csrfmiddlewaretoken", "token", "shown_for"];
const usual = {
  by: "asset", existing: "missing_and_failed", order: "oldest", max_active_runs: "3", downstream: "none",
};

function keep(form) {
  const query = new URLSearchParams();
  const by = form.elements.by?.value ?? "asset";
  for (const [name, value] of new FormData(form)) {
    if (unsaid.includes(name) || value === "" || usual[name] === value) continue;
    if (["asset", "assets", "asset_group", "asset_tag"].includes(name) && name !== by) continue;
    if (name === "downstream_assets" && form.elements.downstream?.value !== "chosen") continue;
    query.append(name, value);
  }
  const text = query.toString();
  // An address may be long, but not as long as some selections.
  if (text.length > 6000) return;
  history.replaceState(history.state, "", text ? `?${text}` : location.pathname);
}

// An error stands until the value that it is about is changed.
function clearError(field) {
  document.getElementById(`id_${field.name}_error`)?.remove();
  field.classList.remove("is-invalid");
  field.removeAttribute("aria-invalid");
}

function keepInAddress(form) {
  let waiting;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => keep(form), 200);
  };
  form.addEventListener("input", (event) => {
    clearError(event.target);
    later();
  });
  form.addEventListener("change", later);
  document.addEventListener("htmx:afterSettle", later);
  // Nothing is lost if the form is left within that time.
  addEventListener("pagehide", () => keep(form));
}

// The property of a field that holds what a person enters.
function propertyOf(field) {
  return ["checkbox", "radio"].includes(field.type) ? "checked" : "value";
}

function valuesIn(fragment) {
  const fields = [...fragment.querySelectorAll("input[id], select[id], textarea[id]")];
  return new Map(fields.map((field) => [field.id, field[propertyOf(field)]]));
}

// Only fields of text have a caret, and a new value has put the caret at its end.
function restoreCaret(before) {
  const field = document.activeElement;
  if (before?.selectionStart == null || field === before || field.selectionStart == null) return;
  field.setSelectionRange(before.selectionStart, before.selectionEnd, before.selectionDirection);
}

// What a person types or opens while the server renders a fragment of the form again stays in the new
// fragment.
function keepTyped(form) {
  const valuesOfRequests = new WeakMap();
  let typed = [];
  let opened = [];
  let focusPlace = null;
  form.addEventListener("htmx:beforeRequest", ({ detail }) => {
    valuesOfRequests.set(detail.xhr, valuesIn(detail.target));
  });
  form.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const before = valuesOfRequests.get(detail.xhr) ?? new Map();
    typed = [...valuesIn(detail.target)].filter(([id, value]) => before.get(id) !== value);
    opened = [...detail.target.querySelectorAll("details[id][open]")].map((details) => details.id);
    focusPlace = focusIn(detail.target);
  });
  form.addEventListener("htmx:afterSwap", () => {
    // A button that is still hidden cannot have the focus again.
    datePickers(form);
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    opened = [];
    let changed = null;
    for (const [id, value] of typed) {
      const field = document.getElementById(id);
      if (!field || field[propertyOf(field)] === value) continue;
      field[propertyOf(field)] = value;
      changed = field;
    }
    typed = [];
    // htmx has restored the focus already, but not to a field of a part that was still closed.
    focusAgain(focusPlace);
    restoreCaret(focusPlace?.element);
    focusPlace = null;
    // The preview and the address follow.
    changed?.dispatchEvent(new Event("input", { bubbles: true }));
  });
}

// The boxes of the downstream assets are ticked as the choice above them says.
function tickAsChosen(form) {
  const way = form.elements.downstream?.value;
  if (way !== "all" && way !== "none") return;
  for (const box of form.querySelectorAll('[name="downstream_assets"]')) box.checked = way === "all";
}

// A box of a downstream asset chooses that the assets are selected one by one.
function selectByBoxes(form) {
  form.addEventListener("change", ({ target }) => {
    const way = target.name === "downstream_assets" && form.querySelector('[name="downstream"][value="chosen"]');
    if (way) way.checked = true;
    if (target.name === "downstream") tickAsChosen(form);
  }, { capture: true });
  form.addEventListener("htmx:afterSettle", () => tickAsChosen(form));
  tickAsChosen(form);
}

// A part that is open after an exchange loads its contents, as if a person had opened the part.
function loadOpenParts(form) {
  form.addEventListener("htmx:afterSettle", () => {
    for (const lazy of form.querySelectorAll("details[open] > [hx-trigger^='toggle']")) {
      lazy.parentElement.dispatchEvent(new Event("toggle"));
    }
  });
}

// The counts on the options are requested by an element of the preview. When a newer preview has
// replaced that element, the answer is about an older state of the form.
function dropOldAnswers(form) {
  form.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (!detail.requestConfig.elt.isConnected) detail.shouldSwap = false;
  });
}

for (const form of document.querySelectorAll("form[data-address]")) {
  datePickers(form);
  keepInAddress(form);
  keepTyped(form);
  dropOldAnswers(form);
  selectByBoxes(form);
  loadOpenParts(form);
}
