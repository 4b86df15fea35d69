// The pages of the table builder, as text: `serve/web/pages.py`. It knows no browser.

import { page_address, page_parameters } from "./addresses.js";
import { chart_of } from "./charts.js";
import { parents } from "./cube.js";
import { TableDescriber } from "./describe.js";
import { formats } from "./downloads/index.js";
import { grid_parts, layout_of } from "./grid.js";
import * as moves from "./moves.js";
import { CHARTS, Query } from "./query.js";
import { no_such, Refusal } from "./refusals.js";
import { Renderer } from "./runtime.js";
import { parse_query, sorted, strip, urlencode, words } from "./strings.js";
import * as wording from "./wording.js";

/** @typedef {import("./answer.js").Answer} Answer */
/** @typedef {import("./dataset.js").Dataset} Dataset */
/** @typedef {import("./site.js").Site} Site */
/** @typedef {{status: number, search: string, html: string, answer: Answer | null}} Page */
/** @typedef {{site: Site, code: string, texts: any, given: [string, string][]}} Asked */

const LANGUAGE = "lang";
const OF_PAGES = [LANGUAGE, "edit", wording.NEW_LABEL, wording.NEW_CODE, wording.NEW_OF, "file", "labels"];

/**
 * The page of an address. Its query string may differ from the one that was asked, and then is the page's own.
 * @param {Site} site @param {string} path `d/census/table`, without `index.html`.
 * @param {string} search @param {string} code The language.
 * @returns {Promise<Page>}
 */
export async function page(site, path, search, code) {
  const asked = { site, code, texts: await site.texts(code), given: parse_query(search) };
  try {
    return await page_of(asked, path, search);
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    return drawn(asked, "error.html", search, { refusal }, refusal.status);
  }
}

/** @param {Asked} asked @param {string} path @param {string} search */
async function page_of(asked, path, search) {
  const [first, name, kind, ...rest] = path.split("/").filter(Boolean);
  if (first === undefined) return catalogue(asked, search);
  if (first === "about" && name === undefined) {
    return drawn(asked, "about.html", search, { site: await in_templates(asked) });
  }
  if (first !== "d" || name === undefined || rest.length > 0) {
    throw new Refusal("not_found", "There is no such page.", "The catalogue is at /.", 404);
  }
  const known = Object.keys(asked.site.config.datasets);
  if (!known.includes(name)) throw no_such("data set", name, known, "Data sets", "unknown_dataset", 404);
  const dataset = await asked.site.dataset(name, asked.code);
  if (kind === "about") return about_dataset(asked, dataset, search);
  return kind === "table" ? table(asked, dataset, search) : start(asked, dataset, search);
}

/** The site as the catalogue's template reads it, with all its data sets. @param {Asked} asked */
async function in_templates({ site, code }) {
  const found = await site.datasets(code);
  return { title: site.title, config: site.config, datasets: new Map(found.map((dataset) => [dataset.name, dataset])) };
}

/** @param {Asked} asked @param {string} search */
async function catalogue(asked, search) {
  const site = await in_templates(asked);
  const given = new Map(asked.given);
  const [wanted, topic] = [given.get("query") ?? "", given.get("topic") ?? ""];
  const listed = [...site.datasets.values()];
  const topics = [...new Set(listed.map((dataset) => dataset.about.topic).filter(Boolean))];
  const found = listed.filter((dataset) => dataset.holds(words(wanted), topic));
  return drawn(asked, "catalogue.html", search, { site, wanted, topic, topics, found });
}

/** A data set with a first table. @param {Asked} asked @param {Dataset} dataset @param {string} search */
function start(asked, dataset, search) {
  const is_series = dataset.first.rows.map((name) => name.split("[")[0]).includes(dataset.time);
  const query = dataset.first.changed({ chart: is_series ? "lines" : "bars" });
  return table_page(asked, dataset, wording.complete(dataset, query), "", search);
}

/** @param {Asked} asked @param {Dataset} dataset @param {string} search */
function about_dataset(asked, dataset, search) {
  return drawn(asked, "dataset.html", search, {
    dataset,
    at: asked.site.at(dataset.name),
    notes: wording.statement_notes(dataset.statement, asked.texts),
    statement: dataset.statement,
    limits: wording.limits_of(dataset, asked.texts),
    wording,
  });
}

/** The query of a table's page, with the group that a form describes. @param {Asked} asked @param {Dataset} dataset */
function query_of({ given }, dataset) {
  const query = Query.parse(given.filter(([name]) => !OF_PAGES.includes(name)));
  return wording.complete(dataset, with_new_group(query, given));
}

/**
 * A table, or why there is none, beside the panel in which it is put together.
 * @param {Asked} asked @param {Dataset} dataset @param {string} search
 */
async function table(asked, dataset, search) {
  const query = query_of(asked, dataset);
  const edit = new Map(asked.given).get("edit") ?? "";
  const own = page_parameters(query, edit);
  if (urlencode(own) === urlencode(asked.given.filter(([name]) => name !== LANGUAGE))) {
    return table_page(asked, dataset, query, edit, search);
  }
  const given = [...own, ...asked.given.filter(([name]) => name === LANGUAGE)];
  // Read once more, as a server reads where it sends visitors on to.
  const found = query_of({ ...asked, given }, dataset);
  return table_page(asked, dataset, found, edit, `?${page_address(found, edit)}`);
}

/**
 * The table of an address, for files.
 * @param {Site} site @param {string} name @param {string} search @param {string} code
 */
export async function answer_of(site, name, search, code) {
  const dataset = await site.dataset(name, code);
  const given = parse_query(search).filter(([key]) => !OF_PAGES.includes(key));
  return dataset.answer(Query.parse(given));
}

/** The chart of a table, if it has one. @param {Site} site @param {Answer} answer @param {any} texts */
export function chart_alone(site, answer, texts) {
  return chart_of(answer, layout_for(answer), texts, site.config.accent);
}

/** @param {Query} query @param {[string, string][]} given */
function with_new_group(query, given) {
  const found = new Map(given);
  const codes = given.filter(([name, value]) => name === wording.NEW_CODE && value).map(([, value]) => value);
  const label = strip((found.get(wording.NEW_LABEL) ?? "").replaceAll("|", "/"));
  const variable = found.get(wording.NEW_OF);
  return label && codes.length > 0 && variable ? moves.with_group(query, variable, label, codes) : query;
}

/** @param {Asked} asked @param {Dataset} dataset @param {Query} query @param {string} edit @param {string} search */
async function table_page(asked, dataset, query, edit, search) {
  const parts = {
    dataset,
    query,
    at: asked.site.at(dataset.name),
    moves,
    wording,
    placed: moves.placed(query, dataset.variables),
    editor: wording.category_list(dataset, query, edit),
  };
  try {
    const answer = await dataset.answer(query);
    return drawn(asked, "builder.html", search, { ...parts, ...table_parts(asked, answer), refusal: null, answer });
  } catch (refusal) {
    if (!(refusal instanceof Refusal)) throw refusal;
    // A builder from which the last variable was taken is where a visitor chooses another one.
    const status = refusal.code === "no_variables" ? 200 : refusal.status;
    return drawn(asked, "builder.html", search, { ...parts, refusal, answer: null }, status);
  }
}

/** @param {Answer} answer */
function layout_for(answer) {
  return layout_of(answer.shown, answer.rows.length, answer.columns.length, answer.query.view);
}

/** What a page shows of an answer. @param {Asked} asked @param {Answer} answer */
function table_parts({ site, texts }, answer) {
  const layout = layout_for(answer);
  return {
    title: wording.title_of(answer, texts),
    caption: wording.caption_of(answer, texts),
    layers: wording.layers_of(answer),
    populations: wording.populations_of(answer),
    ...grid_parts(layout, answer.query.view, texts.numbers),
    chart: chart_of(answer, layout, texts, site.config.accent),
    charts: CHARTS,
    tops: tops_of(answer),
    writers: formats,
    notes: wording.notes_of(answer, texts),
    statement: answer.cube.statement,
    citation: new TableDescriber(site, texts).citation(answer),
    snippets: [],
  };
}

/** For each variable in rows and columns the codes of its first level that have others below. @param {Answer} answer */
function tops_of(answer) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const name of [...answer.rows, ...answer.columns]) {
    const { entries } = answer.cube.axis(name);
    const above = new Set(parents(entries).flatMap((k) => (k === null ? [] : [k])));
    const tops = sorted([...above].filter((k) => entries[k].depth === 1).map((k) => entries[k].code));
    if (tops.length > 0) found.set(name, tops);
  }
  return found;
}

/**
 * @param {Asked} asked @param {string} file @param {string} search @param {any} parts @param {number} [status]
 * @returns {Promise<Page>}
 */
async function drawn({ site, code, texts }, file, search, parts, status = 200) {
  const { languages, language_names } = site.config;
  const others = parse_query(search).filter(([name]) => name !== LANGUAGE);
  const common = {
    site: { title: site.title, config: site.config },
    texts,
    root: site.root,
    link: (/** @type {string} */ path) => site.link(path),
    files: site.app,
    picture: site.config.picture,
    programs: false,
    version: site.config.version,
    visitor: null,
    languages: languages.map(
      (/** @type {string} */ one) => [one, language_names[one], `?${urlencode([...others, [LANGUAGE, one]])}`],
    ),
  };
  const html = new Renderer(site.templates).render(file, { ...common, ...parts });
  return { status, search, html, answer: parts.answer ?? null };
}
