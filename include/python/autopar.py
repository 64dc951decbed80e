# SPDX-License-Identifier: Apache-2.0
"""Plans how a network is cut over many devices: libautopar for Python, by ctypes.

    import autopar
    plan = autopar.plan("config.json", device_num=64, chip="h100", executor="megatron", batch=1024, sequence=8192)
    print(plan.step_time_s, plan.to_dict()["settings"]["hybrid"])
    plan.write("bundle", "run")

A graph is the name of a file or of a bundled model, or a dict of autopar-graph/1; likewise a rank table. Settings
have the names that `autopar-plan list settings` prints; a list, as of device_num, is several values, which plan()
decides among. Nothing is printed: messages are in the plan and in the error. The library is the one that
AUTOPAR_LIBRARY names, else the installed one.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import threading
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Optional, Union

__all__ = ["Error", "Infeasible", "Message", "Plan", "StoppedEarly", "evaluate", "min_devices", "plan", "search",
           "version"]

Source = Union[str, "os.PathLike[str]", Dict[str, Any]]
Value = Union[str, int, float, bool, List[Any], Dict[str, Any]]
Progress = Callable[[str], Any]

OK, USAGE, INFEASIBLE, LIMIT, STOPPED = 0, 2, 5, 7, 8


@dataclass(frozen=True)
class Message:
    """A note, a warning or an error, with its place where one is known; lines and columns count from 1."""
    level: str
    text: str
    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    pointer: Optional[str] = None
    operator: Optional[str] = None
    check: Optional[str] = None

    def __str__(self) -> str:
        place = ":".join(str(x) for x in (self.file, self.line, self.column) if x)
        where = " ".join(x for x in (self.pointer, self.operator and f'(operator "{self.operator}")') if x)
        return ": ".join(x for x in (place, where, self.text) if x)


class Error(Exception):
    """code: the exit code of the program; messages: all of the call, of which the first error gives file, line,
    column, pointer, operator and check."""

    def __init__(self, code: int, messages: List[Message]) -> None:
        errors = [m for m in messages if m.level == "error"]
        first = errors[0] if errors else Message("error", f"failed with code {code}")
        super().__init__("\n".join(str(m) for m in errors) or str(first))
        self.code, self.messages = code, messages
        self.file, self.line, self.column = first.file, first.line, first.column
        self.pointer, self.operator, self.check = first.pointer, first.operator, first.check


class Infeasible(Error):
    """No strategy fits; notes among the messages say what would."""


class StoppedEarly(Error):
    """The progress function stopped the work before there was a plan."""


def _library() -> ctypes.CDLL:
    name = os.environ.get("AUTOPAR_LIBRARY") or ctypes.util.find_library("autopar") or "libautopar.so.0"
    lib = ctypes.CDLL(name)
    text, handle, size, status = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    to_handle = ctypes.POINTER(handle)
    to_int = ctypes.POINTER(ctypes.c_int64)
    for function, result, arguments in (
            ("version", text, []), ("create", handle, []), ("destroy", None, [handle]),
            ("set", status, [handle, text, text]), ("config", status, [handle, text, size]),
            ("graph_file", status, [handle, text]), ("graph_memory", status, [handle, text, text, size]),
            ("rank_table_file", status, [handle, text]), ("rank_table_memory", status, [handle, text, text, size]),
            ("strategy_file", status, [handle, text]), ("progress", None, [handle, _PROGRESS, handle]), ("stop", None, [handle]),
            ("decide", status, [handle, to_handle]), ("search", status, [handle, to_handle]),
            ("evaluate", status, [handle, to_handle]), ("min_devices", status, [handle, to_int, to_int]),
            ("messages", size, [handle]), ("message", text, [handle, size, text]),
            ("message_line", ctypes.c_int64, [handle, size]), ("message_column", ctypes.c_int64, [handle, size]),
            ("plan_destroy", None, [handle]), ("plan_step_time_s", ctypes.c_double, [handle]),
            ("plan_memory_bytes", ctypes.c_int64, [handle]), ("plan_status", text, [handle]),
            ("plan_file", status, [handle, text, text]),
            ("plan_explain", status, [handle, text, text, ctypes.POINTER(handle), ctypes.POINTER(size)]),
            ("plan_memory", status, [handle, text, text, ctypes.POINTER(handle), ctypes.POINTER(size)])):
        f = getattr(lib, "autopar_" + function)
        f.restype, f.argtypes = result, arguments
    return lib


_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_lib = _library()


def version() -> str:
    """Of the library, "0.3.0"."""
    return str(_lib.autopar_version().decode())


def _text(value: Value) -> str:
    """As --config has it: true, 3, "a", [1, 2], {"threshold": 3}."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return json.dumps(value)
    if isinstance(value, (list, tuple)):
        return json.dumps(value) if any(isinstance(v, (list, tuple)) for v in value) else ",".join(
            _text(v) for v in value)
    return str(value)


class _Context:
    """A context of the library with its inputs; ends with the last plan that was made in it."""

    def __init__(self, graph: Source, rank_table: Optional[Source], strategy: Optional[str],
                 progress: Optional[Progress], settings: Dict[str, Value]) -> None:
        self.handle = _lib.autopar_create()
        if not self.handle:
            raise MemoryError("libautopar: no memory for a context")
        self.raised: Optional[BaseException] = None
        self.take("graph", graph)
        if rank_table is not None:
            self.take("rank_table", rank_table)
        if strategy is not None:
            self.check(_lib.autopar_strategy_file(self.handle, os.fsencode(strategy)))
        for name, value in settings.items():
            self.check(_lib.autopar_set(self.handle, name.encode(), _text(value).encode()))
        self.callback = _PROGRESS(lambda _, phase: self.on_phase(progress, phase))
        if progress:
            _lib.autopar_progress(self.handle, self.callback, None)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            _lib.autopar_destroy(self.handle)

    def on_phase(self, progress: Optional[Progress], phase: bytes) -> int:
        """An exception stops the work; it is raised again once the library has returned."""
        try:
            return int(progress is not None and progress(phase.decode()) is False)
        except BaseException as e:  # pylint: disable=broad-except
            self.raised = e
            return 1

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """Runs what may take long in a thread of its own: Python hears of Ctrl-C between its own steps only, and then
        tells the library to stop."""
        status: List[int] = []
        worker = threading.Thread(target=lambda: status.append(function(self.handle, *arguments)))
        worker.start()
        try:
            worker.join()
        except BaseException:
            _lib.autopar_stop(self.handle)
            worker.join()
            raise
        return status[0]

    def take(self, what: str, source: Source) -> None:
        if isinstance(source, dict):
            data = json.dumps(source).encode()
            st = getattr(_lib, f"autopar_{what}_memory")(self.handle, f"{what}.json".encode(), data, len(data))
        else:
            st = getattr(_lib, f"autopar_{what}_file")(self.handle, os.fsencode(source))
        self.check(st)

    def messages(self) -> List[Message]:
        def fact(i: int, name: str) -> Optional[str]:
            text = _lib.autopar_message(self.handle, i, name.encode())
            return text.decode(errors="replace") if text is not None else None
        return [Message(fact(i, "level") or "error", fact(i, "text") or "", fact(i, "file"),
                        _lib.autopar_message_line(self.handle, i) or None,
                        _lib.autopar_message_column(self.handle, i) or None,
                        fact(i, "pointer"), fact(i, "operator"), fact(i, "check"))
                for i in range(_lib.autopar_messages(self.handle))]

    def check(self, status: int) -> None:
        if self.raised:
            raised, self.raised = self.raised, None
            raise raised
        if status in (OK, STOPPED):
            return
        messages = self.messages()
        stopped = status == LIMIT and not any(m.level == "error" for m in messages)
        raise (Infeasible if status == INFEASIBLE else StoppedEarly if stopped else Error)(status, messages)


class Plan:
    """A plan that was searched, evaluated or decided."""

    def __init__(self, context: _Context, handle: ctypes.c_void_p, complete: bool) -> None:
        self._context, self._handle = context, handle
        self.complete = complete  # False: it was stopped early, and is the best so far
        self.messages: List[Message] = context.messages()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            _lib.autopar_plan_destroy(self._handle)

    @property
    def step_time_s(self) -> float:
        """Predicted seconds of a training step."""
        return float(_lib.autopar_plan_step_time_s(self._handle))

    @property
    def memory_bytes(self) -> int:
        """Of the fullest device."""
        return int(_lib.autopar_plan_memory_bytes(self._handle))

    @property
    def status(self) -> str:
        """optimal, feasible, given or stopped."""
        return str(_lib.autopar_plan_status(self._handle).decode())

    def output(self, name: str, suffix: str = "") -> bytes:
        """What the program writes for an option: "plan_out", "strategy_ckpt_save_file", "dot_out", "trace_out",
        and so on, or "summary"; the suffix is that of a file's name, such as ".json" or ".svg"."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._context.check(_lib.autopar_plan_memory(self._handle, name.encode(), suffix.encode(),
                                                     ctypes.byref(data), ctypes.byref(size)))
        return ctypes.string_at(data, size.value) if data.value else b""

    def write(self, output: str, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes an output, or the "bundle", to a path; it appears whole or not at all."""
        self._context.check(_lib.autopar_plan_file(self._handle, output.encode(), os.fsencode(path)))

    def explain(self, name: Optional[str] = None) -> Dict[str, Any]:
        """Why the plan is as it is, and what else it could be, as `autopar-plan explain --json` says: of an operator,
        a pattern, a tensor, "stage:3", a collective or a setting, or of the plan as a whole."""
        return dict(json.loads(self.explain_text(name, ".json")))

    def explain_text(self, name: Optional[str] = None, suffix: str = "") -> str:
        """The same as text, or as Markdown with the suffix ".md"."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        self._context.check(_lib.autopar_plan_explain(self._handle, name.encode() if name is not None else None,
                                                      suffix.encode(), ctypes.byref(data), ctypes.byref(size)))
        return ctypes.string_at(data, size.value).decode() if data.value else ""

    def to_dict(self) -> Dict[str, Any]:
        """The plan, autopar-plan(5)."""
        return dict(json.loads(self.output("plan_out", ".json")))

    def summary(self) -> str:
        """The program's table."""
        return self.output("summary").decode()


def _make(how: str, graph: Source, rank_table: Optional[Source], strategy: Optional[str],
          progress: Optional[Progress], settings: Dict[str, Value]) -> Plan:
    context = _Context(graph, rank_table, strategy, progress, settings)
    handle = ctypes.c_void_p()
    try:
        status = context.call(getattr(_lib, "autopar_" + how), ctypes.byref(handle))
        context.check(status)
    except BaseException:
        _lib.autopar_plan_destroy(handle)  # what there was when it was stopped; takes NULL
        raise
    return Plan(context, handle, status == OK)


def plan(graph: Source, rank_table: Optional[Source] = None, *, progress: Optional[Progress] = None,
         **settings: Value) -> Plan:
    """Decides what the settings leave open, as `autopar-plan plan` does. progress is called with the name of each
    phase, by a thread of the module's; if it returns False, the work stops with the best plan so far. Ctrl-C ends
    the call with KeyboardInterrupt, as ever."""
    return _make("decide", graph, rank_table, None, progress, settings)


def search(graph: Source, rank_table: Optional[Source] = None, *, progress: Optional[Progress] = None,
           strategy: Optional[str] = None, **settings: Value) -> Plan:
    """Searches the cuts for settings as given, as `autopar-plan search` does."""
    return _make("search", graph, rank_table, strategy, progress, settings)


def evaluate(graph: Source, rank_table: Optional[Source] = None, *, strategy: Optional[str] = None,
             **settings: Value) -> Plan:
    """Predicts a given strategy, a file, or the setting hybrid, as `autopar-plan evaluate` does."""
    return _make("evaluate", graph, rank_table, strategy, None, settings)


def min_devices(graph: Source, **settings: Value) -> Dict[str, int]:
    """The least number of devices on which a plan fits, and what each then needs: {"devices", "bytes"}."""
    context = _Context(graph, None, None, None, settings)
    devices, size = ctypes.c_int64(), ctypes.c_int64()
    context.check(context.call(_lib.autopar_min_devices, ctypes.byref(devices), ctypes.byref(size)))
    return {"devices": devices.value, "bytes": size.value}
