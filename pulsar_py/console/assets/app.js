// The frame of all pages: signing in, navigation, keys, and which page an address means.

import { h, replace } from "./dom.js";
import * as api from "./api.js";
import { Page, button, dialog, failed, heading, problem } from "./ui.js";
import { overview } from "./overview.js";
import { namespacePage, tenantPage, tenantsPage } from "./places.js";
import { topicPage } from "./topic.js";
import { subscriptionPage } from "./subscription.js";
import { settingsPage, storagePage } from "./broker.js";
import { clusterPage } from "./cluster.js";

const ROUTES = {
  "": overview,
  tenants: tenantsPage,
  tenant: tenantPage,
  namespace: namespacePage,
  topic: topicPage,
  subscription: subscriptionPage,
  cluster: clusterPage,
  storage: storagePage,
  settings: settingsPage,
};

const root = document.getElementById("app");
let me = null;
let shown = null;

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function may(action) {
  return me.actions.includes(action);
}

function frame() {
  const links = [["Overview", "#/", "", may("READ_BROKERS")], ["Tenants", "#/tenants", "tenants", true],
    ["Cluster", "#/cluster", "cluster", may("READ_BROKERS")], ["Storage", "#/storage", "storage", may("READ_BROKERS")], ["Settings", "#/settings", "settings", may("READ_BROKERS")]];
  const menu = h("nav", { class: "menu", "aria-label": "Console" },
    links.filter((each) => each[3]).map(([text, href, name]) => h("a", { href, "data-page": name }, text)));
  replace(root,
    h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); document.querySelector("main h1")?.focus(); } }, "To the content"),
    h("header", { class: "top" },
      h("a", { class: "brand", href: "#/" }, h("img", { src: "/console/mark.svg", alt: "", width: 28, height: 28 }), h("span", {}, "pulsar_py"), h("span", { class: "muted cluster" }, me.cluster)),
      menu,
      h("div", { class: "who" },
        me.role ? h("span", { class: "role", title: "Signed in as" }, me.role) : me.authentication ? h("span", { class: "role" }, "anonymous") : h("span", { class: "badge warn", title: "Authentication is off: everybody may do everything" }, "open to all"),
        button("☾", () => theme(isDark() ? "light" : "dark"), { title: "Dark or light", class: "quiet" }),
        button("?", help, { title: "Keys", class: "quiet" }),
        me.authentication ? button("Sign out", signOut, { class: "quiet" }) : null)),
    h("main", { id: "main" }));
}

function help() {
  const keys = [["/", "search"], ["g o", "overview"], ["g t", "tenants"], ["g b", "the brokers of the cluster"], ["g s", "storage"], ["g c", "settings"], ["u", "one level up"], ["← →", "along tabs, or along the picture of holes"], ["Esc", "close a dialog"], ["?", "these keys"]];
  return dialog({ title: "Keys", confirm: "Close", only: true, body: h("dl", { class: "keys" }, keys.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)])) }).catch(() => {});
}

async function route() {
  if (!me) return;
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const make = ROUTES[name] || overview;
  shown?.end();
  const page = new Page(h("div", { class: "page" }));
  shown = page;
  document.querySelectorAll(".menu a").forEach((link) => {
    const own = link.dataset.page;
    const isHere = own === name || (own === "tenants" && ["tenant", "namespace", "topic", "subscription"].includes(name));
    if (isHere) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "nearest" });  // the menu is wider than a telephone
    } else link.removeAttribute("aria-current");
  });
  const main = document.getElementById("main");
  replace(main, page.element);
  if (name === "" && !may("READ_BROKERS")) {
    location.replace("#/tenants");
    return;
  }
  try {
    await make(page, parts, me);
  } catch (error) {
    if (page.isShown) {
      if (!page.element.querySelector("h1")) page.element.append(heading("Not shown"));
      page.element.append(problem(error));
    }
  }
  if (page.isShown) {
    const title = page.element.querySelector("h1");
    document.title = (title ? title.textContent + " – " : "") + "Console – pulsar_py";
    scrollTo(0, 0);
  }
}

async function start() {
  try {
    me = await api.get(api.CONSOLE + "/me");
  } catch (error) {
    if (error.status === 401) signIn();
    else replace(root, h("main", { class: "alone" }, problem(error), button("Again", start)));
    return;
  }
  frame();
  await route();
}

function signOut() {
  shown?.end();
  api.signOut();
  me = null;
  signIn();
}

function signIn(error) {
  me = null;
  shown?.end();
  const token = h("textarea", { id: "token", rows: 4, spellcheck: "false", autocomplete: "off" });
  const user = h("input", { id: "user", autocomplete: "username" });
  const password = h("input", { id: "password", type: "password", autocomplete: "current-password" });
  const said = h("div", { role: "alert", class: "sign-error" }, error || "");
  async function submit(event) {
    event.preventDefault();
    if (token.value.trim()) api.withToken(token.value);
    else api.withPassword(user.value, password.value);
    try {
      me = await api.get(api.CONSOLE + "/me");
    } catch (failure) {
      api.signOut();
      replace(said, failure.status === 401 ? "The broker does not accept this." : failure.message);
      return;
    }
    frame();
    await route();
  }
  replace(root, h("main", { class: "alone" },
    h("form", { class: "card sign-in", onsubmit: submit },
      h("div", { class: "brand" }, h("img", { src: "/console/mark.svg", alt: "", width: 36, height: 36 }), h("h1", {}, "Sign in")),
      h("div", { class: "field" }, h("label", { for: "token" }, "Token"), token),
      h("p", { class: "or" }, "or"),
      h("div", { class: "field" }, h("label", { for: "user" }, "User"), user),
      h("div", { class: "field" }, h("label", { for: "password" }, "Password"), password),
      said,
      h("button", { type: "submit", class: "primary" }, "Sign in"),
      h("p", { class: "muted" }, "This page keeps it in memory, and forgets it when you close or reload the page."))));
  token.focus();
}

let pressed = "";
document.addEventListener("keydown", (event) => {
  if (!me || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const places = { o: "#/", t: "#/tenants", b: "#/cluster", s: "#/storage", c: "#/settings" };
  if (pressed === "g" && places[event.key]) location.hash = places[event.key];
  else if (event.key === "/") {
    event.preventDefault();
    document.querySelector("[data-search]")?.focus();
  } else if (event.key === "?") help();
  else if (event.key === "u") {
    const links = document.querySelectorAll(".crumbs a");
    if (links.length) location.hash = links[links.length - 1].getAttribute("href");
  }
  pressed = event.key;
});

api.whenSignedOut(() => { if (me) signIn("You are not signed in any more."); });
addEventListener("hashchange", route);
addEventListener("unhandledrejection", (event) => { failed(event.reason); });
start();
