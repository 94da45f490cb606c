// Questions before something is changed: what will happen, a reason, and the token if the server wants one.

import { h, show } from "./tree.js";
import { Refused, token, write } from "./api.js";
import { askAgain } from "./store.js";

let open = null;

/** An empty dialog, named by its heading, that keeps Tab inside and gives the focus back where it came from. */
function made() {
  const dialog = document.createElement("dialog");
  const before = document.activeElement;
  dialog.setAttribute("aria-labelledby", "dialog-title");
  dialog.addEventListener("keydown", (event) => event.key === "Tab" && keepInside(event, dialog));
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  dialog.addEventListener("close", () => {
    dialog.remove();
    open = null;
    // What was pressed may be gone: a paused flow has no button "Pause".
    (before?.isConnected ? before : document.getElementById("main")).focus();
  });
  document.body.append(dialog);
  open = dialog;
  return dialog;
}

function keepInside(event, dialog) {
  const stops = [...dialog.querySelectorAll("input, select, button, a[href]")].filter((el) => !el.disabled);
  const [from, to] = event.shiftKey ? [stops[0], stops.at(-1)] : [stops.at(-1), stops[0]];
  if (document.activeElement !== from && dialog.contains(document.activeElement)) return;
  event.preventDefault();
  to.focus();
}

/**
 * Ask, write, tell. `fields`: [{name, label, kind, value, hint, required, options}]; `send(values)` makes the request as [method, parts, body, query].
 */
export function confirm({ title, text, fields = [], action, tone = "", send, done }) {
  const dialog = made();
  const shown = { fault: "", busy: false, asksToken: false, field: "" };
  const draw = () => show(dialog, form());
  const close = () => dialog.close();

  async function submit(event) {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    if (shown.asksToken) token.set(values.token.trim());
    Object.assign(shown, { busy: true, fault: "" });
    draw();
    try {
      const [method, parts, body, query] = send(values);
      const answer = await write(method, parts, body, query);
      close();
      toast(done(values, answer));
      askAgain();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refused(error);
    }
  }

  function refused(error) {
    Object.assign(shown, { busy: false, fault: error.message, field: error.field ?? "" });
    if (error.status === 401) {
      shown.fault = token.get() ? "This token is not accepted." : "This server takes changes only with a token.";
      token.set("");
      shown.asksToken = true;
    }
    draw();
    dialog.querySelector(shown.asksToken ? "[name=token]" : `[name="${CSS.escape(shown.field)}"]`)?.focus();
  }

  const form = () => h("form", { method: "dialog", onsubmit: submit },
    h("h2", { id: "dialog-title" }, title),
    text && h("p", { class: "muted" }, text),
    h("div", { class: "row" }, fields.map((field) => row(field, shown.field === field.name))),
    h("label", null, h("span", null, "Reason"),
      h("input", { name: "reason", required: true, maxlength: 500, autocomplete: "off", placeholder: "kept with the change and shown to others" })),
    shown.asksToken && h("label", null, h("span", null, "Token"),
      h("input", { name: "token", type: "password", required: true, autocomplete: "off", placeholder: "one of rest.auth.tokens.file" }),
      h("small", null, "Kept until this tab is closed.")),
    shown.fault && h("p", { class: "notice bad", role: "alert" }, shown.fault),
    h("footer", null,
      h("button", { type: "button", class: "button", onclick: close }, "Cancel"),
      h("button", { type: "submit", class: `button ${tone || "main"}`, disabled: shown.busy }, shown.busy ? "Asking …" : action)));

  draw();
  dialog.showModal();
  dialog.querySelector("input:not([type=hidden]), select")?.focus();
}

function row(field, wrong) {
  const props = { name: field.name, required: field.required ?? true, "aria-invalid": wrong ? "true" : null, autocomplete: "off" };
  const input = field.kind === "select"
    ? h("select", props, field.options.map(([value, name]) => h("option", { value, selected: value === field.value }, name)))
    : h("input", { ...props, type: field.kind ?? "text", value: field.value ?? "", min: field.min, step: field.step, placeholder: field.placeholder, spellcheck: "false" });
  return h("label", { key: field.name }, h("span", null, field.label), input, field.hint && h("small", null, field.hint));
}

export const isOpen = () => open !== null;

/** A dialog that only shows something. */
export function tell(title, ...body) {
  const dialog = made();
  show(dialog, h("h2", { id: "dialog-title" }, title), body, h("footer", null, h("button", { type: "button", class: "button main", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

export function toast(text) {
  const line = document.createElement("p");
  line.textContent = text;
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), 6_000);
}
