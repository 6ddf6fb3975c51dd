"""The span keys of session runs."""

from tfprof.formats.run_keys import call_counts, fetches_key, signature_key, with_feeds


def test_keys_differ_between_sets_of_fetches_and_targets():
    keys = {
        with_feeds(signature_key(fetches, targets), 2)
        for fetches, targets in ((["a"], ["b"]), (["b"], ["a"]), (["a", "b"], []), ([], ["a", "b"]), (["a"], ["c"]))
    }
    assert len(keys) == 5
    assert {call_counts(key)[0] for key in keys} == {2}
    assert call_counts(with_feeds(signature_key(["x"] * 40, ["y"] * 40), 99)) == (15, 15, 15)
    assert call_counts(with_feeds(fetches_key(3), 2)) == (2, 3, 0)
