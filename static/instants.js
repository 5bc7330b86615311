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

const day = 86_400_000;
// The years that the server reads.
const [earliest, latest] = ["1000-01-01T00:00", "8999-12-31T23:59"];

// The milliseconds by which the clock of the zone is ahead of UTC.
function ahead(instant, timeZone) {
  return Date.parse(`${clockAt(instant, timeZone)}Z`) - instant;
}

// The instants of a clock time, in order: two where clocks go back, and where clocks skip the time, an
// instant before and another after the change.
function instantsOf(clock, timeZone) {
  const wanted = Date.parse(`${clock}Z`);
  const instants = [wanted - day, wanted + day].map((near) => wanted - ahead(near, timeZone));
  const shown = instants.filter((instant) => clockAt(instant, timeZone) === clock);
  return (shown.length ? shown : instants).sort((a, b) => a - b);
}

// The text of a bound in UTC: the widest, so that no run of an hour that clocks repeat is left out. A
// text that is no time of the years that the server reads is no bound.
function boundOf(clock, timeZone, isUpper) {
  if (clock < earliest || clock > latest || Number.isNaN(Date.parse(`${clock}Z`))) return "";
  const instants = instantsOf(clock, timeZone);
  return `${new Date(isUpper ? instants.at(-1) : instants[0]).toISOString().slice(0, 16)}Z`;
}

function zoneOfFields() {
  return zone() ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

// The visible field of a clock time, whose bound the field of the form has.
function clockOf(field) {
  if (field.type === "hidden") return field.nextElementSibling;
  const clock = document.createElement("input");
  Object.assign(clock, { type: "datetime-local", className: field.className, min: earliest, max: latest });
  clock.addEventListener("input", () => {
    field.value = boundOf(clock.value, zoneOfFields(), field.name.endsWith("_before"));
    field.dataset.instant = field.value;
  });
  field.type = "hidden";
  field.after(clock);
  return clock;
}

// Called again for another zone.
export function clockFields(root) {
  const timeZone = zoneOfFields();
  for (const field of root.querySelectorAll("input[data-instant]")) {
    // A text that is no time stays for the person to mend.
    if (field.value && !field.dataset.instant) continue;
    const clock = clockOf(field);
    if (field.dataset.instant) clock.value = clockAt(new Date(field.dataset.instant), timeZone);
    field.closest("label").querySelector("[data-zone-of-field]").textContent = `(${timeZone})`;
  }
}
