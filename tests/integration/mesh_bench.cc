// What the data plane of a large job costs: a process for each host, whose threads are the ranks;
// all of them on this machine, so that times and processor time hold all hosts.
//   bazel run //tests/integration:mesh_bench -- [--flat] RANKS HOSTS
// Forming and each operation, and how many TCP connections a rank has afterwards. --flat: ranks of
// a host do not share memory, but use TCP as well.
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "collectives/conformance/rank_group.h"
#include "collectives/hierarchical/on_hosts_testing.h"
#include "collectives/key_exchange.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"

namespace hvd {
namespace {

constexpr int kMostRanks = 10000;
constexpr size_t kMostValue = 256;
const collectives::CallOptions kPatient = {absl::Minutes(10)};
const collectives::GroupInfo kGroup = {Epoch(1), 0, 0, "127.0.0.1", "secret"};

const pid_t kParent = getpid();

// Ends all processes unless `status` is OK: the others would wait for this one.
void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "mesh_bench: %s\n", status.ToString().c_str());
  kill(kParent, SIGTERM);
  std::_Exit(1);
}

// A barrier of all ranks, in shared memory.
class Barrier {
 public:
  void Init(int members) {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&barrier_, &attributes, members);
  }
  void Wait() { pthread_barrier_wait(&barrier_); }

 private:
  pthread_barrier_t barrier_;
};

// What the processes share.
struct Shared {
  struct Value {
    uint32_t size;
    char bytes[kMostValue];
  };
  Barrier of_ranks;      // for key exchanges
  Barrier of_processes;  // the parent included
  Value values[kMostRanks];
  std::atomic<int64_t> cpu_us;
  std::atomic<int> connections;  // ends of them
  std::atomic<int> most;         // that one rank has accepted
};

class SharedKeyExchange : public collectives::KeyExchange {
 public:
  SharedKeyExchange(Shared& shared, int rank, int size)
      : shared_(shared), rank_(rank), size_(size) {}

  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view key, absl::string_view value,
                                                     absl::Duration timeout) override {
    if (value.size() > kMostValue) return absl::InvalidArgumentError("a value too large");
    Shared::Value& own = shared_.values[rank_];
    own.size = value.size();
    std::memcpy(own.bytes, value.data(), value.size());
    shared_.of_ranks.Wait();
    std::vector<std::string> all;
    for (int rank = 0; rank < size_; ++rank) {
      all.emplace_back(shared_.values[rank].bytes, shared_.values[rank].size);
    }
    shared_.of_ranks.Wait();
    return all;
  }

 private:
  Shared& shared_;
  const int rank_;
  const int size_;
};

int64_t CpuMicroseconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& time) { return int64_t{1000000} * time.tv_sec + time.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// Adds this process's to the others'.
void CountConnections(Shared* shared) {
  std::map<in_port_t, int> at_port;
  const int end = static_cast<int>(sysconf(_SC_OPEN_MAX));
  for (int fd = 0; fd < end; ++fd) {
    sockaddr_in own{}, peer{};
    socklen_t length = sizeof(own);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) continue;
    if (own.sin_family != AF_INET) continue;
    length = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    ++shared->connections;
    const int here = ++at_port[own.sin_port];
    for (int most = shared->most; most < here && !shared->most.compare_exchange_weak(most, here);) {
    }
  }
}

void Reduce(collectives::Communicator& c, size_t count) {
  std::vector<float> data(count, 1);
  Check(c.AllReduce(data.data(), data.data(), count, collectives::DataType::kFloat32,
                    collectives::ReduceOp::kSum, kPatient));
  const auto right = [&](float sum) { return sum == static_cast<float>(c.size()); };
  if (!std::all_of(data.begin(), data.end(), right)) Check(absl::DataLossError("a wrong sum"));
}

void Broadcast(collectives::Communicator& c, int root) {
  std::vector<char> data(4096, static_cast<char>(c.rank() == root));
  Check(c.Broadcast(data.data(), data.size(), root, kPatient));
  if (data.back() != 1) Check(absl::DataLossError("not what was sent"));
}

void Gather(collectives::Communicator& c) {
  const std::vector<size_t> bytes(c.size(), 64);
  const std::vector<char> own(64, static_cast<char>(c.rank()));
  std::vector<char> all(64 * c.size());
  Check(c.AllGather(own.data(), all.data(), bytes, kPatient));
  for (int r = 0; r < c.size(); ++r) {
    if (all[64 * r] != static_cast<char>(r)) Check(absl::DataLossError("not what was given"));
  }
}

void ReduceScatter(collectives::Communicator& c) {
  const std::vector<size_t> counts(c.size(), 16);
  std::vector<float> in(16 * c.size(), 1), out(16);
  Check(c.ReduceScatter(in.data(), out.data(), counts, collectives::DataType::kFloat32,
                        collectives::ReduceOp::kSum, kPatient));
  if (out.back() != static_cast<float>(c.size())) Check(absl::DataLossError("a wrong sum"));
}

struct Step {
  const char* name;
  std::function<void(collectives::Communicator&)> work;
};

std::vector<Step> Steps() {
  return {
      {"allreduce of 4 B", [](collectives::Communicator& c) { Reduce(c, 1); }},
      {"the same again", [](collectives::Communicator& c) { Reduce(c, 1); }},
      {"allreduce of 1 MB", [](collectives::Communicator& c) { Reduce(c, 1 << 18); }},
      {"broadcast of 4 KB", [](collectives::Communicator& c) { Broadcast(c, 0); }},
      {"broadcast from the last", [](collectives::Communicator& c) { Broadcast(c, c.size() - 1); }},
      {"allgather of 64 B each", Gather},
      {"reducescatter of 64 B each", ReduceScatter},
      {"barrier", [](collectives::Communicator& c) { Check(c.Barrier(kPatient)); }}};
}

struct Layout {
  int ranks = 0;
  int hosts = 0;
  bool flat = false;

  int FirstOf(int host) const { return static_cast<int>(int64_t{ranks} * host / hosts); }
};

std::unique_ptr<collectives::Backend> MakeBackend(const Layout& layout, int host) {
  if (layout.flat) return collectives::tcp::MakeTcpBackend();
  collectives::hierarchical::FakeHosts fake;
  fake.host_of = [host](int rank) { return absl::StrCat("mesh_bench host ", host); };
  fake.make_local = [](const std::string&) { return collectives::shm::MakeShmBackend(); };
  fake.make_across = collectives::tcp::MakeTcpBackend;
  return collectives::hierarchical::MakeBackendOnHosts(std::move(fake));
}

// The process of a host.
void RunHost(const Layout& layout, int host, Shared* shared) {
  const int first = layout.FirstOf(host), local = layout.FirstOf(host + 1) - first;
  const std::unique_ptr<collectives::Backend> backend = MakeBackend(layout, host);
  std::vector<std::unique_ptr<collectives::Communicator>> communicators(local);
  const auto measured = [&](const auto& work) {
    shared->of_processes.Wait();
    const int64_t before = CpuMicroseconds();
    collectives::conformance::ForEachRank(local, work);
    shared->cpu_us += CpuMicroseconds() - before;
    shared->of_processes.Wait();
    CountConnections(shared);
    shared->of_processes.Wait();
  };
  measured([&](int i) {
    collectives::GroupInfo group = kGroup;
    group.rank = first + i;
    group.size = layout.ranks;
    SharedKeyExchange keys(*shared, group.rank, group.size);
    auto connected = backend->Connect(group, keys, absl::Minutes(10));
    Check(connected.status());
    communicators[i] = *std::move(connected);
  });
  for (const Step& step : Steps()) {
    measured([&](int i) { step.work(*communicators[i]); });
  }
  measured([&](int i) { communicators[i].reset(); });
  std::_Exit(0);
}

void Measure(const char* name, const Layout& layout, Shared* shared) {
  shared->cpu_us = 0;
  shared->connections = shared->most = 0;
  const absl::Time start = Clock::Real().Now();
  shared->of_processes.Wait();
  shared->of_processes.Wait();
  const double ms = absl::ToDoubleMilliseconds(Clock::Real().Now() - start);
  shared->of_processes.Wait();
  std::printf("%-28s %10.1f %10.2f %10d %10.1f %10d\n", name, ms, shared->cpu_us * 1e-6,
              shared->connections / 2, 1.0 * shared->connections / layout.ranks,
              shared->most.load());
  std::fflush(stdout);
}

int Bench(const Layout& layout) {
  void* const memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Check(absl::ErrnoToStatus(errno, "mmap"));
  Shared* const shared = new (memory) Shared();
  shared->of_ranks.Init(layout.ranks);
  shared->of_processes.Init(layout.hosts + 1);
  for (int host = 0; host < layout.hosts; ++host) {
    const pid_t pid = fork();
    if (pid < 0) Check(absl::ErrnoToStatus(errno, "fork"));
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      RunHost(layout, host, shared);
    }
  }
  std::printf("%d ranks on %d hosts%s\n%-28s %10s %10s %10s %10s %10s\n", layout.ranks,
              layout.hosts, layout.flat ? ", TCP only" : "", "", "ms", "CPU s", "links", "a rank",
              "most*");
  Measure("forming", layout, shared);
  for (const Step& step : Steps()) Measure(step.name, layout, shared);
  Measure("going away", layout, shared);
  while (wait(nullptr) > 0) {
  }
  std::printf(
      "* that one rank has accepted. The higher rank of two opens their connection, so these are "
      "all that rank 0 has.\n");
  return 0;
}

int Main(int argc, char** argv) {
  Layout layout;
  std::vector<int> numbers;
  bool understood = true;
  for (int i = 1; i < argc; ++i) {
    int number = 0;
    if (absl::string_view(argv[i]) == "--flat") {
      layout.flat = true;
    } else if (absl::SimpleAtoi(argv[i], &number)) {
      numbers.push_back(number);
    } else {
      understood = false;
    }
  }
  if (!understood || numbers.size() != 2 || numbers[1] < 1 || numbers[0] < numbers[1] ||
      numbers[0] > kMostRanks) {
    std::fprintf(stderr, "mesh_bench: usage: mesh_bench [--flat] RANKS HOSTS, at most %d ranks\n",
                 kMostRanks);
    return 2;
  }
  layout.ranks = numbers[0];
  layout.hosts = numbers[1];
  return Bench(layout);
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) { return hvd::Main(argc, argv); }
