# SPDX-License-Identifier: MIT
"""The plugin: when what is measured and judged.

A test with a gate runs as often as its gates say; the reports of the last run are its reports, or those of the first run that
did not pass. A run is measured between the end of the test's own fixtures and that of the wider ones, inside
pytest_runtest_teardown. What it leaves makes the test fail: in the report of its call, or, where another plugin runs the test
(pytest-forked, pytest-rerunfailures), in that of its teardown, because the other is out by then.
"""
from __future__ import annotations

import shutil
import sys
from contextlib import ExitStack, nullcontext
from typing import Any, Dict, Generator, List, Optional, Tuple

import cuwarden
import pytest
from _pytest._code.code import ReprFileLocation
from _pytest.logging import caplog_records_key
from _pytest.runner import runtestprotocol

from . import tensors
from .measure import Memory, Run
from .places import Place, Report, print_places
from .settings import MARKERS, Gates, add_options, defaults_of, gates_of, is_required, print_amount, print_size

_START = "cuwarden run -- python -m pytest"
_UNGATED = "cuwarden_ungated"
_LAST_FAILURE = ("last_type", "last_value", "last_traceback", "last_exc")


def pytest_addoption(parser: pytest.Parser) -> None:
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    defaults = defaults_of(config)
    if not cuwarden.is_active() and is_required(config):
        raise pytest.UsageError(f"--cuwarden-required: {_why_not()}")
    config.pluginmanager.register(_Gatekeeper(config, defaults), "cuwarden-gatekeeper")


def _why_not() -> str:
    if cuwarden.version():
        return "the library is there but not active: CUWARDEN_MODE=off, or it said why it stopped"
    where = "" if shutil.which("cuwarden") else "; the command is not in PATH: cuwarden's README says how to install it"
    return f"cuwarden is not active; start the tests by '{_START}'{where}"


@pytest.fixture
def cuwarden_memory(request: pytest.FixtureRequest) -> Memory:
    """What this test has done to CUDA's memory so far. Without cuwarden the test is skipped."""
    keeper = request.config.pluginmanager.get_plugin("cuwarden-gatekeeper")
    run = keeper.run if keeper is not None else None
    if run is None:
        pytest.skip(_why_not())
    return Memory(run)


# ---- text ----

def _function_of(item: pytest.Item) -> Tuple[str, str]:
    return str(item.path), getattr(item, "originalname", None) or item.name


def _report_of(item: pytest.Item) -> Report:
    return Report(str(item.config.rootpath), _function_of(item))


def _print_left(item: pytest.Item, run: Run, report: Report) -> str:
    left = run.left
    assert left is not None
    amounts = []
    if left.blocks:
        amounts.append(print_amount(left.block_bytes, len(left.blocks)))
    if left.tensor_bytes:
        amounts.append(f"{print_size(left.tensor_bytes)} in PyTorch's tensors")
    beyond = f", {print_size(run.gates.tolerance)} allowed" if run.gates.tolerance else ""
    lines = [f"{item.name} leaves CUDA memory: {' and '.join(amounts)}{beyond}"]
    lines += print_places(report.of_blocks(left.blocks))
    if left.tensor_bytes:
        lines += _print_tensors(item, report)
    lines.append("Nothing freed it by the end of the test and of its own fixtures." + (
        "" if run.gates.warmup else " If only the first run leaves it, as a cache does: cuwarden_leaks(warmup=1)."))
    return "\n".join(lines)


def _print_tensors(item: pytest.Item, report: Report) -> List[str]:
    found = tensors.live_stacks(*_function_of(item))
    if not found and tensors.is_used():
        return ["  the lines of tensors: cuwarden run --torch -- python -m pytest"]
    places = {Place("in PyTorch", tuple((function, report.print_line(file, line)) for file, line, function in stack), ""): amount
              for stack, amount in found.items()}
    return print_places(places)


def _print_growth(item: pytest.Item, live: List[int], places: Dict[Place, Tuple[int, int]], report: Report) -> str:
    allowed = item.stash[_GATES].growth_tolerance
    steps = ", ".join(f"{'+' if now > before else ''}{print_size(now - before)}" for before, now in zip(live, live[1:]))
    beyond = f", {print_size(allowed)} allowed" if allowed else ""
    lines = [f"{item.name} grows: {print_size(live[-1] - live[0])} more CUDA memory after run {len(live)} than after the first{beyond}",
             f"  from run to run: {steps}"]
    return "\n".join(lines + (print_places(places) or _print_tensors(item, report)))


def _print_refusal(run: Run, report: Report) -> Optional[str]:
    refusal = report.refusal()
    if run.limit is None or refusal is None:
        return None
    device, limit = refusal["device"], f"This test's limit is {print_size(run.limit.size)}"
    asker = report.place_of(refusal.get("site")).line or refusal.get("api", "it")
    asked = print_size(refusal["bytes"]) if "bytes" in refusal else "more"
    if "held" not in refusal:
        return f"{limit}: {asker} asked for {asked} on device {device}."
    had = print_size(refusal["held"] - refusal["idle"] - run.limit.before.get(device, 0))
    return f"{limit}: it had {had} on device {device} when {asker} asked for {asked}."


def _expected(report: pytest.TestReport) -> Optional[str]:
    """Why a failure was expected that did not happen so far (xfail)."""
    reason: Optional[str] = getattr(report, "wasxfail", None) if report.passed else None
    strict = "[XPASS(strict)]"
    return str(report.longrepr)[len(strict):].strip() if str(report.longrepr).startswith(strict) else reason


def _passed(report: pytest.TestReport) -> bool:
    return report.passed or _expected(report) is not None


def _fail(item: pytest.Item, report: pytest.TestReport, text: str) -> None:
    """Makes it the report of a failure; of an expected one, if the test is marked xfail."""
    reason = _expected(report)
    if reason is not None:
        report.outcome, report.wasxfail, report.longrepr = "skipped", reason, text
        return
    try:
        pytest.fail(text, pytrace=False)
    except pytest.fail.Exception:
        failure: Any = item.repr_failure(pytest.ExceptionInfo.from_current())
    if getattr(failure, "reprcrash", None) is None:  # the summary's line is made from it
        failure.reprcrash = ReprFileLocation(str(item.path), (item.location[1] or 0) + 1, text)
    if getattr(failure, "chain", None):  # what a worker of xdist sends of it
        failure.chain[-1] = (failure.chain[-1][0], failure.reprcrash, failure.chain[-1][2])
    report.outcome, report.longrepr = "failed", failure


# ---- the process ----

_GATES = pytest.StashKey[Gates]()
_MISTAKE = pytest.StashKey[str]()
"""what is wrong with a marker"""


class _Gatekeeper:
    """Of one process: the controller of xdist, a worker, or the only one."""

    def __init__(self, config: pytest.Config, defaults: Gates) -> None:
        self.config = config
        self.defaults = defaults
        self.is_active = cuwarden.is_active()
        self.ungated = 0
        """tests that ran without their gates"""
        self.run: Optional[Run] = None
        self._runs_it = False
        """this plugin runs the test, and judges it"""
        self._ending: Dict["pytest.FixtureDef[Any]", ExitStack] = {}
        """fixtures of wider scope that end inside a run"""

    # ---- which tests ----

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: List[pytest.Item]) -> None:
        for item in items:
            try:
                item.stash[_GATES] = gates_of(item, self.defaults)
            except ValueError as error:
                item.stash[_MISTAKE] = str(error)

    def _gates(self, item: pytest.Item) -> Gates:
        return item.stash.get(_GATES, Gates())

    def _leaves_it(self, item: pytest.Item) -> bool:
        """To another plugin that runs tests in a way of its own, or because there is nothing to run."""
        count_reruns = getattr(self.config.pluginmanager.get_plugin("rerunfailures"), "get_reruns_count", None)
        return bool(self.config.getoption("setuponly", False) or (count_reruns is not None and count_reruns(item)))

    # ---- runs ----

    @pytest.hookimpl
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: Optional[pytest.Item]) -> Optional[bool]:
        gates = self._gates(item)
        if not self.is_active and gates.has_any:
            self.ungated += 1
        if not self.is_active or not gates.has_any or self._leaves_it(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        self._runs_it = True
        try:
            reports = self._run_all(item, nextitem, gates)
        finally:
            self._runs_it = False
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _run_all(self, item: pytest.Item, nextitem: Optional[pytest.Item], gates: Gates) -> List[pytest.TestReport]:
        live: List[int] = []
        places: Dict[Place, Tuple[int, int]] = {}
        properties = list(item.user_properties)
        names = getattr(getattr(item, "dtest", None), "globs", {})  # of a doctest, which forgets them
        names_before = dict(names)
        for number in range(gates.runs):
            is_last = number == gates.runs - 1
            # Of this run alone.
            item._report_sections.clear()
            item.user_properties[:] = properties
            names.update(names_before)
            # With its parent as the next, what is wider than the test stays.
            reports = runtestprotocol(item, log=False, nextitem=nextitem if is_last else item.parent)  # type: ignore[arg-type]
            run = item.stash.get(_RUN, None)
            if run is None or len(reports) < 3 or not all(_passed(report) for report in reports):
                if gates.runs > 1:
                    failed = next((report for report in reports if not report.passed), reports[-1])
                    failed.sections.append(("cuwarden", f"This was run {number + 1} of {gates.runs}."))
                if not is_last:
                    reports += self._tear_down(item, nextitem)
                return reports
            if gates.checks_growth and number >= gates.runs - gates.repeats:
                live.append(run.live_bytes)
                if len(live) == 1:
                    places = _report_of(item).live()
            if is_last:
                self._judge(item, run, reports[1], live, places)
        return reports

    def _tear_down(self, item: pytest.Item, nextitem: Optional[pytest.Item]) -> List[pytest.TestReport]:
        """What the next test does not need, after a run that thought itself not the last. A report, if that fails."""
        call = pytest.CallInfo.from_call(lambda: item.session._setupstate.teardown_exact(nextitem), when="teardown",
                                         reraise=(pytest.exit.Exception, KeyboardInterrupt))
        report = item.ihook.pytest_runtest_makereport(item=item, call=call)
        return [] if report.passed else [report]

    # ---- one run ----

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if _MISTAKE in item.stash:
            pytest.fail(item.stash[_MISTAKE], pytrace=False)
        _forget_failure()
        item.stash[_RUN] = self.run = Run(self._gates(item)) if self.is_active else None

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: "pytest.FixtureDef[Any]") -> Generator[None, Any, None]:
        if fixturedef.scope == "function":
            yield
            return
        with self.run.aside() if self.run is not None else nullcontext():
            yield
        # Registered last, so called first. It may end inside a run: before it is set up for another parameter, after a test that
        # failed, or, of class scope, with a function.
        fixturedef.addfinalizer(lambda: self._begin_end(fixturedef))

    def _begin_end(self, fixturedef: "pytest.FixtureDef[Any]") -> None:
        if self.run is not None:
            self._ending[fixturedef] = ExitStack()
            self._ending[fixturedef].enter_context(self.run.aside())

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_fixture_post_finalizer(self, fixturedef: "pytest.FixtureDef[Any]",
                                      request: pytest.FixtureRequest) -> Generator[None, Any, None]:
        yield
        ending = self._ending.pop(fixturedef, None)
        if ending is not None:
            # Often nothing else refers to the memory. pytest forgets the one next, the other after the test.
            fixturedef.cached_result = None
            (getattr(request.node, "funcargs", None) or {}).pop(fixturedef.argname, None)
            ending.close()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        if self.run is not None:
            self.run.instance = getattr(item, "instance", None)
        yield

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, None]:
        if self.run is not None and self.run.has_passed and item.parent is not None:
            # Registered last, so called first: after the test's own fixtures, before wider ones end, if they do.
            item.parent.addfinalizer(lambda: self._end_run(item))
        yield
        self._end_run(item)

    def _end_run(self, item: pytest.Item) -> None:
        """Once for each run."""
        run = self.run
        if run is None or item.stash.get(_RUN, None) is not run:
            return  # it ended before, or is another's: its parent's finalizers remain for as long as the parent
        self.run = None
        if run.gates.has_any:
            # pytest itself keeps these for longer: the values of fixtures, the object whose method the test was, and what was
            # logged with its arguments.
            for kept in (getattr(item, "funcargs", None), getattr(run.instance, "__dict__", None), *self._records(item)):
                if isinstance(kept, (dict, list)):
                    kept.clear()
        run.end()
        if run.left is not None and run.left.bytes > run.gates.tolerance:
            run.report = _report_of(item)  # now: a wider fixture may end with the test, and its blocks be gone from a later one

    def _records(self, item: pytest.Item) -> List[Any]:
        """Of the phases before this one, and of this one; the text of the report is made already."""
        logging = self.config.pluginmanager.get_plugin("logging-plugin")
        handlers = [getattr(logging, name, None) for name in ("caplog_handler", "report_handler")]
        return [*item.stash.get(caplog_records_key, {}).values(), *(getattr(handler, "records", None) for handler in handlers)]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[None]") -> Generator[None, Any, None]:
        outcome = yield
        report = outcome.get_result()
        if call.when == "setup" and report.failed and _MISTAKE in item.stash:
            _fail(item, report, item.stash[_MISTAKE])
        run = item.stash.get(_RUN, None)
        if run is None:
            return
        if report.failed and run.was_refused():
            self._explain(item, run, report)
        if call.when != "teardown":
            run.has_passed, run.is_expected = _passed(report), _expected(report) is not None
            return
        report.user_properties += run.properties()
        if run.has_passed and report.passed and not self._runs_it and not run.is_expected:
            self._judge(item, run, report, [], {})

    def _explain(self, item: pytest.Item, run: Run, report: pytest.TestReport) -> None:
        line = _print_refusal(run, _report_of(item))
        if line is not None:
            report.sections.append(("cuwarden", line))

    def _judge(self, item: pytest.Item, run: Run, report: pytest.TestReport, live: List[int],
               places: Dict[Place, Tuple[int, int]]) -> None:
        gates = run.gates
        texts: List[str] = []
        now = None
        if run.left is not None and run.left.bytes > gates.tolerance:
            now = run.report or _report_of(item)
            texts.append(_print_left(item, run, now))
        if _is_growth(live, gates.growth_tolerance):
            now = now or _report_of(item)
            texts.append(_print_growth(item, live, _grown(places, now.live()), now))
        if texts:
            _fail(item, report, "\n\n".join(texts))

    # ---- the end ----

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput[_UNGATED] = self.ungated

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.ungated += getattr(node, "workeroutput", {}).get(_UNGATED, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.ungated:
            tests = "1 test" if self.ungated == 1 else f"{self.ungated} tests"
            terminalreporter.write_line(f"CUDA memory of {tests} was not checked: {_why_not()}", yellow=True)


_RUN = pytest.StashKey[Optional[Run]]()


def _forget_failure() -> None:
    """The last one's traceback holds what the test had. pytest drops it when it calls the next test: inside that one's run."""
    for name in _LAST_FAILURE:
        vars(sys).pop(name, None)


def _is_growth(live: List[int], allowed: int) -> bool:
    """Each run left more than the one before."""
    return len(live) > 1 and live[-1] - live[0] > allowed and all(before < now for before, now in zip(live, live[1:]))


def _grown(before: Dict[Place, Tuple[int, int]], now: Dict[Place, Tuple[int, int]]) -> Dict[Place, Tuple[int, int]]:
    grown = {}
    for place, (size, count) in now.items():
        size_before, count_before = before.get(place, (0, 0))
        if size > size_before:
            grown[place] = (size - size_before, count - count_before)
    return grown
