"""Which machines may measure: those that are alike in everything but themselves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import sparkpub
from sparkpub.collect.fleet.node import Standing, source_digest
from sparkpub.collect.machine.inventory import NAME_VARIABLE


@dataclass(frozen=True)
class Common:
    """What every machine of a collection has to have: sparkpub as it is here, and driver and models as most have."""

    version: str
    source: str
    driver: str | None
    models: Mapping[str, str]


def common(standings: Sequence[Standing]) -> Common:
    """What these machines are held to. Where two drivers or models are equally frequent, the first counts."""
    models: dict[str, Counter[str]] = {}
    for standing in standings:
        for key, digest in standing.models.items():
            models.setdefault(key, Counter())[digest] += 1
    drivers = Counter(standing.driver for standing in standings)
    return Common(
        sparkpub.__version__,
        source_digest(),
        drivers.most_common(1)[0][0] if drivers else None,
        {key: counts.most_common(1)[0][0] for key, counts in models.items()},
    )


def refusals(standing: Standing, wanted: Common) -> Iterator[str]:
    """Why a machine may not measure, one line each: what differs, and what to do."""
    if (standing.version, standing.source) != (wanted.version, wanted.source):
        yield (
            f"has sparkpub {standing.version} (source {standing.source}) and not {wanted.version} "
            f"(source {wanted.source}) as here; install the same there and start its node again"
        )
    if standing.machine is None:
        yield (
            "has nothing that names it: no /etc/machine-id and no GPU; "
            f"set {NAME_VARIABLE} to a name of its own before ray start"
        )
    if standing.driver != wanted.driver:
        there, most = standing.driver or "none", wanted.driver or "none"
        yield f"has GPU driver {there}, most machines {most}; install the same driver"
    for key, digest in standing.models.items():
        if digest != wanted.models.get(key, digest):
            yield f"has other files of model {key} than most machines; copy the model there again"
    if standing.niceness > 0:
        yield (
            f"runs its work {standing.niceness} steps nicer than its node, so that whatever else there is comes first; "
            "start its node with RAY_worker_niceness=0"
        )
    yield from standing.obstacles
