"""What `make check` runs: some tests of every room that find most faults within a minute.

Whole files where they are quick, else single tests. Tests marked as slow in these files are left to
`make test`, which runs everything that is not run here. Quick means: no server, no processes, few
kernels to compile.
"""

from pathlib import Path

FAST = {
    "the house": [
        "tests/test_layers.py",
        "tests/test_ground.py",
        "tests/test_registry.py",
        "tests/test_release.py::test_the_version_is_the_same_wherever_it_stands",
        "tests/publication/test_plan.py",
        "tests/publication/test_gate.py::test_rules_that_make_no_sense",
        "tests/publication/test_editions.py::test_an_edition_is_published_once",
        "tests/publication/test_editions.py::test_advice_to_the_office_is_in_no_public_file",
        "tests/publication/test_editions.py::test_notes_are_complete_in_norwegian_for_every_method",
        "tests/publication/test_languages.py::test_notes_for_readers_are_as_they_are_made_now",
        "tests/test_accounting.py",
        "tests/test_plugins.py",
        "tests/studies/test_mutants.py",
    ],
    "display": ["tests/display"],
    "design": [
        "tests/design/test_design.py",
        "tests/design/test_formula.py",
        "tests/design/test_hierarchy.py",
        "tests/design/test_incidence.py",
        "tests/design/test_statement.py",
        "tests/design/test_table.py",
        "tests/design/test_values.py",
    ],
    "records": [
        "tests/microdata/test_findings.py",
        "tests/microdata/test_microdata.py",
        "tests/microdata/test_nasty_files.py",
        "tests/microdata/test_recode.py",
        "tests/microdata/test_record_keys.py",
        "tests/microdata/test_secret.py",
        "tests/microdata/test_spilled.py::test_spilled_records_lie_in_a_closed_folder_and_go_with_the_connection",
        "tests/tabulate/test_contributions.py",
        "tests/tabulate/test_margins.py",
        "tests/tabulate/test_tabulate.py",
    ],
    "ledger": ["tests/ledger"],
    "solve": [
        "tests/solve/test_fit.py",
        "tests/solve/least_squares/test_additive.py",
        "tests/solve/likelihood/test_reduction.py",
        "tests/solve/likelihood/test_refutation.py",
        "tests/solve/linear/test_intervals.py",
        "tests/solve/integer/test_problem.py",
    ],
    "noise": [
        "tests/noise/test_audit.py",
        "tests/noise/test_invariant.py",
        "tests/noise/test_matrix.py",
        "tests/noise/test_mechanisms.py",
        "tests/noise/test_series.py",
        "tests/noise/test_transport.py",
    ],
    "protect": [
        "tests/protect/test_cell_key.py",
        "tests/protect/test_exact_privacy.py",
        "tests/protect/test_magnitude_key.py",
        "tests/protect/test_options.py",
        "tests/protect/test_publish.py",
        "tests/protect/test_weights.py",
    ],
    "rules and suppression": [
        "tests/protect/suppress/test_dominance.py",
        "tests/protect/suppress/test_change_over.py",
        "tests/protect/suppress/test_argus_batch.py::test_a_job_hides_and_tells_no_kinds_unless_asked",
        "tests/protect/suppress/test_named.py",
        "tests/protect/suppress/test_rules.py",
        "tests/protect/suppress/test_unions.py",
    ],
    "synthesize": [
        "tests/synthesize/test_agreement_with_r.py",
        "tests/synthesize/test_formula.py",
        "tests/synthesize/test_large.py",
        "tests/synthesize/test_swap.py",
        "tests/synthesize/test_synthesize.py",
    ],
    "release": [
        "tests/release/test_cube.py",
        "tests/release/test_sums.py",
        "tests/release/test_tables.py",
        "tests/release/test_zeros.py",
        "tests/release/formats",
    ],
    "assess": [
        "tests/assess/audit/test_audit.py",
        "tests/assess/audit/test_perturbed.py",
        "tests/assess/risk/test_cells.py",
        "tests/assess/risk/test_disclosure.py",
        "tests/assess/utility",
    ],
    "attack": [
        "tests/attack/test_attack.py",
        "tests/attack/test_privacy_game.py",
        "tests/attack/test_public_side.py",
        "tests/attack/test_scoring.py",
        "tests/attack/test_variability.py",
        "tests/attacks/test_second_releases.py",
    ],
    "testing": [
        "tests/testing/test_fitters.py",
        "tests/testing/test_methods.py",
    ],
    "serve": [
        "tests/serve/kernel/test_numbers.py",
        "tests/serve/test_policy.py",
        "tests/serve/test_query.py",
        "tests/serve/test_serve_layers.py",
        "tests/serve/web/test_grid.py",
        "tests/serve/web/test_pages.py",
        "tests/serve/web/test_texts.py",
        "tests/office/test_reception.py",
    ],
    "command line": ["tests/cli/test_cli.py", "tests/cli/test_codes.py"],
    "docs": [
        "tests/test_docs.py::test_links_between_pages_lead_somewhere",
        "tests/test_docs.py::test_every_citation_is_in_the_bibliography",
        "tests/test_docs.py::test_the_examples_run_as_printed[README.md]",
    ],
}
"""Files, folders and tests by room."""
_ROOT = Path(__file__).parents[1]


def tests() -> list[str]:
    """All of them, as pytest takes them."""
    return [test for tests in FAST.values() for test in tests]


_STARTS = tuple(f"{test}{end}" for test in tests() for end in ("::", "[", "/"))


def is_checked(name: str, is_slow: bool) -> bool:
    """Whether `make check` runs the test of this name."""
    return not is_slow and (name in tests() or name.startswith(_STARTS))


def is_checked_whole(path: Path) -> bool:
    """Whether `make check` runs every test of this file."""
    name = path.relative_to(_ROOT).as_posix()
    return (
        path.suffix == ".py"
        and path.name.startswith("test_")
        and is_checked(name, is_slow=False)
        and "mark.slow" not in path.read_text(encoding="utf-8")
    )
