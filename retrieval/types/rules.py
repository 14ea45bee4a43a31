"""Rules over typed relations, as callers write them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from graph.rules import MAX_PREMISES, Atom, Rule
from graph.rules import inverse as inverse_rules
from graph.rules import symmetric as symmetric_rule
from graph.rules import transitive as transitive_rule
from retrieval.types.memory import Label


class SymmetricRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="symmetric"):
    """If the relation holds from x to y, it holds from y to x."""

    relation: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rules."""
        return (symmetric_rule(self.relation),)


class InverseRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="inverse"):
    """Two relations that are each other's inverse."""

    relation: Label
    inverse: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rules: one in each direction."""
        return inverse_rules(self.relation, self.inverse)


class TransitiveRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="transitive"):
    """If the relation holds from x to y and from y to z, it holds from x to z."""

    relation: Label

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rules."""
        return (transitive_rule(self.relation),)


Triple = Annotated[tuple[Label, Label, Label], Meta(description="a variable, a relation and a variable")]


class CustomRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="custom"):
    """If all of `when` hold for some entities, `then` does too; entities are variables such as `x`."""

    name: Label
    when: Annotated[list[Triple], Meta(min_length=1, max_length=MAX_PREMISES)]
    then: Triple

    def as_rules(self) -> tuple[Rule, ...]:
        """The graph's rule."""
        return (Rule(self.name, tuple(Atom(*triple) for triple in self.when), Atom(*self.then)),)


RuleInput = SymmetricRule | InverseRule | TransitiveRule | CustomRule
