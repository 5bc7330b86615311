// Date pickers. Without a script the fields are plain text and say what they take.
const plainDate = /^\d{4}-\d\d-\d\d$/;

export function datePickers(root) {
  // A picker that is there already has shown its button.
  for (const button of root.querySelectorAll("button[data-picks][hidden]")) {
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
}
