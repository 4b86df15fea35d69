// Opens pages in Firefox over WebDriver BiDi, and says what they show; questions come on stdin.

import { readFileSync } from "node:fs";
import puppeteer from "puppeteer-core";

const { firefox, address, pages } = JSON.parse(readFileSync(0, "utf-8"));
const axe = readFileSync(new URL("node_modules/axe-core/axe.min.js", import.meta.url), "utf-8");
const browser = await puppeteer.launch({ browser: "firefox", executablePath: firefox, headless: true });
try {
  const found = [];
  for (const path of pages) {
    const page = await browser.newPage();
    const complaints = [];
    page.on("console", (said) => said.type() === "error" && complaints.push(said.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    await page.setViewport({ width: 1280, height: 1000 });
    await page.goto(address + path);
    await page.waitForSelector("main");
    const shown = await page.evaluate(() => ({
      text: document.body.innerText,
      charts: document.querySelectorAll("figure.chart svg").length,
      figures: [...document.querySelectorAll(".sheet tbody tr")].map((row) =>
        [...row.querySelectorAll("td")].map((cell) => cell.textContent),
      ),
    }));
    await page.setViewport({ width: 390, height: 900 });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    await page.evaluate(axe);
    const barriers = await page.evaluate(() =>
      window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }).then((r) => r.violations.map((v) => v.id)),
    );
    found.push({ ...shown, width, barriers, complaints });
    await page.close();
  }
  process.stdout.write(JSON.stringify(found));
} finally {
  await browser.close();
}
