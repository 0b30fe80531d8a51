"""What a tournament is of, and what came of it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from pydantic.dataclasses import dataclass as strict

from agents.agent import AgentError
from conquian_env import RuleSet
from conquian_env.seeds import LEARNERS
from training.backends import Limits
from training.match import MOST_PAIRS, Estimate, Forfeit, MatchResult, estimate
from training.ratings import Pairing, Ratings, rate
from training.schedule import Format
from training.toml import STRICT, Count, Rules, rules_of


@strict(frozen=True, config=STRICT)
class TournamentConfig:
    """What is played.

    Attributes:
        agents: specs, at least two different ones.
        rules: the name of a preset, or a table of rule fields.
        format: ``round-robin``, ``gauntlet`` (the first agent meets all others) or ``ladder``
            (each meets its neighbours in the list).
        rungs: how far away a neighbour may be.
        pairs: deals of each pairing, each played twice with the seats swapped.
        seed: of deals and agents; those from 2**40 on are the learner's.
        part: deals that are played at a time; what a broken tournament loses at most.
        records: deals of each pairing whose games are recorded.
        anchor: the agent whose rating is 0; the first one if none is named.
        limits: of agents outside this project, which play in processes of their own.
    """

    agents: tuple[str, ...]
    rules: Rules = "classic"
    format: Format = "round-robin"
    rungs: Count = 1
    pairs: Annotated[int, Field(ge=2, le=MOST_PAIRS)] = 2000
    seed: Annotated[int, Field(ge=0, lt=LEARNERS)] = 1
    part: Count = 1000
    records: Annotated[int, Field(ge=0)] = 1
    anchor: str = ""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Refuse agents that cannot meet."""
        if len(self.agents) < 2:
            raise AgentError("a tournament needs at least two agents")
        for spec in self.agents:
            if self.agents.count(spec) > 1:
                raise AgentError(f"agent {spec!r} comes twice")
        if self.anchor and self.anchor not in self.agents:
            raise AgentError(f"the anchor {self.anchor!r} is none of the agents")

    @property
    def rule_set(self) -> RuleSet:
        """The rules that are played."""
        return rules_of(self.rules)


@dataclass(frozen=True)
class Tournament:
    """All games of a tournament.

    Attributes:
        matches: one for each pairing, the first agent being the earlier one.
    """

    config: TournamentConfig
    matches: tuple[MatchResult, ...]

    @cached_property
    def ratings(self) -> Ratings:
        """Ratings, payoffs and the mixture of agents."""
        anchor = self.config.anchor or self.config.agents[0]
        return rate(self.config.agents, [Pairing.of(match) for match in self.matches], anchor)

    @property
    def ranking(self) -> tuple[str, ...]:
        """Agents by rating, the best first."""
        return self.ratings.agents

    def overall(self, agent: str) -> Estimate:
        """Mean score of ``agent`` against all it met, over the deals they shared."""
        return estimate(self.deal_scores(agent), max(m.most for _, m, _ in self.met(agent)))

    def deal_scores(self, agent: str) -> NDArray[np.float32]:
        """Mean score of ``agent`` on each deal against all it met, float32 [pairs]."""
        scores = [sign * match.pair_scores for _, match, sign in self.met(agent)]
        means: NDArray[np.float32] = np.mean(scores, axis=0)
        return means

    def forfeits(self, agent: str) -> dict[str, list[Forfeit]]:
        """The games an agent could not go on with, by the kind of its fault."""
        return by_kind(agent, (f for match in self.matches for f in match.forfeits))

    def met(self, agent: str) -> Iterator[tuple[str, MatchResult, int]]:
        """Whom an agent met, the match, and 1, or -1 where the agent is the match's second."""
        for match in self.matches:
            if agent in (match.first, match.second):
                first = agent == match.first
                yield (match.second if first else match.first), match, 1 if first else -1


def by_kind(agent: str, forfeits: Iterable[Forfeit]) -> dict[str, list[Forfeit]]:
    """Those of an agent by the kind of its fault."""
    found: dict[str, list[Forfeit]] = {}
    for forfeit in forfeits:
        if forfeit.agent == agent:
            found.setdefault(forfeit.kind, []).append(forfeit)
    return dict(sorted(found.items()))
