"""What the first page of the site shows: what it is, how fast models run, what is known, what is open, what is new."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

from sparkpub.record.text import counted, listed
from sparkpub.review.claims.ledger import Verdict
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.leaderboard import Group, Row, Section, Standings
from sparkpub.site import sentences
from sparkpub.site.pages import campaign_page, leaderboard_page
from sparkpub.site.pages.blog import Post
from sparkpub.site.publication import Publication, newest_first

MACHINES = 3
"""Machines with a ranking of their own."""
MODELS = 6
"""Models in the ranking of a machine."""
KNOWN = OPEN = 6
"""Statements in each list."""
NEWEST = 3
"""Campaigns and posts."""
CLAIMS_PAGE = "claims/index.md"
KNOWN_VERDICTS = frozenset({"supported", "refuted"})
DECIDED = frozenset({"equivalent", "higher", "lower"})

Statement = dict[str, Any]
"""A sentence with `verdict` (a word), `href`, `about` (where it comes from)."""


def context(
    publication: Publication,
    standings: Standings,
    posts: Sequence[Post],
    written: frozenset[str],
) -> dict[str, Any]:
    """What the template needs."""
    campaigns = newest_first(publication.campaigns)
    known = known_statements(publication, campaigns, written)
    unsettled = open_statements(publication, campaigns, written)
    cards = [campaign_page.card(publication, item) for item in campaigns[:NEWEST]]
    return {
        "heading": heading(standings),
        "counts": _counts(publication, standings),
        "rankings": rankings(standings),
        "rows": len(standings.rows),
        "known": known[:KNOWN],
        "known_more": len(known) - KNOWN,
        "open": unsettled[:OPEN],
        "open_more": len(unsettled) - OPEN,
        "has_claims": CLAIMS_PAGE in written,
        "cards": cards,
        "campaigns_more": len(campaigns) - NEWEST,
        "posts": list(reversed(posts))[:NEWEST],
        "posts_more": len(posts) - NEWEST,
    }


def heading(standings: Standings) -> str:
    """What the site is about, in a line."""
    machines = [name for name in machines_of(standings.rows) if name is not None]
    if not machines:
        return "LLM inference, measured"
    if len(machines) > MACHINES:
        return f"LLM inference, measured on {len(machines)} kinds of machine"
    return f"LLM inference, measured on {listed(machines)}"


def machines_of(rows: Iterable[Row]) -> list[str | None]:
    """The machines of rows, those with the most rows first; None, for rows that name none, comes last."""
    counts = Counter(row.setup.machine for row in rows)
    return sorted(counts, key=lambda name: (name is None, -counts[name], name or ""))


def _counts(publication: Publication, standings: Standings) -> str:
    """`232 runs of 9 models in 5 campaigns`."""
    models = {row.setup.model for row in standings.rows}
    runs = counted(len(publication.dataset.runs), "run")
    campaigns = counted(len(publication.campaigns), "campaign")
    if not models:
        return f"{runs} in {campaigns}"
    return f"{runs} of {counted(len(models), 'model')} in {campaigns}"


# -- how fast ----------------------------------------------------------------------------------------------


def rankings(standings: Standings) -> list[dict[str, Any]]:
    """For each machine the models of one load, each in its fastest row: the load that the most models share."""
    found = []
    for machine in machines_of(standings.rows)[:MACHINES]:
        choices = _choices(standings, machine)
        section, group, rows = max(choices, key=lambda choice: _worth(choice[2]))
        best = best_of_each_model(rows)
        found.append(
            {
                "machine": machine,
                "title": leaderboard_page.TOOLS.get(section.tool, (section.tool, ""))[
                    0
                ],
                "load": group.label,
                "metric": group.lead,
                "rows": [_entry(row, section, best[0]) for row in best[:MODELS]],
                "doubts": leaderboard_page.doubts(best),
                "models": len(best),
                "others": len(choices) - 1,
                "href": _leaderboard_href(machine, section),
            }
        )
    return found


def _choices(
    standings: Standings, machine: str | None
) -> list[tuple[Section, Group, list[Row]]]:
    """The groups that have rows of a machine, with these rows."""
    choices = []
    for section in standings.sections:
        for group in section.groups:
            rows = [row for row in group.rows if row.setup.machine == machine]
            if rows:
                choices.append((section, group, rows))
    return choices


def _worth(rows: Sequence[Row]) -> tuple[int, int, int]:
    """What makes a load worth showing: models that have a place, models, rows."""
    placed = {row.setup.model for row in rows if row.places}
    return len(placed), len({row.setup.model for row in rows}), len(rows)


def best_of_each_model(rows: Iterable[Row]) -> list[Row]:
    """The first row of each model; the rows of a group are in the order of their figures."""
    best: dict[str, Row] = {}
    for row in rows:
        best.setdefault(row.setup.model, row)
    return list(best.values())


def _entry(row: Row, section: Section, fastest: Row) -> dict[str, Any]:
    """A row of the leaderboard with a bar relative to the fastest one beside it."""
    view = leaderboard_page.row_view(row, section, names_workload=False)
    if row.share is not None and fastest.share:
        view["width"] = f"{100 * row.share / fastest.share:.3g}"
    engine = [row.setup.engine, row.setup.engine_version]
    named = [row.setup.quantization, " ".join(filter(None, engine))]
    view["setting"] = ", ".join([*filter(None, named), row.setup.environment])
    query = urlencode({"model": row.setup.model})
    view["model_href"] = f"{leaderboard_page.ADDRESS}?{query}"
    return view


def _leaderboard_href(machine: str | None, section: Section) -> str:
    query = urlencode({"machine": machine or leaderboard_page.NOT_STATED})
    return f"{leaderboard_page.ADDRESS}?{query}#{leaderboard_page.anchor(section)}"


# -- what is known, what is open ---------------------------------------------------------------------------


def known_statements(
    publication: Publication, campaigns: Sequence[CampaignData], written: frozenset[str]
) -> list[Statement]:
    """Claims that the data decide, campaign by campaign in turn, and comparisons of campaigns without claims."""
    return in_turn(_statements(publication, campaigns, written, decided=True))


def open_statements(
    publication: Publication, campaigns: Sequence[CampaignData], written: frozenset[str]
) -> list[Statement]:
    """Claims that nothing decides yet, comparisons without a verdict, and campaigns with runs still to do."""
    unfinished = _unfinished(publication)
    by_campaign = _statements(publication, campaigns, written, decided=False)
    for campaign, found in zip(campaigns, by_campaign, strict=True):
        if campaign.name in unfinished:
            found.append(unfinished[campaign.name])
    return in_turn(by_campaign)


def _statements(
    publication: Publication,
    campaigns: Sequence[CampaignData],
    written: frozenset[str],
    *,
    decided: bool,
) -> list[list[Statement]]:
    """Of each campaign its claims that are decided, or those that are open; without any, its comparisons."""
    verdicts = [
        item
        for item in publication.verdicts
        if (item.verdict in KNOWN_VERDICTS) == decided
    ]
    return [
        _claims_of(campaign, verdicts, written)
        or _comparisons_of(publication, campaign, decided=decided)
        for campaign in campaigns
    ]


def in_turn(lists: Iterable[Sequence[Statement]]) -> list[Statement]:
    """The first of each list, then the second of each: no campaign fills the page alone."""
    turns = zip_longest(*lists)
    return [item for turn in turns for item in turn if item is not None]


def _claims_of(
    campaign: CampaignData, verdicts: Iterable[Verdict], written: frozenset[str]
) -> list[Statement]:
    """The claims that rest on a campaign, those that tell a reader the most first."""
    mine = [item for item in verdicts if item.claim.campaign == campaign.name]
    mine.sort(key=_weight)
    statements = []
    for item in mine:
        href = f"campaigns/{campaign.name}/"
        if CLAIMS_PAGE in written:
            href = f"claims/#{item.claim.id}"
        statements.append(
            {
                "text": item.claim.sentence,
                "verdict": item.verdict,
                "href": href,
                "about": campaign.info.title,
                "here": item.here,
            }
        )
    return statements


def _weight(verdict: Verdict) -> tuple[bool, bool, bool]:
    """Claims about the world come first, then those that compare; tables that were copied rightly come last."""
    claim = verdict.claim
    repeats_table = claim.expect is not None and claim.expect.published is not None
    return claim.about != "world", repeats_table, not claim.compare


def _comparisons_of(
    publication: Publication, campaign: CampaignData, *, decided: bool
) -> list[Statement]:
    """What a campaign's leading comparisons say, by verdict; nothing of runs that shared the machine."""
    if publication.shared(campaign):
        return []
    for metric in publication.headlines(campaign):
        rows = publication.comparisons_of(campaign, metric)
        wanted = [row for row in rows if (row.verdict in DECIDED) == decided]
        if wanted:
            return [
                {
                    "text": sentences.differences(publication.names, metric, same),
                    "verdict": verdict,
                    "href": f"campaigns/{campaign.name}/",
                    "about": campaign.info.title,
                    "here": False,
                }
                for verdict, same in grouped(wanted, lambda row: row.verdict).items()
            ]
    return []


def _unfinished(publication: Publication) -> dict[str, Statement]:
    """Campaigns with planned runs that are not done, by name."""
    return {
        campaign.name: {
            "text": f"{campaign.progress}.",
            "verdict": "unfinished",
            "href": f"campaigns/{campaign.name}/diagnostics/#coverage",
            "about": campaign.info.title,
            "here": False,
        }
        for campaign in publication.campaigns
        if campaign.unfinished_cells
    }
