"""Pages that are programs in the browser: what they show before they begin."""

from sparkpub.site.pages.programs import _boxes


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
