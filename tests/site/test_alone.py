"""The page of one campaign, without a repository around it."""

import urllib.request
from pathlib import Path

from sparkpub.site import alone
from tests.review.test_published import campaign


def test_a_campaign_has_its_page_without_a_repository(tmp_path: Path) -> None:
    campaign(tmp_path, "mine", "x/m-7b", 33.0)
    with alone.page(tmp_path / "mine", "A title: with 'marks'") as (address, _):
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address) as answer:
            page = answer.read().decode()
    assert "33.0 tok/s" in page.replace("\u00a0", " ")
    assert "A title: with" in page
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
