"""The tests of counting, on PostgreSQL."""

import pytest

from tests.tabulate.test_engines import (  # noqa: F401  # collected here once more
    test_a_bound_hides_no_bad_weight,
    test_bad_keys_are_refused,
    test_bad_weights_are_refused,
    test_bounds_hold_for_counts_weights_and_keys,
    test_bounds_meet_the_other_columns_after_keys_are_joined,
    test_fractional_keys_are_rounded_to_the_even_neighbour,
    test_keys_of_any_whole_type,
    test_records_of_nobody_are_refused_where_persons_are_bounded,
    test_sums_of_keys_do_not_overflow_or_round,
    test_weights_are_summed_and_squared,
)
from tests.tabulate.test_tabulate import (  # noqa: F401
    test_any_name_can_be_a_variable,
    test_every_published_cell_is_right,
    test_levels_of_two_axes_cross,
    test_margins_alone_equal_the_table_with_inner_cells,
    test_missing_is_a_category_even_beside_a_hierarchy,
    test_no_records,
    test_null_and_nan_are_one_category,
    test_occurring_support,
    test_one_query_for_each_largest_margin_of_large_tables,
    test_one_record,
    test_results_do_not_depend_on_the_order_of_records,
    test_structural_zeros,
    test_the_same_cell_has_the_same_key_in_every_table,
    test_unknown_names,
    test_zero_cells_have_keys_when_there_is_a_secret,
)


@pytest.fixture
def place(on_postgres):
    return on_postgres
