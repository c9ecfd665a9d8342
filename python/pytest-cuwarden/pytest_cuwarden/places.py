# SPDX-License-Identifier: MIT
"""Where memory was allocated, as text: from a report that the library writes now."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import cuwarden
from cuwarden import Code

from .settings import print_amount

_PLACES_MAX = 5
_FRAMES_MAX = 8
_COMMAND_SECONDS = 60
# What called the test: the same in every stack.
_RUNNERS = ("/_pytest/", "/pluggy/")
# Between Python's lines and the functions that they call.
_GLUE = ("libffi.", "_ctypes.")


class Place(NamedTuple):
    """One place that allocates."""

    what: str
    """ "cuMemAlloc, device 0" """
    stack: Tuple[Tuple[str, str], ...]
    """function and where it is, innermost first"""
    line: str
    """ "gpu.py:6", the innermost that is known; "" """


class Report:
    """The library's report of this moment."""

    def __init__(self, root: str, end: Tuple[str, str]) -> None:
        """Stacks end with this function of this file, where they have it."""
        self._root = os.path.join(root, "")
        self._end = end
        report = _written()
        self._frames = {frame["id"]: frame for frame in report["frames"]}
        self._modules = {module["id"]: os.path.basename(module.get("path", "")) for module in report["modules"]}
        self._stacks = {stack["id"]: stack for stack in report["stacks"]}
        self._sites = {site["id"]: site for site in report["sites"]}
        self._site_of_block = {leak["id"]: leak["site"] for leak in report["leaks"] if "id" in leak and "site" in leak}
        self._refusals = [event for event in report["events"] if event["type"] == "oom"]
        self._accounts = report["oom_accounts"]

    def live(self) -> Dict[Place, Tuple[int, int]]:
        """Bytes and number of the blocks of each place."""
        found: Dict[Place, Tuple[int, int]] = {}
        for site, about in self._sites.items():
            place, (size, count) = self.place_of(site), (about["live"]["bytes"], about["live"]["count"])
            before = found.get(place, (0, 0))
            found[place] = (before[0] + size, before[1] + count)
        return found

    def of_blocks(self, blocks: Sequence[cuwarden.Block]) -> Dict[Place, Tuple[int, int]]:
        """The same of these blocks alone. The report lists the first 10000."""
        found: Dict[Place, Tuple[int, int]] = {}
        for block in blocks:
            place = self.place_of(self._site_of_block.get(block.id), block)
            size, count = found.get(place, (0, 0))
            found[place] = (size + block.bytes, count + 1)
        return found

    def refusal(self) -> Optional[Dict[str, Any]]:
        """The last request that did not fit, if a limit was the reason: its account, or the event alone. Of those that follow each
        other soon only the first has an account, which is older than the events of the others."""
        if not self._refusals or self._refusals[-1].get("cause") != "limit":
            return None
        event: Dict[str, Any] = self._refusals[-1]
        account: Dict[str, Any] = self._accounts[-1] if self._accounts else {}
        return account if account.get("t_ns", -1) >= event["t_ns"] else event

    def place_of(self, site: Optional[int], block: Optional[cuwarden.Block] = None) -> Place:
        about = self._sites.get(site, {}) if site is not None else {}
        device = about.get("device", "host" if block is not None and block.device == cuwarden.HOST else block and block.device)
        words = [about.get("api") or (block.function if block is not None else "?"),
                 "host" if device == "host" else f"device {device}"]
        if about.get("tag"):
            words.append(f"tag \"{about['tag']}\"")
        if block is not None and block.name:
            words.append(f"named \"{block.name}\"")
        stack = tuple(self._stack(about.get("stack")))
        return Place(", ".join(words), stack, next((where for _, where in stack if ":" in where), ""))

    def _stack(self, number: Optional[int]) -> Iterator[Tuple[str, str]]:
        stack = self._stacks.get(number) if number is not None else None
        if stack is None:
            return
        first, count = stack["shown"]
        for number in stack["frames"][first:first + count]:
            frame = self._frames[number]
            file, module = frame.get("file", ""), self._modules.get(frame.get("module"), "")
            if any(runner in file for runner in _RUNNERS):
                return
            if "func" not in frame or module.startswith(_GLUE):
                continue
            for inlined in frame.get("inlined", ()):
                yield inlined.get("func", "?"), self.print_line(inlined.get("file", ""), inlined.get("line", 0)) or module
            yield frame["func"], self.print_line(file, frame.get("line", 0)) or module
            if (file, frame["func"].rpartition(".")[2]) == self._end:
                return

    def print_line(self, file: str, line: int) -> str:
        """As seen from the root of the tests; what is elsewhere by its name."""
        if not file or not line:
            return ""
        is_inside = file.startswith(self._root) and "/site-packages/" not in file
        return f"{file[len(self._root):] if is_inside else os.path.basename(file)}:{line}"


def print_places(amounts: Dict[Place, Tuple[int, int]]) -> List[str]:
    """Lines, most bytes first."""
    lines: List[str] = []
    ordered = sorted(amounts.items(), key=lambda row: -row[1][0])
    for place, (size, count) in ordered[:_PLACES_MAX]:
        lines.append(f"  {print_amount(size, count)}, {place.what}")
        width = max((len(function) for function, _ in place.stack[:_FRAMES_MAX]), default=0)
        lines += [f"      {function:<{width}}  {where}" for function, where in place.stack[:_FRAMES_MAX]]
        if len(place.stack) > _FRAMES_MAX:
            lines.append(f"      ... {len(place.stack) - _FRAMES_MAX} more")
    rest = [amount for _, amount in ordered[_PLACES_MAX:]]
    if rest:
        size, count = sum(size for size, _ in rest), sum(count for _, count in rest)
        lines.append(f"  {print_amount(size, count)} at {len(rest)} other place{'' if len(rest) == 1 else 's'}")
    return lines


# ---- the file ----

def _written() -> Dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="pytest-cuwarden-") as directory:
        path = os.path.join(directory, "report.json")
        try:
            cuwarden.report(path)
        except cuwarden.Error as error:
            if error.code != Code.NOT_STARTED:
                raise
            return {"frames": [], "modules": [], "stacks": [], "sites": [], "leaks": [], "events": [], "oom_accounts": []}
        report = _read(path)
        if _lacks_lines(report) and _add_lines(path, path + ".lines"):
            report = _read(path + ".lines")
        return report


def _read(path: str) -> Dict[str, Any]:
    with open(path, encoding="utf-8", errors="replace") as file:
        report: Dict[str, Any] = json.load(file)
    return report


def _lacks_lines(report: Dict[str, Any]) -> bool:
    """Of machine code, whose lines only the command reads."""
    without = {frame["id"] for frame in report["frames"] if "func" in frame and "line" not in frame}
    return any(not without.isdisjoint(stack["frames"][stack["shown"][0]:sum(stack["shown"])]) for stack in report["stacks"])


def _add_lines(path: str, to: str) -> bool:
    command = shutil.which("cuwarden")
    if command is None:
        return False
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        subprocess.run([command, "report", "--format=json", "-o", to, path], env=environment, timeout=_COMMAND_SECONDS, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.SubprocessError):
        return False
    return os.path.exists(to)
