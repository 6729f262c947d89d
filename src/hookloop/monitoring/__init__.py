"""Looking at a run from beside it: time, machine, signs of life and deadlines. Knows nothing of hooks or of torch."""

from hookloop.monitoring.heartbeat import Beat, Heartbeat, read_beat
from hookloop.monitoring.memory import MemoryMonitor, bytes_of
from hookloop.monitoring.outside import Verdict, watch_heartbeat
from hookloop.monitoring.phases import Phase, PhaseTrace
from hookloop.monitoring.stopwatch import Stopwatch
from hookloop.monitoring.system import SystemMonitor
from hookloop.monitoring.watchdog import Activity, Overdue, Watchdog

__all__ = [
    "Activity",
    "Beat",
    "Heartbeat",
    "MemoryMonitor",
    "Overdue",
    "Phase",
    "PhaseTrace",
    "Stopwatch",
    "SystemMonitor",
    "Verdict",
    "Watchdog",
    "bytes_of",
    "read_beat",
    "watch_heartbeat",
]
