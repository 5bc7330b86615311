// Date pickers. Without a script the fields are plain text and say what they take.
const plainDate = /^\d{4}-\d\d-\d\d$/;

// The day that has the focus: the chosen one, today, or the first that can be chosen.
function focusDay(picker) {
  const days = picker.calendarContainer;
  const day = days.querySelector(".flatpickr-day.selected")
    ?? days.querySelector(".flatpickr-day.today:not(.flatpickr-disabled)")
    ?? [...days.querySelectorAll(".flatpickr-day:not(.flatpickr-disabled, .prevMonthDay)")].at(-1);
  day?.focus();
}

export function datePickers(root) {
  if (!window.flatpickr) return;
  // A picker that is there already has shown its button.
  for (const button of root.querySelectorAll("button[data-picks][hidden]")) {
    const field = button.form.elements[button.dataset.picks];
    const { first, last } = button.dataset;
    // The picker hangs on an input of its own: on the field itself it would rewrite what is typed,
    // and keys say more than a date can.
    const hiddenInput = document.createElement("input");
    hiddenInput.hidden = true;
    button.after(hiddenInput);
    const picker = window.flatpickr(hiddenInput, {
      dateFormat: "Y-m-d", disableMobile: true, clickOpens: false, positionElement: field,
      // Outside of a landmark nobody who goes from landmark to landmark finds the picker.
      appendTo: document.querySelector("main"),
      minDate: first || undefined, maxDate: last || undefined,
      // Weeks begin as in the grid.
      locale: { firstDayOfWeek: 1 },
      onChange: (dates, shown) => {
        field.value = shown;
        field.dispatchEvent(new Event("change", { bubbles: true }));
        field.dispatchEvent(new Event("input", { bubbles: true }));
      },
      onClose: () => button.focus(),
    });
    button.hidden = false;
    button.addEventListener("click", () => {
      if (plainDate.test(field.value)) picker.setDate(field.value, false);
      else if (last) picker.jumpToDate(last);
      picker.open();
      focusDay(picker);
    });
  }
}
