"""Conquian in OpenSpiel: importing this module registers the game ``python_conquian``.

Parameters of the game:
    rules: a preset, also with changes, as in ``classic;deal:8;force:off`` (see ``parse_rules``).
    skip_forced: whether decisions with a single legal action are played by themselves.

The states are the nodes of ``tree``, which says what the moves of chance are.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel

from conquian_env.actions import NUM_ACTIONS, action_name
from conquian_env.cards import NUM_CARDS, card_ids, card_name
from conquian_env.errors import OptionError
from conquian_env.observation import OBSERVATION_SIZE, PIECES
from conquian_env.rules import RuleSet
from conquian_env.tree import CHANCE, TERMINAL, Node

EVENT_BITS = 8
DEFAULTS: dict[str, Any] = {"rules": "classic", "skip_forced": False}


def parse_rules(text: str) -> RuleSet:
    """The rules in a text such as ``classic`` or ``classic;deal:8;force:off``.

    That is ``RuleSet.from_text`` with other signs: a game string of OpenSpiel has no place for a
    comma or a second ``=``.

    Raises:
        RuleSetError: no such preset or field, or the rules cannot be played.
    """
    return RuleSet.from_text(text.replace(";", ",").replace(":", "="))


def rules_text(rules: RuleSet) -> str:
    """The inverse of ``parse_rules``."""
    return rules.to_text().replace(",", ";").replace("=", ":")


_GAME_TYPE = pyspiel.GameType(
    short_name="python_conquian",
    long_name="Python Conquian",
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=pyspiel.GameType.Utility.ZERO_SUM,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=True,
    provides_observation_string=True,
    provides_observation_tensor=True,
    parameter_specification=DEFAULTS,
)


class ConquianGame(pyspiel.Game):  # type: ignore[misc]  # pyspiel ships no types
    """``pyspiel.load_game("python_conquian(rules=nano)")``.

    Raises:
        RuleSetError: the parameter ``rules`` names no rules.
        OptionError: they have ``draw="double"``: each deal is a game of its own here.
    """

    def __init__(self, params: dict[str, Any] | None = None) -> None:
        params = DEFAULTS | (params or {})
        self.root = Node.root(parse_rules(params["rules"]), params["skip_forced"])
        info = pyspiel.GameInfo(
            num_distinct_actions=NUM_ACTIONS,
            max_chance_outcomes=NUM_CARDS,
            num_players=2,
            min_utility=-1.0,
            max_utility=1.0,
            utility_sum=0.0,
            max_game_length=self.root.setup.rules.max_plies,
        )
        super().__init__(_GAME_TYPE, info, params)

    def max_chance_nodes_in_history(self) -> int:
        """Cards dealt and turned at most."""
        rules = self.root.setup.rules
        return 2 * rules.deal + rules.stock_size

    def new_initial_state(self) -> "ConquianState":
        """The state in which nothing is dealt."""
        return ConquianState(self)

    def make_py_observer(
        self, iig_obs_type: Any = None, params: dict[str, Any] | None = None
    ) -> "ConquianObserver":
        """An observer of what one seat may know, with or without perfect recall.

        Raises:
            OptionError: another kind of observation is asked for, or it has parameters.
        """
        kind = iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
        single = kind.private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER
        if params or not (kind.public_info and single):
            raise OptionError("only what one player may know can be observed, without parameters")
        return ConquianObserver(self.root.setup.max_events, kind.perfect_recall)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return pyspiel.load_game, (str(self),)  # pyspiel's own way loses the attributes


class ConquianState(pyspiel.State):  # type: ignore[misc]  # pyspiel ships no types
    """A state of ``python_conquian``; ``node`` is where it stands in the tree."""

    def __init__(self, game: ConquianGame) -> None:
        super().__init__(game)
        self.node = game.root

    def current_player(self) -> int:
        """The seat to act, or what OpenSpiel calls chance and the end."""
        return self.node.player

    def _legal_actions(self, player: int) -> list[int]:
        return list(self.node.actions)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """Cards that can be dealt or turned, each with its probability."""
        return list(self.node.chances.items())

    def _apply_action(self, action: int) -> None:
        self.node = self.node.child(action)

    def _action_to_string(self, player: int, action: int) -> str:
        return card_name(action) if player == CHANCE else action_name(action)

    def is_terminal(self) -> bool:
        """Whether the game is over."""
        return self.node.player == TERMINAL

    def returns(self) -> list[float]:
        """The payoff of each seat, 0 until the end."""
        return list(self.node.game.returns())

    def resample_from_infostate(
        self, player_id: int, probability_sampler: Callable[[], float]
    ) -> "ConquianState":
        """A state with the player's information and other hidden cards, drawn as chance would.

        Args:
            player_id: the seat that keeps its information.
            probability_sampler: returns random numbers from 0 to 1; the state depends on nothing
                else that is random.
        """
        seed = [int(probability_sampler() * (1 << 32)) for _ in range(4)]
        state = self.get_game().new_initial_state()
        for move in self.node.resample(player_id, np.random.default_rng(seed)):
            state.apply_action(move)
        return state  # type: ignore[no-any-return]  # pyspiel ships no types

    def __str__(self) -> str:
        return "\n".join(self.node.information(seat) for seat in (0, 1))


class ConquianObserver:
    """What a seat may know, as the observers of OpenSpiel give it.

    Attributes:
        tensor: float32 [n], all pieces one after the other.
        dict: the pieces by name, each a window of the tensor: ``observation.PIECES``, and with
            perfect recall also ``dealt`` [40], the hand as dealt, and ``history`` [events, 8], a
            row an event as ``write_history`` has it, its bits inverted so that zeros are none.
    """

    def __init__(self, max_events: int, perfect_recall: bool) -> None:
        shapes: dict[str, tuple[int, ...]] = {piece.name: (piece.size,) for piece in PIECES}
        if perfect_recall:
            shapes |= {"dealt": (NUM_CARDS,), "history": (max_events, EVENT_BITS)}
        ends = np.cumsum([np.prod(shape) for shape in shapes.values()]).tolist()
        self._perfect_recall = perfect_recall
        self.tensor = np.zeros(ends[-1], np.float32)
        parts = np.split(self.tensor, ends[:-1])
        self.dict = {
            name: part.reshape(shape)
            for (name, shape), part in zip(shapes.items(), parts, strict=True)
        }

    def set_from(self, state: ConquianState, player: int) -> None:
        """Fill the tensor with what the player may know of the state."""
        node = state.node
        self.tensor[:OBSERVATION_SIZE] = node.game.observation(player)
        if self._perfect_recall:
            self.dict["dealt"].fill(0)
            self.dict["dealt"][list(card_ids(node.dealt[player]))] = 1
            self.dict["history"][:] = np.unpackbits(~node.history(player)[:, None], axis=1)

    def string_from(self, state: ConquianState, player: int) -> str:
        """The same as text."""
        node = state.node
        return node.information(player) if self._perfect_recall else node.observation_text(player)


pyspiel.register_game(_GAME_TYPE, ConquianGame)
