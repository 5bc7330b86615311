// Date pickers and their presets. Without a script the fields are plain text and say what they take.
const day = 24 * 60 * 60 * 1000;
const plainDate = /^\d{4}-\d\d-\d\d$/;

function text(date) {
  return date.toISOString().slice(0, 10);
}

function pick(form, first, last) {
  for (const [name, value] of [["start", first], ["end", last]]) {
    const field = form.elements[name];
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

export function datePickers() {
  for (const button of document.querySelectorAll("button[data-picks]")) {
    const field = button.form.elements[button.dataset.picks];
    // The picker hangs on an input of its own: on the field itself it would rewrite what is typed,
    // and keys say more than a date can.
    const own = document.createElement("input");
    own.hidden = true;
    button.after(own);
    const picker = window.flatpickr(own, {
      dateFormat: "Y-m-d", disableMobile: true, clickOpens: false, positionElement: field,
      onChange: (dates, shown) => {
        field.value = shown;
        field.dispatchEvent(new Event("change", { bubbles: true }));
      },
    });
    button.hidden = false;
    button.addEventListener("click", () => {
      if (plainDate.test(field.value)) picker.setDate(field.value, false);
      picker.open();
    });
  }
  for (const button of document.querySelectorAll("button[data-preset]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const form = button.form;
      const option = form.elements.asset.selectedOptions?.[0] ?? form.elements.asset;
      const { first, last } = option?.dataset ?? {};
      if (button.dataset.preset === "all") {
        if (first && last) pick(form, first, last);
        return;
      }
      const end = last ? new Date(last) : new Date(Date.now() - day);
      if (Number.isNaN(end.getTime())) return;
      pick(form, text(new Date(end - (Number(button.dataset.preset) - 1) * day)), text(end));
    });
  }
}
