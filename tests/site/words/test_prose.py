"""Typed figures: found by line in prose, left alone in code, front matter and expressions."""

from pathlib import Path

import pytest

from sparkpub.site.prose import unbound_numbers, uses


def found(tmp_path: Path, text: str) -> list[tuple[int, str]]:
    path = tmp_path / "page.md"
    path.write_text(text)
    return [(number.line, number.text) for number in unbound_numbers(path)]


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("It took 70.47 GiB.", "70.47 GiB"),
        ("It took 70.47GiB.", "70.47GiB"),
        ("It took 70.47\u00a0GiB.", "70.47\u00a0GiB"),
        ("30 GB consistently", "30 GB"),
        ("**+30.83 GiB** more", "+30.83 GiB"),
        ("20-30 GB", "20-30 GB"),
        ("119.40 - 120.51 tokens/sec", "119.40 - 120.51 tokens/sec"),
        ("1,234.5 tok/s", "1,234.5 tok/s"),
        ("44% overhead", "44%"),
        ("0.3 percent", "0.3 percent"),
        ("60.6°C", "60.6°C"),
        ("1.7-2.7x more", "1.7-2.7x"),
        ("2.7 times", "2.7 times"),
        ("a 5-minute wait of 5 min", "5 min"),
        ("12 ms", "12 ms"),
        ("at 2400 MHz", "2400 MHz"),
        ("| a | 5 GiB |", "5 GiB"),
        ("> quoted: 5 GiB", "5 GiB"),
        ("[5 GiB](page.md)", "5 GiB"),
        ("it is < 5 % and more", "5 %"),
    ],
)
def test_a_figure_with_a_unit_is_found(tmp_path: Path, text: str, figure: str) -> None:
    assert found(tmp_path, f"# Title\n\n{text}\n") == [(3, figure)]


@pytest.mark.parametrize(
    "text",
    [
        "the 7B model and Qwen2.5-72B-Instruct",
        "Eight requests, 128 output tokens, 10 runs, part 4 of 6.",
        "CUDA 12.9 on GB10, sm_121, kernel 6.11.0-1016-nvidia",
        "3 × 2 × 10 runs",
        "`5 GiB` in code",
        '{{ value("mean", "peak_memory_gib") }} of 5 things',
        "<!-- 5 GiB -->",
        "![chart](charts/5%20GiB.png)",
        "```text\n5 GiB\n```",
        "~~~\n5 GiB\n~~~",
        "para\n\n    5 GiB in an indented block\n",
    ],
)
def test_what_is_no_typed_figure_is_left_alone(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, f"---\ndescription: 5 GiB\n---\n\n{text}\n") == []


def test_lines_count_from_the_top_of_the_file(tmp_path: Path) -> None:
    text = (
        "---\ntitle: 5 GiB\n---\n\n```\n6 GiB\n```\n\n- item\n\n    7 GiB in a list\n\n!!! note\n\n    8 GiB inside\n"
    )
    assert found(tmp_path, text) == [(11, "7 GiB"), (15, "8 GiB")]


def test_uses_name_every_place(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text('x\n{{ claim("one") }} {{ claim("two") }}\n')
    (tmp_path / "b.md").write_text("{{ evidence('one') }}\n\n{{ says( \"one\" ) }}")
    assert uses(tmp_path, "one") == ["a.md:2", "b.md:1", "b.md:3"]
    assert uses(tmp_path, "on") == []
