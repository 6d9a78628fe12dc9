// Who may do what: roles and their actions, of a namespace or a topic.

import { h, replace } from "./dom.js";
import * as api from "./api.js";
import { badge, button, card, dialog, empty, notice, table } from "./ui.js";

const ACTIONS = ["produce", "consume", "functions", "sources", "sinks", "packages"];

export async function permissions(body, { base, mayWrite, isNamespace }) {
  async function grant(role, known) {
    const given = await dialog({ title: role ? "Change " + role : "Grant", confirm: "Grant", fields: [
      role ? null : { name: "role", label: "Role", required: true },
      ...ACTIONS.map((action) => ({ name: action, label: action, kind: "checkbox", value: known.includes(action) })),
    ].filter(Boolean) });
    const name = role || given.role;
    await api.post(api.path(base, name), ACTIONS.filter((action) => given[action]));
    notice("Granted to " + name + ".", "good");
    await load();
  }

  async function load() {
    const [roles, subscriptions] = await Promise.all([api.get(base), isNamespace ? api.get(base + "/subscription").catch(() => ({})) : {}]);
    const rows = Object.entries(roles || {}).sort();
    replace(body, card(["Roles", mayWrite && button("Grant", () => grant("", []), { class: "primary" })],
      rows.length ? table([
        { title: "Role", cell: ([role]) => h("span", { class: "name" }, role) },
        { title: "May", cell: ([, actions]) => actions.map((action) => [badge(action), " "]) },
        { title: "", class: "row-actions", cell: ([role, actions]) => mayWrite ? [button("Change", () => grant(role, actions)), button("Withdraw", async () => {
          await dialog({ title: "Withdraw everything from " + role, text: "Its connections end within a second.", confirm: "Withdraw", danger: true });
          await api.del(api.path(base, role));
          await load();
        }, { class: "danger" })] : null },
      ], rows) : empty("No role has a right here by itself. Super-users and the tenant's admins have all.")),
    Object.keys(subscriptions || {}).length ? card("Subscriptions that only some roles may use", table([
      { title: "Subscription", cell: ([name]) => h("span", { class: "name" }, name) },
      { title: "Roles", cell: ([, roles_]) => roles_.join(", ") }], Object.entries(subscriptions))) : null);
  }
  await load();
}
