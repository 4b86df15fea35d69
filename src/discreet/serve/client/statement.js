// What was done to figures and what it promises: `tables/statement.py`.

/** @typedef {{kind: string, text: string, plain: string, about: string}} Sentence */
/**
 * @typedef {object} Step
 * @property {string} name
 * @property {Map<string, string | boolean>} parameters As templates print them.
 * @property {string} parameters_json The same as JSON of Python.
 * @property {Sentence[]} sentences
 */

const PARTS = ["process", "values", "limits"];

export class Statement {
  /** @param {Step[]} steps @param {string} privacy_json @param {string} version */
  constructor(steps, privacy_json, version) {
    this.steps = steps;
    this.privacy_json = privacy_json;
    this.version = version;
  }

  /** @param {any} told */
  static of(told) {
    const steps = told.steps.map((/** @type {any} */ step) => ({ ...step, parameters: new Map(step.parameters) }));
    return new Statement(steps, told.privacy_json, told.version);
  }

  /** Everything that is said, each once. @returns {Sentence[]} */
  get sentences() {
    const said = new Map(
      this.steps.flatMap((step) => step.sentences).map((s) => [[s.kind, s.text, s.plain, s.about].join("\0"), s]),
    );
    return [...said.values()].sort((one, other) => PARTS.indexOf(one.about) - PARTS.indexOf(other.about));
  }
  get text() {
    return this.sentences.map((sentence) => sentence.text).join(" ");
  }
  get plain() {
    return [...new Set(this.sentences.map((sentence) => sentence.plain).filter(Boolean))].join(" ");
  }
  /** @param {string} kind */
  says(kind) {
    return this.sentences.some((sentence) => sentence.kind === kind);
  }
  /** @param {Step} step */
  with_step(step) {
    return new Statement([...this.steps, step], this.privacy_json, this.version);
  }
}
