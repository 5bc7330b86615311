// Shows instants in the reader's zone; the top of the page names the zone, and so does each instant on
// hover, beside UTC. Recent instants of lists are shown as the time that has passed, with the exact
// time on hover.
const key = "slicewise-zone";
const forms = {
  exact: {
    year: "numeric", month: "short", day: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit",
  },
  named: {
    year: "numeric", month: "short", day: "numeric",
    hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
  },
  minute: { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
  hour: { hour: "2-digit", minute: "2-digit" },
  day: { month: "short", day: "numeric" },
};
const formats = new Map();
const knownZones = new Map();

// The reader's choice: "" for the reader's own zone, "asset" for the zone of the shown asset, "utc".
export function zone() {
  const chosen = localStorage.getItem(key) ?? "";
  if (chosen === "utc") return "UTC";
  return chosen === "asset" ? zoneOfAsset() : undefined;
}

// A browser may not know every zone that the server knows.
function isKnown(timeZone) {
  if (!knownZones.has(timeZone)) {
    try {
      new Intl.DateTimeFormat(undefined, { timeZone });
      knownZones.set(timeZone, true);
    } catch {
      knownZones.set(timeZone, false);
    }
  }
  return knownZones.get(timeZone);
}

// Undefined on a page of no asset, and for a zone that the browser does not know.
function zoneOfAsset() {
  const name = document.querySelector("main[data-zone]")?.dataset.zone;
  return name && isKnown(name) ? name : undefined;
}

function formatter(form, timeZone = zone()) {
  const name = `${form} ${timeZone}`;
  if (!formats.has(name)) formats.set(name, new Intl.DateTimeFormat(undefined, { ...forms[form], timeZone }));
  return formats.get(name);
}

// Where clocks go back, two instants an hour apart have the same text without the name of the zone.
const HOUR = 3_600_000;

function isRepeated(at, text, form) {
  return [at - HOUR, at.getTime() + HOUR].some((other) => formatter(form).format(other) === text);
}

function written(at, form) {
  const text = formatter(form).format(at);
  const isAmbiguous = (form === "exact" || form === "minute") && isRepeated(at, text, form);
  return isAmbiguous ? formatter("named").format(at) : text;
}

const passed = new Intl.RelativeTimeFormat(undefined, { numeric: "always", style: "short" });
const steps = [[60, "second", 1], [3_600, "minute", 60], [86_400, "hour", 3_600], [7 * 86_400, "day", 86_400]];

function relative(at) {
  const seconds = (at - Date.now()) / 1000;
  const step = steps.find(([below]) => Math.abs(seconds) < below);
  return step ? passed.format(Math.trunc(seconds / step[2]), step[1]) : null;
}

function show(time) {
  const at = new Date(time.dateTime);
  const form = time.dataset.form;
  if (form === "hour" || form === "day") time.textContent = written(at, form);
  else time.textContent = (form === "ago" && relative(at)) || written(at, "exact");
}

// The texts of the server, in UTC, by element: another zone is shown without a request.
const sent = new WeakMap();

// Instants inside of texts, such as tips and reasons: the server writes the instants in UTC.
const stamps = /(\d{4}-\d\d-\d\d) (\d\d:\d\d)(:\d\d)? UTC/g;

function inZone(text) {
  return text.replace(stamps, (_, day, minute, second) =>
    written(new Date(`${day}T${minute}${second ?? ""}Z`), second ? "exact" : "minute"));
}

// `data-times` names the attribute of the element that has such a text, or is "text" for the content,
// and "options" for the contents of the options of a field.
function textsOf(element) {
  const { times: attribute } = element.dataset;
  if (attribute === "options") return [...element.options].map((option) => option.textContent);
  return [attribute === "text" ? element.textContent : element.getAttribute(attribute)];
}

function writeTexts(element, texts) {
  const { times: attribute } = element.dataset;
  if (attribute === "options") texts.forEach((text, at) => { element.options[at].textContent = text; });
  else if (attribute === "text") [element.textContent] = texts;
  else element.setAttribute(attribute, texts[0]);
}

function showTexts(root) {
  for (const element of root.querySelectorAll("[data-times]:not([data-shown])")) {
    if (!sent.has(element)) sent.set(element, textsOf(element));
    element.dataset.shown = "";
    if (element.dataset.times === "text") element.title ||= element.textContent.trim();
    writeTexts(element, sent.get(element).map(inZone));
  }
}

// A chart has the label of a day at the first column that begins on the day, in the reader's zone.
function showDayLabels(root) {
  for (const chart of root.querySelectorAll("[data-day-labels]")) {
    const step = chart.dataset.dayLabels * 1000;
    for (const time of chart.querySelectorAll("small time")) {
      const at = new Date(time.dateTime);
      time.parentElement.hidden = written(at, "day") === written(new Date(at - step), "day");
    }
  }
}

// One line names the zone of all times of a page that has any. A hint on a cell adds no line, which would
// move the cell away from the pointer.
function nameZone() {
  const line = document.querySelector("[data-zone-name]");
  if (!line?.hidden || !document.querySelector("[data-shown]:not(.sw-hint *)")) return;
  line.textContent = `Times: ${formatter("exact").resolvedOptions().timeZone}`;
  line.hidden = false;
}

// The instant in the chosen zone, and beside it in the zone of the asset and in UTC where they differ.
function inAllZones(at, utc) {
  const named = written(at, "named");
  const ofAsset = zoneOfAsset();
  const there = ofAsset && ofAsset !== "UTC" ? formatter("named", ofAsset).format(at) : named;
  const others = there === named ? [] : [`${there}, ${ofAsset}`];
  if (!named.endsWith(" UTC")) others.push(utc);
  return others.length ? `${named} (${others.join("; ")})` : named;
}

export function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-shown])")) {
    if (!sent.has(time)) sent.set(time, time.textContent);
    time.title = inAllZones(new Date(time.dateTime), sent.get(time));
    time.dataset.shown = "";
    show(time);
  }
  showTexts(root);
  showDayLabels(root);
  nameZone();
}

// Times of the last minute change with each second, as the durations beside them do.
const MINUTE = 60_000;

export function keepTimes() {
  let beat = 0;
  setInterval(() => {
    beat = (beat + 1) % 20;
    for (const time of document.querySelectorAll("time[data-form=ago][data-shown]")) {
      if (beat === 0 || Math.abs(Date.now() - new Date(time.dateTime)) < MINUTE) show(time);
    }
  }, 1000);
}

function showAgain() {
  for (const element of document.querySelectorAll("[data-shown]")) delete element.dataset.shown;
  const line = document.querySelector("[data-zone-name]");
  if (line) line.hidden = true;
  showTimes(document);
}

// Without a script, times are in UTC, and there is nothing to choose. The page is not loaded again: it
// may show a new token once, and have fields that a person has filled in.
export function zoneSwitch(onChange) {
  const select = document.querySelector("[data-zone-switch]");
  if (!select) return;
  select.closest("[hidden]").hidden = false;
  select.value = localStorage.getItem(key) ?? "";
  select.addEventListener("change", () => {
    if (select.value) localStorage.setItem(key, select.value);
    else localStorage.removeItem(key);
    showAgain();
    onChange();
  });
}
