// What a large job costs its daemon: a real server with TLS and the job's token, simulated agents
// with a connection each, and workers that share some connections. All of it is in one process, so
// that the figures hold both ends.
//   bazel run //tests/integration:joins_bench -- [--elastic] [--slots S] [--worlds W] WORKERS...
// With --connect ADDRESS --token-file FILE the daemon is another process (tools/bench/sizing.py),
// with --connections N the workers have that many connections, and with --idle SECONDS all are idle
// for a while after the last world.
// For each number of workers: the start of the agents and of the first world, then W worlds more,
// for which all ask when their epoch's watch says so; then what connecting their data planes asks
// of the daemon; at last the end of the job.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/mutex_checks.h"
#include "base/os/process_limits.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "grpcpp/client_context.h"
#include "proto/rendezvous.grpc.pb.h"
#include "rendezvous/client/agent_link.h"
#include "rendezvous/security/credentials_message.h"
#include "rendezvous/security/token_file.h"
#include "rendezvous/server/server.h"
#include "rendezvous/transport/connection.h"

namespace hvd {
namespace {

constexpr char kDaemonAddress[] = "127.0.0.1:0";

struct BenchOptions {
  bool elastic = false;
  int slots = 8;
  int worlds = 10;
  int idle_seconds = 0;
  int connections = 32;
  std::string daemon;  // its address; empty: a server in this process
  std::string token_file;
  std::vector<int> workers;
};

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return absl::ToDoubleSeconds(absl::DurationFromTimeval(time));
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Counts to a number that is known beforehand.
class Countdown {
 public:
  void Set(int n) {
    absl::MutexLock lock(&mu_);
    left_ = n;
  }
  void Down() {
    absl::MutexLock lock(&mu_);
    --left_;
  }
  void Await() {
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(this, &Countdown::Done));
  }

 private:
  bool Done() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return left_ <= 0; }
  absl::Mutex mu_;
  int left_ ABSL_GUARDED_BY(mu_) = 0;
};

// One line of figures for what happened since it was made.
class Measurement {
 public:
  void Print(const char* what, size_t bytes) const {
    std::printf("  %-26s %9.1f ms  %8.3f CPU s  %12zu bytes of answers\n", what,
                absl::ToDoubleMilliseconds(Clock::Real().Now() - start_), CpuSeconds() - cpu_,
                bytes);
    std::fflush(stdout);
  }

 private:
  const absl::Time start_ = Clock::Real().Now();
  const double cpu_ = CpuSeconds();
};

template <typename Request, typename Response>
struct Call {
  grpc::ClientContext context;
  Request request;
  Response response;
};
using JoinCall = Call<pb::JoinWorldRequest, pb::JoinWorldResponse>;
using WatchCall = Call<pb::WatchEpochRequest, pb::WatchEpochResponse>;

class Bench {
 public:
  Bench(const BenchOptions& options, int workers) : options_(options), workers_(workers) {}

  absl::Status Run() {
    RETURN_IF_ERROR(options_.daemon.empty() ? StartServer() : ReadCredentials());
    std::printf("%d workers, %d a host, %s\n", workers_, options_.slots,
                options_.elastic ? "elastic" : "static");
    Connect();
    Attach();
    Join("first world");
    Reform();
    Idle();
    Exchange("whether all share a host", {});
    Exchange("addresses of a few peers", PowersOfTwo());
    End();
    return absl::OkStatus();
  }

 private:
  absl::Status StartServer() {
    ASSIGN_OR_RETURN(const auto authority, rendezvous::security::JobAuthority::Create("bench"));
    ASSIGN_OR_RETURN(credentials_, authority->IssueForHost(rendezvous::security::kAnyHost));
    rendezvous::server::ServerOptions server;
    server.job_id = "bench";
    server.listen = {kDaemonAddress};
    server.job = Spec();
    ASSIGN_OR_RETURN(server.credentials, authority->IssueForDaemon());
    server.on_finished = [this](const rendezvous::membership::Verdict& verdict) {
      summary_ = verdict.summary;
      ended_.Down();
    };
    ASSIGN_OR_RETURN(server_, rendezvous::server::Server::Start(std::move(server)));
    address_ = server_->addresses()[0];
    return absl::OkStatus();
  }

  absl::Status ReadCredentials() {
    ASSIGN_OR_RETURN(const auto message, rendezvous::security::ReadTokenFile(options_.token_file));
    credentials_ = rendezvous::security::FromMessage(message);
    address_ = options_.daemon;
    return absl::OkStatus();
  }

  // A daemon in another process gets the connections with the first calls, as from real workers:
  // silent ones would be strangers, of which it keeps only some.
  void Connect() {
    for (int i = 0; i < std::min(options_.connections, workers_); ++i) {
      channels_.push_back(rendezvous::transport::NewChannel(address_, credentials_));
      if (server_ != nullptr) {
        channels_.back()->WaitForConnected(gpr_inf_future(GPR_CLOCK_REALTIME));
      }
      stubs_.push_back(pb::Rendezvous::NewStub(channels_.back()));
    }
  }

  rendezvous::policy::JobSpec Spec() const {
    rendezvous::policy::JobSpec spec;
    spec.min_workers = spec.max_workers = workers_;
    spec.start_timeout = absl::Minutes(10);
    if (options_.elastic) spec.elastic.emplace();
    return spec;
  }
  int hosts() const { return (workers_ + options_.slots - 1) / options_.slots; }
  pb::Rendezvous::Stub& StubOf(int worker) { return *stubs_[worker % stubs_.size()]; }
  static void Identify(int worker, pb::WorkerIdentity* identity) {
    identity->set_worker_id(static_cast<uint64_t>(worker) + 1);
    identity->set_incarnation(0x9e3779b97f4a7c15 * (static_cast<uint64_t>(worker) + 1));
  }

  // Until all have been told to start all workers, and have said that they did.
  void Attach() {
    const Measurement measurement;
    pending_.Set(workers_);
    links_.resize(hosts());
    host_of_.resize(workers_);
    ends_.Set(hosts());
    for (int host = 0; host < hosts(); ++host) {
      pb::AgentHello hello;
      hello.set_version(kVersion);
      hello.set_host(absl::StrCat("host-", host, ".example"));
      hello.set_slots(std::min(options_.slots, workers_ - host * options_.slots));
      hello.set_incarnation(static_cast<uint64_t>(host) + 1);
      rendezvous::client::AgentLink::Callbacks callbacks;
      callbacks.on_command = [this, host](const pb::AgentCommand& command) {
        if (command.has_start()) {
          host_of_[command.start().worker_id() - 1] = host;
          pending_.Down();
        }
        if (command.has_end()) ends_.Down();
      };
      callbacks.on_closed = [](absl::Status) {};
      links_[host] =
          rendezvous::client::AgentLink::Open(address_, credentials_, hello, std::move(callbacks));
    }
    pending_.Await();
    for (int worker = 0; worker < workers_; ++worker) {
      pb::AgentMessage message;
      message.mutable_started()->set_worker_id(static_cast<uint64_t>(worker) + 1);
      message.mutable_started()->set_pid(worker + 1);
      links_[host_of_[worker]]->Send(std::move(message));
    }
    measurement.Print("agents attach, and start", 0);
  }

  void Join(const char* what) {
    const Measurement measurement;
    std::vector<JoinCall> calls(workers_);
    pending_.Set(workers_);
    for (int worker = 0; worker < workers_; ++worker) {
      JoinCall& call = calls[worker];
      Identify(worker, call.request.mutable_worker());
      call.request.set_last_epoch(epoch_);
      call.request.set_address(absl::StrCat("10.1.", worker / 256, ".", worker % 256));
      call.request.set_port(20000 + worker % 40000);
      StubOf(worker).async()->JoinWorld(&call.context, &call.request, &call.response,
                                        [this](grpc::Status status) {
                                          if (!status.ok()) Fail("JoinWorld", status);
                                          pending_.Down();
                                        });
    }
    pending_.Await();
    size_t bytes = 0;
    for (const JoinCall& call : calls) bytes += call.response.ByteSizeLong();
    epoch_ = calls[0].response.world().epoch();
    if (what != nullptr) measurement.Print(what, bytes);
  }

  // Each time one comes before the others, so that the watches of all are answered.
  void Reform() {
    std::vector<double> milliseconds;
    const double cpu = CpuSeconds();
    for (int i = 0; i < options_.worlds; ++i) {
      std::vector<WatchCall> calls(workers_);
      watched_.Set(workers_);
      for (int worker = 0; worker < workers_; ++worker) {
        WatchCall& call = calls[worker];
        Identify(worker, call.request.mutable_worker());
        call.request.set_epoch(epoch_);
        StubOf(worker).async()->WatchEpoch(&call.context, &call.request, &call.response,
                                           [this](grpc::Status status) {
                                             if (!status.ok()) Fail("WatchEpoch", status);
                                             watched_.Down();
                                           });
      }
      const absl::Time start = Clock::Real().Now();
      Join(nullptr);
      watched_.Await();
      milliseconds.push_back(absl::ToDoubleMilliseconds(Clock::Real().Now() - start));
    }
    if (milliseconds.empty()) return;
    std::sort(milliseconds.begin(), milliseconds.end());
    std::printf("  %-26s %9.1f ms  %8.3f CPU s  (the longest of %d: %.1f ms)\n",
                "each further world, median", milliseconds[milliseconds.size() / 2],
                (CpuSeconds() - cpu) / options_.worlds, options_.worlds, milliseconds.back());
  }

  // All connections stay open, and nobody calls.
  void Idle() const {
    if (options_.idle_seconds == 0) return;
    const Measurement measurement;
    std::printf("  idle for %d s\n", options_.idle_seconds);
    std::fflush(stdout);
    absl::Mutex mutex;
    absl::MutexLock lock(&mutex);
    const absl::Time end = Clock::Real().Now() + absl::Seconds(options_.idle_seconds);
    const auto never = [] { return false; };
    Clock::Real().AwaitWithDeadline(mutex, absl::Condition(&never), end);
    measurement.Print("idle", 0);
  }

  // More than the links of a tree are.
  std::vector<int> PowersOfTwo() const {
    std::vector<int> distances;
    for (int distance = 1; distance < workers_; distance *= 2) distances.push_back(distance);
    return distances;
  }

  // All take part in a round with as many bytes as an address has, and want to know what those have
  // given who are so far away.
  void Exchange(const char* what, const std::vector<int>& distances) {
    const Measurement measurement;
    std::vector<Call<pb::ExchangeRequest, pb::ExchangeResponse>> calls(workers_);
    pending_.Set(workers_);
    for (int worker = 0; worker < workers_; ++worker) {
      auto& call = calls[worker];
      Identify(worker, call.request.mutable_worker());
      call.request.set_epoch(epoch_);
      call.request.set_key(what);
      call.request.set_value(std::string(18, static_cast<char>(worker)));
      call.request.mutable_selection();
      for (const int distance : distances) {
        call.request.mutable_selection()->add_ranks((worker + distance) % workers_);
      }
      StubOf(worker).async()->Exchange(&call.context, &call.request, &call.response,
                                       [this](grpc::Status status) {
                                         if (!status.ok()) Fail("Exchange", status);
                                         pending_.Down();
                                       });
    }
    pending_.Await();
    size_t bytes = 0;
    for (const auto& call : calls) bytes += call.response.ByteSizeLong();
    measurement.Print(what, bytes);
  }

  // All workers say that they are done and exit.
  void End() {
    const Measurement measurement;
    ended_.Set(1);
    std::vector<Call<pb::ReportRequest, pb::ReportResponse>> calls(workers_);
    pending_.Set(workers_);
    for (int worker = 0; worker < workers_; ++worker) {
      auto& call = calls[worker];
      Identify(worker, call.request.mutable_worker());
      call.request.set_epoch(epoch_);
      call.request.mutable_finished();
      StubOf(worker).async()->Report(&call.context, &call.request, &call.response,
                                     [this](grpc::Status status) {
                                       if (!status.ok()) Fail("Report", status);
                                       pending_.Down();
                                     });
    }
    pending_.Await();
    for (int worker = 0; worker < workers_; ++worker) {
      pb::AgentMessage message;
      message.mutable_exited()->set_worker_id(static_cast<uint64_t>(worker) + 1);
      links_[host_of_[worker]]->Send(std::move(message));
    }
    if (server_ != nullptr) ended_.Await();
    ends_.Await();
    measurement.Print("the job's end", 0);
    std::printf("  %s\n", summary_.c_str());
    links_.clear();
    server_.reset();
  }

  static void Fail(const char* what, const grpc::Status& status) {
    std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
    std::_Exit(1);
  }

  const BenchOptions options_;
  const int workers_;
  rendezvous::security::PeerCredentials credentials_;
  Countdown pending_, watched_, ended_, ends_;
  std::string summary_;
  std::string address_;
  std::unique_ptr<rendezvous::server::Server> server_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<std::unique_ptr<pb::Rendezvous::Stub>> stubs_;
  std::vector<std::unique_ptr<rendezvous::client::AgentLink>> links_;
  std::vector<int> host_of_;  // by worker: whose agent was told to start it
  uint64_t epoch_ = 0;
};

bool Parse(int argc, char** argv, BenchOptions& options) {
  const absl::flat_hash_map<std::string, int*> numbers = {{"--slots", &options.slots},
                                                          {"--worlds", &options.worlds},
                                                          {"--idle", &options.idle_seconds},
                                                          {"--connections", &options.connections}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    int number = 0;
    if (argument == "--elastic") {
      options.elastic = true;
    } else if (argument == "--connect" && i + 1 < argc) {
      options.daemon = argv[++i];
    } else if (argument == "--token-file" && i + 1 < argc) {
      options.token_file = argv[++i];
    } else if (numbers.contains(argument) && i + 1 < argc && absl::SimpleAtoi(argv[++i], &number) &&
               number >= 0) {
      *numbers.at(argument) = number;
    } else if (absl::SimpleAtoi(argument, &number) && number > 0) {
      options.workers.push_back(number);
    } else {
      return false;
    }
  }
  return options.slots > 0 && options.connections > 0 && !options.workers.empty();
}

int Main(int argc, char** argv) {
  BenchOptions options;
  if (!Parse(argc, argv, options)) {
    std::fprintf(
        stderr,
        "usage: %s [--elastic] [--slots S] [--worlds W] [--idle SECONDS] [--connections N]\n"
        "          [--connect ADDRESS --token-file FILE] WORKERS...\n",
        argv[0]);
    return 2;
  }
  for (const int workers : options.workers) {
    const absl::Status status = Bench(options, workers).Run();
    if (status.ok()) continue;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  hvd::SwitchOffMutexChecks();
  hvd::os::AllowManyFiles();
  return hvd::Main(argc, argv);
}
