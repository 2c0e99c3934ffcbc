#include "rendezvous/server/worker_door.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace hvd {

absl::StatusOr<std::unique_ptr<WorkerDoor>> WorkerDoor::Open(
    pb::WorkerBootstrap bootstrap, std::function<void(WorkerId)> on_dying) {
  std::unique_ptr<WorkerDoor> door(new WorkerDoor(std::move(bootstrap), std::move(on_dying)));
  ASSIGN_OR_RETURN(door->loop_, EventLoop::Create());
  WorkerDoor* const self = door.get();
  ASSIGN_OR_RETURN(door->socket_,
                   BootstrapSocket::Create(*door->loop_, geteuid(), [self](uint64_t worker, pid_t) {
                     return self->Answer(worker);
                   }));
  door->thread_ = std::thread([self] { self->loop_->Run(); });
  return door;
}

WorkerDoor::~WorkerDoor() {
  if (!thread_.joinable()) return;
  loop_->Post([this] { loop_->Stop(); });
  thread_.join();
}

Environment WorkerDoor::Expect(const StartWorkerEffect& start) {
  {
    absl::MutexLock lock(&mu_);
    expected_[start.worker.value()].host = start.host;
  }
  const std::string& address = bootstrap_.daemon_address();
  const size_t colon = address.rfind(':');
  Environment environment = {
      {"HOROVOD_HOSTNAME", start.host},
      {"HOROVOD_RANK", absl::StrCat(start.rank)},
      {"HOROVOD_SIZE", absl::StrCat(start.size)},
      {"HOROVOD_LOCAL_RANK", absl::StrCat(start.local_rank)},
      {"HOROVOD_LOCAL_SIZE", absl::StrCat(start.local_size)},
      {"HOROVOD_CROSS_RANK", absl::StrCat(start.cross_rank)},
      {"HOROVOD_CROSS_SIZE", absl::StrCat(start.cross_size)},
      {"HOROVOD_GLOO_RENDEZVOUS_ADDR", address.substr(0, colon)},
      {"HOROVOD_GLOO_RENDEZVOUS_PORT", address.substr(colon + 1)},
      {"HOROVOD_WORKER_ID", absl::StrCat(start.worker.value())},
      {"HOROVOD_AGENT_SOCKET", socket_->name()},
  };
  if (bootstrap_.elastic()) environment["HOROVOD_ELASTIC"] = "1";
  return environment;
}

void WorkerDoor::Forget(WorkerId worker) {
  absl::MutexLock lock(&mu_);
  auto forgotten = expected_.extract(worker.value());
  if (forgotten.empty()) return;
  // Not here: its descriptor may be on its way to the process.
  loop_->Post([watch = std::move(forgotten.mapped().watch)] {});
}

BootstrapSocket::Response WorkerDoor::Answer(uint64_t worker) {
  BootstrapSocket::Response response;
  absl::MutexLock lock(&mu_);
  const auto found = expected_.find(worker);
  if (found == expected_.end()) {
    response.bootstrap.set_error(absl::StrCat("no worker ", worker, " is to run here"));
    return response;
  }
  response.bootstrap = bootstrap_;
  response.bootstrap.set_worker_id(worker);
  response.bootstrap.set_host(found->second.host);
  // Without one its death is noticed later.
  auto watch = LivenessWatch::Start([this, worker] { on_dying_(WorkerId(worker)); });
  if (!watch.ok()) return response;
  found->second.watch = *std::move(watch);
  response.page = found->second.watch->page_fd();
  return response;
}

}  // namespace hvd
