# SPDX-License-Identifier: MIT
"""What a test is held to: its markers, else the command line, else the ini file."""
from __future__ import annotations

import re
from typing import Any, Callable, Dict, Iterable, NamedTuple, Optional, Tuple

import pytest

_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
_TOO_MUCH = 1 << 63
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)

MARKERS = (
    "cuwarden_limit(size): device memory that the test may take, \"512M\", beyond what there was before it; None: no limit",
    "cuwarden_leaks(check=True, *, tolerance=0, warmup=0): the test fails if it leaves more than `tolerance` behind; "
    "`warmup` runs before the one that counts",
    "cuwarden_growth(repeats=5, *, tolerance=0, warmup=0): the test runs so many times, and fails if each run leaves more "
    "memory in use than the one before, and all of them more than `tolerance`",
)


class Gates(NamedTuple):
    """What one test is held to."""

    limit: Optional[int] = None
    checks_leaks: bool = False
    tolerance: int = 0
    repeats: int = 1
    """more than 1: it must not grow"""
    growth_tolerance: int = 0
    warmup: int = 0

    @property
    def checks_growth(self) -> bool:
        return self.repeats > 1

    @property
    def has_any(self) -> bool:
        return self.checks_leaks or self.checks_growth or self.limit is not None

    @property
    def runs(self) -> int:
        return self.repeats + (self.warmup if self.checks_leaks or self.checks_growth else 0)


def parse_size(value: object) -> int:
    """Bytes of 4096, "64K" or "1.5GiB"."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_MUCH:
        return value
    match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    size = int(float(match[1]) * (1 << _UNITS[match[2].upper()])) if match is not None else _TOO_MUCH
    if size >= _TOO_MUCH:
        raise ValueError(f"{value!r} is no size: bytes, or a number with K, M, G or T")
    return size


def print_size(size: int) -> str:
    """As reports print it: 1.5 MiB."""
    amount, unit = float(abs(size)), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            break
        amount /= 1024
    sign = "-" if size < 0 else ""
    return f"{sign}{amount:.0f} B" if unit == "B" else f"{sign}{amount:.1f} {unit}"


def print_amount(size: int, count: int) -> str:
    return f"{print_size(size)} in {count} block{'' if count == 1 else 's'}"


def parse_count(value: object, least: int) -> int:
    try:
        count = int(value) if isinstance(value, str) else value
    except ValueError:
        count = None
    if not isinstance(count, int) or isinstance(count, bool) or count < least:
        raise ValueError(f"{value!r} is no number of runs: {least} or more")
    return count


# ---- markers ----

def _limit(size: object) -> Dict[str, Any]:
    return {"limit": None if size is None else parse_size(size)}


def _leaks(check: object = True, *, tolerance: object = None, warmup: object = None) -> Dict[str, Any]:
    if not isinstance(check, bool):
        raise ValueError(f"{check!r} is neither True nor False")
    values: Dict[str, Any] = {"checks_leaks": check}
    if tolerance is not None:
        values["tolerance"] = parse_size(tolerance)
    if warmup is not None:
        values["warmup"] = parse_count(warmup, 0)
    return values


def _growth(repeats: object = 5, *, tolerance: object = None, warmup: object = None) -> Dict[str, Any]:
    values: Dict[str, Any] = {"repeats": parse_count(repeats, 1)}
    if tolerance is not None:
        values["growth_tolerance"] = parse_size(tolerance)
    if warmup is not None:
        values["warmup"] = parse_count(warmup, 0)
    return values


_READERS: Tuple[Tuple[str, Callable[..., Dict[str, Any]]], ...] = (
    ("cuwarden_limit", _limit),
    ("cuwarden_leaks", _leaks),
    ("cuwarden_growth", _growth),
)


def _marks_of_parameters(item: pytest.Item) -> Iterable[pytest.Mark]:
    """pytest.param(..., marks=...): closer than the function's, which pytest lists first."""
    return tuple(getattr(getattr(item, "callspec", None), "marks", ()))


def gates_of(item: pytest.Item, default: Gates) -> Gates:
    """The closest marker of each name counts. ValueError says what is wrong with one."""
    warmup = []
    for name, read in _READERS:
        marker = next((mark for mark in _marks_of_parameters(item) if mark.name == name), None) or item.get_closest_marker(name)
        if marker is None:
            continue
        try:
            values = read(*marker.args, **marker.kwargs)
        except (TypeError, ValueError) as error:
            reason = str(error).replace(f"{read.__name__}()", f"{name}()")
            raise ValueError(f"@pytest.mark.{name}: {reason}") from None
        if "warmup" in values:
            warmup.append(values["warmup"])
        default = default._replace(**values)
    return default._replace(warmup=max(warmup)) if warmup else default


# ---- command line and ini file ----

class _Option(NamedTuple):
    name: str
    """cuwarden_NAME in the ini file, --cuwarden-NAME"""
    field: str
    parse: Optional[Callable[[str], object]]
    """None: it is on or off"""
    metavar: str
    help: str


_OPTIONS = (
    _Option("leaks", "checks_leaks", None, "", "tests fail if they leave CUDA memory behind"),
    _Option("limit", "limit", parse_size, "SIZE", "device memory that each test may take beyond what there was before it"),
    _Option("tolerance", "tolerance", parse_size, "SIZE", "what a test may leave behind (default: 0)"),
    _Option("warmup", "warmup", lambda text: parse_count(text, 0), "N",
            "runs of each test before the one whose leaks count (default: 0)"),
    _Option("repeats", "repeats", lambda text: parse_count(text, 1), "N",
            "each test runs so many times, and fails if its memory grows from run to run (default: 1)"),
    _Option("required", "", None, "", "end with an error if cuwarden is not active, instead of running without these checks"),
)


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("cuwarden", "CUDA memory (cuwarden)")
    for option in _OPTIONS:
        flag = f"--cuwarden-{option.name}"
        if option.parse is None:
            group.addoption(flag, action="store_true", default=None, help=option.help)
            parser.addini(f"cuwarden_{option.name}", option.help, type="bool", default=False)
        else:
            group.addoption(flag, metavar=option.metavar, default=None, help=option.help)
            parser.addini(f"cuwarden_{option.name}", option.help, default="")


def _value_of(config: pytest.Config, option: _Option) -> object:
    name = f"cuwarden_{option.name}"
    given, source = config.getoption(name), f"--cuwarden-{option.name}"
    if given is None:
        given, source = config.getini(name), f"{name} in the ini file"
    if option.parse is None or given in ("", None):
        return given
    try:
        return option.parse(str(given))
    except ValueError as error:
        raise pytest.UsageError(f"{source}: {error}") from None


def defaults_of(config: pytest.Config) -> Gates:
    values = {option.field: _value_of(config, option) for option in _OPTIONS if option.field}
    gates = Gates(**{field: value for field, value in values.items() if value not in ("", None)})  # type: ignore[arg-type]
    return gates._replace(growth_tolerance=gates.tolerance)


def is_required(config: pytest.Config) -> bool:
    return bool(_value_of(config, _OPTIONS[-1]))
