"""Agents in processes of their own: the same play, every way to fail, and nothing left behind."""

import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from agents import make_agent
from agents.agent import Agent, AgentError
from agents.process import Fault, FaultError, ProcessAgent, child, outside
from conquian_env import Batch, RuleSet, Views
from conquian_env.errors import OptionError
from tests import rogues
from training.match import play_match

ROOT = Path(__file__).parents[1]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def views(n: int = 5, rules: str = "classic", moves: int = 0) -> Views:
    batch, rng = Batch(max(n, 1), RuleSet.preset(rules), 7), np.random.default_rng(1)
    for _ in range(moves):
        batch.step(batch.sample_actions(rng))
    return batch.views(np.arange(n), np.arange(n, dtype=np.uint64))


ONE = views(1)


def rogue(name: str, **limits) -> ProcessAgent:
    """The agent of ``rogues``, which has answered a call of one decision."""
    agent = ProcessAgent(f"tests.rogues:{name}", **({"move_seconds": 60} | limits))
    assert agent.act(ONE) == ONE.mask.argmax(axis=1)
    return agent


def fault_of(agent: ProcessAgent, seen: Views | None = None) -> FaultError:
    """What the agent makes of a call; its process must be gone after that."""
    family = descendants(agent)
    with pytest.raises(FaultError) as caught:
        agent.act(seen or views())
    assert not agent.running
    assert agent.faults[-1] is caught.value
    assert not left_of(family)
    return caught.value


def parents() -> dict[int, int]:
    """The parent of every process."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            found[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError):  # it ended meanwhile
            continue
    return found


def below(pid: int) -> list[int]:
    """A process and all that come from it."""
    table = parents()
    return [pid, *(d for one, parent in table.items() if parent == pid for d in below(one))]


def descendants(agent: ProcessAgent) -> list[int]:
    return below(agent._child.pid) if sys.platform == "linux" else []


def left_of(family: list[int], seconds: float = 0.0) -> list[int]:
    """The processes that are still there after so long; they are killed, for the other tests."""
    deadline = time.monotonic() + seconds
    while (left := list(filter(alive, family))) and time.monotonic() < deadline:
        time.sleep(0.01)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


def alive(pid: int) -> bool:
    """It is there, and waits for nobody but init to reap it."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return False
    return (state, parent) != ("Z", "1")


@pytest.fixture(params=["isolated", "in sight"])
def both_ways(request, monkeypatch) -> None:
    """With namespaces, and as where there are none."""
    if request.param == "in sight":
        monkeypatch.setattr(child, "unshare", lambda: ())
    elif not child.unshare():
        pytest.skip("no namespaces may be made here")


# --- play ---


@pytest.mark.parametrize("spec", ["greedy", "random", "expert"])
def test_decisions_are_those_of_the_agent_in_this_process(spec):
    here = make_agent(spec)
    with ProcessAgent(spec) as there:
        for rules in ("classic", "mexican"):
            for moves in (0, 3, 9, 20):
                seen = views(200, rules, moves)
                np.testing.assert_array_equal(there.act(seen), here.act(seen))


def test_views_arrive_whole_and_may_be_written_to():
    with ProcessAgent("tests.rogues:Digests") as agent:
        for seen in (ONE, views(0), views(4096, "mexican", 15)):
            agent.act(seen)
            assert agent.log.split()[-1] == rogues.digest(seen)


def test_an_agent_that_answers_with_lists_is_fine():
    with rogue("Lists") as agent:
        np.testing.assert_array_equal(agent.act(views()), views().mask.argmax(axis=1))


def test_it_is_an_agent_and_names_its_rules():
    with ProcessAgent("tests.rogues:OnlyNano") as agent:
        assert isinstance(agent, Agent)
        assert agent.rules == RuleSet.preset("nano")
        with pytest.raises(AgentError, match="plays RuleSet"):
            play_match(("nano", agent), ("greedy", make_agent("greedy")), RuleSet(), 2, 0)
    with rogue("First") as agent:
        assert not hasattr(agent, "rules")


# --- faults ---

FAULTS = [
    ("Raises", Fault.RAISED, "it raised ValueError('no idea')"),
    ("RaisesRudely", Fault.RAISED, "it raised no idea [2J"),
    ("Interrupts", Fault.RAISED, "it raised KeyboardInterrupt()"),
    ("RaisesUnprintable", Fault.RAISED, "it raised UnprintableError"),
    ("RaisesMuch", Fault.RAISED, "it raised ValueError('much much"),
    ("Illegal", Fault.ILLEGAL, "action 82 is not legal in row 1"),
    ("Huge", Fault.ILLEGAL, "action -1 is not legal in row 0"),
    ("Longer", Fault.ILLEGAL, "act must return 5 integers, not int64 of shape (6,)"),
    ("Column", Fault.ILLEGAL, "act must return 5 integers, not int64 of shape (5, 1)"),
    ("Floats", Fault.ILLEGAL, "act must return 5 integers, not float64 of shape (5,)"),
    ("Nothing", Fault.ILLEGAL, "act must return 5 integers, not object of shape ()"),
    ("Ragged", Fault.ILLEGAL, "setting an array element"),
    ("Eats", Fault.MEMORY, "it ran out of memory: MemoryError()"),
    ("Exits", Fault.LOST, "its process ended with status 3"),
    ("ExitsAtOnce", Fault.LOST, "its process ended with status 4"),
    ("KillsItself", Fault.LOST, "its process was killed by SIGKILL"),
    ("KillsItsGroup", Fault.LOST, "its process was killed by SIGTERM"),
    ("Crashes", Fault.LOST, "its process was killed by SIGSEGV"),
    ("ClosesAll", Fault.LOST, "its process ended with status"),
    ("Scribbles", Fault.LOST, "it sent no reply: 4294967295 bytes"),
]


@LINUX
@pytest.mark.parametrize(("name", "fault", "text"), FAULTS, ids=[name for name, *_ in FAULTS])
def test_each_way_to_fail_is_told_apart(name, fault, text):
    with rogue(name, memory_mb=300) as agent:
        error = fault_of(agent)
    assert (error.fault, error.agent) == (fault, f"tests.rogues:{name}")
    assert str(error).startswith(f"agent tests.rogues:{name}: {text}")
    assert str(error).isprintable()
    assert len(str(error)) < 2100


@LINUX
@pytest.mark.parametrize("name", ["Sleeps", "Clings"])
def test_an_agent_that_does_not_answer_is_stopped(name, monkeypatch):
    monkeypatch.setattr(outside, "GRACE", 0.2)
    with rogue(name, move_seconds=0.02) as agent:
        start = time.monotonic()
        error = fault_of(agent)
    assert error.fault == Fault.STALLED
    assert str(error).endswith("no answer within 0.3 seconds")  # 5 decisions and the grace
    assert time.monotonic() - start < 5


def test_the_first_decision_may_take_what_is_left_of_the_start(monkeypatch):
    monkeypatch.setattr(outside, "GRACE", 0.1)
    with rogue("SlowOnce", move_seconds=0.1) as agent:
        agent.act(ONE)


@LINUX
def test_torch_runs_within_two_gigabytes_and_cannot_have_more():
    with rogue("EatsTensors", threads=1, memory_mb=2048) as agent:
        error = fault_of(agent)
    assert error.fault == Fault.MEMORY
    assert "allocate memory" in str(error)


@LINUX
def test_a_crash_and_an_exception_leave_a_traceback_in_the_log():
    for name, text in (("Crashes", "Segmentation fault"), ("Raises", "in misbehave")):
        with rogue(name) as agent:
            fault_of(agent)
            assert text in agent.log


STARTS = [
    ("nobody", "unknown agent 'nobody'"),
    ("no.such.module:Class", "No module named 'no'"),
    ("tests.rogues:Nobody", "has no attribute 'Nobody'"),
    ("tests.rogues:NoAct", "has no act(views)"),
    ("tests.rogues:RefusesToStart", "ValueError: not today"),
    ("tests.rogues:ExitsAtStart", "its process ended with status 1 after 'a wish to leave'"),
    ("tests.rogues:EatsAtStart", "it ran out of memory"),
    ("null\0byte", "embedded null byte"),
]


@pytest.mark.parametrize(("spec", "text"), STARTS, ids=[text for _, text in STARTS])
def test_an_agent_that_cannot_be_started_says_why(spec, text):
    open_before = os.listdir("/dev/fd")
    with pytest.raises(FaultError) as caught:
        ProcessAgent(spec, memory_mb=300)
    assert caught.value.fault == Fault.NOT_STARTED
    assert text in str(caught.value)
    assert str(caught.value).startswith(f"agent {spec}: could not be started: ")
    del caught
    gc.collect()
    assert os.listdir("/dev/fd") == open_before


def test_a_start_that_hangs_is_given_up():
    with pytest.raises(FaultError, match=r"could not be started: no answer within 0\.7 seconds"):
        ProcessAgent("tests.rogues:HangsAtStart", start_seconds=0.7)


# --- after a fault ---


@LINUX
def test_an_agent_is_started_again_and_given_up_in_the_end():
    bad = views(20)  # of which one decision has the seed 13
    with ProcessAgent("tests.rogues:Picky", restarts=1) as agent:
        assert agent.act(ONE).shape == (1,)
        assert fault_of(agent, bad).fault == Fault.RAISED
        assert agent.act(ONE).shape == (1,)
        assert (agent.running, len(agent.faults)) == (True, 1)
        assert fault_of(agent, bad).fault == Fault.RAISED
        with pytest.raises(FaultError, match="given up after 2 faults: it raised") as caught:
            agent.act(ONE)
        assert caught.value.fault == Fault.RAISED
        assert (agent.running, len(agent.faults)) == (False, 2)


@LINUX
def test_an_agent_can_be_made_to_forget():
    with ProcessAgent("tests.rogues:Counts", restarts=0) as agent:
        family = descendants(agent)
        agent.act(ONE)
        agent.act(ONE)
        assert agent.log.split() == ["1", "2"]
        agent.forget()
        assert not left_of(family)
        agent.act(ONE)
        assert agent.log.split() == ["1"]
    with pytest.raises(AgentError, match="is closed"):
        agent.forget()


def test_an_agent_that_starts_once_only_forfeits_and_nothing_else(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with ProcessAgent("tests.rogues:StartsOnce") as agent:
        result = play_match(
            ("once", agent), ("greedy", make_agent("greedy")), RuleSet(), pairs=4, seed=0
        )
    assert {(forfeit.agent, forfeit.kind) for forfeit in result.forfeits} == {
        ("once", "not started"), ("once", "given up")
    }  # fmt: skip
    assert (result.payoff == -1).all()


def test_each_of_two_agents_that_fail_has_its_own_kind_of_fault():
    with ProcessAgent("tests.failing:Raises") as one, ProcessAgent("tests.failing:Exits") as other:
        result = play_match(("one", one), ("other", other), RuleSet(), pairs=120, seed=0)
    failed = {(forfeit.agent, forfeit.kind) for forfeit in result.forfeits}
    own = {("one", "raised"), ("other", "lost")}
    assert failed == own | {("one", "given up"), ("other", "given up")}
    kinds = [(f.agent, f.game, f.kind) for f in result.forfeits]
    for agent, kind in own:
        assert max(kinds.count((agent, game, kind)) for game in range(2)) == 3


def test_a_closed_agent_stays_closed():
    agent = rogue("First")
    agent.close()
    agent.close()
    assert not agent.running
    with pytest.raises(AgentError, match=r"tests\.rogues:First is closed"):
        agent.act(ONE)


def test_an_interrupt_between_question_and_answer_ends_the_process(monkeypatch):
    def interrupted(self, seconds):
        raise KeyboardInterrupt

    with rogue("First") as agent:
        with monkeypatch.context() as patch:
            patch.setattr(child.Child, "_serve", interrupted)
            with pytest.raises(KeyboardInterrupt):
                agent.act(views())
        assert not agent.running
        assert agent.act(views()).shape == (5,)  # of a new one


def test_a_fault_can_be_pickled():
    copy = pickle.loads(pickle.dumps(FaultError("me", Fault.LOST, "gone")))
    assert (str(copy), copy.agent, copy.fault) == ("agent me: gone", "me", Fault.LOST)


# --- nothing is disturbed ---


def test_output_is_no_answer_and_of_its_last_a_bounded_log_is_kept():
    with rogue("Loud") as agent:
        np.testing.assert_array_equal(agent.act(views()), views().mask.argmax(axis=1))
        agent.act(ONE)  # by then all that was printed before has been read
    assert agent.log.endswith("?[2Jthe last word\n")
    assert len(agent.log) <= child.LOG_BYTES
    assert set(agent.log) >= {"x", "y", "?"}


def test_what_an_agent_does_to_its_process_does_nothing_to_this_one():
    def state() -> list[object]:
        numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
        streams = random.getstate(), str(np.random.get_state())  # noqa: NPY002
        handlers = [signal.getsignal(number) for number in numbers]
        return [*streams, *handlers, np.zeros, list(sys.path), dict(os.environ), os.getcwd()]

    before, plain = state(), rogues.First()
    one = play_match(("plain", plain), ("random", make_agent("random")), RuleSet(), 10, 0)
    with ProcessAgent("tests.rogues:Meddles") as agent:
        two = play_match(("meddler", agent), ("random", make_agent("random")), RuleSet(), 10, 0)
    np.testing.assert_array_equal(one.payoff, two.payoff)
    assert state() == before


SPIED_ON = """
import builtins, os
import numpy as np
from agents.process import ProcessAgent, child
from conquian_env import Batch
from tests.test_process import ONE
builtins.the_deal = 9182736455
secret = open("9182736455", "w")
os.set_inheritable(secret.fileno(), True)
child.LOG_BYTES = 10**6
with ProcessAgent("tests.rogues:Spies") as agent:
    print(agent.isolated)
    agent.act(ONE)
    agent.act(ONE)
    print(agent.log, end="")
"""


@LINUX
def test_no_ordinary_route_leads_to_the_seed(tmp_path):
    """It is in the memory, arguments, environment and an open file of who starts the agent."""
    secret, environment = "9182736455", os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SPIED_ON, "--seed", secret],
        env=environment | {"SEED": secret},
        cwd=tmp_path,
        input=secret,
        capture_output=True,
        text=True,
        check=True,
    )
    isolated, *lines = done.stdout.splitlines()
    assert lines[-1] == "end"
    assert "memory False" in lines
    assert "stdin ''" in lines
    if isolated == "False":  # then /proc tells of the other processes
        lines = [line for line in lines if not line.startswith(("cmdline", "environ "))]
    assert not [line for line in lines if secret in line]
    descriptors = {line.split(" ", 2)[2] for line in lines if line.startswith("descriptor")}
    assert {text.split(":")[0] for text in descriptors} <= {"/dev/null", "pipe", "None"}


@LINUX
@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("failing", [False, True])
def test_processes_that_an_agent_leaves_behind_end_with_it(failing, monkeypatch):
    monkeypatch.setattr(outside, "GRACE", 0.2)
    with rogue("Forks", move_seconds=0.02) as agent:
        family = descendants(agent)
        assert len(family) >= 5  # the warden, the agent and three that it started
        if failing:
            assert fault_of(agent).fault == Fault.STALLED
        else:
            agent.close()
        assert not left_of(family)


@LINUX
@pytest.mark.usefixtures("both_ways")
def test_a_warden_that_is_killed_takes_the_agent_with_it():
    with rogue("First") as agent:
        family = descendants(agent)
        os.kill(family[-2], signal.SIGKILL)
        assert not left_of(family[-1:], 10)
        with pytest.raises(FaultError, match="its process"):
            agent.act(views())
        assert not left_of(family, 10)


@LINUX
@pytest.mark.usefixtures("both_ways")
def test_a_warden_that_hangs_is_killed(monkeypatch):
    monkeypatch.setattr(child, "STOP_SECONDS", 0.2)
    with rogue("First") as agent:
        family = descendants(agent)
        os.kill(family[-2], signal.SIGSTOP)
        agent.close()
        assert not left_of(family, 10)


KILLED = """
import sys
from agents.process import ProcessAgent, child
from tests.test_process import ONE, views
if sys.argv[1] == "in sight":
    child.unshare = lambda: ()
agents = [ProcessAgent(f"tests.rogues:{name}", move_seconds=1e6) for name in ("First", "Forks")]
for agent in agents:
    agent.act(ONE)
print("ready", flush=True)
agents[1].act(views())
"""


@LINUX
@pytest.mark.parametrize("way", ["isolated", "in sight"])
def test_no_process_is_left_when_its_owner_is_killed(way):
    """One is idle; one spins, and has left processes behind."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, way], env=environment, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        time.sleep(0.2)  # for the second call
        family = below(owner.pid)[1:]
        owner.kill()
    assert len(family) >= 9
    assert not left_of(family, 10)


@LINUX
def test_an_interrupt_at_the_terminal_reaches_no_agent():
    """It goes to a session's group in the foreground; the agent is in other sessions."""
    with rogue("First") as agent:
        assert os.getsid(0) not in map(os.getsid, descendants(agent))


@LINUX
def test_an_agent_that_is_let_go_of_ends():
    agent = rogue("First")
    family = descendants(agent)
    del agent
    gc.collect()
    assert not left_of(family)


# --- limits ---


def test_threads_are_limited_if_asked(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert child.environment(None)["OMP_NUM_THREADS"] == "7"
    with rogue("Spies", threads=1) as agent:
        agent.act(ONE)
    assert "'OMP_NUM_THREADS': '1'" in agent.log


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"move_seconds": 0}, "move_seconds must be a positive number of seconds, not 0"),
        ({"move_seconds": float("nan")}, "move_seconds must be"),
        ({"start_seconds": "1"}, "start_seconds must be"),
        ({"memory_mb": 0}, "memory_mb must be a whole number from 1 on, not 0"),
        ({"memory_mb": 1.5}, "memory_mb must be"),
        ({"threads": True}, "threads must be"),
        ({"restarts": -1}, "restarts must be a whole number from 0 on, not -1"),
    ],
)
def test_limits_that_are_none_are_refused(limits, text):
    with pytest.raises(OptionError, match=text):
        ProcessAgent("greedy", **limits)
