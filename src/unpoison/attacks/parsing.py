"""The written form of attacks, as on the command line: `some-groups:0,2;evasion:0.3,at=-C/4`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.expression import evaluate
from unpoison.errors import InvalidParameter
from unpoison.registry import Registry

VARIADIC = {"tuple[str, ...]": "str", "tuple[int, ...]": "int", "tuple[float, ...]": "float"}
"""Annotations of a parameter that takes all that remains of an attack's written form, with the
annotation of each of these texts."""
ATTACK = "Attack"
"""The annotation of a parameter that is another attack, written after a semicolon."""
Annotations = dict[str, str]
"""The annotation of each parameter, in the order of the fields."""
Parsed = TypeVar("Parsed")


def parse_attack(text: str | Attack) -> Attack:
    """An attack from its command-line form: a name, then parameters in order or by name.

    >>> parse_attack("uniform:3C/4,C")
    Uniform(low='3C/4', high='C')
    >>> parse_attack("evasion:share=0.3")
    Evasion(share=0.3, at='-C/2', low='C/2', high='C')
    >>> parse_attack("targets:tea, herbal tea")
    Targets(names=('tea', 'herbal tea'))
    >>> parse_attack("some-groups:0,2;point:C")
    SomeGroups(groups=(0, 2), attack=Point(at='C'))
    """
    return text if isinstance(text, Attack) else parse_written(text, attacks)


def parse_written(text: str, known: Registry[type[Parsed]]) -> Parsed:
    """A registered thing from its written form; its parameters are the fields of a dataclass.

    >>> parse_written("point:at=C/2", attacks)
    Point(at='C/2')
    """
    written, other = _split(text, known)
    name, _, texts = written.partition(":")
    name = name.strip()
    annotations = _annotations(known[name])
    parameters = _parameters(annotations, _texts(known.kind, name, texts, annotations))
    if other is not None:
        parameters[_other_attack(annotations)] = parse_attack(other)
    return known[name](**parameters)


def _split(text: str, known: Registry[type[Parsed]]) -> tuple[str, str | None]:
    """The written form, and that of the other attack that is a parameter, if one is given.

    What takes no other attack may have semicolons in its parameters.
    """
    written, semicolon, other = text.partition(";")
    name = written.partition(":")[0].strip()
    if semicolon and name in known and _other_attack(_annotations(known[name])):
        return written, other
    return text, None


def _annotations(kind: type[Parsed]) -> Annotations:
    return {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]


def _other_attack(annotations: Annotations) -> str:
    """The parameter that is another attack; "" if there is none."""
    return next((name for name, annotation in annotations.items() if annotation == ATTACK), "")


def _texts(kind: str, name: str, parameters: str, annotations: Annotations) -> dict[str, list[str]]:
    """The texts for each parameter: one, or any number where the parameter is variadic."""
    texts: dict[str, list[str]] = {}
    known = {name: annotation for name, annotation in annotations.items() if annotation != ATTACK}
    for index, item in enumerate(parameters.split(",") if parameters.strip() else []):
        parameter, value, named = _assign(item, index, known, texts)
        repeatable = known.get(parameter) in VARIADIC and not named
        repeated = parameter in texts and not repeatable
        if parameter not in known or not value or repeated:
            rule = f"{name} takes {_signature(annotations)}"
            raise InvalidParameter(kind, rule, repr(item.strip()))
        texts.setdefault(parameter, []).append(value)
    return texts


def _assign(
    item: str, index: int, annotations: Annotations, texts: dict[str, list[str]]
) -> tuple[str, str, bool]:
    """An item's parameter, its text, and whether the item names it; "" for no parameter.

    Once a variadic parameter is reached, it gets every item that does not name another, so that
    the texts may have equals signs of their own.
    """
    key, equals, value = (piece.strip() for piece in item.partition("="))
    if equals and key in annotations:
        return key, value, True
    names = list(annotations)
    variadic = next((name for name in names if annotations[name] in VARIADIC), None)
    if variadic and (variadic in texts or index >= names.index(variadic)):
        key = variadic
    else:
        key = names[index] if index < len(names) and not equals else ""
    return key, item.strip(), False


def _signature(annotations: Annotations) -> str:
    other = _other_attack(annotations)
    own = [_name_with_number(*pair) for pair in annotations.items() if pair[0] != other]
    semicolon = "; then another attack after a semicolon" if other else ""
    return f"{', '.join(own) or 'no parameters'}, each once{semicolon}"


def _name_with_number(name: str, annotation: str) -> str:
    return f"{name} (one or more)" if annotation in VARIADIC else name


def _parameters(annotations: Annotations, texts: dict[str, list[str]]) -> dict[str, Any]:
    """Turn texts into numbers where a parameter is a number, or several."""
    parameters: dict[str, Any] = {}
    for name, values in texts.items():
        annotation = annotations[name]
        kind = VARIADIC.get(annotation, annotation)
        parsed = tuple(_value(name, text, kind) for text in values)
        parameters[name] = parsed if annotation in VARIADIC else parsed[0]
    return parameters


def _value(name: str, text: str, kind: str) -> str | float:
    return _number(name, text, whole=kind == "int") if kind in ("float", "int") else text


def _number(name: str, text: str, *, whole: bool) -> float:
    rule = "must be a whole number" if whole else "must be a number"
    try:
        number = evaluate(text, {})
    except InvalidParameter:
        raise InvalidParameter(name, rule, text) from None
    if not whole:
        return number
    if not number.is_integer():
        raise InvalidParameter(name, rule, text)
    return int(number)
