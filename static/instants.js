// Fields for bounds of time, in the chosen zone of times: without a script they are texts in UTC. The
// address has UTC in any case.
import { zone } from "./times.js";

const parts = {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
};

// The clock of the zone at an instant, as the value of a field: 2026-01-05T06:00.
function clockAt(instant, timeZone) {
  const formatted = new Intl.DateTimeFormat("en", { ...parts, timeZone }).formatToParts(instant);
  const { year, month, day, hour, minute } = Object.fromEntries(formatted.map(({ type, value }) => [type, value]));
  return `${year.padStart(4, "0")}-${month}-${day}T${hour}:${minute}`;
}

// The instant of a clock time; where the clock skips or repeats the time, an instant beside the change.
function instantOf(clock, timeZone) {
  const wanted = Date.parse(`${clock}Z`);
  let instant = wanted;
  for (let step = 0; step < 2; step += 1) {
    instant += wanted - Date.parse(`${clockAt(instant, timeZone)}Z`);
  }
  return new Date(instant);
}

export function clockFields(root) {
  const timeZone = zone() ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const field of root.querySelectorAll("input[data-instant]")) {
    // A text that is no time stays for the person to mend.
    if (field.value && !field.dataset.instant) continue;
    const clock = document.createElement("input");
    clock.type = "datetime-local";
    clock.className = field.className;
    if (field.dataset.instant) clock.value = clockAt(new Date(field.dataset.instant), timeZone);
    clock.addEventListener("input", () => {
      field.value = clock.value ? `${instantOf(clock.value, timeZone).toISOString().slice(0, 16)}Z` : "";
    });
    field.type = "hidden";
    field.after(clock);
    const name = field.closest("label").querySelector("[data-zone-of-field]");
    name.textContent = `(${timeZone})`;
  }
}
