// The one module that knows the browser: which page is asked for, and how it is shown.

import { file_cube, file_name, TableDescriber } from "./describe.js";
import { formats } from "./downloads/index.js";
import { Beside } from "./kernel.js";
import { FileFault, Folder } from "./load.js";
import { answer_of, chart_alone, page } from "./pages.js";
import { Site } from "./site.js";
import { parse_query } from "./strings.js";
import { templates } from "./templates.js";
import { preferred_language } from "./texts.js";

const REMEMBERED = "discreet.lang";

/** What a visitor looks at: one edition, until another one is published. */
class Viewer {
  /** @param {URL} home @param {any} told */
  constructor(home, told) {
    this.home = home;
    this.root = home.pathname.replace(/\/$/, "");
    this.told = told;
    this.kernel = new Beside(new URL(told.client[0], home));
    this.site = this.opened(told);
    /** Whether another client draws the edition of now, so that pages are loaded anew. */
    this.is_outdated = false;
  }

  /** @param {any} told @returns {Promise<Site>} */
  async opened(told) {
    const folder = new Folder((path) => read(new URL(path, this.home), path), this.kernel);
    const place = { root: this.root, app: `${this.root}/${told.app}`, base: this.home.origin + this.root };
    return new Site(await folder.json(told.site), folder, templates, place);
  }

  /** Look for a new edition, for the next page; one that cannot be read leaves the one before. */
  async refreshed() {
    const response = await fetch(new URL("site.json", this.home), { cache: "no-cache" }).catch(() => null);
    const told = response?.ok ? await response.json().catch(() => null) : null;
    if (!told || told.site === this.told.site) return;
    this.is_outdated = told.app !== this.told.app;
    const site = this.opened(told);
    const is_whole = await site.then(() => true, () => false);
    if (is_whole && !this.is_outdated) [this.told, this.site] = [told, site];
  }

  /** The page of an address, as `builder.js` takes it. @param {string | URL} address */
  async page(address) {
    if (this.is_outdated) location.assign(address);
    const site = await this.site;
    this.refreshed(); // nobody waits for it
    const url = new URL(address, location.href);
    const path = url.pathname.slice(this.root.length).replace(/\/?(index\.html)?$/, "");
    const code = language(site, url.search);
    const found = await page(site, path, url.search, code);
    url.search = found.search;
    return { url: url.href, text: async () => found.html };
  }

  /** Make the file that a link names, and hand it over. @param {URL} url */
  async download(url) {
    const site = await this.site;
    const given = new Map(parse_query(url.search));
    const code = language(site, url.search);
    const name = decodeURIComponent(url.pathname.slice(this.root.length).split("/")[2]);
    const answer = await answer_of(site, name, url.search, code);
    const texts = await site.texts(code);
    const ending = `.${given.get("file")}`;
    if (ending === ".svg") {
      const chart = chart_alone(site, answer, texts);
      if (chart?.svg) hand_over(`${name}-chart.svg`, String(chart.svg), "image/svg+xml");
      return;
    }
    const format = formats.find((one) => one.ending === ending);
    if (!format) throw new Error(`There is no format ${ending}.`);
    const file = file_name(answer, ending);
    const options = new TableDescriber(site, texts).options(answer, file, given.get("labels") ?? null);
    hand_over(file, await format.write(file_cube(answer), options), format.media_type);
  }
}

/** @param {URL} url @param {string} path */
async function read(url, path) {
  const response = await fetch(url).catch(() => null);
  if (!response) throw new FileFault("unreachable", path);
  if (!response.ok) throw new FileFault("missing", path);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * The language that is asked for, remembered, or preferred by the browser.
 * @param {Site} site @param {string} search
 */
function language(site, search) {
  const offered = site.config.languages;
  const wish = new URLSearchParams(search).get("lang") ?? "";
  const kept = remembered(offered.includes(wish) ? wish : "");
  return [wish, kept].find((one) => offered.includes(one)) ?? preferred_language(navigator.languages, offered);
}

/**
 * The language of last time; nothing in browsers that let sites keep nothing.
 * @param {string} wish The one to remember now.
 */
function remembered(wish) {
  try {
    if (wish) localStorage.setItem(REMEMBERED, wish);
    return localStorage.getItem(REMEMBERED) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} name @param {any} content @param {string} type */
function hand_over(name, content, type) {
  const link = Object.assign(
    document.createElement("a"),
    { download: name, href: URL.createObjectURL(new Blob([content], { type })) },
  );
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/**
 * The script that servers' pages have as well, if it is as it was published.
 * @param {string} src @param {[string, string]} told
 */
function loaded(src, [path, integrity]) {
  return new Promise((resolve, reject) => {
    const script = Object.assign(document.createElement("script"), { type: "module", integrity, src });
    script.onload = resolve;
    script.onerror = () => reject(new FileFault("damaged", path));
    document.head.append(script);
  });
}

/** @param {string} html */
function show(html) {
  const found = new DOMParser().parseFromString(html, "text/html");
  document.title = found.title;
  document.documentElement.lang = found.documentElement.lang;
  Object.assign(document.body.dataset, found.body.dataset);
  const icon = found.querySelector("link[rel=icon]");
  if (icon) document.head.append(icon);
  document.body.replaceChildren(...found.body.childNodes);
}

/** Show the page of this address, and those that follow it. @param {URL} home @param {any} told */
export async function open(home, told) {
  const viewer = new Viewer(home, told);
  const first = await viewer.page(location.href);
  show(await first.text());
  if (first.url !== location.href) history.replaceState({}, "", first.url);
  const answer_page = (/** @type {string | URL} */ address) => viewer.page(address);
  Object.assign(window, { answer_page: Object.assign(answer_page, { is_beside: () => viewer.kernel.is_ready }) });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[download]") : null;
    const url = link instanceof HTMLAnchorElement ? new URL(link.href) : null;
    if (!url?.searchParams.has("file")) return;
    event.preventDefault();
    viewer.download(url).catch((error) => alert(error.message));
  });
  await loaded(new URL(told.script[0], home).href, told.script);
}

