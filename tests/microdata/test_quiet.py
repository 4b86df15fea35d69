"""Silence is shared by threads and ends when the last one leaves."""

import threading
import warnings

import pytest

from discreet.records.connection import attempt


def test_a_thread_that_leaves_does_not_end_another_ones_silence():
    first_is_in, second_is_in, first_left = (threading.Event() for _ in range(3))
    found = []

    def first():
        attempt(lambda: (first_is_in.set(), second_is_in.wait(10)), "the first")
        first_left.set()

    def second():
        first_is_in.wait(10)

        def work():
            second_is_in.set()
            first_left.wait(10)
            warnings.warn("an old name", DeprecationWarning, stacklevel=1)
            return "quiet"

        found.append(attempt(work, "the second"))

    threads = [threading.Thread(target=work) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == ["quiet"]


def test_a_warning_after_the_block_is_heard():
    attempt(lambda: None, "nothing")
    with pytest.raises(DeprecationWarning, match="an old name"):
        warnings.warn("an old name", DeprecationWarning, stacklevel=1)
