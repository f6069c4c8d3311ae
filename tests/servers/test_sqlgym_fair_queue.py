"""Whose item is next."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from agentgym_servers.sqlgym._fair_queue import FairQueue


def queue_of(*items):
    queue = FairQueue()
    for source, number in items:
        queue.put(source, number)
    return queue


def taken(queue, count):
    """Take items with one worker that finishes each before the next."""
    order = []
    for _ in range(count):
        source, number = queue.get()
        order.append((source, number))
        queue.finish(source)
    return order


def test_eight_items_of_one_source_delay_another_by_one_at_most():
    queue = queue_of(*(("a", number) for number in range(8)))
    assert queue.get() == ("a", 0)
    queue.put("b", 0)
    queue.finish("a")
    assert taken(queue, 8) == [("b", 0), *(("a", number) for number in range(1, 8))]


def test_sources_take_turns_and_the_items_of_each_are_in_order():
    queue = queue_of(("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("c", 0))
    assert taken(queue, 6) == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2)]


def test_an_item_is_not_given_out_while_an_earlier_one_of_its_source_is_unfinished():
    queue = queue_of(("a", 0), ("a", 1), ("b", 0))
    assert [queue.get(), queue.get()] == [("a", 0), ("b", 0)]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(queue.get)
        queue.finish("b")
        assert not waiting.done()
        queue.finish("a")
        assert waiting.result(30) == ("a", 1)


def test_a_source_can_be_used_again_after_its_last_item():
    queue = queue_of(("a", 0))
    assert taken(queue, 1) == [("a", 0)]
    queue.put("a", 1)
    assert taken(queue, 1) == [("a", 1)]


def test_closing_returns_the_remaining_items():
    queue = queue_of(("a", 0), ("a", 1), ("b", 0))
    assert queue.get() == ("a", 0)
    assert queue.close() == [1, 0]
    queue.finish("a")
    assert queue.close() == []


def test_closing_ends_all_waits_and_gives_out_nothing_more():
    queue = FairQueue()
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(queue.get) for _ in range(2)]
        queue.close()
        assert [each.result(30) for each in waiting] == [None, None]
    assert not queue.put("a", 0)
    assert queue.get() is None
