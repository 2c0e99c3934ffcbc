#include "rendezvous/server/local_worker_endpoint.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/net/address.h"
#include "base/status_macros.h"
#include "rendezvous/bootstrap/worker_word.h"
#include "rendezvous/placement/placement_variables.h"

namespace hvd::rendezvous::server {

absl::StatusOr<std::unique_ptr<LocalWorkerEndpoint>> LocalWorkerEndpoint::Open(
    pb::WorkerBootstrap bootstrap, const std::string& secret_key,
    std::function<void(WorkerId)> on_dying) {
  std::unique_ptr<LocalWorkerEndpoint> endpoint(
      new LocalWorkerEndpoint(std::move(bootstrap), secret_key, std::move(on_dying)));
  ASSIGN_OR_RETURN(endpoint->loop_, EventLoop::Create());
  LocalWorkerEndpoint* const self = endpoint.get();
  ASSIGN_OR_RETURN(endpoint->socket_, bootstrap::BootstrapSocket::Create(
                                          *endpoint->loop_, geteuid(),
                                          [self](const pb::WorkerHello& hello, pid_t asker) {
                                            return self->Answer(hello, asker);
                                          },
                                          bootstrap::WorkerSocketNamesOf(secret_key)));
  endpoint->thread_ = std::thread([self] { self->loop_->Run(); });
  return endpoint;
}

LocalWorkerEndpoint::~LocalWorkerEndpoint() {
  if (!thread_.joinable()) return;
  loop_->Post([this] { loop_->Stop(); });
  thread_.join();
}

Environment LocalWorkerEndpoint::Expect(const membership::StartWorkerEffect& start) {
  ExpectAgain(start.worker, start.host);
  const net::HostPort daemon = net::SplitHostPort(bootstrap_.daemon_address());
  Environment environment = {
      {"HOROVOD_HOSTNAME", start.host},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", daemon.host},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", daemon.port},
      {"HOROVOD_WORKER_ID", absl::StrCat(start.worker.value())},
      {"HOROVOD_AGENT_SOCKET", absl::StrJoin(bootstrap::WorkerSocketNamesOf(secret_key_), ",")},
      {"HOROVOD_WORKER_WORD", bootstrap::WorkerWordOf(secret_key_, start.worker.value())},
  };
  environment.merge(placement::PlacementVariables(start.place));
  if (bootstrap_.elastic()) environment["HOROVOD_ELASTIC"] = "1";
  return environment;
}

void LocalWorkerEndpoint::ExpectAgain(WorkerId worker, const std::string& host) {
  absl::MutexLock lock(&mu_);
  Expected& expected = expected_[worker.value()];
  expected.host = host;
  // Derived from the job's key, not random: a process that was started before a restart still has
  // the word of that time in its environment.
  expected.word = bootstrap::WorkerWordOf(secret_key_, worker.value());
}

void LocalWorkerEndpoint::Forget(WorkerId worker) {
  absl::MutexLock lock(&mu_);
  auto forgotten = expected_.extract(worker.value());
  if (forgotten.empty()) return;
  // Destroyed on the loop's thread: its descriptor may just be in use there for an answer to the
  // process.
  loop_->Post([watch = std::move(forgotten.mapped().watch)] {});
}

absl::Status LocalWorkerEndpoint::Check(const pb::WorkerHello& hello) const {
  const auto found = expected_.find(hello.worker_id());
  if (found != expected_.end()) return bootstrap::CheckWorkerWord(found->second.word, hello);
  return absl::PermissionDeniedError(
      absl::StrCat("no worker ", hello.worker_id(), " is to run here"));
}

bootstrap::BootstrapSocket::Response LocalWorkerEndpoint::Answer(const pb::WorkerHello& hello,
                                                                 pid_t asker) {
  bootstrap::BootstrapSocket::Response response;
  absl::MutexLock lock(&mu_);
  const absl::Status checked = Check(hello);
  if (!checked.ok()) {
    response.bootstrap.set_error(std::string(checked.message()));
    return response;
  }
  const uint64_t worker = hello.worker_id();
  Expected& expected = expected_.at(worker);
  response.bootstrap = bootstrap_;
  response.bootstrap.set_worker_id(worker);
  response.bootstrap.set_host(expected.host);
  // A child of the worker's process presents the same word. It does not replace the watched process
  // while that lives.
  if (expected.asker.has_value() && expected.asker->pid() != asker && !expected.asker->HasEnded()) {
    return response;
  }
  // Without a watch, the scheduler's ReportExit reports the death later.
  auto watch = os::LivenessWatch::Start([this, worker] { on_dying_(WorkerId(worker)); });
  if (!watch.ok()) return response;
  auto process = os::OtherProcess::Open(asker);
  expected.asker.reset();
  if (process.ok()) expected.asker.emplace(*std::move(process));
  // Ends the watch of the previous process and joins its thread, under the lock. That is safe
  // because on_dying_ only posts an event.
  expected.watch = *std::move(watch);
  response.page = expected.watch->page_fd();
  return response;
}

}  // namespace hvd::rendezvous::server
