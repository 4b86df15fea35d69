"""How the page looks, on screens and on paper."""

CSS = """
:root { --ink: #1a1a1a; --quiet: #555; --line: #d5d5d5; --warn: #8a1c00; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem 1.25rem 4rem; color: var(--ink);
  font: 1rem/1.5 "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; background: #fff; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0.8rem 0 0.2rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 0.5rem; padding-top: 0.6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.4rem 0 0.3rem; }
p { margin: 0.5rem 0; max-width: 46rem; }
ul { margin: 0.4rem 0; padding-left: 1.3rem; max-width: 46rem; }
li { margin: 0.25rem 0; }
.marking { border: 2px solid var(--warn); color: var(--warn); padding: 0.5rem 0.8rem;
  font-weight: bold; max-width: none; }
.lead { font-size: 1.08rem; border-left: 4px solid #0072b2; padding: 0.2rem 0 0.2rem 0.9rem; }
.quiet { color: var(--quiet); font-size: 0.9rem; }
.wide { overflow-x: auto; margin: 0.7rem 0; }
table { border-collapse: collapse; font-size: 0.88rem; }
th, td { text-align: left; vertical-align: top; padding: 0.28rem 0.8rem 0.28rem 0;
  border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid #888; }
tbody th { border-bottom: 1px solid var(--line); font-weight: normal; color: var(--quiet);
  min-width: 9rem; }
small { display: block; color: var(--quiet); font-size: 0.8rem; white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; overflow-x: auto; }
figure svg { max-width: 100%; height: auto; }
figcaption { color: var(--quiet); font-size: 0.9rem; max-width: 46rem; }
@media print { body { max-width: none; padding: 0; font-size: 10pt; }
  section, figure, tr { break-inside: avoid; } h2 { break-after: avoid; } }
"""
