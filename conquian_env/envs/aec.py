"""Conquian as a PettingZoo AEC environment."""

from typing import Any, Literal, get_args

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
from conquian_env.errors import ConquianError, IllegalActionError, OptionError
from conquian_env.game import Game
from conquian_env.observation import HIGHS
from conquian_env.render import text
from conquian_env.rules import RuleSet, rule_set
from conquian_env.scene import Scene, scene
from conquian_env.view import View
from conquian_env.window import Window, rgb_array

AGENTS = ("player_0", "player_1")
MaskLocation = Literal["obs", "info", "both"]
Perspective = Literal["actor", "open", 0, 1]
RenderMode = Literal["ansi", "rgb_array", "human"]

AgentID = str
Observation = dict[str, NDArray[Any]] | NDArray[np.uint8]


class raw_env(AECEnv[AgentID, Observation, int | None]):  # noqa: N801  # PettingZoo's name for it
    """The bare environment: an illegal action raises and changes nothing.

    ``player_0`` is the non-dealer and acts first; the same seat often acts several times running
    (take, then each card it lays, then the discard). Rewards are 0 until the game ends, then +1
    and -1 or 0 for both (times the stake with ``draw="double"``). Every game is an episode; there
    is no truncation.

    Args:
        rules: a RuleSet or the name of a preset.
        render_mode: ``ansi``, ``render()`` returns text; ``rgb_array``, uint8 [720, 1280, 3];
            ``human``, a window shows every step, ``render_fps`` of them a second. The last two need
            the extra ``render``.
        mask_location: where the action mask (int8 [83], zeros for the seat not to move) is: in the
            observation, which is then a dict ``{"observation", "action_mask"}``, in the info under
            ``action_mask``, or both.
        perspective: whose hand ``render`` shows: the ``actor``, ``open`` for both, or a seat.

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
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # PettingZoo left it untyped
        _check("render_mode", render_mode, (None, *get_args(RenderMode)))
        _check("mask_location", mask_location, get_args(MaskLocation))
        _check("perspective", perspective, get_args(Perspective))
        self.rules = rule_set(rules)
        self.render_mode = render_mode
        self.mask_location = mask_location
        self.perspective = perspective
        self.possible_agents = list(AGENTS)
        self.agents = []
        self.observation_spaces = {agent: self._space() for agent in AGENTS}
        self.action_spaces: dict[AgentID, spaces.Space[Any]] = {
            agent: spaces.Discrete(NUM_ACTIONS) for agent in AGENTS
        }
        self._game: Game | None = None
        self._forfeited: AgentID | None = None
        self._window = Window()

    def _space(self) -> spaces.Space[Any]:
        flat = spaces.Box(np.zeros_like(HIGHS), HIGHS, dtype=np.uint8)
        if self.mask_location == "info":
            return flat
        mask = spaces.Box(0, 1, (NUM_ACTIONS,), np.int8)
        return spaces.Dict({"observation": flat, "action_mask": mask})

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

        Raises:
            SeedError: the seed is outside 0 to 2**64 - 1; the game goes on as it was.
        """
        if seed is not None:
            game = Game(self.rules, seed)
        elif self._game is not None:
            game = Game(self.rules, self._game.seed, self._game.deal + 1)
        else:
            game = Game(self.rules, int(np.random.SeedSequence().generate_state(1, np.uint64)[0]))
        self._game = game
        self._forfeited = None
        self.agents = list(AGENTS)
        self.rewards = dict.fromkeys(AGENTS, 0.0)
        self._cumulative_rewards = dict.fromkeys(AGENTS, 0.0)
        self.terminations = dict.fromkeys(AGENTS, False)
        self.truncations = dict.fromkeys(AGENTS, False)
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
        self.game.apply(action)  # type: ignore[arg-type]  # None is refused there by name
        self._cumulative_rewards[self.agent_selection] = 0.0
        self._pay(self.game.returns(), self.game.is_over)

    def forfeit(self, agent: AgentID) -> None:
        """End the game as lost by ``agent`` for the stake of the deal in play."""
        self._cumulative_rewards[agent] = 0.0
        self._forfeited = agent
        stake = float(self.game.stake)
        self._pay((-stake, stake) if agent == AGENTS[0] else (stake, -stake), over=True)

    def _pay(self, returns: tuple[float, float], over: bool) -> None:
        self.rewards = dict(zip(AGENTS, returns if over else (0.0, 0.0), strict=True))
        self.terminations = dict.fromkeys(AGENTS, over)
        self._accumulate_rewards()
        self._after_move()

    def _after_move(self) -> None:
        self.agent_selection = AGENTS[self.game.actor]
        in_info = self.mask_location != "obs"
        self.infos = {
            agent: {"action_mask": self._mask(agent)} if in_info else {} for agent in AGENTS
        }
        if self.render_mode == "human":
            self._window.show(self._scene(), self.metadata["render_fps"])

    def _mask(self, agent: AgentID) -> NDArray[np.int8]:
        to_move = AGENTS[self.game.actor] == agent and not self.terminations.get(agent, True)
        return self.game.legal_mask() if to_move else np.zeros(NUM_ACTIONS, np.int8)

    def observe(self, agent: AgentID) -> Observation:
        """What ``agent`` sees, at any time: uint8 [416], or the dict with its mask."""
        _check("agent", agent, AGENTS)
        flat = self.game.observation(AGENTS.index(agent))
        if self.mask_location == "info":
            return flat
        return {"observation": flat, "action_mask": self._mask(agent)}

    def render(self) -> str | NDArray[np.uint8] | None:
        """The table as text in mode ``ansi``, as uint8 [720, 1280, 3] in mode ``rgb_array``.

        In mode ``human`` it is in the window already.
        """
        if self.render_mode == "rgb_array":
            return rgb_array(self._scene())
        return self._text() if self.render_mode == "ansi" else None

    def _seen(self) -> tuple[View, View | None]:
        """The view to draw, and the other one if both hands are open."""
        if self.perspective == "open":
            return self.game.view(0), self.game.view(1)
        seat = self.game.actor if self.perspective == "actor" else self.perspective
        return self.game.view(seat), None

    def _note(self) -> str:
        return f"{self._forfeited} chose an illegal action and loses" if self._forfeited else ""

    def _text(self) -> str:
        return "\n".join(filter(None, (text(*self._seen()), self._note())))

    def _scene(self) -> Scene:
        return scene(*self._seen(), note=self._note())

    def close(self) -> None:
        """Close the window of mode ``human``."""
        self._window.close()


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


def _check(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed or type(value) not in map(type, allowed):
        raise OptionError(f"{name} must be one of {', '.join(map(str, allowed))}, not {value!r}")
