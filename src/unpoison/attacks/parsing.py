"""The written form of attacks, as on the command line: `evasion:0.3,at=-C/4`."""

from __future__ import annotations

from dataclasses import fields

from unpoison.attacks.base import Attack, attacks
from unpoison.attacks.expression import evaluate
from unpoison.errors import InvalidParameter

VARIADIC = "tuple[str, ...]"
"""The annotation of a parameter that takes all that remains of an attack's written form."""
Parameter = str | float | tuple[str, ...]
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
    """
    if isinstance(text, Attack):
        return text
    name, _, parameters = text.partition(":")
    name = name.strip()
    kind = attacks[name]
    annotations = {field.name: str(field.type) for field in fields(kind)}  # type: ignore[arg-type]
    return _build(kind, annotations, _texts(name, parameters, annotations))


def _texts(name: str, parameters: str, annotations: Annotations) -> dict[str, list[str]]:
    """The texts for each parameter: one, or any number where the parameter is variadic."""
    texts: dict[str, list[str]] = {}
    for index, item in enumerate(parameters.split(",") if parameters.strip() else []):
        parameter, value, named = _assign(item, index, annotations, texts)
        repeatable = annotations.get(parameter) == VARIADIC and not named
        repeated = parameter in texts and not repeatable
        if parameter not in annotations or not value or repeated:
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
    variadic = next((name for name in names if annotations[name] == VARIADIC), None)
    if variadic and (variadic in texts or index >= names.index(variadic)):
        key = variadic
    else:
        key = names[index] if index < len(names) and not equals else ""
    return key, item.strip(), False


def _signature(annotations: Annotations) -> str:
    several = {VARIADIC: " (one or more)"}
    names = [name + several.get(annotation, "") for name, annotation in annotations.items()]
    return f"{', '.join(names) or 'no parameters'}, each once"


def _build(kind: type[Attack], annotations: Annotations, texts: dict[str, list[str]]) -> Attack:
    """Turn texts into numbers where a parameter is a number."""
    parameters: dict[str, Parameter] = {}
    for name, values in texts.items():
        if annotations[name] == VARIADIC:
            parameters[name] = tuple(values)
        elif annotations[name] in ("float", "int"):
            parameters[name] = _number(name, values[0], whole=annotations[name] == "int")
        else:
            parameters[name] = values[0]
    return kind(**parameters)


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
