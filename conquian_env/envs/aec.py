"""Conquian as a PettingZoo AEC environment."""

from typing import Any, get_args

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import (
    AssertOutOfBoundsWrapper,
    BaseWrapper,
    OrderEnforcingWrapper,
)

from conquian_env.actions import NUM_ACTIONS
from conquian_env.envs.options import (
    MaskLocation,
    Place,
    copied_game,
    first_game,
    lead,
    observation_space,
)
from conquian_env.envs.picture import Perspective, Picture, RenderMode
from conquian_env.errors import ConquianError, IllegalActionError, OptionError
from conquian_env.game import Game
from conquian_env.observation import HIDDEN_HIGHS, HIGHS, Encoding
from conquian_env.rules import RuleSet, rule_set

AGENTS = ("player_0", "player_1")
SEATS = {agent: seat for seat, agent in enumerate(AGENTS)}

AgentID = str
Observation = dict[str, NDArray[Any]] | NDArray[np.uint8]


class raw_env(AECEnv[AgentID, Observation, int | None]):  # noqa: N801  # PettingZoo's name for it
    """The bare environment: an illegal action raises and changes nothing.

    ``player_0`` is the non-dealer and acts first; the same seat often acts several times running
    (take, then each card it lays, then the discard). Rewards are 0 until the game ends, then +1
    and -1 or 0 for both (times the stake with ``draw="double"``), and sum to 0 at every step. Every
    game is an episode; there is no truncation.

    Args:
        rules: a RuleSet or the name of a preset.
        render_mode: ``ansi``, ``render()`` returns text; ``rgb_array``, uint8 [720, 1280, 3];
            ``human``, a window shows every step, ``render_fps`` of them a second. The last two need
            the extra ``render``.
        mask_location: where the action mask (int8 [83], zeros for the seat not to move) is: in the
            observation, which is then a dict ``{"observation", "action_mask"}``, in the info under
            ``action_mask``, or both.
        perspective: whose hand ``render`` shows: the ``actor``, ``open`` for both, or a seat.
        observation: ``flat`` (uint8 [416]), ``planes`` (uint8 [26, 4, 10]) or ``history`` (uint8
            [616]), see ``Game.observation``.
        shaping: also pay what a step changes in the difference of cards on the two tables, as a
            part of the target, and take it back at the end: an episode's rewards add up to the
            same (Ng, Harada and Russell, 1999).

    Attributes:
        state_space: the space of ``state()``.

    Raises:
        OptionError, RuleSetError: an argument is out of range.
        RenderError: when it comes to drawing, pygame or a display for the window is missing.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # PettingZoo's own type
        "name": "conquian_v0",
        "render_modes": list(get_args(RenderMode)),
        "is_parallelizable": False,
        "render_fps": 2,
    }

    def __init__(
        self,
        rules: RuleSet | str = "classic",
        render_mode: RenderMode | None = None,
        mask_location: MaskLocation = "obs",
        perspective: Perspective = "actor",
        observation: Encoding = "flat",
        shaping: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # PettingZoo left it untyped
        self.rules = rule_set(rules)
        self.render_mode = render_mode
        self.mask_location = mask_location
        self.perspective = perspective
        self.encoding = observation
        self.shaping = shaping
        self.possible_agents = list(AGENTS)
        self.agents = []
        self.observation_spaces = {
            agent: observation_space(observation, mask_location) for agent in AGENTS
        }
        high = np.concatenate([HIGHS, HIDDEN_HIGHS])
        self.state_space = spaces.Box(np.zeros_like(high), high, dtype=np.uint8)
        self.action_spaces: dict[AgentID, spaces.Space[Any]] = {
            agent: spaces.Discrete(NUM_ACTIONS) for agent in AGENTS
        }
        self._game: Game | None = None
        self._place: Place | None = None
        self._forfeited: AgentID | None = None
        self._picture = Picture(render_mode, perspective, self.metadata["render_fps"])

    def observation_space(self, agent: AgentID) -> spaces.Space[Any]:
        """The space of ``observe(agent)``, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: AgentID) -> spaces.Space[Any]:
        """``Discrete(83)``, the same object at every call."""
        return self.action_spaces[agent]

    @property
    def game(self) -> Game:
        """The deal in play, hidden cards included: for the host, never for an agent."""
        if self._game is None:
            raise ConquianError("reset the environment before using it")
        return self._game

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Deal. A seed starts its deal 0; without one the next deal of the last seed is played.

        Args:
            seed: 0 to 2**64 - 1.
            options: one of ``deal`` (the number of the deal), ``deck`` (the whole pack as
                ``Game.from_deck`` wants it) and ``position`` (a Game to go on from); other keys
                are ignored.

        Raises:
            ConquianError: the seed or an option is out of range; the game goes on as it was.
        """
        game, self._place = first_game(self.rules, seed, options, self._place)
        self._begin(game)

    def set_state(self, game: Game) -> None:
        """Go on from a copy of ``game``, as a new episode."""
        self._begin(copied_game("game", game, self.rules))

    def _begin(self, game: Game) -> None:
        self._game = game
        self._forfeited = None
        self._potential = 0.0
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
        self.infos: dict[AgentID, dict[str, Any]] = {agent: {} for agent in AGENTS}
        self._skip_agent_selection = None  # type: ignore[assignment]  # PettingZoo's idle value
        self._after_move()

    def step(self, action: int | None) -> None:
        """Play ``action`` for ``agent_selection`` (None once it is terminated).

        Raises:
            IllegalActionError: the action is not legal; nothing changed.
        """
        if not self.agents:
            raise ConquianError("the deal is over and all agents have left: reset to deal again")
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        game = self.game
        game.apply(action)  # type: ignore[arg-type]  # None is refused there by name
        self._cumulative_rewards[self.agent_selection] = 0.0
        if game.is_over:
            self._end(game.returns()[0])
        elif self.shaping:
            self._pay(0.0, lead(game, 0))
        self._after_move()

    def forfeit(self, agent: AgentID) -> None:
        """End the game as lost by ``agent`` for the stake of the deal in play."""
        self._cumulative_rewards[agent] = 0.0
        self._forfeited = agent
        stake = float(self.game.stake)
        self._end(-stake if agent == AGENTS[0] else stake)
        self._after_move()

    def _end(self, won: float) -> None:
        """All leave; ``won`` is what seat 0 is paid."""
        self.terminations = dict.fromkeys(AGENTS, True)
        self._pay(won, potential=0.0)

    def _pay(self, won: float, potential: float) -> None:
        if self.shaping:
            won += potential - self._potential
            self._potential = potential
        self.rewards = {AGENTS[0]: won, AGENTS[1]: -won}
        self._accumulate_rewards()

    def _after_move(self) -> None:
        self.agent_selection = AGENTS[self.game.actor]
        if self.mask_location != "obs":
            self.infos = {agent: {"action_mask": self._mask(agent)} for agent in AGENTS}
        self._picture.follow(self.game, self._note(), self.game.actor)

    def _mask(self, agent: AgentID) -> NDArray[np.int8]:
        if agent == self.agent_selection and not self.terminations.get(agent, True):
            return self.game.legal_mask()
        return np.zeros(NUM_ACTIONS, np.int8)

    def observe(self, agent: AgentID) -> Observation:
        """What ``agent`` sees, at any time: the encoded view, or the dict with its mask."""
        if agent not in SEATS:
            raise OptionError(f"agent must be one of {', '.join(AGENTS)}, not {agent!r}")
        seen = self.game.observation(SEATS[agent], self.encoding)
        if self.mask_location == "info":
            return seen
        return {"observation": seen, "action_mask": self._mask(agent)}

    def state(self) -> NDArray[np.uint8]:
        """Everything from the side of ``player_0`` (``Game.state``), for a critic in training."""
        return self.game.state(0)

    def render(self) -> str | NDArray[np.uint8] | None:
        """The table as text in mode ``ansi``, as uint8 [720, 1280, 3] in mode ``rgb_array``.

        In mode ``human`` it is in the window already.
        """
        return self._picture.draw(self.game, self._note(), self.game.actor)

    def _note(self) -> str:
        return f"{self._forfeited} chose an illegal action and loses" if self._forfeited else ""

    def close(self) -> None:
        """Close the window of mode ``human``."""
        self._picture.close()


class IllegalLosesWrapper(BaseWrapper[AgentID, Observation, int | None]):
    """An illegal action loses the deal: -1 for the seat, +1 for the other, both terminated.

    PettingZoo's own TerminateIllegalWrapper pays the other seat 0 and truncates as well.
    """

    def step(self, action: int | None) -> None:
        """Play ``action``, or forfeit the deal if it is not legal."""
        env = self.unwrapped
        assert isinstance(env, raw_env)
        try:
            super().step(action)
        except IllegalActionError:
            env.forfeit(env.agent_selection)


def env(**kwargs: Any) -> AECEnv[AgentID, Observation, int | None]:
    """The environment in PettingZoo's customary wrappers; arguments as for ``raw_env``.

    An illegal action loses the deal; an action outside the action space and a call out of order
    raise.
    """
    checked = AssertOutOfBoundsWrapper(IllegalLosesWrapper(raw_env(**kwargs)))
    return OrderEnforcingWrapper(checked)
