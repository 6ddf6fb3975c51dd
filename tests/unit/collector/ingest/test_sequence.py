from tfprof.collector.ingest.sequence import SequenceResult, SequenceTracker


def test_following_numbers_are_new():
    sequence = SequenceTracker(4)
    assert sequence.admit(5, 7) == SequenceResult(first_new=5)
    assert sequence.last == 7


def test_repeated_numbers_are_not_new():
    assert SequenceTracker(7).admit(5, 7) == SequenceResult()


def test_only_the_rest_of_an_overlapping_message_is_new():
    assert SequenceTracker(5).admit(4, 7) == SequenceResult(first_new=6)


def test_a_gap_is_reported_the_first_time_and_its_numbers_are_lost_the_second_time():
    sequence = SequenceTracker(2)
    assert sequence.admit(5, 6) == SequenceResult(is_after_gap=True)
    assert sequence.last == 2
    assert sequence.admit(5, 6) == SequenceResult(first_new=5, lost=2)


def test_a_late_message_closes_the_gap():
    sequence = SequenceTracker(2)
    sequence.admit(5, 6)
    assert sequence.admit(3, 4) == SequenceResult(first_new=3)
    assert sequence.admit(5, 6) == SequenceResult(first_new=5)


def test_another_gap_is_again_only_reported():
    sequence = SequenceTracker(2)
    sequence.admit(5, 6)
    assert sequence.admit(7, 8).is_after_gap
