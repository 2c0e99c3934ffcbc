// A randomised test of a job: agents and workers act at random, with checks at every step.
#ifndef TESTS_SIMULATION_RANDOM_SCHEDULE_H_
#define TESTS_SIMULATION_RANDOM_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rendezvous/membership/membership.h"

namespace hvd {

// Failures are reported through gTest, with the seed. Properties that are checked:
// - In a world no rank is held twice, ranks 0..size-1 are all held, local ranks are dense on each
//   machine, every member's process is the newest of its worker and alive, and one epoch has one
//   world.
// - Every call is answered at most once and with its own kind of answer, and all are answered once
//   the job has finished.
// - No command goes to an agent that is not attached.
// - A tick before NextDeadline() changes nothing; one at it moves the deadline.
// - Once all workers are gone the job ends within a few ticks, with success only if all finished
//   and exited with 0.
// - The same events at the same times give the same effects.
class RandomSchedule {
 public:
  explicit RandomSchedule(uint32_t seed);

  void Run();

  // The verdict of the job, with which tests check that the schedules reach the intended states.
  // Empty before Run.
  const std::optional<rendezvous::membership::Verdict>& verdict() const { return verdict_; }
  uint64_t epochs() const { return world_texts_.size(); }

 private:
  enum class CallKind { kJoin, kWatch, kExchange, kReport };
  struct Call {
    CallKind kind;
    bool answered = false;
  };
  struct Process {
    uint64_t incarnation = 0;
    bool gone = false;
    bool exited_with_zero = false;
    bool finished = true;  // reported for its last world
    uint64_t epoch = 0;    // its last world
    uint64_t member = 0;   // the incarnation that was in it
    std::string host;
  };

  int Roll(int sides) { return static_cast<int>(rng_() % static_cast<uint32_t>(sides)); }
  bool Chance(int percent) { return Roll(100) < percent; }

  void Step();
  void HostStep();
  void CallStep();
  void ReportStep(uint64_t worker, rendezvous::membership::WorkerKey key);
  void OrderlyStep();
  void BreakdownStep();
  void ExitStep(uint64_t worker, int code, int signal);
  void TimeStep();
  void WindUp();
  rendezvous::membership::CallId NewCall(CallKind kind);
  rendezvous::membership::WorkerKey KeyOf(uint64_t worker);

  void Apply(const rendezvous::membership::Event& event);
  void CheckEffect(const rendezvous::membership::Effect& effect);
  void CheckWorld(const rendezvous::membership::World& world);
  void CheckAgent(const std::string& host, Incarnation agent);
  void CheckVerdict(const rendezvous::membership::Verdict& verdict);
  void CheckReplay();
  std::string MachineOf(const std::string& host) const;

  std::mt19937 rng_;
  const bool shared_ = Chance(30);  // some hosts are on one machine
  rendezvous::policy::JobSpec spec_;
  absl::Time now_ = absl::UnixEpoch();
  std::optional<rendezvous::membership::Membership> machine_;
  std::vector<std::pair<rendezvous::membership::Event, absl::Time>> events_;
  std::vector<std::string> trace_;

  std::map<std::string, Incarnation> attached_;
  uint64_t next_incarnation_ = 1000;
  std::map<uint64_t, Process> processes_;  // by worker id
  std::vector<Call> calls_;
  std::map<uint64_t, std::string> world_texts_;  // by epoch
  std::optional<rendezvous::membership::Verdict> verdict_;
};

}  // namespace hvd

#endif  // TESTS_SIMULATION_RANDOM_SCHEDULE_H_
