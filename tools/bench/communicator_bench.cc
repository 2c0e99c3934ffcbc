// A benchmark of one backend's collectives, called by C++ through its communicator, for
// collectives.py:
//   communicator_bench BACKEND RANKS SOCKET NAME [NAMESPACE=ADDRESS...]
// The ranks are forked processes that follow the referee at the socket. With network namespaces,
// each has the same number of ranks, which listen at its address.
#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/os/host_identity.h"
#include "base/status_macros.h"
#include "collectives/conformance/forked_key_exchange.h"
#include "collectives/gloo/gloo_backend.h"
#include "collectives/hierarchical/hierarchical_backend.h"
#include "collectives/links/links_backend.h"
#include "collectives/shm/shm_backend.h"
#include "collectives/tcp/tcp_backend.h"
#include "tools/bench/native/referee_client.h"

namespace hvd {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

// Returns the backend of this name; null: there is none.
std::unique_ptr<collectives::Backend> MakeBackend(absl::string_view name) {
  if (name == "tcp") return collectives::tcp::MakeTcpBackend();
  if (name == "tcp-single") {
    collectives::tcp::SplitRule never;
    never.review_bytes = std::numeric_limits<uint64_t>::max();
    return collectives::tcp::MakeSparseTcpBackend(collectives::links::kMostDirectRanks, never);
  }
  if (name == "gloo") return collectives::gloo::MakeGlooBackend();
  if (name == "shm") return collectives::shm::MakeShmBackend();
  if (name == "shm-plain")
    return collectives::shm::MakeShmBackend(collectives::shm::ShmWriting::kPlain);
  if (name == "shm-streaming")
    return collectives::shm::MakeShmBackend(collectives::shm::ShmWriting::kStreaming);
  if (name == "hierarchical") {
    return collectives::hierarchical::MakeHierarchicalBackend(
        os::HostIdentity(), collectives::hierarchical::HierarchyOptions(),
        collectives::shm::MakeShmBackend(), collectives::tcp::MakeTcpBackend());
  }
  return nullptr;
}

// One operation on buffers of one size, called repeatedly.
struct Call {
  collectives::Communicator* communicator;
  std::string operation;
  collectives::DataType type;
  std::vector<char> in, out;  // of the same size
  size_t count;               // elements in each

  absl::Status Run() {
    const size_t size = communicator->size(), block = count / size;
    const std::vector<size_t> bytes(size, block * collectives::SizeOf(type)), counts(size, block);
    const collectives::CallOptions options{kTimeout};
    if (operation == "allreduce") {
      return communicator->AllReduce(out.data(), out.data(), count, type,
                                     collectives::ReduceOp::kSum, options);
    }
    if (operation == "allgather" || operation == "gather-into") {
      return communicator->AllGather(in.data(), out.data(), bytes, options);
    }
    if (operation == "broadcast") {
      return communicator->Broadcast(out.data(), out.size(), 0, options);
    }
    if (operation == "alltoall") {
      return communicator->AllToAll(in.data(), bytes, out.data(), bytes, options);
    }
    return communicator->ReduceScatter(in.data(), out.data(), counts, type,
                                       collectives::ReduceOp::kSum, options);
  }
};

int RunCall(void* call) {
  const absl::Status status = static_cast<Call*>(call)->Run();
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

double Now() { return absl::ToDoubleSeconds(Clock::Real().Now() - absl::UnixEpoch()); }

absl::Status Serve(const collectives::GroupInfo& group, collectives::Backend& backend,
                   collectives::KeyExchange& keys, const char* socket, const char* name) {
  ASSIGN_OR_RETURN(const auto communicator, backend.Connect(group, keys, kTimeout));
  const int referee = ConnectToReferee(socket, name, group.rank);
  if (referee < 0) return absl::UnavailableError(socket);
  const std::map<std::string, collectives::DataType> types = {
      {"float32", collectives::DataType::kFloat32},
      {"float16", collectives::DataType::kFloat16},
      {"bfloat16", collectives::DataType::kBfloat16}};
  const std::set<std::string> operations = {"allreduce", "allgather", "gather-into",
                                            "broadcast", "alltoall",  "reducescatter"};
  Call call;
  Case next;
  while (NextCase(referee, &next)) {
    if (operations.count(next.operation) == 0) {
      dprintf(referee, "no such operation\n");
      continue;
    }
    call.communicator = communicator.get();
    call.operation = next.operation;
    call.type = types.at(next.type);
    call.count = next.bytes / collectives::SizeOf(call.type);
    call.in.resize(next.bytes);
    call.out.resize(next.bytes);
    RETURN_IF_ERROR(communicator->Barrier({kTimeout}));
    dprintf(referee, "%.9g\n", TimeCalls(&next, Now, RunCall, &call));
  }
  return absl::OkStatus();
}

// Moves this rank into its host, "NAMESPACE=ADDRESS" with the file of a network namespace; returns
// the address.
absl::StatusOr<std::string> EnterHost(const std::string& host) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(host, absl::MaxSplits('=', 1));
  const int fd = open(parts.first.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) return absl::ErrnoToStatus(errno, parts.first);
  close(fd);
  return parts.second;
}

absl::Status Work(const char* name_of_backend, int rank, int size, collectives::KeyExchange& keys,
                  const std::vector<std::string>& hosts, const char* socket, const char* name) {
  collectives::GroupInfo group{Epoch(1), rank, size, "127.0.0.1", "secret"};
  if (!hosts.empty()) {
    ASSIGN_OR_RETURN(group.address, EnterHost(hosts[rank * hosts.size() / size]));
  }
  const std::unique_ptr<collectives::Backend> backend = MakeBackend(name_of_backend);
  if (backend == nullptr) return absl::InvalidArgumentError("no such backend");
  return Serve(group, *backend, keys, socket, name);
}

int Main(const char* name_of_backend, int size, const char* socket, const char* name,
         const std::vector<std::string>& hosts) {
  collectives::conformance::ForkedKeyExchange keys(size);
  int rank = 0;
  for (int i = 1; i < size && rank == 0; ++i) {
    if (fork() == 0) rank = i;
  }
  keys.set_rank(rank);
  const absl::Status status = Work(name_of_backend, rank, size, keys, hosts, socket, name);
  if (!status.ok()) std::fprintf(stderr, "rank %d: %s\n", rank, status.ToString().c_str());
  bool good = status.ok();
  for (int code; rank == 0 && wait(&code) > 0;) good = good && code == 0;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  if (argc < 5 || std::atoi(argv[2]) < 1) {
    std::fprintf(stderr,
                 "usage: communicator_bench BACKEND RANKS SOCKET NAME [NAMESPACE=ADDRESS...]\n");
    return 2;
  }
  return hvd::Main(argv[1], std::atoi(argv[2]), argv[3], argv[4], {argv + 5, argv + argc});
}
