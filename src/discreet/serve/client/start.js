// Opens a site of files: reads which edition there is, and loads the client that draws it.
// It never changes from one edition to the next.

const home = new URL(".", import.meta.url);

/** What went wrong, where the page would stand. @param {string} message */
function fault(message) {
  const [page, title, said] = ["main", "h1", "p"].map((kind) => document.createElement(kind));
  title.textContent = document.title;
  said.setAttribute("role", "alert");
  said.textContent = message;
  page.append(title, said);
  document.body.replaceChildren(page);
}

/** @param {string} path */
const damaged = (path) =>
  new Error(`The file ${path} of this site is missing, or is not as it was published. Nothing is shown.`);

/**
 * An element of the head that loads a file, whose content must be the one that was published.
 * @param {string} kind @param {string} path @param {string} integrity @param {Record<string, string>} more
 */
function loaded(kind, path, integrity, more) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement(kind), { integrity, ...more });
    element.onload = () => resolve(undefined);
    element.onerror = () => reject(damaged(path));
    document.head.append(element);
  });
}

/**
 * Whether everything that a page begins with is named, each file of the program with what it must be.
 * @param {any} told
 */
function is_whole(told) {
  const loaded_files = [told?.client, told?.script, ...(Array.isArray(told?.styles) ? told.styles : [null])];
  const is_file = (/** @type {any} */ one) =>
    Array.isArray(one) && typeof one[0] === "string" && String(one[1]).startsWith("sha256-");
  return [told?.app, told?.site].every((path) => typeof path === "string") && loaded_files.every(is_file);
}

async function begin() {
  const response = await fetch(new URL("site.json", home), { cache: "no-cache" }).catch(() => null);
  const told = response?.ok ? await response.json().catch(() => null) : null;
  if (!is_whole(told)) throw damaged("site.json");
  const address = (/** @type {string} */ path) => new URL(path, home).href;
  const styles = told.styles.map((/** @type {string[]} */ [path, integrity]) => loaded(
    "link",
    path,
    integrity,
    { rel: "stylesheet", href: address(path) },
  ));
  const [path, integrity] = told.client;
  await loaded("script", path, integrity, { type: "module", src: address(path) });
  await Promise.all(styles);
  const { modules } = await import(address(path));
  await modules["browser.js"].open(home, told);
}

begin().catch((error) => fault(error.message));
