// Says when the server is away, and leads to the sign-in page when the session has ended.
import { polled } from "./live.js";

const patience = 15_000;
const signIn = "Slicewise-Sign-In";
let awaySince = null;

function say(...nodes) {
  document.getElementById("connection")?.replaceChildren(...nodes);
}

function away() {
  awaySince ??= new Date();
  const at = awaySince.toLocaleTimeString();
  say(`No answer from the server since ${at}. This page may be out of date. Trying again…`);
}

function back() {
  if (awaySince === null) return;
  awaySince = null;
  say();
}

function sayEnded(address) {
  const link = document.createElement("a");
  link.href = address;
  link.textContent = "Sign in";
  say("Your session has ended. ", link);
}

function ended(address, isPolled) {
  // An address of this site alone: "//host" names another one.
  if (!address.startsWith("/") || address.startsWith("//")) return;
  // Nothing typed is lost by leaving for a poll; a form that asks for a preview stays.
  if (isPolled) return location.assign(address);
  sayEnded(address);
}

// For scripts that ask the API, whose answers do not name the sign-in page. The link leads back to
// this page as its address is by now.
export function sessionEnded() {
  const { signIn: page } = document.getElementById("connection").dataset;
  sayEnded(`${page}?${new URLSearchParams({ next: location.pathname + location.search })}`);
}

export function watchConnection() {
  document.addEventListener("htmx:configRequest", (event) => {
    if (polled(event.detail.elt)) event.detail.timeout = patience;
  });
  document.addEventListener("htmx:sendError", away);
  document.addEventListener("htmx:timeout", away);
  document.addEventListener("htmx:afterRequest", (event) => {
    const { xhr, elt, successful } = event.detail;
    if (successful) back();
    else if (xhr.status >= 500) away();
    else if (xhr.status === 401) ended(xhr.getResponseHeader(signIn) ?? "", polled(elt));
  });
}
