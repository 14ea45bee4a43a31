"""Rules over typed relations.

A rule is a Horn clause of one to three premises over binary relations. `graph.forward_chaining` applies rules,
`graph.inference` applies them around some entities of a namespace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

MAX_RULES = 64
"""Most rules that a query has time for."""

MAX_PREMISES = 3

_SEPARATORS = re.compile(r"[\s_\-]+")


class RuleError(ValueError):
    """An invalid rule; `loc` is the path of the fault in it, such as `("when", 1)`."""

    def __init__(self, message: str, loc: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.loc = loc


@lru_cache(maxsize=4_096)
def fold_relation(name: str) -> str:
    """The normal form of a relation's name: folded case, underscores for blanks and hyphens.

    >>> fold_relation("Married to"), fold_relation("married-to"), fold_relation("MARRIED_TO")
    ('married_to', 'married_to', 'married_to')
    """
    return _SEPARATORS.sub("_", name.casefold()).strip("_")


@dataclass(frozen=True, slots=True, order=True)
class Atom:
    """A relation between two variables, such as x parent_of y; the name is folded."""

    source_var: str
    relation: str
    target_var: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", fold_relation(self.relation))

    @property
    def variables(self) -> tuple[str, str]:
        """Source and target."""
        return self.source_var, self.target_var


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """If all of `when` hold, `then` holds.

    Raises RuleError for an empty name, relation or variable; no premise or more than three; premises not connected by
    variables; a conclusion with an unbound variable, with a single variable, or equal to a premise.
    """

    name: str
    when: tuple[Atom, ...]
    then: Atom
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.name, self.when, self.then)))
        if not self.name.strip():
            raise RuleError("must not be blank", ("name",))
        if not 1 <= len(self.when) <= MAX_PREMISES:
            raise RuleError(f"must be 1 to {MAX_PREMISES} premises", ("when",))
        for position, atom in enumerate(self.when):
            _check_atom(atom, ("when", position))
        _check_atom(self.then, ("then",))
        bound = {variable for atom in self.when for variable in atom.variables}
        for variable in self.then.variables:
            if variable not in bound:
                raise RuleError(f"the variable {variable!r} is in no premise", ("then",))
        if len(self.join_order(0)) < len(self.when):
            raise RuleError("the premises must be connected by shared variables", ("when",))
        if self.then.source_var == self.then.target_var:
            raise RuleError("must join two entities, not one to itself", ("then",))
        if self.then in self.when:
            raise RuleError("is one of the premises", ("then",))

    def __hash__(self) -> int:
        """Cached, as plans are looked up by the tuple of all rules of a namespace."""
        return self._hash

    def join_order(self, first: int) -> tuple[int, ...]:
        """An order of the premises from `first` on in which each shares a variable with an earlier one.

        >>> chain = Atom("a", "r", "b"), Atom("c", "r", "d"), Atom("b", "r", "c")
        >>> Rule("chain", chain, Atom("a", "r", "d")).join_order(0)
        (0, 2, 1)
        """
        order = [first]
        bound = set(self.when[first].variables)
        while tied := [
            position
            for position, atom in enumerate(self.when)
            if position not in order and bound.intersection(atom.variables)
        ]:
            order.append(tied[0])
            bound.update(self.when[tied[0]].variables)
        return tuple(order)


def symmetric(relation: str) -> Rule:
    """If x married_to y, then y married_to x."""
    return Rule("symmetric", (Atom("x", relation, "y"),), Atom("y", relation, "x"))


def inverse(relation: str, inverse: str) -> tuple[Rule, Rule]:
    """If x parent_of y, then y child_of x, and vice versa."""
    forth, back = Atom("x", relation, "y"), Atom("y", inverse, "x")
    return Rule("inverse", (forth,), back), Rule("inverse", (back,), forth)


def transitive(relation: str) -> Rule:
    """If x part_of y and y part_of z, then x part_of z."""
    return Rule("transitive", (Atom("x", relation, "y"), Atom("y", relation, "z")), Atom("x", relation, "z"))


def _check_atom(atom: Atom, loc: tuple[str | int, ...]) -> None:
    if not atom.relation:
        raise RuleError("a relation must have more than blanks, hyphens and underscores", loc)
    if not all(variable.strip() for variable in atom.variables):
        raise RuleError("a variable must not be blank", loc)


_SYMMETRIC = ("married_to", "spouse_of", "partner_of", "engaged_to", "sibling_of", "cousin_of", "related_to",
              "friend_of", "friends_with", "colleague_of", "coworker_of", "classmate_of", "roommate_of",
              "neighbor_of", "neighbour_of", "borders", "same_as")  # fmt: skip
_INVERSE = (
    ("parent_of", "child_of"),
    ("grandparent_of", "grandchild_of"),
    ("ancestor_of", "descendant_of"),
    ("employs", "works_at"),
    ("manages", "managed_by"),
    ("owns", "owned_by"),
    ("has_part", "part_of"),
    ("contains", "contained_in"),
    ("has_member", "member_of"),
    ("founded", "founded_by"),
    ("created", "created_by"),
    ("wrote", "written_by"),
    ("causes", "caused_by"),
    ("before", "after"),
)
_TRANSITIVE = ("located_in", "part_of", "contained_in", "subclass_of", "ancestor_of", "before", "same_as")

DEFAULT_RULES: tuple[Rule, ...] = (
    *map(symmetric, _SYMMETRIC),
    *(rule for pair in _INVERSE for rule in inverse(*pair)),
    # One direction only: the inverse of employs would merely repeat works_at as works_for.
    Rule("inverse", (Atom("x", "works_for", "y"),), Atom("y", "employs", "x")),
    *map(transitive, _TRANSITIVE),
)
"""The rules of a namespace without its own: relations whose names are unambiguous.

Of two inverse transitive relations one is declared transitive; it follows for the other.
"""
