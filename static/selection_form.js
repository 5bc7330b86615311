// The form around the field of a selection.

// Addresses of other pages of the grid keep the selection.
export function keepOverPages(field) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href^='?zoom=']");
    if (!link || !field.value.trim() || link.search.includes("select=")) return;
    const query = new URLSearchParams(link.search);
    query.set("selection", field.value.trim());
    link.search = query;
  });
}

// A button that is pressed before the text of the cells is there leads on with that text.
export function awaitText(selection) {
  const { form } = selection.field;
  form.addEventListener("submit", async (event) => {
    if (!selection.pending) return;
    event.preventDefault();
    while (selection.pending) await selection.pending;
    if (selection.field.value) form.requestSubmit(event.submitter);
  });
}

// On a phone the field is folded while it is empty, so that the grid begins on the first screen.
export function foldOnPhone(field) {
  const fold = field.closest("details.phone-fold");
  if (!fold) return;
  const phone = matchMedia("(max-width: 575px)");
  const refold = () => { fold.open = !phone.matches || Boolean(field.value.trim()); };
  refold();
  phone.addEventListener("change", refold);
  field.addEventListener("change", () => { fold.open ||= Boolean(field.value.trim()); });
}
