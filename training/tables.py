"""What every form of a tournament's report says: its tables as text, its caption and notes."""

from collections.abc import Sequence

from conquian_env.errors import OptionError
from training.match import Estimate, Forfeit, MatchResult
from training.results import Tournament, by_kind
from training.strength import Tally

MOST_SAID = 200  # letters of a message
WIDE = 140  # columns where no terminal sets them
GAMES = (
    "first", "second", "games", "won", "drawn", "lost", "score of the first", "nElo", "LOS",
    "won in seat 0", "plies",
)  # fmt: skip


def markdown_table(header: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a Markdown table."""
    ruled = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(map(markdown, row)) + " |" for row in ruled]


def markdown(text: str) -> str:
    """A text within a line of Markdown: no column, HTML, link or picture, and one line."""
    for letter, written in (("&", "&amp;"), ("<", "&lt;"), ("|", "\\|"), ("](", "]\\(")):
        text = text.replace(letter, written)
    return visible(text)


def visible(text: str) -> str:
    """The text with escapes of what would break the line, turn it around, hide, or be no UTF-8."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def cross_table(tournament: Tournament) -> tuple[list[str], list[list[str]]]:
    """Header and rows: rank, agent, rating, overall score, and score against each rank."""
    ranking = tournament.ratings.ranking
    header = ["", "agent", "Elo", "score", *(f"v {place}" for place in range(1, 1 + len(ranking)))]
    rows = [
        [
            str(place),
            rating.agent,
            str(rating),
            tournament.overall(rating.agent).short,
            *(_against(tournament, rating.agent, other) for other in tournament.ranking),
        ]
        for place, rating in enumerate(ranking, 1)
    ]
    return header, rows


def _against(tournament: Tournament, agent: str, other: str) -> str:
    try:
        return "" if agent == other else tournament.ratings.against(agent, other).short
    except OptionError:  # they did not meet
        return "-"


def game_table(tournament: Tournament) -> list[list[str]]:
    """A row of ``GAMES`` for each pairing."""
    return [_games(tournament, match) for match in tournament.matches]


def _games(tournament: Tournament, match: MatchResult) -> list[str]:
    tally = Tally.of(match.payoff)
    return [
        match.first,
        match.second,
        str(match.payoff.size),
        *map(str, match.counts),
        str(tournament.ratings.against(match.first, match.second)),
        points(tally.nelo),
        f"{tally.los:.1%}",
        f"{match.seat_0_wins / match.payoff.size:.1%}",
        f"{match.plies.mean():.1f}",
    ]


def points(elo: Estimate) -> str:
    """Elo with its interval; points have no decimals."""
    return f"{elo.mean:+.0f} [{elo.low:+.0f}, {elo.high:+.0f}]"


def notes(tournament: Tournament) -> list[str]:
    """What a reader of the tables must know."""
    forfeits = [forfeit for match in tournament.matches for forfeit in match.forfeits]
    return [*tournament.ratings.notes, *forfeit_notes(tournament.config.agents, forfeits)]


def forfeit_notes(agents: Sequence[str], forfeits: Sequence[Forfeit]) -> list[str]:
    """How many games each agent could not go on with, by kind, with what is known of the first."""
    return [
        f"{agent} could not go on with {len(of_kind)} games, which it lost: {kind} "
        f"({of_kind[0].message[:MOST_SAID]})"
        for agent in agents
        for kind, of_kind in by_kind(agent, forfeits).items()
    ]


def caption(tournament: Tournament) -> str:
    """How the tables are to be read."""
    config = tournament.config
    return (
        f"{config.pairs} deals a pairing, each played twice with the seats swapped; seed "
        f"{config.seed}. Elo: Bradley-Terry, {tournament.ratings.anchor} is 0. Score: mean payoff "
        "of a game, against all that were met and against each; 95 % intervals over the deals, "
        "± is half of one."
    )
