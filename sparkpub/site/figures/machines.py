"""The effect on each machine, or in each session: its interval, that of all together, and the margin."""

from collections.abc import Iterator, Mapping, Sequence

from sparkpub.record.text import counted, listed, percent, significant
from sparkpub.review.dataset import CampaignData
from sparkpub.review.grouping import grouped
from sparkpub.review.tables.column import TableRow
from sparkpub.review.tables.column import rows as table_rows
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
    "undecided": "is undecided",
}
PLURAL = {
    "replicates": "replicate",
    "does not replicate": "do not replicate",
    "undecided": "are undecided",
}
ID_LETTERS = 6
"""Of a machine's id, enough to tell a few machines apart."""


def rows(publication: Publication, campaign: CampaignData) -> Iterator[Row]:
    """One row per leading metric, comparison and machine, and then one for all machines together (`over`).

    Its cell, `label, metric, place` (within the metric), `machine, measured_in, n, percent, lo, hi` (95 %), `verdict`;
    of all together `replication` and `why`, and what differs between machines.
    """
    names = publication.joined(campaign)
    effects, together = map(table_rows, publication.results.over(names))
    several = len({_cell(row) for row in together}) > 1
    machines = machine_names(publication, names)
    for metric in publication.headlines(campaign):
        shown: list[Row] = []
        for row in together:
            if row.metric != metric.name or row.effect_unit != "%":
                continue
            cell = ""
            if several:
                cell = f"{row.model} ({row.workload}), "
            for effect in effects:
                if _same(effect, row):
                    label = f"{cell}{machines[effect.machine]}"
                    if len(names) > 1:
                        label += f", {effect.campaign}"
                    shown.append(_of_machine(campaign, effect, label))
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
            what = record.machine.kind or "machine"
            names[name] = f"{what} {name[:ID_LETTERS]}".strip()
    return names


def _cell(row: TableRow) -> tuple[str, ...]:
    return row.model, row.workload, row.baseline, row.candidate


def _same(effect: TableRow, row: TableRow) -> bool:
    return effect.metric == row.metric and _cell(effect) == _cell(row)


def _of_machine(campaign: CampaignData, one: TableRow, label: str) -> Row:
    return {
        **_about(campaign, one, label),
        "machine": one.machine,
        "measured_in": one.campaign,
        "over": False,
        "n": f"{one.n_baseline} and {one.n_candidate}",
    }


def _of_all(campaign: CampaignData, row: TableRow, label: str) -> Row:
    low, high = row.prediction95 or (None, None)
    return {
        **_about(campaign, row, label),
        "over": True,
        "machines": row.machines,
        "replication": row.replication,
        "why": row.why,
        "between_sd": row.between_sd,
        "i2_percent": row.i2_percent,
        "q": row.q,
        "heterogeneity_p": row.heterogeneity_p,
        "prediction_lo": low,
        "prediction_hi": high,
    }


def _about(campaign: CampaignData, row: TableRow, label: str) -> Row:
    low, high = row.ci95_effect or (None, None)
    return {
        "campaign": campaign.name,
        "model": row.model,
        "environment": row.candidate,
        "workload": row.workload,
        "metric": row.metric,
        "label": label,
        "percent": row.effect,
        "lo": low,
        "hi": high,
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
        title=f"Difference from {baseline} on each machine",
        says=_sentence(shown, names),
        sample=_sample(data.margin_percent),
    )


def _sentence(shown: Sequence[Row], names: Mapping[str, str]) -> str:
    """`Over 2 machines, 1 comparison replicates (median time per output token). 2 comparisons are undecided (…).`

    `names` has each metric as it stands within a sentence.
    """
    together = [row for row in shown if row["over"]]
    most = max(row["machines"] for row in together)
    by_word = grouped(together, lambda row: str(row["replication"]))
    parts = []
    for word in SINGULAR:
        if word in by_word:
            metrics = [names[row["metric"]] for row in by_word[word]]
            parts.append(f"{_said(word, len(metrics))} ({listed(metrics)})")
    sessions = {row["machine"] for row in shown if not row["over"]}
    what = "machine"
    if len(sessions) != most:
        what = "session"
    return f"Over {counted(most, what)}, {'. '.join(parts)}."


def _said(word: str, number: int) -> str:
    """`1 comparison replicates`, `2 comparisons do not replicate`, `3 comparisons are undecided`."""
    verbs = PLURAL
    if number == 1:
        verbs = SINGULAR
    return f"{counted(number, 'comparison')} {verbs[word]}"


def _sample(margin: float) -> str:
    return (
        f"Lines are 95 % intervals; inside the band of ±{margin:g} % two environments are equivalent. "
        f"The interval of “{ALL}” holds for machines like these."
    )


def _columns(row: Row) -> list[str]:
    interval = "none"
    if row["lo"] is not None:
        interval = f"{percent(row['lo'], 2)} to {percent(row['hi'], 2)}"
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
        low, high = percent(row["prediction_lo"], 2), percent(row["prediction_hi"], 2)
        spread += f", one more machine: {low} to {high}"
    return f"{row['replication']}. {row['why']} {spread}."


KIND = kind.of_rows(NAME, figure, TABLE, rows)
