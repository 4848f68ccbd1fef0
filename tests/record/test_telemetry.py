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


def test_what_is_no_number_is_none_and_the_others_stay() -> None:
    telemetry = parse("elapsed_seconds,cpu_percent\n0.0,1.5\n1.0,n/a\n2.0,")
    assert telemetry.numbers("cpu_percent") == (1.5, None, None)


def test_samples_are_timed_where_both_the_time_and_the_value_are_there() -> None:
    rows = ["elapsed_seconds,gpu_temp_celsius", "-1,40", "0,", ",42", "2,43"]
    table = parse("\n".join(rows))
    assert table.timed("gpu_temp_celsius") == [(-1.0, 40.0), (2.0, 43.0)]
    assert table.timed("elapsed_seconds") == [(-1.0, -1.0), (0.0, 0.0), (2.0, 2.0)]
    assert table.timed("gpu_power_watt") == []
