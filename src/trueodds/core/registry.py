"""Registries of methods: tables from method names to classes, which are imported on first use."""

from __future__ import annotations

import dataclasses
import importlib
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple, cast

from trueodds.core import suggestions
from trueodds.core.errors import InputError
from trueodds.core.suggestions import list_names, suggest_names

MAX_DOCUMENTED_SETTINGS = 12  # number of settings that the docstring of a method lists
_DOCSTRING_WIDTH = 100  # maximum length of the lines that are added to a docstring


class MethodFamily(NamedTuple):
    """How the methods of one kind are called by name, and where their registry is."""

    function: str  # public function that takes the name of a method
    registry: str  # "module:CONSTANT" of the registry

    def load_registry(self) -> Registry:
        """Import the registry."""
        module, _, constant = self.registry.partition(":")
        registry: Registry = getattr(importlib.import_module(module), constant)
        return registry


METHOD_FAMILIES = {
    "estimator": MethodFamily("measure", "trueodds.estimators:ESTIMATORS"),
    "test": MethodFamily("test", "trueodds.hypotests:TESTS"),
    "calibrator": MethodFamily("fit", "trueodds.calibrators:CALIBRATORS"),
    "diagram": MethodFamily("draw", "trueodds.diagrams:DIAGRAMS"),
}


class Registry:
    """A table from the names of methods to their classes, which are imported on first use.

    >>> colors = Registry("color", {"note": "trueodds.core.errors:Note"})
    >>> colors.names(), colors.load("note").__name__
    (('note',), 'Note')
    """

    def __init__(
        self,
        kind: str,
        table: Mapping[str, str],
        *,
        synonyms: Mapping[str, Sequence[str]] | None = None,
        titles: Mapping[str, str] | None = None,
        method_of_setting: Mapping[str, str] | None = None,
    ) -> None:
        """Create the registry of one kind of methods, such as "estimator".

        `table` maps the name of a method to its "module:Class". `synonyms` are what users may type in its place (see
        `suggestions.add_synonyms`), and `titles` what the literature calls it, if that is not its name.
        `method_of_setting` maps a setting to a method that has it, for hints in error messages.
        """
        self.kind = kind
        self._table = dict(table)
        self._titles = dict(titles or {})
        suggestions.add_synonyms(synonyms or {})
        self._method_of_setting = dict(method_of_setting or {})
        self._loaded: dict[str, Any] = {}  # classes of methods, whose docstrings have the paragraph on their use
        self._defaults: dict[str, Any] = {}  # methods with their default settings, which are immutable

    def names(self) -> tuple[str, ...]:
        """Return the names of all methods in the order of the table."""
        return tuple(self._table)

    def title(self, name: str) -> str:
        """Return what the literature calls a method, followed by its name in this library if it is not part of that."""
        title = self._titles.get(name, name.replace("_", " "))
        is_similar = suggestions.normalize_name(name) in suggestions.normalize_name(title)
        return title if is_similar else f"{title} ({name})"

    def __contains__(self, name: object) -> bool:
        """Return whether a method has this name, which may be followed by a setting, as in "risk@0.8"."""
        if not isinstance(name, str):
            return False
        return name in self._table or self.split_name(name)[0] in self._table

    def split_name(self, name: str) -> tuple[str, dict[str, float]]:
        """Return the name of a method and the setting that follows it after "@", as in "risk@0.8".

        A name with "@" of a method without such a setting is returned as it is, so that it is unknown.
        """
        base, at, text = name.partition("@")
        if not at or base not in self._table or not (setting := self.load(base).setting_in_name):
            return name, {}
        try:
            return base, {setting: float(text)}
        except ValueError:
            fix = f"Write {base}@NUMBER, for instance {base}@0.8."
            raise InputError("TO203", f"{setting} must be a number.", repr(name[:80]), fix) from None

    def load(self, name: str) -> Any:
        """Return the class of a method; an unknown name raises an InputError that lists similar names."""
        if isinstance(name, str) and "@" in name:
            name, _ = self.split_name(name)
        if name in self._loaded:
            return self._loaded[name]
        if name not in self._table:
            name = str(name)[:80]
            raise InputError("TO201", f"Unknown {self.kind}.", repr(name), self._hint_for_unknown_name(name))
        module, _, attribute = self._table[name].partition(":")
        method = getattr(importlib.import_module(module), attribute)
        if call := call_by_name(method):
            method.__doc__ = add_use_to_docstring(method.__doc__ or "", call, _settings_of_method(method))
        self._loaded[name] = method
        return method

    def classes(self) -> dict[str, str]:
        """Map the attributes of the package, the names of classes and methods, to the names of the methods."""
        classes = {location.partition(":")[2]: name for name, location in self._table.items()}
        return classes | {name: name for name in self._table}

    def publish(
        self, package: str, classes: Mapping[str, str] | None = None, load: Callable[[str], Any] | None = None
    ) -> None:
        """Make all methods attributes of their package, under their class names and their own; load them on first use.

        A method takes precedence over a submodule of the same name (`estimators.skce`), so an attribute does not depend
        on what has been imported. Use ``from trueodds.estimators.skce import …`` for the submodule. `classes` maps
        class names to methods, and `load` returns the class of a method, where these are not the ones of the table.
        """
        load_method = load or self.load
        methods = dict(classes or self.classes()) | {name: name for name in self._table}

        class MethodPackage(ModuleType):
            def __getattribute__(self, attribute: str) -> Any:
                return load_method(methods[attribute]) if attribute in methods else super().__getattribute__(attribute)

            def __dir__(self) -> list[str]:
                return sorted({*methods, *getattr(self, "__all__", ())})

        sys.modules[package].__class__ = MethodPackage

    def _hint_for_unknown_name(self, word: str) -> str:
        """Return a hint for an unknown name: its name here, the registry that has it, or similar names."""
        if self.kind not in METHOD_FAMILIES or suggestions.resolve_synonym(word, self._table):
            return suggest_names(word, self._table)
        for kind, family in METHOD_FAMILIES.items():
            registry = family.load_registry()
            if phrases := suggestions.resolve_synonym(word, registry.names()):
                name = suggestions.name_of_phrase(phrases[0])
                article = "an" if kind[0] in "aeiou" else "a"
                setting = "".join(f", {code}" for code in re.findall("⟨(.*?)⟩", phrases[0]))
                fix = f"{name} is {article} {kind}: ⟨to.{family.function}(preds, {name!r}{setting})⟩."
                is_statistic = self.kind == "test" and kind == "estimator" and not trait_of_estimator(name, "is_score")
                test_call = f"to.test(preds, 'consistency', statistic={name!r}{setting})"
                return f"{fix} Its test is ⟨{test_call}⟩." if is_statistic else fix
        return suggestions.explain_unrelated_measure(word) or suggest_names(word, self._table)

    def has_setting(self, name: str, setting: str) -> bool:
        """Return whether the method has a setting of that name."""
        return setting in _settings_of_method(self.load(name))

    def is_setting_of(self, name: object, setting: str) -> bool:
        """Return whether this is the name of a method, and it has a setting of that name."""
        method = self._loaded.get(name) if isinstance(name, str) else None
        if method is None and name in self:
            method = self.load(cast(str, name))
        return method is not None and setting in _settings_of_method(method)

    def settings_of(self, name: str) -> tuple[str, ...]:
        """Return the names of the settings that the method of this name takes."""
        return _settings_of_method(self.load(name))

    def check(self, name: str, settings: Iterable[str], caller_settings: Iterable[str] = ()) -> None:
        """Raise an error for a setting that neither the method nor its caller (`caller_settings`) has."""
        known_settings = (*self.settings_of(name), *caller_settings)
        for key in settings:
            if key not in known_settings:
                value = settings[key] if isinstance(settings, Mapping) else None
                raise self._unknown_setting_error(name, key[:80], value, known_settings)

    def _unknown_setting_error(self, name: str, setting: str, value: Any, known: Sequence[str]) -> InputError:
        """Return the error of a setting that a method does not have, with the most similar one."""
        quoted = f"'⟨{setting}⟩'" if setting.isidentifier() else repr(setting)
        problem = f"The {self.kind} {name} has no setting {quoted}."
        fix = suggestions.suggest_setting(setting, value, known) or self._suggest_method_with_setting(setting, value)
        return InputError(
            "TO202", problem, "", fix or (list_names(known, as_code=True) if known else ("It has no settings."))
        )

    def _suggest_method_with_setting(self, setting: str, value: Any) -> str:
        """Return the call of another method that has a setting; empty if `method_of_setting` does not name one."""
        assigned = suggestions.translate_setting(setting, value, self._method_of_setting)
        if not assigned and (near_settings := suggestions.find_near_names(setting, self._method_of_setting)):
            assigned = f"{near_settings[0]}=…"
        if not assigned:
            return ""
        name = assigned.partition("=")[0]
        method = self._method_of_setting[name]
        call = f"to.{METHOD_FAMILIES[self.kind].function}(preds, {method!r}, {assigned})"
        return f"{name} is a setting of the {self.kind} {method!r}: ⟨{call}⟩."

    def make(self, name: str, settings: Mapping[str, Any]) -> Any:
        """Create the method with its settings; an unknown setting raises an InputError that lists similar names.

        A method with its default settings is created once, because methods are immutable.
        """
        if not settings and name in self._defaults:
            return self._defaults[name]
        method = self.load(name)
        if settings:
            self.check(name, settings)
        if "@" in name:
            name, setting_in_name = self.split_name(name)
            if repeated := [setting for setting in setting_in_name if setting in settings]:
                problem, got = f"The {repeated[0]} is given twice.", f"{repeated[0]}={settings[repeated[0]]!r}"
                raise InputError("TO205", problem, got, "Leave one of them out.")
            settings = {**settings, **setting_in_name}
        made = method.from_settings(name, **settings) if hasattr(method, "from_settings") else method(**settings)
        if not settings:
            self._defaults[name] = made
        return made


def trait_of_estimator(name: str, trait: str) -> Any:
    """Return a trait of the estimator of this name, such as "is_score"; None for one that is not in the registry.

    >>> trait_of_estimator("brier", "is_score"), trait_of_estimator("ece", "is_score")
    (True, False)
    """
    registry = METHOD_FAMILIES["estimator"].load_registry()
    return getattr(registry.load(name), trait) if name in registry else None


def dataclass_settings(method: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a dataclass's constructor."""
    return tuple(field.name for field in dataclasses.fields(method) if field.init)


@cache
def _settings_of_method(method: Any) -> tuple[str, ...]:
    """Return the names of the settings that a method takes by its name."""
    return tuple(method.setting_names() if hasattr(method, "setting_names") else dataclass_settings(method))


def call_by_name(method: type, setting: str = "") -> str | None:
    """Return the call that uses a method by its name, or None for a class that is not part of the library.

    >>> from trueodds.estimators.binned import BinnedError
    >>> call_by_name(BinnedError, "bins")
    'to.measure(y_true, y_prob, "ece", bins=…)'
    """
    name = getattr(method, "name", None)
    if name is None:
        return None
    takes_several_models = getattr(method, "accepts_several_models", False)
    data = '{"a": preds_a, "b": preds_b}' if takes_several_models else "y_true, y_prob"
    for function, registry in METHOD_FAMILIES.values():
        package = registry.partition(":")[0]
        if method.__module__.startswith(f"{package}."):
            return f'to.{function}({data}, "{name}"{f", {setting}=…" if setting else ""})'
    return None


def add_use_to_docstring(docstring: str, call: str, settings: Sequence[str]) -> str:
    """Insert a paragraph on the use of a method by its name into its docstring, after the summary.

    >>> print(add_use_to_docstring("Summary.", 'to.measure(y_true, y_prob, "ece")', ["bins", "order"]))
    Summary.
    <BLANKLINE>
        Use: ``to.measure(y_true, y_prob, "ece")``. Settings by name: `bins`, `order`.
    """
    summary, blank, body = docstring.partition("\n\n")
    setting_texts = [f"`{name}`" for name in settings[:MAX_DOCUMENTED_SETTINGS]]
    if len(settings) > MAX_DOCUMENTED_SETTINGS:
        setting_texts.append("…")
    settings_sentence = f" Settings by name: {', '.join(setting_texts)}." if settings else ""
    paragraph = textwrap.fill(
        f"Use: ``{call}``.{settings_sentence}", _DOCSTRING_WIDTH, break_long_words=False, break_on_hyphens=False
    )
    return f"{summary}\n\n{textwrap.indent(paragraph, '    ')}{blank}{body}"
