"""Which ranks differ from the others, and which pieces count as replicated. Without communication."""

import pytest

from horovod.elastic.replicas import Finding, Knowledge, Piece, Record, judge

W = Piece("model", "parameters", "model.w")
B = Piece("model", "parameters", "model.b")
M = Piece("optimizer", "optimizer state", "optimizer.m")
OWN = Piece("own", "parameters", "own.w")


def records(*checksums, watched=(W, B, M)):
    return [Record(f"host{rank}", each, frozenset(watched), frozenset()) for rank, each in enumerate(checksums)]


def test_rank_that_differs_from_a_majority_is_the_outlier():
    assert judge(records({W: 1, B: 5}, {W: 2, B: 5}, {W: 1, B: 5})) == Finding((), (W,), (1,))
    assert judge(records({W: 7}, {W: 1}, {W: 1})).outliers == (0,)


def test_several_outliers():
    assert judge(records({W: 1, B: 5}, {W: 2, B: 5}, {W: 1, B: 6}, {W: 1, B: 5}, {W: 1, B: 5})).outliers == (1, 2)
    assert judge(records({W: 1}, {W: 2}, {W: 2}, {W: 1}, {W: 1})).outliers == (1, 2)


def test_no_majority_names_groups():
    assert judge(records({W: 1}, {W: 2})) == Finding((), (W,), groups=((0,), (1,)))
    assert judge(records({W: 1}, {W: 1}, {W: 2}, {W: 2})).groups == ((0, 1), (2, 3))


def test_majorities_of_pieces_without_a_sound_majority_are_none():
    found = judge(records({W: 1, B: 1, M: 1}, {W: 1, B: 1, M: 2}, {W: 2, B: 1, M: 1}))
    assert not found.outliers and found.groups == ((0,), (1,), (2,))


def test_ranks_of_which_each_differs_from_each_are_no_fault():
    found = judge(records({W: 1, B: 1}, {W: 2, B: 2}, {W: 3, B: 3}))
    assert found.is_scattered and not found.outliers
    assert not judge(records({W: 1, B: 1}, {W: 2, B: 1}, {W: 3, B: 1}, {W: 3, B: 1})).is_scattered


def test_pieces_that_were_never_equal_may_differ():
    found = judge(records({W: 1, OWN: 1}, {W: 1, OWN: 2}, {W: 1, OWN: 2}))
    assert found == Finding((OWN,))


def test_one_survivor_that_knows_a_piece_is_enough():
    both = records({W: 1}, {W: 2}, {W: 1}, watched=())
    assert not judge(both).unlike
    both[0] = both[0]._replace(watched=frozenset([W]))
    assert judge(both).outliers == (1,)


def test_piece_that_a_rank_lacks_differs_there():
    assert judge(records({W: 1, M: 1}, {W: 1}, {W: 1, M: 1})) == Finding((), (M,), (1,))


def test_value_counts_as_replicated_once_it_has_changed_alike():
    known = Knowledge()
    known.enter_world()
    known.note_equal({W: 1, B: 1, OWN: 1})
    assert not known.watched and not known.is_settled()
    known.note_equal({W: 1, B: 1, OWN: 1})
    assert not known.watched, "nothing has changed yet"
    known.note_equal({W: 2, B: 1, OWN: 1})
    assert known.watched == {W, B}, "B is frozen, of a model that is trained"
    known.note_equal({W: 3, B: 1, OWN: 2})
    assert known.watched == {W, B, OWN} and known.is_settled()


def test_what_differs_from_the_first_commit_on_is_left_out():
    known = Knowledge()
    known.enter_world()
    known.note_different(Finding((OWN,)), {W: 1, OWN: 1})
    assert known.skips(OWN) and not known.skips(W)
    known.note_equal({W: 2})
    assert known.watched == {W}
    known.enter_world()
    assert not known.skips(OWN), "newcomers do not know of it" and known.watched == {W}


@pytest.mark.parametrize("is_scattered", [False, True])
def test_pieces_after_an_alarm(is_scattered):
    known = Knowledge()
    known.enter_world()
    known.note_equal({W: 1, B: 1})
    known.note_equal({W: 2, B: 2})
    known.note_different(Finding((), (W,), () if is_scattered else (1,), is_scattered=is_scattered), {W: 3, B: 3})
    assert known.skips(W) and not known.skips(B)
    known.note_healed()
    assert known.skips(W) == is_scattered and (W in known.watched) != is_scattered


def test_two_ranks_that_are_equal_again_by_themselves_may_differ():
    known = Knowledge()
    known.enter_world()
    known.note_equal({W: 1})
    known.note_equal({W: 2})
    known.note_different(judge(records({W: 3}, {W: 4})), {W: 3})
    assert known.given_up == {W}
    known.note_healed()
    assert known.skips(W) and not known.watched
