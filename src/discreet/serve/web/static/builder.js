// Makes the builder update at once, from a server or, where `answer_page` is, from files. Pages work without it: every control is a link or a form.
"use strict";

const main = document.getElementById("main");
const said = document.getElementById("said");
const narrow = window.matchMedia("(max-width: 60rem)");
let underWay = null;

function isTable(url) {
  return url.origin === location.origin && /\/d\/[^/]+\/table(\/(index\.html)?)?$/.test(url.pathname);
}

// What a visitor would lose when the page is exchanged: open parts, and how far things are scrolled.
const SCROLLED = [".sheet", ".panel", "#boxes", "#offered"];

function remembered() {
  const found = SCROLLED.map((name) => main.querySelector(name));
  return {
    open: new Map([...main.querySelectorAll("details[id]")].map((d) => [d.id, d.open])),
    scrolled: found.map((e) => e && [e.scrollLeft, e.scrollTop]),
    search: document.getElementById("search-boxes")?.value,
  };
}

function restored(kept) {
  for (const [id, open] of kept.open) {
    const found = document.getElementById(id);
    if (found) found.open = open;
  }
  const search = document.getElementById("search-boxes");
  if (search && kept.search) {
    search.value = kept.search;
    filterList(search);
  }
  SCROLLED.forEach((name, k) => {
    const found = main.querySelector(name);
    if (found && kept.scrolled[k]) [found.scrollLeft, found.scrollTop] = kept.scrolled[k];
  });
}

// The keyboard stays where it was, or goes to where the control says.
function focused(ids) {
  for (const id of ids) {
    const found = id && document.getElementById(id);
    if (found && found.offsetParent !== null) {
      found.focus({ preventScroll: id !== "editor" });
      return;
    }
  }
}

async function show(address, { push = true, focus = [] } = {}) {
  underWay?.abort();
  const mine = (underWay = new AbortController());
  main.classList.add("busy");
  main.setAttribute("aria-busy", "true");
  try {
    const ask = window.answer_page ?? fetch;
    const response = await ask(address, { signal: mine.signal, headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (mine.signal.aborted) return;
    const next = page.getElementById("main");
    if (!next) throw new Error("no page");
    const kept = remembered();
    main.replaceChildren(...next.childNodes);
    main.className = next.className;
    document.title = page.title;
    document.querySelector(".languages")?.replaceWith(page.querySelector(".languages") ?? "");
    if (push && response.url !== location.href) history.pushState({}, "", response.url);
    prepare();
    restored(kept);
    focused(focus);
    announce();
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  } finally {
    if (underWay === mine) {
      underWay = null;
      main.classList.remove("busy");
      main.removeAttribute("aria-busy");
    }
  }
}

// A refusal is an alert and speaks for itself.
function announce() {
  const heading = main.querySelector(".refusal") ? null : main.querySelector("h1");
  said.textContent = heading ? document.body.dataset.updated.replace("{}", heading.textContent) : "";
}

function addressOf(form, more = []) {
  const chosen = new URLSearchParams([...new FormData(form), ...more]);
  return `${form.action}?${chosen}`;
}

// Lists that can be searched

function filterList(field) {
  const list = document.getElementById(field.dataset.filters);
  const wanted = field.value.trim().toLowerCase();
  let found = 0;
  for (const item of list.querySelectorAll("li[data-words]")) {
    item.hidden = !item.dataset.words.includes(wanted);
    found += item.hidden ? 0 : 1;
  }
  list.querySelector(".none")?.remove();
  if (found === 0) {
    const none = document.createElement("li");
    none.className = "none muted";
    none.textContent = list.dataset.none;
    list.append(none);
  }
}

// Copying

async function copy(button) {
  const text = document.getElementById(button.dataset.copies).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const range = document.createRange();
    range.selectNodeContents(document.getElementById(button.dataset.copies));
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  said.textContent = document.body.dataset.copied;
}

// How many columns lie beyond the right edge; shades at the edges say the same without words.
function measure() {
  const sheet = main.querySelector(".sheet");
  const more = main.querySelector(".more[data-many]");
  if (!sheet || !more) return;
  const edge = sheet.getBoundingClientRect().right + 1;
  const heads = [...sheet.querySelectorAll("thead tr:last-child th:not(.corner)")];
  const beyond = heads.filter((head) => head.getBoundingClientRect().right > edge).length;
  more.hidden = beyond === 0;
  const text = beyond === 1 ? more.dataset.one : more.dataset.many.replace("{}", beyond);
  more.querySelector("button").textContent = text;
  sheet.parentElement.classList.toggle("more-right", beyond > 0);
}

// What only makes sense with scripts is shown.
function prepare() {
  measure();
  for (const hidden of main.querySelectorAll(".search, .copy")) hidden.hidden = false;
}

main.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.copies) copy(button);
  if (button && "scrolls" in button.dataset) {
    const sheet = main.querySelector(".sheet");
    sheet.scrollBy({ left: sheet.clientWidth / 2 });
  }
  if (button?.dataset.tick) {
    const boxes = main.querySelectorAll("#boxes li:not([hidden]) input");
    for (const box of boxes) box.checked = button.dataset.tick === "all";
    boxes[0]?.dispatchEvent(new Event("change", { bubbles: true }));
  }
  const link = event.target.closest("a[href]");
  if (!link || link.hasAttribute("download") || event.button !== 0) return;
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const url = new URL(link.href);
  if (!isTable(url) || url.hash) return;
  event.preventDefault();
  show(url, { focus: focusAfter(link) });
});

// A list of categories that opens takes the keyboard; every other control keeps it.
function focusAfter(link) {
  const target = link.dataset.focus;
  return target === "editor" ? ["editor"] : [link.id, target, "title", "main"];
}

main.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "get" || !isTable(new URL(form.action))) return;
  event.preventDefault();
  const variable = form.dataset.edit?.split(".").slice(1).join(".");
  const back = form.querySelector("[name='new.label']") ? ["editor"] : [`v-${variable}-choose`, `f-${variable}-change`, "title"];
  show(addressOf(form), { focus: back });
});

let waiting = 0;
main.addEventListener("change", (event) => {
  const form = event.target.form;
  if (!form?.classList.contains("live") || event.target.dataset.filters) return;
  clearTimeout(waiting);
  const more = form.dataset.edit ? [["edit", form.dataset.edit]] : [];
  const id = event.target.id;
  waiting = setTimeout(() => show(addressOf(form, more), { focus: [id, "editor"] }), more.length ? 350 : 0);
});

main.addEventListener("input", (event) => {
  if (event.target.dataset.filters) filterList(event.target);
});
main.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.closest("#editor")) document.getElementById("close").click();
  if (event.target.dataset?.filters && event.key === "Enter") event.preventDefault();
});

main.addEventListener("scroll", measure, { capture: true, passive: true });
window.addEventListener("resize", measure);

window.addEventListener("popstate", () => {
  if (isTable(new URL(location.href)) || main.classList.contains("building")) {
    show(location.href, { push: false });
  }
});

document.documentElement.classList.add("scripted");
if (narrow.matches) document.getElementById("build")?.removeAttribute("open");
// An address may name a part that is folded away.
const named = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
if (named instanceof HTMLDetailsElement) named.open = true;
prepare();
