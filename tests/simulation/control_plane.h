// A deterministic simulation of a whole elastic job in one thread and in virtual time: a daemon
// with the real membership machine, agents, workers, a network that delays and loses messages and
// recovers, and a launcher. A seed determines a run.
//
// The simulation checks these properties at every step:
// - The machine's own invariants hold (hosts.h, workers.h, epochs.h), and no worker makes a move
//   that its lifecycle does not have.
// - The daemon never confirms to a worker that its world is the newest when it is not.
// - In one epoch all members have the same world; each of the ranks 0..n-1 is held once, local
//   ranks are dense on each machine; no two processes act with the same rank; epoch numbers grow by
//   one.
// - Rank 0 holds the newest commit that any survivor holds; survivors keep their order (the leader
//   and its machine apart), also on their machines; no survivor is forgotten.
// - Rank 0 has the commit that the world attributes to it, also if its agent has kept it.
// - If the world says that no member needs the state, all of them have it; all members run the same
//   collectives.
// - No world forms below the newest commit that the agent of an attached host has in its memory, of
//   whichever of its workers, or as a copy. No world trains from below the newest checkpoint of a
//   commit that has returned on all ranks.
// - A host that leaves in order takes no commit along, if it has time and another host could copy
//   it, or none is there and no checkpoint has it.
// - A commit has one content: whoever makes or takes over the commit of that id has the same.
// - No worker is started on a host, or in a slot, that is not offered. No world has a member on a
//   host that leaves, but for a rank 0 that passes its state on.
// - A job in which two hosts do not reach each other trains without one of them, if it can.
// - No command goes to an agent that is not attached; calls are answered once, with their own kind
//   of answer.
// - A tick before NextDeadline changes nothing, and the deadline is in the future.
// - A daemon that replays its journal, from the start or from a snapshot, is in the same state.
// - A machine that was saved and loaded goes on exactly as the one that was not.
// - Planned changes cost no budget and roll nothing back.
// - The job ends within a bounded time after the last fault: with success only if all members of
//   its last world reported that they finished, else with a verdict that has a reason. If all
//   failures are forgivable, it ends with success. Nothing is left behind.
#ifndef TESTS_SIMULATION_CONTROL_PLANE_H_
#define TESTS_SIMULATION_CONTROL_PLANE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"
#include "tests/simulation/virtual_time.h"

namespace hvd {

// Not thread-safe; runs are independent.
class ControlPlane {
 public:
  struct Commit {
    uint64_t id = 0;
    uint64_t content = 0;  // stands for the state: differs for each history
  };

  // A traced run keeps a text of all events. `found`: the newest checkpoint of an earlier job in
  // its folder.
  ControlPlane(uint64_t seed, bool traced, const Commit& found);

  // Returns a description of the violated property; empty: none.
  std::string Run();

  const std::string& trace() const { return trace_; }

  // If the job was lost as a whole: its newest checkpoint, as the next job finds it; id 0: there is
  // none. Else nothing.
  std::optional<Commit> left_behind() const;

  // Counts of events, by which tests check that the runs reach what they should.
  struct Tally {
    int64_t runs = 0;
    int64_t successes = 0;
    int64_t worlds = 0;
    int64_t events = 0;  // of the membership machine
    int64_t faults = 0;
    int64_t rollbacks = 0;
    int64_t restarts_of_daemon = 0;
    int64_t released = 0;
    int64_t evicted = 0;
    int64_t planned_changes = 0;
    int64_t crowded = 0;  // runs where reconciling is put off, as in large jobs
    int64_t shared = 0;   // runs where hosts share machines
    int64_t held = 0;     // agents that were told to wait for an offer
    int64_t copies = 0;   // of commits, and how often a worker began with one
    int64_t copies_used = 0;
    int64_t checkpoints = 0;  // written, and how often a world began with one
    int64_t checkpoints_used = 0;
    int64_t takeovers = 0;    // by a standby daemon, in the middle of an event
    int64_t lost = 0;         // jobs that were lost as a whole
    int64_t went_on = 0;      // jobs that began with the checkpoint of a lost one
    int64_t closed_ways = 0;  // between hosts, and how often one of the two rested
    int64_t rests = 0;
    int64_t left_commits = 0;  // on hosts that rested

    void Add(const Tally& other);
    std::string ToText() const;
  };
  const Tally& tally() const { return tally_; }

 private:
  enum class CallKind { kJoin, kWatch, kExchange, kReport, kProgress, kConfirm };
  enum class Phase { kStarting, kJoining, kConnecting, kTraining, kEnding };
  enum class Operation { kConnect, kSync, kStep, kCommit, kBarrier };

  struct Machine {  // a host
    std::string name;
    std::string machine;  // in the sense of HostSlots: others may be on the same
    int slots = 0;        // as listed
    int capacity = 0;     // that its agent has, with offers
    bool powered = true;
    bool cut_up = false;    // towards the daemon
    bool cut_down = false;  // from the daemon
    int cut_count = 0;      // changes with every cut and healing
    int agent = -1;         // index; -1: none runs
    Micros no_agent_before = 0;
    bool drained = false;    // its drain was announced
    bool leaving = false;    // ... or it is not listed any more, to the daemon's knowledge
    Micros leaves_by = 0;    // the end of its grace
    bool resized = false;    // its number of slots has changed
    bool shrunk = false;     // had more slots before
    bool was_apart = false;  // from some other host: it may have been left out of a world
    Incarnation heard_of;    // the newest agent known to the daemon
  };

  struct Stream {  // between an agent and the daemon
    int agent = 0;
    bool open_at_agent = true;
    bool open_at_daemon = false;
    bool lost = false;  // with the host: messages in transit never arrive
    uint64_t life = 0;  // of the daemon
    Micros last_up = 0, last_down = 0;
    std::vector<std::function<void()>> held_up, held_down;  // while the link is cut
  };

  struct Agent {
    int host = 0;
    Incarnation incarnation;
    bool alive = true;
    bool ending = false;
    bool told_to_end = false;  // by the daemon
    int stream = -1;
    Micros detached_since = 0;
    std::vector<int> processes;    // started on command
    int keep_turn = 0;             // counts what it was told about copies
    uint64_t told_kept = 0;        // of which the daemon has heard
    Commit kept;                   // the newest copy
    std::map<int, Commit> arenas;  // by slot: the newest commit of its workers
  };

  struct Process {
    WorkerId id;
    Incarnation incarnation;
    int host = 0;
    int agent = 0;
    bool alive = true;
    bool exit_told = false;  // to the agent
    int exit_code = 0, signal = 0;
    bool frozen = false;
    Phase phase = Phase::kStarting;
    int turn = 0;  // changes when its planned actions are cancelled
    uint64_t epoch = 0;
    int rank = -1;
    int slot = -1;      // once it is known
    int operation = 0;  // index in its group
    int arena = 0;      // its slot on its host
    Commit commit;
    std::optional<uint64_t> began_with;  // the commit with which it began to train in its world
    bool in_step = false;                // has worked since its newest commit
    bool worked = false;                 // ... or at all, in its world
    bool gave_up = false;                // left its world by itself
    std::optional<int> unreached;        // the rank that the network does not reach
    bool knows_of_change = false;
    bool defers = true;
    bool threw = false;
    std::vector<uint64_t> calls;  // still pending on its side
    bool has_synced = false;      // or made a commit: it reads no checkpoint any more...
    uint64_t had_in_world =
        0;                  // ... but after a world that it was not in. 0: it had the state in none
    Commit loaded;          // from a checkpoint, for the sync
    Commit writing;         // as a checkpoint
    int writing_turn = -1;  // the turn in which it does; a later one has given it up
    uint64_t written = 0;   // the newest commit that it has written
    bool has_failed = false;  // to write the newest one
    // The daemon's knowledge.
    bool told_to_stop = false, released = false, seen_dying = false, seen_gone = false;
    bool said_finished = false, said_failed = false;
  };

  struct Call {
    int process = 0;
    CallKind kind = CallKind::kJoin;
    int turn = 0;
    bool at_daemon = false;
    bool answered = false;  // by the daemon
    bool over = false;      // for the process
    uint64_t life = 0;
  };

  struct Group {  // a world, as its members see it
    rendezvous::membership::World world;
    std::vector<int> processes;  // by rank
    std::vector<bool> acting;
    bool broken = false;
    Operation kind = Operation::kConnect;
    int operation = 0;
    int arrived = 0;
    bool any_changing = false;
    Commit commit;
    uint64_t least = 0;  // the newest checkpoint when it formed
  };

  // control_plane.cc: the run and the daemon
  void SetUp();
  rendezvous::policy::JobSpec MakeSpec();
  void Apply(const rendezvous::membership::Event& event);
  void NoteEvent(const rendezvous::membership::Event& event);
  void ArmTick();
  void ProbeEarlyTick();
  std::vector<rendezvous::membership::Effect> ApplyToBoth(
      const rendezvous::membership::Event& event);
  absl::StatusOr<std::unique_ptr<rendezvous::membership::Membership>> Load() const;
  void SaveAndLoad();
  void Carry(const rendezvous::membership::Effect& effect);
  void CarryStart(const rendezvous::membership::StartWorkerEffect& effect);
  void CarryStop(const rendezvous::membership::StopWorkersEffect& effect);
  void NoteDecision(const rendezvous::membership::Effect& effect);
  void TakeOver(const std::vector<rendezvous::membership::Effect>& effects);
  void KillDaemon(Micros away);
  void RestartDaemon();
  void Finish(const rendezvous::membership::Verdict& verdict);
  std::string CheckEnd() const;
  bool EndedInTheMiddleOfFinishing() const;
  absl::Time Time() const { return absl::UnixEpoch() + absl::Microseconds(time_.now()); }

  // control_plane_agents.cc: agents, their streams, the launcher that starts them
  void LauncherRound();
  void StartAgent(int host);
  void Attach(int agent);
  void Admit(int stream);
  void ReportAgain(int agent);
  void SendUp(int stream, std::function<void()> action);
  void SendDown(int stream, std::function<void()> action);
  void EndAtDaemon(int stream, const std::string& reason);
  void EndAtAgent(int stream);
  void StartProcess(int agent, WorkerId worker, int slot);
  void StopProcess(int process, Micros grace);
  void EndAgent(int agent, Micros grace);
  void KillAgent(int agent);
  void LeaveWhenEmpty(int agent);
  void Die(int process, int exit_code, int signal);
  void ReportExit(int process);
  void PowerOff(int host, Micros away);
  void Cut(int host, bool up, bool down, Micros duration);
  void Heal(int host);
  void FailCallsOf(int host);

  // control_plane_copies.cc: copies of commits on other hosts
  void CarryKeep(const rendezvous::membership::KeepCommitsEffect& effect);
  void TakeCopies(int agent, int turn, int from);
  void TellKept(int agent);
  void TellUncopied(int agent);
  void TellLeft(int agent);
  static Commit NewestAt(const Agent& agent);
  void TakeKept(Process* process);
  void Seal(Process* process, const Commit& commit);
  static Commit Next(const Commit& commit, uint64_t epoch);

  // control_plane_checkpoints.cc: checkpoints in a folder that all hosts share
  void Write(int process, const Commit& commit);
  void WriteLast(int process);
  void Confirm(int process);
  void HearConfirmed(int process, bool is_newest);
  void Rename(const Process& process);
  void LoadCheckpoint(Process* process);
  void CountReturned(const Process& process);
  rendezvous::membership::ProgressReported Progress(rendezvous::membership::CallId call,
                                                    const Process& process) const;

  // control_plane_workers.cc: workers and their collectives
  void Ask(int process, CallKind kind,
           std::function<rendezvous::membership::Event(rendezvous::membership::CallId)> event);
  void FailCall(uint64_t call);
  void Answer(rendezvous::membership::CallId call, CallKind kind, std::function<void(int)> action);
  void DropCalls(int process, bool host_gone);
  void Later(int process, Micros delay, std::function<void()> action);
  void Join(int process, bool may_defer);
  void Watch(int process);
  void Enter(int process, const rendezvous::membership::World& world);
  void ExchangeAddresses(int process);
  void Hear(int process, const rendezvous::membership::ReplyWatch& reply);
  void HearStatus(int process, CallKind kind, const absl::Status& status);
  void Submit(int process, Operation kind);
  void GiveUpConnecting(int process);
  void TryComplete(Group* group);
  void Complete(int process, Operation kind, const Commit& commit, bool changing);
  void NextOperation(int process);
  void Abort(int process);
  void BreakGroup(uint64_t epoch, int except);
  int OwnExitCode(int process) const;
  void ReportFinished(int process);
  void ReportProgress(int process);
  void ThrowException(int process, const std::string& text);

  // control_plane_faults.cc
  void PlanFaults();
  void StrikeOnce();
  void StrikeDiscovery();
  void Discover();
  void StrikeWorker();
  void KillTwo(int first);
  bool TearCommit(const Group& group);
  void StrikeHost();
  void StrikeFleet();
  void LoseJob();
  void StrikePlanned();
  void ChangeLimits();
  void Recover();
  int RandomProcess();
  bool SomebodyElseTrains(int process) const;

  // control_plane_ways.cc
  bool IsClosed(int host, int other) const;
  int UnreachedBy(const Process& process) const;
  bool SpansClosedWay(const Group& group) const;
  bool HasSeveralAlone(int host) const;
  void StrikeWay();
  void Isolate(int host);
  void CloseWay(int host, int other, Micros duration);
  void OpenWay(int host, int other);
  void HealWays();
  int SlotsWithout(int host) const;

  // control_plane_checks.cc
  void Fail(const std::string& what);
  void CheckNewWorld(const rendezvous::membership::World& world);
  void CheckPlaces(const rendezvous::membership::World& world);
  void CheckSlot(const rendezvous::membership::WorldMember& member, Process* process);
  void CheckOrder(const rendezvous::membership::World& world);
  void CheckSurvivors(const rendezvous::membership::World& world);
  void CheckWorldBeforeHasEnded();
  void CheckLeaver(const std::string& host);
  bool MayLeave(int host, uint64_t commit, const rendezvous::membership::World& world) const;
  void CheckHeldCommits(const rendezvous::membership::World& world);
  void CheckConfirmed(uint64_t call);
  void CheckMachine();
  void CheckAnswered(uint64_t call, CallKind kind);
  std::string MachineOf(const std::string& host) const;
  void CheckAgentOf(const std::string& host, Incarnation agent);
  bool InGoodStanding(const Process& process) const;

  template <typename... Parts>
  void Log(const Parts&... parts) {
    if (!traced_) return;
    absl::StrAppend(&trace_, absl::FormatDuration(absl::Microseconds(time_.now())), "  ", parts...,
                    "\n");
  }
  int FindHost(const std::string& name) const;
  const Process* FindProcess(WorkerId worker) const;
  Process* FindProcess(WorkerId worker);
  Micros Delay() { return dice_.Between(100, dice_.Chance(5) ? 200 * kMilli : 3 * kMilli); }

  const bool traced_;
  Dice dice_;
  std::string trace_;
  std::string wrong_;
  Tally tally_;
  VirtualTime time_;

  // The kind of this run.
  bool gentle_ = false;     // no faults, only planned changes
  bool forgiving_ = false;  // no budget can run out
  bool discovery_ = false;
  bool offers_ = false;  // what is discovered is all that may take part
  bool recovers_ = true;
  bool has_copies_ = false;  // agents give copies of commits
  bool has_twins_ = false;
  bool has_checkpoints_ = false;
  bool writes_fail_ = false;  // some of them
  uint64_t goal_ = 10;        // commits
  Micros step_time_ = kSecond;
  Micros last_fault_ = 0;
  rendezvous::policy::JobSpec spec_;
  int min_workers_ = 0;  // the spec's, or those of the newest LimitsChanged
  int max_workers_ = 0;

  std::deque<Machine> machines_;
  std::set<std::pair<int, int>> closed_ways_;  // between hosts; the smaller index first
  std::deque<Stream> streams_;
  std::deque<Agent> agents_;
  std::deque<Process> processes_;
  std::map<uint64_t, int> by_worker_;  // index of the newest process of a worker id
  std::deque<Call> calls_;
  std::map<uint64_t, Group> groups_;       // by epoch
  std::set<std::string> listed_;           // by the discovery
  std::set<uint64_t> asked_for_;           // workers
  std::map<std::string, int> offered_;     // slots by host, as the daemon has heard
  std::map<uint64_t, uint64_t> contents_;  // of commits, by id
  std::map<uint64_t, int> returned_;       // on how many ranks, by commit
  Commit checkpoint_;                      // the newest one in the folder
  Commit sure_checkpoint_;                 // ... whose commit had returned on all ranks
  bool is_lost_ = false;                   // the job, as a whole
  uint64_t next_incarnation_ = 1000;

  // The daemon.
  rendezvous::membership::Membership::ReconcileThrottle throttle_;
  std::unique_ptr<rendezvous::membership::Membership> machine_;
  bool daemon_alive_ = true;
  bool is_replaced_next_ = false;  // a standby daemon takes over in the middle of the next event
  uint64_t daemon_life_ = 1;
  std::string snapshot_;  // the start of the journal; empty: the job's start
  std::vector<std::pair<rendezvous::membership::Event, absl::Time>> journal_;
  std::unique_ptr<rendezvous::membership::Membership>
      twin_;  // loaded from an earlier state of machine_; gets the same events
  absl::Time armed_ = absl::InfiniteFuture();
  std::map<std::string, int> attached_;  // host to stream
  std::optional<rendezvous::membership::World> newest_world_;
  bool stop_requested_ = false;
  bool left_early_ = false;  // a host was drained before the first world
  bool hurried_ = false;     // some workers were stopped before they could leave by themselves
  std::optional<rendezvous::membership::Verdict> verdict_;
};

// Runs the job of a seed; if it is lost as a whole, the job that is started after it in the same
// folder of checkpoints, and so on. Returns the violated property; empty: none.
std::string RunWithSuccessors(uint64_t seed, bool traced, ControlPlane::Tally* tally,
                              std::string* trace);

}  // namespace hvd

#endif  // TESTS_SIMULATION_CONTROL_PLANE_H_
