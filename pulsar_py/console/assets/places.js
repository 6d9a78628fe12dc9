// Tenants, namespaces, and the topics of a namespace.

import { h, replace, to } from "./dom.js";
import * as api from "./api.js";
import { badge, button, crumbs, dialog, heading, notice, pagedList, tabs } from "./ui.js";
import { brief, bytes, count, rate, topicParts } from "./format.js";
import { policies } from "./policies.js";
import { permissions } from "./permissions.js";

export async function tenantsPage(page) {
  const rights = await api.rights({});
  const list = pagedList({
    label: "tenants",
    none: "There is no tenant that you have a right in.",
    load: (asked) => api.get(api.CONSOLE + "/tenants" + api.query(asked)),
    columns: [
      { title: "Tenant", cell: (row) => h("a", { href: to("tenant", row.name), class: "name" }, row.name) },
      { title: "Namespaces", class: "number", cell: (row) => count(row.namespaces) },
    ],
  });
  const create = rights.has("CREATE_TENANT") && button("Create tenant", async () => {
    const clusters = await api.get(api.ADMIN + "/clusters");
    const given = await dialog({ title: "Create tenant", confirm: "Create", fields: [
      { name: "name", label: "Name", required: true },
      { name: "roles", label: "Admin roles", hint: "Separated by commas; each may do everything in the tenant." },
    ] });
    const adminRoles = given.roles.split(",").map((each) => each.trim()).filter(Boolean);
    await api.put(api.path(api.ADMIN + "/tenants", given.name), { adminRoles, allowedClusters: clusters.filter((each) => each !== "global") });
    notice("Tenant " + given.name + " was created.");
    await list.show();
  }, { class: "primary" });
  replace(page.element, heading("Tenants", create), list);
  await list.show();
}

export async function tenantPage(page, [tenant]) {
  const rights = await api.rights({ tenant });
  const list = pagedList({
    label: "namespaces",
    load: (asked) => api.get(api.path(api.CONSOLE + "/namespaces", tenant) + api.query(asked)),
    columns: [
      { title: "Namespace", cell: (row) => h("a", { href: to("namespace", tenant, row.name), class: "name" }, row.name) },
      { title: "Topics and partitions", class: "number", cell: (row) => count(row.topics) },
    ],
  });
  replace(page.element, crumbs(["Tenants", to("tenants")], [tenant]), heading(tenant,
    rights.has("CREATE_NAMESPACE") && button("Create namespace", async () => {
      const given = await dialog({ title: "Create namespace in " + tenant, confirm: "Create", fields: [{ name: "name", label: "Name", required: true }] });
      await api.put(api.path(api.ADMIN + "/namespaces", tenant, given.name));
      notice("Namespace " + given.name + " was created.");
      await list.show();
    }, { class: "primary" }),
    rights.has("DELETE_TENANT") && button("Delete tenant", async () => {
      await dialog({ title: "Delete tenant " + tenant, text: "Only a tenant without namespaces can be deleted.", confirm: "Delete", danger: true, type: tenant });
      await api.del(api.path(api.ADMIN + "/tenants", tenant));
      location.hash = to("tenants");
    }, { class: "danger" })), list);
  await list.show();
}

function standing(row) {
  return row.backlog && row.standing && row.standing.length ? badge("stands still", "warn", row.standing.join(", ")) : null;
}

export async function namespacePage(page, [tenant, namespace, tab = "topics"]) {
  const rights = await api.rights({ namespace: tenant + "/" + namespace });
  const items = [["topics", "Topics"], rights.has("READ_POLICY") && ["policies", "Policies"], rights.has("READ_POLICY") && ["permissions", "Permissions"]].filter(Boolean);
  const body = h("div", {});
  let list = null;
  replace(page.element, crumbs(["Tenants", to("tenants")], [tenant, to("tenant", tenant)], [namespace]), heading(tenant + "/" + namespace,
    rights.has("CREATE_TOPIC") && button("Create topic", async () => {
      const given = await dialog({ title: "Create topic in " + tenant + "/" + namespace, confirm: "Create", fields: [
        { name: "name", label: "Name", required: true },
        { name: "domain", label: "Kind", kind: "select", options: ["persistent", "non-persistent"] },
        { name: "partitions", label: "Partitions", kind: "number", value: 0, min: 0, hint: "0: one topic without partitions" },
      ] });
      const place = api.path(api.ADMIN, given.domain, tenant, namespace, given.name);
      const partitions = Number(given.partitions);
      if (partitions > 0) await api.put(place + "/partitions", partitions);
      else await api.put(place);
      notice("Topic " + given.name + " was created.");
      if (list) await list.show();
    }, { class: "primary" }),
    rights.has("DELETE_NAMESPACE") && button("Delete namespace", async () => {
      const name = tenant + "/" + namespace;
      await dialog({ title: "Delete namespace " + name, text: "Only a namespace without topics can be deleted.", confirm: "Delete", danger: true, type: name });
      await api.del(api.path(api.ADMIN + "/namespaces", tenant, namespace));
      location.hash = to("tenant", tenant);
    }, { class: "danger" })),
  tabs(items, tab, (name) => to("namespace", tenant, namespace, name)), body);
  if (tab === "policies") return policies(body, { tenant, namespace, rights });
  if (tab === "permissions") return permissions(body, { base: api.path(api.ADMIN + "/namespaces", tenant, namespace, "permissions"), mayWrite: rights.has("WRITE_POLICY"), isNamespace: true });
  const system = h("input", { type: "checkbox", id: "system", onchange: () => list.show() });
  list = pagedList({
    label: "topics",
    none: "There is no topic yet. Producers and consumers create topics, too, where the namespace allows it.",
    beside: h("label", { class: "check", for: "system" }, system, " with the system's"),
    load: (asked) => api.get(api.path(api.CONSOLE + "/topics", tenant, namespace) + api.query({ ...asked, system: system.checked || "" })),
    columns: [
      { title: "Topic", cell: (row) => [h("a", { href: to("topic", ...topicParts(row.name)), class: "name" }, topicParts(row.name)[3]), " ",
        row.name.startsWith("non-") ? badge("non-persistent") : null, row.partitions ? badge(row.partitions + " partitions") : null, standing(row)] },
      { title: "In", class: "number", cell: (row) => row.loaded ? rate(row.messageInRate) : "–" },
      { title: "Out", class: "number", cell: (row) => row.loaded ? rate(row.messageOutRate) : "–" },
      { title: "Backlog", class: "number", cell: (row) => brief(row.backlog) },
      { title: "Subscriptions", class: "number", cell: (row) => count(row.subscriptions) },
      { title: "Producers", class: "number", cell: (row) => count(row.producers) },
      { title: "Consumers", class: "number", cell: (row) => count(row.consumers) },
      { title: "Stored", class: "number", cell: (row) => bytes(row.storageBytes) },
    ],
  });
  replace(body, list);
  return list.show();
}
