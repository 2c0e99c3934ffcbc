// Random events without regard to what could happen, as a hostile member of a job may send them:
// wrong numbers of workers, agents and worlds, calls in any order. Whatever comes, the membership's
// own checks hold, before and after it is saved and loaded.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "proto/snapshot.pb.h"
#include "rendezvous/membership/membership.h"

namespace hvd {
namespace {

using namespace rendezvous::membership;  // the events
namespace policy = rendezvous::policy;

constexpr uint32_t kJobs = 6000;
constexpr int kEvents = 250;  // for each

class HostileEvents {
 public:
  explicit HostileEvents(uint32_t seed) : random_(seed) {}

  // From 0 to `end` - 1.
  int Any(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }
  bool Maybe() { return Any(2) == 0; }

  absl::Duration Pause() { return absl::Milliseconds(Any(3) == 0 ? Any(4000) : Any(50)); }

  Event Next() {
    switch (Any(5)) {
      case 0:
        return OfHosts();
      case 1:
        return OfProcesses();
      case 2:
      case 3:
        return OfWorkersCalls();
      default:
        return OfTheJob();
    }
  }

 private:
  std::string AnyHost() { return std::string(1, static_cast<char>('a' + Any(5))); }
  std::string AnyMachine() { return Maybe() ? "m" : ""; }
  WorkerId AnyWorker() { return WorkerId(Any(8) == 0 ? random_() : 1 + Any(8)); }
  WorkerKey AnyKey() { return {AnyWorker(), Incarnation(1 + Any(3) / 2)}; }

  Event OfHosts() {
    const Incarnation agent(1 + Any(3));
    switch (Any(5)) {
      case 0:
        return HostLost{AnyHost(), agent, "lost"};
      case 1: {
        HostsDiscovered listed;
        listed.is_offer = Any(4) != 0;
        for (char host = 'a'; host < 'f'; ++host) {
          if (Maybe()) listed.hosts.push_back({std::string(1, host), 1 + Any(3), AnyMachine()});
        }
        return listed;
      }
      case 2:
        return HostDraining{AnyHost(), absl::Seconds(Any(3)), "drained"};
      default: {
        HostJoined joined{{AnyHost(), 1 + Any(4), AnyMachine()}, agent};
        for (int known = Any(4); known > 0; --known) {
          joined.known_workers.push_back(WorkerId(Any(10)));
        }
        return joined;
      }
    }
  }

  Event OfProcesses() {
    if (Any(3) == 0) return WorkerStarted{AnyWorker(), Any(100)};
    if (Any(3) == 0) return WorkerDying{AnyWorker()};
    WorkerExited exited;
    exited.worker = AnyWorker();
    exited.exit_code = Any(3) - 1;
    exited.signal = Maybe() ? 9 : 0;
    if (Any(5) == 0) exited.start_error = "no such file";
    if (Any(5) == 0) exited.unknown_end = "its agent had gone";
    return exited;
  }

  Event OfWorkersCalls() {
    const CallId call(++calls_);
    const WorkerKey key = AnyKey();
    const Epoch epoch(Maybe() ? 0 : Any(4));
    switch (Any(6)) {
      case 0:
        return WatchRequested{call, key, epoch, Maybe()};
      case 1:
        return ExchangeRequested{call, key, epoch, "key", "value"};
      case 2:
        return Reported{call, key, epoch, Maybe(), Maybe() ? "failed" : "", Maybe()};
      case 3:
        return CallCancelled{CallId(1 + random_() % calls_)};
      default: {
        JoinRequested join{call, key, epoch, "10.0.0.1", 5};
        join.caused_by_peer = Maybe();
        if (Maybe()) join.unreached = Any(5) - 1;
        join.may_defer = Maybe();
        join.commit = Any(5);
        join.worked = Maybe();
        return join;
      }
    }
  }

  Event OfTheJob() {
    if (Any(3) == 0) return LimitsChanged{Any(4), Any(5)};
    if (Any(20) == 0) return Restarted{};
    if (Any(100) == 0) return StopRequested{"stopped", 3, absl::Seconds(1), Maybe(), Maybe()};
    return Tick{};
  }

  std::mt19937 random_;
  uint64_t calls_ = 0;
};

policy::JobSpec AnySpec(uint32_t seed, HostileEvents& random) {
  policy::JobSpec spec;
  spec.min_workers = 1 + random.Any(2);
  spec.max_workers = spec.min_workers;
  if (seed % 2 == 1) {
    spec.max_workers += random.Any(3);
    spec.elastic.emplace();
    spec.elastic->spares = random.Any(2);
    spec.elastic->budget.failures = 50;
  }
  if (seed % 7 == 0) spec.expected_hosts = {{"a", 1}, {"b", 1}};
  return spec;
}

struct Seen {
  int starts = 0;
  int worlds = 0;
  int ends = 0;
};

void RunJob(uint32_t seed, Seen* seen) {
  HostileEvents random(seed);
  const policy::JobSpec spec = AnySpec(seed, random);
  absl::Time now = absl::UnixEpoch();
  auto membership = std::make_unique<Membership>(spec, now);
  for (int i = 0; i < kEvents; ++i) {
    now += random.Pause();
    for (const Effect& effect : membership->Apply(random.Next(), now)) {
      seen->starts += std::holds_alternative<StartWorkerEffect>(effect) ? 1 : 0;
      seen->worlds += std::holds_alternative<ReplyWorld>(effect) ? 1 : 0;
    }
    ASSERT_EQ(membership->Check(), "") << "event " << i;
    if (random.Any(40) != 0) continue;
    auto loaded = Membership::Load(spec, membership->Save());
    ASSERT_TRUE(loaded.ok()) << loaded.status() << " event " << i;
    membership = *std::move(loaded);
    membership->Apply(Restarted{}, now);
  }
  seen->ends += membership->Ended().has_value() ? 1 : 0;
}

TEST(HostileEventsTest, AnyEvents_KeepTheInvariants) {
  Seen seen;
  for (uint32_t seed = 0; seed < kJobs; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RunJob(seed, &seen);
    if (HasFatalFailure()) return;
  }
  // Guards against checks that never had anything to check.
  EXPECT_GT(seen.starts, 1000);
  EXPECT_GT(seen.worlds, 500);
  EXPECT_GT(seen.ends, 100);
}

}  // namespace
}  // namespace hvd
