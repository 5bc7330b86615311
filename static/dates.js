// Date pickers and their presets. Without a script the fields are plain text and say what they take.
const day = 24 * 60 * 60 * 1000;

function text(date) {
  return date.toISOString().slice(0, 10);
}

function pick(form, first, last) {
  for (const [name, value] of [["start", first], ["end", last]]) {
    const field = form.elements[name];
    if (field._flatpickr) field._flatpickr.setDate(value, false);
    field.value = value;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }
}

export function datePickers() {
  for (const field of document.querySelectorAll("input[data-picker]")) {
    // Typed text stays as it is: keys of the selection grammar say more than a date can.
    window.flatpickr(field, {
      allowInput: true, disableMobile: true, dateFormat: "Y-m-d",
      errorHandler: () => {},
      onChange: () => field.dispatchEvent(new Event("change", { bubbles: true })),
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
