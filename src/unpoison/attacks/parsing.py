"""The written form of attacks, as on the command line: `some-groups:0,2;evasion:0.3,at=-C/4`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.expression import evaluate
from unpoison.errors import InvalidParameter

VARIADIC = {"tuple[str, ...]": "str", "tuple[int, ...]": "int", "tuple[float, ...]": "float"}
"""Annotations of a parameter that takes all that remains of an attack's written form, with the
annotation of each of these texts."""
ATTACK = "Attack"
"""The annotation of a parameter that is another attack, written after a semicolon."""
Annotations = dict[str, str]
"""The annotation of each parameter of an attack, in the order of its fields."""


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
    if isinstance(text, Attack):
        return text
    written, other = _split(text)
    name, _, parameters = written.partition(":")
    name = name.strip()
    annotations = _annotations(attacks[name])
    attack = _parameters(annotations, _texts(name, parameters, annotations))
    if other is not None:
        attack[_other_attack(annotations)] = parse_attack(other)
    return attacks[name](**attack)


def _split(text: str) -> tuple[str, str | None]:
    """The written form of an attack, and that of the other attack that it takes, if one is given.

    Attacks that take no other one may have semicolons in their parameters.
    """
    written, semicolon, other = text.partition(";")
    name = written.partition(":")[0].strip()
    if semicolon and name in attacks and _other_attack(_annotations(attacks[name])):
        return written, other
    return text, None


def _annotations(kind: type[Attack]) -> Annotations:
    return {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]


def _other_attack(annotations: Annotations) -> str:
    """The parameter that is another attack; "" if there is none."""
    return next((name for name, annotation in annotations.items() if annotation == ATTACK), "")


def _texts(name: str, parameters: str, annotations: Annotations) -> dict[str, list[str]]:
    """The texts for each parameter: one, or any number where the parameter is variadic."""
    texts: dict[str, list[str]] = {}
    known = {name: kind for name, kind in annotations.items() if kind != ATTACK}
    for index, item in enumerate(parameters.split(",") if parameters.strip() else []):
        parameter, value, named = _assign(item, index, known, texts)
        repeatable = known.get(parameter) in VARIADIC and not named
        repeated = parameter in texts and not repeatable
        if parameter not in known or not value or repeated:
            rule = f"{name} takes {_signature(annotations)}"
            raise InvalidParameter("attack", rule, repr(item.strip()))
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
