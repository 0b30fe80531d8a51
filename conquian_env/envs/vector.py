"""Conquian as a Gymnasium vector environment: a learner's seat in each game of a ``Batch``."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from conquian_env.actions import NUM_ACTIONS, PASS
from conquian_env.batch import Batch, action_array, check_count
from conquian_env.deal import seed_bits
from conquian_env.envs.opponent import Opponent, Opposition, SeatChoice
from conquian_env.envs.options import MaskLocation, check_option, observation_space, random_seed
from conquian_env.envs.picture import Perspective, Picture, RenderMode
from conquian_env.envs.single import IllegalMove, Observation
from conquian_env.errors import ConquianError, IllegalActionError, OptionError, shown
from conquian_env.observation import LAYOUT, Encoding
from conquian_env.rules import RuleSet, rule_set

OWN_TABLE, OTHER_TABLE, STAKE = (
    LAYOUT[name].start for name in ("own_table_size", "other_table_size", "stake")
)
Bools = NDArray[np.bool_]


class ConquianVectorEnv(VectorEnv[Observation, NDArray[np.int64], NDArray[Any]]):
    """``num_envs`` games of ``ConquianEnv``, deal for deal the same, stepped together.

    Args:
        num_envs: games.
        autoreset_mode: ``NextStep`` (the step after an episode's last deals again and plays
            nothing), ``SameStep`` (the last step deals again; what it showed is in
            ``info["final_obs"]``) or ``Disabled`` (``reset`` with ``options={"reset_mask": …}``).
        threads: cores to step on; the games are the same whatever the number.
        copy: whether observations are new arrays at every step; without it a flat observation and
            its mask are the batch's own, filled anew by the next step.
        rules, opponent, seat, observation, mask_location: as for ``ConquianEnv``.
        skip_forced, illegal, shaping, render_mode, perspective: as for ``ConquianEnv``.

    Raises:
        OptionError, RuleSetError: an argument is out of range.
    """

    def __init__(
        self,
        num_envs: int = 1,
        rules: RuleSet | str = "classic",
        opponent: str | Opponent = "random",
        seat: SeatChoice = "random",
        observation: Encoding = "flat",
        mask_location: MaskLocation = "obs",
        skip_forced: bool = False,
        illegal: IllegalMove = "lose",
        shaping: bool = False,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        threads: int = 1,
        copy: bool = True,
        render_mode: RenderMode | None = None,
        perspective: Perspective = "actor",
    ) -> None:
        check_option("illegal", illegal, get_args(IllegalMove))
        check_count("num_envs", num_envs)
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError as error:
            raise OptionError(f"autoreset_mode: {error}") from None
        if render_mode == "human":
            raise OptionError("render_mode human is for one game: use ansi or rgb_array")
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": ["ansi", "rgb_array"],
            "render_fps": 2,
        }
        self.rules, self.num_envs, self.render_mode = rule_set(rules), num_envs, render_mode
        self.encoding, self.mask_location = observation, mask_location
        self.illegal, self.shaping, self.copy = illegal, bool(shaping), bool(copy)
        self.single_observation_space = observation_space(observation, mask_location)
        self.single_action_space = spaces.Discrete(NUM_ACTIONS)
        self._opposition = Opposition(opponent, seat)
        self._picture = Picture(render_mode, perspective, fps=2)
        seeds = [0] * num_envs  # until the first reset
        self._batch = Batch(num_envs, self.rules, seeds, skip_forced, False, threads)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._all = np.arange(num_envs)
        self._seeded = False
        self.seats = np.zeros(num_envs, np.int8)
        self._over = np.zeros(num_envs, np.bool_)  # the episode has ended, and was paid
        self._forfeited = np.zeros(num_envs, np.bool_)
        self._won = np.zeros(num_envs)  # in the deal in play; a forfeit does not come here
        self._potential = np.zeros(num_envs)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Deal. Seeds start their deal 0; without one a game's next deal is played.

        Args:
            seed: game i has seed + i; or one seed, or None, a game.
            options: ``reset_mask`` (bool [num_envs]) names the games to deal again; the others
                stay as they are. Other keys are ignored.

        Raises:
            OptionError, SeedError: an argument is out of range; nothing changed.
        """
        chosen = self._reset_mask(options)
        seeds = self._seeds(seed)
        seeded = chosen & [one is not None for one in seeds]
        index = np.flatnonzero(seeded)
        own = [one for one, new in zip(seeds, seeded, strict=True) if new and one is not None]
        self._batch.reseed(index, own)
        self._opposition.reseed(self.num_envs, index, own)
        self._seeded = True
        self._batch.reset(chosen & ~seeded)
        self._begin(np.flatnonzero(chosen))
        return self._observe(), self._info()

    def _reset_mask(self, options: dict[str, Any] | None) -> Bools:
        if options is not None and not isinstance(options, dict):
            raise OptionError(f"options must be a dict, not {shown(options)}")
        chosen = (options or {}).get("reset_mask", np.ones(self.num_envs, np.bool_))
        if not isinstance(chosen, np.ndarray) or chosen.dtype != np.bool_:
            raise OptionError(f"reset_mask must be an array of bool, not {shown(chosen)}")
        if chosen.shape != (self.num_envs,) or not chosen.any():
            raise OptionError(f"reset_mask must choose among {self.num_envs} games")
        if not self._seeded and not chosen.all():
            raise ConquianError("reset all games before some of them")
        return chosen

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        """One for each game, None to go on with its next deal."""
        if seed is None:
            seed = [None] * self.num_envs
        if not isinstance(seed, (Sequence, np.ndarray)):
            seed_bits(seed)
            return [int(seed) + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise OptionError(f"seed has {len(seed)} entries for {self.num_envs} games")
        if self._seeded:
            return seed
        return [random_seed() if one is None else one for one in seed]

    def _begin(self, index: NDArray[np.int64]) -> None:
        """The games of ``index`` have been dealt: up to the learner's first decision."""
        batch = self._batch
        self.seats[index] = self._opposition.seats(index, batch.deal[index])
        self._won[index] = batch.reward[index, self.seats[index]]
        self._over[index] = self._forfeited[index] = False
        self._potential[index] = 0.0
        self._play_on(index)

    def _play_on(self, index: NDArray[np.int64]) -> None:
        """The opponent's moves in some games, until the learner is to decide in each."""
        batch = self._batch
        while len(index := index[(batch.actor != self.seats)[index] & ~batch.done[index]]):
            seeds = self._opposition.seeds(index, batch.deal[index], batch.ply[index])
            self._move(index, self._opposition.act(batch.views(index, seeds)))

    def _move(self, index: NDArray[np.int64], actions: NDArray[np.int64]) -> None:
        self._batch.step(actions, index)
        self._won[index] += self._batch.reward[index, self.seats[index]]

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[Observation, NDArray[np.float64], Bools, Bools, dict[str, Any]]:
        """Play an action in every game, and the opponent's until the learner is to decide again.

        Args:
            actions: integers [num_envs]; what stands for a game that is dealt again is ignored.

        Returns:
            Observations, rewards float64 [num_envs], terminations and truncations bool
            [num_envs] (the latter never set), infos.

        Raises:
            IllegalActionError: an action is not legal and ``illegal="raise"``, or ``actions`` are
                no such array; nothing changed.
            ConquianError: a game is over in mode ``Disabled``.
        """
        chosen, legal = self._checked(actions)
        fresh, batch = self._over.copy(), self._batch
        wrong = ~fresh & ~legal
        if self.illegal == "raise" and wrong.any():
            i = int(np.flatnonzero(wrong)[0])
            raise IllegalActionError(f"game {i}: action {chosen[i]} is not legal")
        playing = np.flatnonzero(~fresh & legal)
        self._move(playing, chosen[playing])
        self._play_on(playing)
        self._deal(fresh)
        self._forfeited, self._over = wrong, (batch.done & ~fresh) | wrong
        over, reward = self._over.copy(), self._reward(fresh)
        infos = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and over.any():
            infos = self._final(over)
            self._deal(over)
        never = np.zeros(self.num_envs, np.bool_)
        return self._observe(), reward, over, never, infos | self._info()

    def _checked(self, actions: NDArray[np.int64]) -> tuple[NDArray[np.int64], Bools]:
        """The actions, and which of them are legal."""
        self._check_turns()
        if self.autoreset_mode == AutoresetMode.DISABLED and self._over.any():
            over = np.flatnonzero(self._over).tolist()
            raise ConquianError(f"games {over} are over: reset them with reset_mask")
        chosen = action_array(actions, self.num_envs)
        return chosen, self._batch.are_legal(chosen)

    def _check_turns(self) -> None:
        """Every game waits for the learner or is over, unless the opponent failed in it."""
        if not self._seeded:
            raise ConquianError("reset the environment before using it")
        batch = self._batch
        if ((batch.actor != self.seats) & ~batch.done).any():
            raise ConquianError("the opponent failed in its turn: reset to deal again")

    def _deal(self, chosen: Bools) -> None:
        if chosen.any():
            self._batch.reset(chosen)
            self._begin(np.flatnonzero(chosen))

    def _reward(self, fresh: Bools) -> NDArray[np.float64]:
        """What the step paid; nothing in a game that was only dealt."""
        seen = self._batch.observation
        won = np.where(self._forfeited, -seen[:, STAKE].astype(np.float64), self._won)
        reward = np.where(self._over, won, 0.0)
        if self.shaping:
            ahead = seen[:, OWN_TABLE].astype(np.float64) - seen[:, OTHER_TABLE]
            potential = np.where(self._over, 0.0, ahead / self.rules.target)
            reward += potential - self._potential
            reward[fresh] = 0.0
            self._potential = np.where(fresh, 0.0, potential)
        return reward

    def _final(self, over: Bools) -> dict[str, Any]:
        """What the games that ended showed at their end, before they are dealt again."""
        index = np.flatnonzero(over)
        seen = self._batch.observe(index, self.seats[index], self.encoding)
        mask = np.zeros(NUM_ACTIONS, np.int8)
        mask[PASS] = 1
        last = np.full(self.num_envs, None, object)
        info = {name: array.copy() for name, array in self._info().items()}  # it will be written to
        for place, i in enumerate(index):
            both = {"observation": seen[place], "action_mask": mask.copy()}
            last[i] = seen[place] if self.mask_location == "info" else both
        info |= {name: over.copy() for name in info if name.startswith("_")}
        return {
            "final_obs": last, "_final_obs": over.copy(),
            "final_info": info, "_final_info": over.copy(),
        }  # fmt: skip

    def action_masks(self) -> Bools:
        """The legal actions, bool [num_envs, 83]; ``pass`` alone where all is over."""
        self._check_turns()
        mask = self._batch.mask.copy() if self.copy else self._batch.mask
        mask[self._forfeited] = False
        mask[self._forfeited, PASS] = True
        return mask

    def _observe(self) -> Observation:
        seen = self._seen()
        if self.mask_location == "info":
            return seen
        return {"observation": seen, "action_mask": self.action_masks().view(np.int8)}

    def _seen(self) -> NDArray[np.uint8]:
        batch = self._batch
        if self.encoding != "flat":
            return batch.observe(self._all, self.seats, self.encoding)
        seen = batch.observation.copy() if self.copy else batch.observation
        ended = np.flatnonzero(batch.done)  # the batch shows the side of its last actor
        seen[ended] = batch.observe(ended, self.seats[ended])
        return seen

    def _info(self) -> dict[str, Any]:
        info: dict[str, Any] = {"seat": self.seats.astype(np.int64)}
        if self.mask_location != "obs":
            info["action_mask"] = self.action_masks().view(np.int8)
        return info | {f"_{name}": np.ones(self.num_envs, np.bool_) for name in info}

    def render(self) -> tuple[str | NDArray[np.uint8] | None, ...]:  # type: ignore[override]
        """For each game, text in mode ``ansi`` or uint8 [720, 1280, 3] in ``rgb_array``."""
        self._check_turns()
        games = map(self._batch.game, range(self.num_envs))
        return tuple(
            self._picture.draw(game, "", int(seat))
            for game, seat in zip(games, self.seats, strict=True)
        )
