"""Who is registered: the hooks of a run by name, and the vocabulary they may use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from hookloop.core.binding import Parameters, parameter_name
from hookloop.core.entries import Entry, SlotMaker, claim, expanded, free_name, is_claimed_by, label_of, release
from hookloop.core.events import EventTable
from hookloop.core.hook import CompositeHook
from hookloop.core.options import HookOptions, read_options
from hookloop.core.ordering import ordered
from hookloop.errors import RegistrationError

Plain = Any

# What every context can give, so that no hook has to provide it.
_GIVEN = ("loss", "batch", "metrics", "model", "optimizer", "losses", "experience", "trainer", "worker")


class Roster:
    """The registered hooks, one entry each, the children of groups one by one."""

    def __init__(
        self,
        events: EventTable,
        default_event: str,
        decide: Callable[[bool], bool],
        notify: Callable[[], None],
    ) -> None:
        self.events = events
        self.default_event = default_event
        self.entries: dict[str, Entry] = {}
        self.roots: list[object] = []
        self.offers: set[str] = set()
        self.clocks: set[str] = set()
        self.services: set[str] = set()
        self._decide = decide
        self._notify = notify

    def register(
        self, hook: object, given: Mapping[str, object], config: dict[str, Plain] | None
    ) -> tuple[str, list[Entry]]:
        """Check a hook, give it a name, and take it in; nothing is taken in if anything is refused."""
        options = read_options(hook, given, self.events, frozenset(self.clocks))
        _refuse_group_options(hook, given)
        label = label_of(hook)
        name = free_name(options.name or label, self._taken_names(), is_chosen=options.name is not None)
        made = [
            self._entry(child, child_name, own, hook, name) for child, child_name, own in expanded(hook, name, options)
        ]
        self._claim_all([hook, *(entry.hook for entry in made if entry.hook is not hook)])
        for entry in made:
            entry.config = config
            entry.given = dict(given) if entry.hook is hook else {}
            self.entries[entry.name] = entry
        self.roots.append(hook)
        return name, made

    def strike(self, root: object) -> None:
        """Take a registered hook out, with the children it stands for."""
        for entry in self.of_root(root):
            del self.entries[entry.name]
            release(entry.hook)
        self.roots = [each for each in self.roots if each is not root]
        release(root)

    def take_up(self) -> None:
        """Claim all hooks again for another run, after ``let_go``."""
        for hook in {id(hook): hook for hook in (*self.roots, *(e.hook for e in self.entries.values()))}.values():
            if not is_claimed_by(hook, self):
                claim(hook, self)

    def let_go(self) -> None:
        """Let all hooks be registered with another run as well."""
        for entry in self.entries.values():
            entry.is_started = False
            release(entry.hook)
        for root in self.roots:
            release(root)

    def root_of(self, hook: object) -> object | None:
        """Return what was registered, given it, one of its children, or a name; None if it is not here."""
        for entry in self.entries.values():
            if hook is entry.hook or hook is entry.root:
                return entry.root
            if isinstance(hook, str) and hook in (entry.name, entry.group):
                return entry.root
        return None

    def of_root(self, root: object) -> list[Entry]:
        """Return the entries that one registered hook stands for."""
        return [entry for entry in self.entries.values() if entry.root is root]

    def in_order(self, clocks: Collection[str]) -> list[Entry]:
        """Return the entries in running order."""
        given = {*_GIVEN, *self.offers, *clocks}
        return [self.entries[name] for name in ordered([entry.ranked() for entry in self.entries.values()], given)]

    def _entry(self, hook: object, name: str, options: HookOptions | None, root: object, group: str) -> Entry:
        if options is None:  # a child of a group declares for itself
            options = read_options(hook, {}, self.events, frozenset(self.clocks))
        entry = Entry(hook, name, options, root, group if hook is not root else None, is_enabled=options.enabled)
        provided = {value for each in self.entries.values() for value in each.options.provides}
        values = self.offers | provided | set(options.needs)
        parameters = Parameters(self.clocks, values, self.services, self._hook_by_parameter)
        SlotMaker(self.events, parameters, self.default_event, self._decide, self._notify).fill(entry)
        return entry

    def _claim_all(self, hooks: list[object]) -> None:
        claimed: list[object] = []
        try:
            for hook in hooks:
                claim(hook, self)
                claimed.append(hook)
        except ValueError:
            for hook in claimed:
                release(hook)
            raise

    def _taken_names(self) -> set[str]:
        return {*self.entries, *(entry.group for entry in self.entries.values() if entry.group)}

    def _hook_by_parameter(self, parameter: str) -> object:
        for root in self.roots:
            if parameter in (getattr(root, "name", None), parameter_name(type(root).__name__)):
                return root
        return None


def _refuse_group_options(hook: object, given: Mapping[str, object]) -> None:
    other = [option for option in given if option != "name"]
    if isinstance(hook, CompositeHook) and other:
        raise RegistrationError(
            f"The group {label_of(hook)!r} takes no option but a name, got {other[0]!r}: "
            "each of its hooks declares its own; set it on them."
        )
