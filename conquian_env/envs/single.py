"""Conquian as a Gymnasium environment: one seat; the opponent's moves are played here."""

from typing import Any, Literal, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from conquian_env.actions import NUM_ACTIONS, PASS, action_id
from conquian_env.envs.opponent import Opponent, Opposition, SeatChoice
from conquian_env.envs.options import (
    MaskLocation,
    Place,
    check_option,
    first_game,
    lead,
    observation_space,
)
from conquian_env.envs.picture import Perspective, Picture, RenderMode
from conquian_env.errors import ConquianError, IllegalActionError
from conquian_env.game import Game
from conquian_env.observation import Encoding
from conquian_env.rules import RuleSet, rule_set

IllegalMove = Literal["lose", "raise"]
Observation = dict[str, NDArray[Any]] | NDArray[np.uint8]
FORFEITED = "the learner chose an illegal action and loses"
ONLY = np.zeros(1, np.int64)  # the row of the one game


class ConquianEnv(gymnasium.Env[Observation, np.int64]):
    """One seat of Conquian; ``reset`` and ``step`` return at the learner's next decision.

    A deal is an episode, and every deal has one: where the opponent ends it before the learner
    decides anything, ``reset`` shows it over, with ``pass`` the only action, which ends the episode
    and pays. There is no truncation.

    Args:
        rules: a RuleSet or the name of a preset.
        opponent: ``random``, ``package.module:Class``, or an object with ``act(views)``.
        seat: the learner's: 0 (acts first), 1, ``alternate``, or ``random`` by deal.
        observation: ``flat`` (uint8 [416]), ``planes`` (uint8 [26, 4, 10]) or ``history`` (uint8
            [616]), see ``Game.observation``.
        mask_location: where the action mask (int8 [83]) is: ``obs``, which makes the observation
            a dict ``{"observation", "action_mask"}``, ``info``, or ``both``.
        skip_forced: play single-option decisions of both seats, so that the learner sees real
            choices only.
        illegal: an illegal action loses the deal (``lose``), or raises and changes nothing.
        shaping: also pay what changes in the difference of cards on the two tables, as a part of
            the target, and take it back at the end: an episode's rewards add up to the same.
        render_mode: ``ansi``, ``rgb_array`` or ``human``.
        perspective: whose hand ``render`` shows: the learner's (``actor``), a seat's, or ``open``.

    Raises:
        OptionError, RuleSetError: an argument is out of range.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium's own type
        "render_modes": list(get_args(RenderMode)),
        "render_fps": 2,
    }

    def __init__(
        self,
        rules: RuleSet | str = "classic",
        opponent: str | Opponent = "random",
        seat: SeatChoice = "random",
        observation: Encoding = "flat",
        mask_location: MaskLocation = "obs",
        skip_forced: bool = False,
        illegal: IllegalMove = "lose",
        shaping: bool = False,
        render_mode: RenderMode | None = None,
        perspective: Perspective = "actor",
    ) -> None:
        check_option("illegal", illegal, get_args(IllegalMove))
        self.rules = rule_set(rules)
        self.encoding, self.mask_location = observation, mask_location
        self.skip_forced, self.illegal, self.shaping = bool(skip_forced), illegal, bool(shaping)
        self.observation_space = observation_space(observation, mask_location)
        self.action_space = spaces.Discrete(NUM_ACTIONS)
        self.render_mode = render_mode
        self._opposition = Opposition(opponent, seat)
        self._picture = Picture(render_mode, perspective, self.metadata["render_fps"])
        self._game: Game | None = None
        self._place: Place | None = None
        self._over = False
        self._note = ""
        self.seat = 0

    @property
    def game(self) -> Game:
        """The deal in play, hidden cards included: for the host, never for the learner."""
        if self._game is None:
            raise ConquianError("reset the environment before using it")
        return self._game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Deal. A seed starts its deal 0; without one the next deal of the last seed is played.

        Args:
            seed: 0 to 2**64 - 1.
            options: one of ``deal``, ``deck`` and ``position``, as in the PettingZoo environment;
                with a deck or a position the seed is that of the opponent and of the seat.

        Raises:
            ConquianError: the seed or an option is out of range; the game goes on as it was.
        """
        game, self._place = first_game(self.rules, seed, options, self._place)
        super().reset(seed=None if seed is None else int(seed))
        own_seed, deal = self._place
        self._opposition.reseed(1, ONLY, [own_seed])
        self._deals = np.array([deal])
        self.seat = int(self._opposition.seats(ONLY, self._deals)[0])
        self._game, self._over, self._note = game, False, ""
        self._potential = 0.0
        self._play_on()
        self._picture.follow(game, self._note, self.seat)
        return self._observe(), self._info()

    def step(self, action: int | np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play ``action``, and the opponent's until the learner is to decide again.

        Raises:
            IllegalActionError: the action is not legal and ``illegal="raise"``, or is no whole
                number; nothing changed.
            ConquianError: the episode is over.
        """
        game = self._on_turn()
        if self._over:
            raise ConquianError("the deal is over: reset to deal again")
        number = action_id(action)
        try:
            self._answer(number)
        except IllegalActionError:
            if self.illegal == "raise":
                raise
            won, self._over, self._note = -float(game.stake), True, FORFEITED
        else:
            self._play_on()
            won, self._over = game.returns()[self.seat], game.is_over
        reward = won
        if self.shaping:
            before, self._potential = self._potential, 0.0 if self._over else lead(game, self.seat)
            reward += self._potential - before
        self._picture.follow(game, self._note, self.seat)
        return self._observe(), reward, self._over, False, self._info()

    def _answer(self, action: int) -> None:
        """Play the learner's action; ``pass`` stands for none where the deal is over."""
        if not self.game.is_over:
            self.game.apply(action)
        elif action != PASS:
            raise IllegalActionError("the deal was over before it began: only pass is left")

    def _play_on(self) -> None:
        """The opponent's moves, and forced ones, until the learner is to decide."""
        game = self.game
        while not game.is_over:
            legal = game.legal_actions() if self.skip_forced else ()
            if len(legal) == 1:
                game.apply(legal[0])
            elif game.actor != self.seat:
                ply = np.array([game.ply])
                seeds = self._opposition.seeds(ONLY, self._deals, ply)
                game.apply(int(self._opposition.act(game.views(seeds))[0]))
            else:
                return

    def _on_turn(self) -> Game:
        """The game, if it waits for the learner or is over; it does not if the opponent failed."""
        game = self.game
        if not game.is_over and game.actor != self.seat:
            raise ConquianError("the opponent failed in its turn: reset to deal again")
        return game

    def action_masks(self) -> NDArray[np.bool_]:
        """The legal actions, bool [83], as sb3-contrib wants them; when all is over, ``pass``."""
        game = self._on_turn()
        if not (self._over or game.is_over):
            return game.legal_mask().view(np.bool_)
        mask = np.zeros(NUM_ACTIONS, np.bool_)
        mask[PASS] = True
        return mask

    def _observe(self) -> Observation:
        seen = self.game.observation(self.seat, self.encoding)
        if self.mask_location == "info":
            return seen
        return {"observation": seen, "action_mask": self.action_masks().view(np.int8)}

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"seat": self.seat}
        if self.mask_location != "obs":
            info["action_mask"] = self.action_masks().view(np.int8)
        return info

    def render(self) -> str | NDArray[np.uint8] | None:
        """Text in mode ``ansi``, uint8 [720, 1280, 3] in ``rgb_array``; None in ``human``."""
        return self._picture.draw(self.game, self._note, self.seat)

    def close(self) -> None:
        """Close the window of mode ``human``."""
        self._picture.close()
