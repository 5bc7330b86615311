// Names for the parts of forms that Django's own scripts draw without a name.
function nameSearchedFields() {
  for (const select of document.querySelectorAll("select.admin-autocomplete")) {
    const label = document.querySelector(`label[for="${select.id}"]`);
    const drawn = select.parentElement.querySelector(".select2-selection");
    if (!label || !drawn) continue;
    const text = label.textContent.trim().replace(/:$/, "");
    drawn.removeAttribute("aria-labelledby");
    drawn.setAttribute("aria-label", text);
    drawn.querySelector("[role=textbox]")?.setAttribute("aria-label", text);
  }
}

function nameHints() {
  for (const hint of document.querySelectorAll("span.help-tooltip[aria-label]")) hint.setAttribute("role", "img");
}

// Those scripts were loaded before, and have drawn their parts when these calls follow.
window.addEventListener("load", () => {
  window.django?.jQuery(nameSearchedFields);
  nameHints();
});
