"""The effect on each machine, or in each session: its interval, that of all together, and the margin."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sparkpub.record.text import (
    counted,
    listed,
    outward,
    percent,
    significant,
)
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.names import runs_of
from sparkpub.review.setup import setup_of
from sparkpub.review.statistics.estimate import ALPHA, t_quantile
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.column import rows as table_rows
from sparkpub.site import sentences
from sparkpub.site.figures import forest, kind
from sparkpub.site.figures.figure import Figure
from sparkpub.site.figures.rows import Row
from sparkpub.site.figures.selection import Selection
from sparkpub.site.publication import Publication

NAME = "effect-per-machine"
TABLE = "machines"
ALL = "all together"
SINGULAR = {
    "replicates": "replicates",
    "does not replicate": "does not replicate",
    "undecided": "differs",
}
PLURAL = {
    "replicates": "replicate",
    "does not replicate": "do not replicate",
    "undecided": "differ",
}
ID_LETTERS = 6
"""Of a machine's id, enough to tell a few machines apart."""


def rows(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per leading metric, comparison and machine, and then one for all machines together (`over`).

    Its cell, `label, metric, place` (within the metric), `machine, measured_in, n, percent, lo, hi` (95 %), `verdict`;
    of all together `replication` and `why`, and what differs between machines.
    """
    names = publication.joined(campaign)
    tables = publication.results.over(names)
    if any(table.empty for table in tables):
        return  # of most campaigns, and rows of nothing take time, too
    measured, together = map(table_rows, tables)
    several = len({_cell(row) for row in together}) > 1
    sessions = _session_names(publication, names)
    for metric in publication.headlines(campaign):
        shown: list[Row] = []
        for row in together:
            if row.metric != metric.name or row.effect_unit != "%":
                continue
            cell = ""
            if several:
                cell = f"{row.model} ({row.workload}), "
            for one in measured:
                if _same(one, row):
                    label = f"{cell}{sessions[one.campaign, one.machine]}"
                    shown.append(_of_machine(campaign, one, label))
            shown.append(_of_all(campaign, row, f"{cell}{ALL}"))
        for place, fields in enumerate(shown):
            yield {**fields, "place": place}


def machine_names(
    publication: Publication, campaigns: Sequence[str]
) -> Mapping[str, str]:
    """Id of a machine to what readers call it: its kind and the first letters of the id."""
    names = {}
    for campaign in campaigns:
        for record in publication.dataset.campaign(campaign).records:
            name = record.machine.id or ""
            what = "machine"
            if record.machine.kind is not None:
                what = setup_of(record).machine_in_short
            names[name] = f"{what} {name[:ID_LETTERS]}".strip()
    return names


def _session_names(
    publication: Publication, campaigns: Sequence[str]
) -> Mapping[tuple[str, str], str]:
    """Campaign and id of a machine to what readers call the session: the machine, and of several campaigns the day; the
    campaign, too, where that does not part them."""
    machines = machine_names(publication, campaigns)
    if len(campaigns) == 1:
        return {(campaigns[0], machine): name for machine, name in machines.items()}
    days: dict[tuple[str, str], str] = {}
    for campaign in campaigns:
        for record in publication.dataset.campaign(campaign).records:
            session = campaign, record.machine.id or ""
            days.setdefault(session, record.started.value[:10])
    names = {session: f"{machines[session[1]]}, {day}" for session, day in days.items()}
    alike = Counter(names.values())
    for session, name in names.items():
        if alike[name] > 1:
            names[session] = f"{name}, {session[0]}"
    return names


def _cell(row: TableRow) -> tuple[str, ...]:
    return row.model, row.workload, row.baseline, row.candidate


def _same(one: TableRow, row: TableRow) -> bool:
    return one.metric == row.metric and _cell(one) == _cell(row)


def _of_machine(campaign: CampaignData, one: TableRow, label: str) -> Row:
    """In percent of the machine's own baseline."""
    ends = one.ci95_difference or ()
    low, high = [100 * end / abs(one.mean_baseline) for end in ends] or (None, None)
    return {
        **_about(campaign, one, label),
        "percent": one.difference_percent,
        "lo": low,
        "hi": high,
        "machine": one.machine,
        "measured_in": one.campaign,
        "over": False,
        "n": f"{one.n_baseline} and {one.n_candidate}",
    }


def _of_all(campaign: CampaignData, row: TableRow, label: str) -> Row:
    low, high = row.ci95_effect or (None, None)
    prediction_low, prediction_high = row.prediction95 or (None, None)
    return {
        **_about(campaign, row, label),
        "percent": row.effect,
        "lo": low,
        "hi": high,
        "over": True,
        "machines": row.machines,
        "replication": row.replication,
        "why": row.why,
        "between_sd": row.between_sd,
        "i2_percent": row.i2_percent,
        "q": row.q,
        "heterogeneity_p": row.heterogeneity_p,
        "prediction_lo": prediction_low,
        "prediction_hi": prediction_high,
    }


def _about(campaign: CampaignData, row: TableRow, label: str) -> Row:
    return {
        "campaign": campaign.name,
        "model": row.model,
        "environment": row.candidate,
        "workload": row.workload,
        "metric": row.metric,
        "label": label,
        "verdict": row.verdict,
    }


def figure(selection: Selection, key: str) -> Figure:
    """Whether the leading metrics show the same on every machine. Raises SiteError for a part without one."""
    shown = forest.compared(selection, key, TABLE)
    metrics = selection.publication.metrics(selection.campaign)
    names = {metric.name: metric.within_sentence for metric in metrics}
    data = selection.campaign
    baseline = selection.names.environment(data.name, data.baseline or "")
    return forest.of_differences(
        selection,
        key,
        TABLE,
        shown,
        head=(
            "Machine",
            "n",
            "Difference",
            "95 % interval",
            "Verdict",
            "Between machines",
        ),
        columns=_columns,
        title=f"Difference from {runs_of(baseline)} on each machine",
        says=_sentence(shown, names),
        sample=_sample(data.margin_percent),
    )


def _sentence(shown: Sequence[Row], names: Mapping[str, str]) -> str:
    """`Over 2 machines, 1 comparison replicates (median time per output token), and 2 comparisons differ by at most
    3.2 % (output throughput and request latency; undecided).`

    `names` has each metric as it stands within a sentence.
    """
    together = [row for row in shown if row["over"]]
    most = max(row["machines"] for row in together)
    by_word = grouped(together, lambda row: str(row["replication"]))
    parts = []
    for word in SINGULAR:
        if word in by_word:
            parts.append(_said(word, by_word[word], names))
    sessions = {row["machine"] for row in shown if not row["over"]}
    what = "machine"
    if len(sessions) != most:
        what = "session"
    return f"Over {counted(most, what)}, {listed(parts)}."


def _said(word: str, rows: Sequence[Row], names: Mapping[str, str]) -> str:
    """`1 comparison replicates (output throughput)`; of what is undecided the bound, and no more names than a reader
    takes in."""
    verbs = PLURAL
    if len(rows) == 1:
        verbs = SINGULAR
    text = f"{counted(len(rows), 'comparison')} {verbs[word]}"
    behind = []
    metrics = dict.fromkeys(names[row["metric"]] for row in rows)
    if len(metrics) <= sentences.MOST_NAMES:
        behind.append(listed(metrics))
    if word == "undecided":
        text += f" by {_bound(rows)}"
        behind.append(word)
    if not behind:
        return text
    return f"{text} ({'; '.join(behind)})"


def _bound(rows: Sequence[Row]) -> str:
    """`at most 3.2 %`: the farthest end of the 90 % intervals, of which each end is a bound of its side as everywhere;
    the lines are the wider ones at 95 %."""
    ends = []
    for row in rows:
        if row["lo"] is None:
            return "an amount for which these are too few runs"
        df = row["machines"] - 1
        narrower = t_quantile(1 - ALPHA, df) / t_quantile(1 - ALPHA / 2, df)
        ends.append(abs(row["percent"]) + narrower * (row["hi"] - row["lo"]) / 2)
    return sentences.at_most(max(ends))


def _sample(margin: float) -> str:
    return (
        f"Lines are 95 % intervals; inside the band of ±{margin:g} % two environments are equivalent. "
        f"The interval of “{ALL}” holds for machines like these."
    )


def _columns(row: Row) -> list[str]:
    interval = "none"
    if row["lo"] is not None:
        low, high = outward(row["lo"], row["hi"], 2)
        interval = f"{percent(low, 2)} to {percent(high, 2)}"
    return [
        row["label"],
        row.get("n", ""),
        percent(row["percent"], 2),
        interval,
        row["verdict"],
        _between(row),
    ]


def _between(row: Row) -> str:
    """What differs between machines, of the row for all together."""
    if not row["over"]:
        return ""
    if row["q"] is None:
        return f"{row['replication']}. {row['why']}"
    spread = f"τ = {significant(row['between_sd'])} %, I² = {row['i2_percent']:.0f} %"
    if row["prediction_lo"] is not None:
        low, high = outward(row["prediction_lo"], row["prediction_hi"], 2)
        spread += f", one more machine: {percent(low, 2)} to {percent(high, 2)}"
    return f"{row['replication']}. {row['why']} {spread}."


KIND = kind.of_rows(NAME, figure, TABLE, rows)
