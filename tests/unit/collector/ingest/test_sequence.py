from tfprof.collector.ingest.sequence import HOLD_S, SequenceResult, SequenceTracker

NOW = 100.0


def test_following_numbers_are_new():
    sequence = SequenceTracker(4)
    assert sequence.admit(5, 7, NOW) == SequenceResult(first_new=5)
    assert sequence.last == 7


def test_repeated_numbers_are_not_new():
    assert SequenceTracker(7).admit(5, 7, NOW) == SequenceResult()


def test_only_the_rest_of_an_overlapping_message_is_new():
    assert SequenceTracker(5).admit(4, 7, NOW) == SequenceResult(first_new=6)


def test_a_gap_is_reported_the_first_time_and_its_numbers_are_lost_the_second_time():
    sequence = SequenceTracker(2)
    assert sequence.admit(5, 6, NOW) == SequenceResult(is_after_gap=True)
    assert sequence.last == 2
    assert sequence.admit(5, 6, NOW) == SequenceResult(first_new=5, lost=2)


def test_a_late_message_closes_the_gap():
    sequence = SequenceTracker(2)
    sequence.admit(5, 6, NOW)
    assert sequence.admit(3, 4, NOW) == SequenceResult(first_new=3)
    assert sequence.admit(5, 6, NOW) == SequenceResult(first_new=5)


def test_two_messages_in_flight_after_a_gap_are_each_reported_once():
    sequence = SequenceTracker(2)
    assert sequence.admit(5, 6, NOW).is_after_gap
    assert sequence.admit(7, 8, NOW).is_after_gap
    assert sequence.admit(5, 6, NOW) == SequenceResult(first_new=5, lost=2)
    assert sequence.admit(7, 8, NOW) == SequenceResult(first_new=7)


def test_messages_behind_a_stalled_one_wait_for_it():
    sequence = SequenceTracker(2)
    for second in range(3):
        sequence.note_stalled(NOW + second)
        assert sequence.admit(5, 6, NOW + second) == SequenceResult(is_after_gap=True, is_held=True)
    assert sequence.admit(3, 4, NOW + 3) == SequenceResult(first_new=3)
    assert sequence.admit(5, 6, NOW + 3) == SequenceResult(first_new=5)


def test_a_stalled_message_that_never_comes_again_is_lost():
    sequence = SequenceTracker(2)
    sequence.note_stalled(NOW)
    assert sequence.admit(5, 6, NOW).is_held
    later = NOW + HOLD_S
    assert sequence.admit(5, 6, later) == SequenceResult(is_after_gap=True)
    assert sequence.admit(5, 6, later) == SequenceResult(first_new=5, lost=2)
