"""What is typed into a page is found wherever a reader meets it; what is no result may be typed."""

import pytest

from sparkpub.site.proofreading import read_page
from sparkpub.site.prose import line_of, typed
from sparkpub.site.sources import source_of

HEAD = "---\ntitle: A page\ndescription: What it says.\n---\n\n"


def found(text: str) -> list[str]:
    """What is typed into a page with this body."""
    page = text if text.startswith("---\n") else HEAD + text
    return [
        said.text
        for passage in read_page(source_of(page, "page.md"))
        for said in typed(passage)
    ]


TYPED = [
    "It took 70.47 GiB.",
    "It took &#55;&#48; GiB.",
    "It took ７０ GiB.",
    "**30.83** GiB more",
    "30<sub>.83</sub> GiB more",
    "<span title='70 GiB'>much</span>",
    "20–30 GB",
    "twice as fast as before",
    "half of the memory",
    "The RTX 4090 GiB",
    "It ran at 15:57 tok/s.",
    "½ of it",
    "The mean is 119.8.",
    "Mistral Small took 119.8 GiB.",
    "About 40 runs failed.",
    "With 8 users it is enough.",
    "it is < 5 % and more",
    "| tok/s |\n|---|\n| 119.8 |",
    "| a | 5 GiB |\n|---|---|\n| b | c |",
    "## 70 GiB less",
    "[5 GiB](page.md)",
    "![a chart of 5 GiB](chart.png)",
    '![a chart](chart.png "5 GiB")',
    "text[^1]\n\n[^1]: 5 GiB in a footnote",
    '{{ value("mean") }}5 GiB',
    '9{{ value("mean") }}',
    "<svg><text>5 GiB</text></svg>",
    "---\ntitle: 5 GiB less\ncampaign: c\n---\n\ntext",
    "---\ntitle: A post\ndescription: It saves 44 %.\ncampaign: c\n---\n\ntext",
]
VERDICTS = [
    "The container is faster.",
    "Both are equivalent.",
    "There is no difference.",
    "The claim is supported.",
    "a significant loss",
]
NOT_TYPED = [
    "the 7B model and Qwen2.5-72B-Instruct on an H200",
    "Eight requests, ten runs, three models, part 4 of 6, see parts 1 to 3 and issue 57.",
    "CUDA 12.9 on GB10, sm_121, kernel 6.11.0-1016-nvidia, Python 3.12, vLLM 0.24, version 2",
    "On 2025-11-08, in November 2025, on 8 November 2025, since 2024; at 2025-11-08 23:56Z.",
    "The 1st and the 2nd run, the 4th proposal, the 1,000th run and the 3<sup>rd</sup>.",
    "The twenty-first run, the twentieth and the hundredth; all results in one folder.",
    "Mixtral 8x7B, Mistral Small 3.2 24B, GLM 4.6, Granite 4.0 and DeepSeek-R1-Distill-Qwen-1.5B",
    "1. first\n2. second",
    "(1) first, (2) second",
    "P99, T1 to T6, bf16, 4-bit weights, SHA-256, x86-64",
    "a 95 % interval",
    "`sm_121`, `--batch 8`, `cooldown: 5m`, `5 GiB` and `int8`",
    '{{ value("mean", "peak_memory_gib") }} of them, {{ compare("ratio", "x") }} times',
    "<!-- 5 GiB -->",
    "![chart](charts/5%20GiB.png)",
    "```text\n5 GiB\n```",
    "~~~\n5 GiB\n~~~",
    "para\n\n    5 GiB in an indented block\n",
    "double counting and double precision",
    "three dependent ones, once and again",
    'It is equivalent {{ verdict("x") }}, and that {{ claim("y") }} is supported.',
    '| a | b |\n|---|---|\n| x | {{ compare("verdict", "m") }} |',
    "The report says “no difference”.",
    "Mann and Whitney (1947)",
    "An RTX 4090, an RTX PRO 6000 and an EPYC 9654 of status 200 on port 8000.",
    "Apache 2.0 and CC BY-SA 4.0, since 15:57 UTC.",
]


@pytest.mark.parametrize("text", TYPED)
def test_a_typed_figure_is_found(text: str) -> None:
    assert found(text) != []


@pytest.mark.parametrize("text", VERDICTS)
def test_a_verdict_without_a_claim_is_found(text: str) -> None:
    assert len(found(text)) == 1


@pytest.mark.parametrize("text", NOT_TYPED)
def test_what_is_no_result_may_be_typed(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Title\n\nIt is 70 GiB.\n", 3),
        ("```\n70 GiB\n```\n\nIt is 70 GiB.\n", 5),
        ("Before.\n\n| tok/s |\n|---|\n| 119.8 |\n", 5),
        ("`70` apples\n\nThe mean is 70 GiB.\n", 3),
    ],
)
def test_the_line_is_that_of_the_source(text: str, line: int) -> None:
    said = [
        said
        for passage in read_page(source_of(text, "page.md"))
        for said in typed(passage)
    ]
    assert [line_of(text, one) for one in said] == [line]
