"""Pages that are programs in the browser: what they show before they begin."""

from sparkpub.site.pages.programs import _boxes, _part


def test_a_part_of_runs_has_every_cell_however_the_runs_take_turns() -> None:
    """Every second one of `a b a b ...` would be of `a` alone."""
    rows = [{"cell": "ab"[place % 2], "run": place} for place in range(8)]
    assert [row["run"] for row in _part(rows, 4)] == [0, 4, 1, 5]
    assert [row["run"] for row in _part(rows, 3)] == [0, 4, 3]


def test_readers_tick_names_and_one_name_may_stand_for_several_keys() -> None:
    names = {
        "one": {"model": {"dense7b": "Qwen-7B", "moe": "Qwen-30B"}},
        "two": {"model": {"deepseek": "Qwen-7B"}},
    }
    rows = [
        {"campaign": "one", "model": "dense7b"},
        {"campaign": "one", "model": "moe"},
        {"campaign": "two", "model": "deepseek"},
        {"campaign": "two", "model": "new"},
    ]
    assert _boxes(names, rows, "model") == {
        "new": "new",
        "moe": "Qwen-30B",
        "dense7b|deepseek": "Qwen-7B",
    }
