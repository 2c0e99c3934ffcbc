#include "worker_runtime/api/runtime.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/logging.h"
#include "base/status_macros.h"
#include "collectives/gloo/gloo_backend.h"
#include "collectives/inproc/inproc_backend.h"
#include "rendezvous/client/grpc_rendezvous_client.h"
#include "worker_runtime/session/bootstrap.h"

namespace hvd {
namespace {

// Ranks may come minutes apart (imports from a slow file system); the daemon names whom it waits
// for.
constexpr absl::Duration kJoinTimeout = absl::Minutes(10);
constexpr absl::Duration kBootstrapTimeout = absl::Seconds(30);
constexpr absl::Duration kReportTimeout = absl::Seconds(1);
// A worker leaves for good only when the daemon has heard so.
constexpr absl::Duration kFinishTimeout = absl::Seconds(10);
constexpr char kLoneAddress[] = "127.0.0.1";

// For a world of one, where there is nobody to exchange with.
class LoneKeyExchange : public KeyExchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view, absl::string_view value,
                                                     absl::Duration) override {
    return std::vector<std::string>{std::string(value)};
  }
};

Incarnation NewIncarnation() {
  const std::string bytes = RandomBytes(sizeof(uint64_t));
  uint64_t value;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(&value));
  return Incarnation(value | 1);  // 0 means none
}

absl::StatusOr<std::shared_ptr<Session>> OpenSession(const RuntimeEnv& env) {
  ASSIGN_OR_RETURN(const pb::WorkerBootstrap bootstrap,
                   FetchBootstrap(env.agent_socket, WorkerId(env.worker_id), kBootstrapTimeout));
  const PeerCredentials credentials{
      bootstrap.credentials().token(), bootstrap.credentials().ca_certificate(),
      bootstrap.credentials().certificate(), bootstrap.credentials().private_key()};
  return std::make_shared<Session>(WorkerId(bootstrap.worker_id()), NewIncarnation(),
                                   bootstrap.advertise_address(),
                                   [address = bootstrap.daemon_address(), credentials] {
                                     return NewGrpcRendezvousClient(address, credentials);
                                   });
}

EngineOptions ToEngineOptions(const RuntimeEnv& env, const WorkerWorld& world) {
  EngineOptions options;
  options.fusion_threshold_bytes = env.fusion_threshold_bytes;
  options.cycle_time = env.cycle_time;
  options.cache_capacity = env.cache_capacity;
  options.collective_timeout = env.gloo_timeout;
  options.thread_affinity = env.thread_affinity;
  options.local_rank = world.self().local_rank;
  options.stall_warning_time = env.stall_check ? env.stall_warning_time : absl::InfiniteDuration();
  if (env.stall_shutdown_time > absl::ZeroDuration()) {
    options.stall_shutdown_time = env.stall_shutdown_time;
  }
  options.on_warning =
      [logger = MakeLogger(absl::StrCat("horovod[", world.rank, "]"), env.log_level,
                           env.log_hide_time)](const std::string& text) { logger->warn(text); };
  return options;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ActiveWorld>> ActiveWorld::Connect(const RuntimeEnv& env,
                                                                  WorkerWorld world,
                                                                  ControlListener& listener,
                                                                  Backend& backend,
                                                                  Session* session) {
  auto result = std::shared_ptr<ActiveWorld>(new ActiveWorld(std::move(world)));
  const WorkerWorld& w = result->world_;
  const GroupInfo group{w.epoch, w.rank, w.size(), w.self().address, w.secret};
  std::unique_ptr<KeyExchange> keys;
  if (session != nullptr) {
    keys = session->NewKeyExchange(w.epoch);
  } else {
    keys = std::make_unique<LoneKeyExchange>();
  }
  ASSIGN_OR_RETURN(result->communicator_, backend.Connect(group, *keys, env.gloo_timeout));
  const Peer& root = w.peers.front();
  ASSIGN_OR_RETURN(
      std::unique_ptr<ControlChannel> control,
      ControlChannel::Connect(group, listener, root.address, root.control_port, env.gloo_timeout));
  result->engine_ =
      Engine::Start(ToEngineOptions(env, w), *result->communicator_, std::move(control));
  if (session != nullptr) {
    result->watch_ = session->Watch(w.epoch, [raw = result.get()](const std::string& reason) {
      raw->changing_.store(true, std::memory_order_relaxed);
      raw->engine_->Abort(absl::AbortedError(reason));
    });
  }
  return result;
}

ActiveWorld::~ActiveWorld() { Shutdown(); }

void ActiveWorld::Shutdown() {
  watch_.reset();
  if (engine_ != nullptr) engine_->Shutdown();
}

absl::Status Runtime::Prepare() {
  if (prepared_) return absl::OkStatus();
  ASSIGN_OR_RETURN(env_, ParseRuntimeEnv(ReadRuntimeVariables()));
  if (env_.agent_socket.empty()) {
    backend_ = MakeInprocBackend();
  } else {
    ASSIGN_OR_RETURN(std::shared_ptr<Session> session, OpenSession(env_));
    backend_ = MakeGlooBackend();
    absl::MutexLock lock(&mutex_);
    session_ = std::move(session);
  }
  prepared_ = true;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ActiveWorld>> Runtime::NextWorld() {
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    session = session_;
  }
  const std::string address = session == nullptr ? kLoneAddress : session->advertise_address();
  ASSIGN_OR_RETURN(std::unique_ptr<ControlListener> listener, ControlListener::Open(address));
  WorkerWorld world;
  if (session == nullptr) {
    world.epoch = Epoch(++lone_epoch_);
    world.peers.push_back({"localhost", address, listener->port()});
  } else {
    ASSIGN_OR_RETURN(world, session->JoinNextWorld(listener->port(), kJoinTimeout));
  }
  return ActiveWorld::Connect(env_, std::move(world), *listener, *backend_, session.get());
}

absl::Status Runtime::Init() {
  absl::MutexLock init_lock(&init_mutex_);
  if (active() != nullptr) return absl::OkStatus();
  RETURN_IF_ERROR(Prepare());
  ASSIGN_OR_RETURN(std::shared_ptr<ActiveWorld> world, NextWorld());
  absl::MutexLock lock(&mutex_);
  active_ = std::move(world);
  return absl::OkStatus();
}

absl::Status Runtime::Shutdown() {
  absl::MutexLock init_lock(&init_mutex_);
  std::shared_ptr<ActiveWorld> world;
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    world = std::move(active_);
    active_ = nullptr;
    session = session_;
  }
  if (world == nullptr) return absl::OkStatus();
  world->Shutdown();
  if (session == nullptr) return absl::OkStatus();
  return session->ReportFinished(world->world().epoch, kFinishTimeout);
}

std::shared_ptr<ActiveWorld> Runtime::active() const {
  absl::MutexLock lock(&mutex_);
  return active_;
}

absl::StatusOr<Runtime::Handle> Runtime::Submit(std::vector<TensorRequest> requests) {
  const std::shared_ptr<ActiveWorld> world = active();
  if (world == nullptr) {
    return absl::FailedPreconditionError("Horovod has not been initialized; use hvd.init().");
  }
  ASSIGN_OR_RETURN(const Engine::Handle handle, world->engine().Submit(std::move(requests)));
  absl::MutexLock lock(&mutex_);
  tickets_.emplace(next_handle_, Ticket{world, handle});
  return next_handle_++;
}

absl::StatusOr<Runtime::Ticket> Runtime::Find(Handle handle) const {
  absl::MutexLock lock(&mutex_);
  const auto found = tickets_.find(handle);
  if (found == tickets_.end()) {
    return absl::NotFoundError(
        absl::StrCat("Handle ", handle, " was not created or has been cleared."));
  }
  return found->second;
}

absl::StatusOr<bool> Runtime::Poll(Handle handle) {
  ASSIGN_OR_RETURN(const Ticket ticket, Find(handle));
  return ticket.world->engine().Poll(ticket.handle);
}

absl::Status Runtime::Wait(Handle handle) {
  ASSIGN_OR_RETURN(const Ticket ticket, Find(handle));
  return ticket.world->engine().Wait(ticket.handle);
}

absl::StatusOr<const std::vector<TensorResult>*> Runtime::Results(Handle handle) {
  ASSIGN_OR_RETURN(const Ticket ticket, Find(handle));
  return &ticket.world->engine().Results(ticket.handle);
}

void Runtime::Release(Handle handle) {
  Ticket ticket;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = tickets_.find(handle);
    if (found == tickets_.end()) return;
    ticket = std::move(found->second);
    tickets_.erase(found);
  }
  ticket.world->engine().Release(ticket.handle);
}

void Runtime::ReportFailure(const std::string& message, bool caused_by_peer) {
  std::shared_ptr<Session> session;
  Epoch epoch;
  {
    absl::MutexLock lock(&mutex_);
    session = session_;
    if (active_ != nullptr) epoch = active_->world().epoch;
  }
  if (session == nullptr) return;
  // Best effort: the exit code tells the rest if the daemon can't be reached any more.
  session->ReportFailure(epoch, message, caused_by_peer, kReportTimeout).IgnoreError();
}

}  // namespace hvd
