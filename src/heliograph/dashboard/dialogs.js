// Questions before something is changed: what will happen, a reason, and the token if the server wants one.

import { h, show } from "./tree.js";
import { Refused, token, write } from "./api.js";
import { askAgain } from "./store.js";

let open = null;

/**
 * Ask, write, tell. `fields`: [{name, label, kind, value, hint, required, options}]; `send(values)` makes the request as [method, parts, body, query].
 */
export function confirm({ title, text, fields = [], action, tone = "", send, done }) {
  const dialog = document.createElement("dialog");
  const before = document.activeElement;
  const shown = { fault: "", busy: false, asksToken: false, field: "" };
  const draw = () => show(dialog, form());
  const close = () => dialog.close();
  dialog.addEventListener("close", () => {
    dialog.remove();
    open = null;
    before?.focus?.();
  });
  dialog.addEventListener("click", (event) => event.target === dialog && close());

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

  const form = () => h("form", { method: "dialog", onsubmit: submit, "aria-labelledby": "dialog-title" },
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

  document.body.append(dialog);
  open = dialog;
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
  const dialog = document.createElement("dialog");
  const close = () => dialog.close();
  dialog.addEventListener("close", () => {
    dialog.remove();
    open = null;
  });
  dialog.addEventListener("click", (event) => event.target === dialog && close());
  document.body.append(dialog);
  open = dialog;
  show(dialog, h("h2", null, title), body, h("footer", null, h("button", { type: "button", class: "button main", onclick: close }, "Close")));
  dialog.showModal();
}

export function toast(text) {
  const line = document.createElement("p");
  line.textContent = text;
  document.getElementById("toasts").append(line);
  setTimeout(() => line.remove(), 6_000);
}
