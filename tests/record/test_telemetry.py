"""Telemetry: an empty cell is no zero, and a torn line is no sample."""

from sparkpub.record.telemetry import parse


def test_missing_is_not_zero_and_the_reason_is_kept() -> None:
    text = "# gpu_memory_used_gib: not supported\nelapsed_seconds,gpu_memory_used_gib,gpu_temp_celsius\n0.0,,41\n1.0,,4"
    telemetry = parse(text + "2\n2.0,,")
    assert telemetry.numbers("gpu_memory_used_gib") == (None, None, None)
    assert telemetry.numbers("gpu_temp_celsius") == (41.0, 42.0, None)
    assert telemetry.notes == {"gpu_memory_used_gib": "not supported"}


def test_a_torn_line_is_dropped() -> None:
    assert parse("elapsed_seconds,cpu_percent\n0.0,1.5\n1.0").numbers(
        "cpu_percent"
    ) == (1.5,)


def test_nothing_is_nothing() -> None:
    assert parse("").numbers("cpu_percent") == ()


def test_a_field_that_no_sensor_gives_is_no_telemetry() -> None:
    assert parse("elapsed_seconds,x\n1," + "9" * 200_000).columns == {}
