#include "worker_runtime/api/active_world.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/failpoint/failpoint.h"
#include "base/logging.h"
#include "base/net/tls_session.h"
#include "base/settings/runtime_env.h"
#include "base/status_macros.h"
#include "base/text/shortened.h"
#include "base/text/utf8.h"

namespace hvd::worker_runtime::api {
namespace {

// The longest time for which a new operation is held back so that others can be fused with it.
constexpr absl::Duration kGatherTime = absl::Milliseconds(1);

// The key exchange of a world of one rank.
class LoneKeyExchange : public collectives::KeyExchange {
 public:
  absl::StatusOr<std::vector<std::string>> AllGather(absl::string_view, absl::string_view value,
                                                     absl::Duration) override {
    return std::vector<std::string>{std::string(value)};
  }
};

std::shared_ptr<spdlog::logger> LoggerOf(const settings::RuntimeEnv& env,
                                         const session::WorkerWorld& world) {
  return MakeLogger(absl::StrCat("horovod[", world.rank(), "]"), env.log_level, env.log_hide_time);
}

// Returns the tuner's options; nullopt if the environment sets all tunable parameters.
std::optional<negotiation::tuning::TunerOptions> ToTunerOptions(const settings::RuntimeEnv& env) {
  negotiation::tuning::TunerOptions options;
  options.autotune = env.autotune;
  options.tune_fusion_threshold = !env.engine.fusion_threshold_is_given;
  options.tune_cycle_time = !env.engine.cycle_time_is_given;
  if (!options.tune_fusion_threshold && !options.tune_cycle_time) return std::nullopt;
  return options;
}

absl::string_view NameOf(session::EpochEvent change) {
  switch (change) {
    case session::EpochEvent::kChanging:
      return "changing";
    case session::EpochEvent::kBroken:
      return "broken";
    case session::EpochEvent::kOver:
      return "over";
  }
  return "unknown";
}

// Returns the TLS context of the world's connections; nullptr: no TLS. The daemon's setting
// decides, so that all ranks agree.
absl::StatusOr<std::shared_ptr<const net::TlsContext>> TlsOf(const settings::RuntimeEnv& env,
                                                             const session::WorkerWorld& world,
                                                             const session::Session* session) {
  if (session == nullptr) return nullptr;  // alone
  if (env.encrypt_data && !world.encrypt_data) {
    return absl::InvalidArgumentError(
        "HOROVOD_ENCRYPT_DATA=1 is set for this worker, but its job does not encrypt: give "
        "--encrypt-data to horovodrun or horovod-rendezvousd");
  }
  if (!world.encrypt_data) return nullptr;
  return net::TlsContext::Create(session->standing().identity);
}

bool IsFirst(const session::WorkerWorld& world) { return world.epoch <= Epoch(1); }

engine::EngineOptions ToEngineOptions(const settings::RuntimeEnv& env,
                                      const session::WorkerWorld& world,
                                      std::shared_ptr<spdlog::logger> logger) {
  engine::EngineOptions options;
  options.settings = env.engine;
  options.gather_time =
      env.engine.cycle_time_is_given ? std::min(kGatherTime, env.engine.cycle_time) : kGatherTime;
  options.collective_timeout = env.gloo_timeout;
  options.local_rank = world.self().place.local_rank;
  options.on_warning = [logger = std::move(logger)](const std::string& text) {
    logger->warn(text);
  };
  return options;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ActiveWorld>> ActiveWorld::Connect(
    const settings::RuntimeEnv& env, session::WorkerWorld world,
    std::shared_ptr<collectives::peer::PeerPort> port, collectives::Backend& backend,
    std::shared_ptr<collectives::DeviceBackend> devices, session::Session* session) {
  auto result = std::shared_ptr<ActiveWorld>(new ActiveWorld(env, std::move(world)));
  const int size = result->world_.size();
  result->Trace(absl::StrCat("has ", size, size == 1 ? " rank" : " ranks"));
  if (session != nullptr) {
    result->watch_ =
        session->Watch(result->world_.epoch,
                       [raw = result.get()](session::EpochEvent change, const std::string& reason) {
                         raw->OnChange(change, reason);
                       });
  }
  const absl::Status connected =
      result->ConnectPlanes(env, std::move(port), backend, std::move(devices), session);
  if (connected.ok()) {
    result->Trace("connected");
    return result;
  }
  // If the daemon has ended the epoch meanwhile, its reason is the cause of the connection errors.
  const absl::Status cause = result->broken_->status();
  return cause.ok() ? connected : cause;
}

absl::Status ActiveWorld::ConnectPlanes(const settings::RuntimeEnv& env,
                                        std::shared_ptr<collectives::peer::PeerPort> port,
                                        collectives::Backend& backend,
                                        std::shared_ptr<collectives::DeviceBackend> devices,
                                        session::Session* session) {
  RETURN_IF_ERROR(FAILPOINT_STATUS("worker.connect.watching"));
  ASSIGN_OR_RETURN(const std::shared_ptr<const net::TlsContext> tls, TlsOf(env, world_, session));
  const collectives::GroupInfo group{world_.epoch,
                                     world_.rank(),
                                     world_.size(),
                                     world_.self().address,
                                     world_.secret,
                                     tls,
                                     /*id=*/0,
                                     port,
                                     [this](const std::string& choice) { OnChoice(choice); }};
  std::unique_ptr<collectives::KeyExchange> keys;
  WaitBounds bounds(env.gloo_timeout, broken_.get());
  if (session != nullptr) {
    keys = session->NewKeyExchange(world_.epoch);
    // The daemon may be restarting, and the key exchange needs it.
    bounds.timeout = std::max(bounds.timeout, session->standing().reattach);
  } else {
    keys = std::make_unique<LoneKeyExchange>();
  }
  const session::Peer& root = world_.root;
  ASSIGN_OR_RETURN(group_, group::ConnectedGroup::Connect(group, backend, *keys,
                                                          {root.address, root.port}, bounds));
  // Process sets share the port, if the world needs it.
  if (!port->in_use()) port.reset();
  engine::EngineOptions options = ToEngineOptions(env, world_, logger_);
  timeline_.Equip(options);
  if (session != nullptr) ReportStallsTo(*session, options);
  sets_ = std::make_unique<ProcessSets>(
      ProcessSets::Dependencies{world_, *group_, backend, devices, options, tls,
                                WaitBounds(env.gloo_timeout, broken_.get()),
                                [this](const absl::Status& why, std::optional<int> unreached) {
                                  NoteUnreached(unreached);
                                  engine()->Abort(why);
                                }},
      std::move(port));
  FollowWorld(options);  // not for the sets' engines
  if (world_.rank() == 0) StartMeasuring(env, options);
  group_->Start(options, std::move(devices));
  RETURN_IF_ERROR(FAILPOINT_STATUS("worker.connect.engine_started"));
  if (world_.rank() == 0) StartTimelineOf(env);
  const bool has_lease = world_.rank() == 0 && session != nullptr && session->standing().elastic;
  BeginEngine(has_lease ? session->NewLease(world_.epoch, env.agent_timeout) : nullptr);
  return absl::OkStatus();
}

void ActiveWorld::ReportStallsTo(session::Session& session, engine::EngineOptions& options) {
  session_ = &session;
  stalls_ = session.NewStallReporter(
      [this](const session::StallReporter::Report& report) { OnUntoldStall(report); });
  options.on_stall = [this](const negotiation::StallReport& report) { OnStall(report); };
}

void ActiveWorld::FollowWorld(engine::EngineOptions& options) {
  options.on_world_changing = [this] { changing_.store(true, std::memory_order_relaxed); };
  // A clean end of the world does not abort the sets: every rank that leaves the world also leaves
  // its sets, and an abort could break a peer's last operation on a set.
  options.on_end = [this](const absl::Status& why, bool left, std::optional<int> unreached) {
    NoteUnreached(unreached);
    if (!left) sets_->Abort(why);
  };
}

// OnChange may have run while there was no engine; it could not forward the change then. Both hold
// mutex_, so none is lost.
void ActiveWorld::BeginEngine(std::unique_ptr<session::WorldLease> lease) {
  absl::MutexLock lock(&mutex_);
  lease_ = std::move(lease);
  engine_is_up_ = true;
  const absl::Status broken = broken_->status();
  if (!broken.ok()) {
    engine()->Abort(broken);
  } else if (changing()) {
    engine()->SetWorldChanging();
  }
}

ActiveWorld::ActiveWorld(const settings::RuntimeEnv& env, session::WorkerWorld world)
    : world_(std::move(world)),
      logger_(LoggerOf(env, world_)),
      seals_(world_.epoch, world_.secret),
      timeline_(world_, logger_) {}

absl::Status ActiveWorld::OpenSealed(const ObjectOperation& operation,
                                     absl::Span<const ObjectSeals::Sealed> objects) {
  absl::Status opened = seals_.Open(operation, objects);
  // Whoever changed an object may change tensors as well, and the other ranks may have opened this
  // one already: the ranks' states differ.
  if (!opened.ok()) engine()->Abort(opened);
  return opened;
}

void ActiveWorld::StartMeasuring(const settings::RuntimeEnv& env, engine::EngineOptions& options) {
  for (const std::string& note : env.notes) logger_->warn(note);
  if (!env.autotune.enabled) return;
  options.tuner = ToTunerOptions(env);
  if (!options.tuner.has_value()) {
    logger_->warn(
        "HOROVOD_AUTOTUNE=1 has nothing to do: HOROVOD_FUSION_THRESHOLD and HOROVOD_CYCLE_TIME are "
        "both given");
    return;
  }
  if (!env.autotune.log.empty()) OpenTuningLog(env.autotune.log);
  options.on_tuning_sample = [this, cache = env.engine.cache_capacity >
                                            0](const negotiation::tuning::TuningSample& sample) {
    if (tuning_log_ != nullptr) tuning_log_->Add(sample, cache);
    if (!sample.is_best) return;
    logger_->info(absl::StrCat("autotune: fusion threshold ",
                               sample.tunables.fusion_threshold_bytes, " bytes, cycle time ",
                               absl::ToDoubleMilliseconds(sample.tunables.cycle_time), " ms"));
  };
}

// A file that can't be written costs this file, not the training: here as later, on a full disk.
void ActiveWorld::OpenTuningLog(const std::string& path) {
  absl::StatusOr<std::unique_ptr<TuningLog>> log = TuningLog::Open(
      path, !IsFirst(world_), [this](const std::string& warning) { logger_->warn(warning); });
  if (log.ok()) {
    tuning_log_ = *std::move(log);
  } else {
    logger_->error(std::string(log.status().message()));
  }
}

void ActiveWorld::StartTimelineOf(const settings::RuntimeEnv& env) {
  if (env.timeline.empty() || env.timeline == settings::kDynamicTimeline) return;
  const absl::Status started =
      timeline_.Start(*engine(), env.timeline, env.timeline_mark_cycles, /*of_job=*/true);
  // As for OpenTuningLog.
  if (!started.ok()) logger_->error(std::string(started.message()));
}

void ActiveWorld::OnChoice(const std::string& choice) {
  logger_->info(choice);
  timeline_.NoteChoice(choice);
}

void ActiveWorld::Trace(absl::string_view text) {
  logger_->debug(absl::StrCat("world ", world_.epoch.value(), ": ", text));
}

absl::Status ActiveWorld::CheckLease() {
  std::shared_ptr<session::WorldLease> lease;
  {
    absl::MutexLock lock(&mutex_);
    lease = lease_;
  }
  return lease == nullptr ? absl::OkStatus() : lease->Check();
}

void ActiveWorld::NoteBegin(uint64_t commit) {
  absl::MutexLock lock(&mutex_);
  if (lease_ == nullptr) return;
  session_->NoteBegin(world_.epoch, commit);
  lease_->ReportSoon();
}

void ActiveWorld::OnStall(const negotiation::StallReport& report) {
  session::StallReporter::Report told{session_->StallRequest(world_.epoch),
                                      negotiation::StallText(report)};
  told.request.set_waited_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(report.waited)));
  told.request.set_give_up(report.give_up);
  for (const negotiation::StalledGroup& group : report.waiting) {
    pb::StalledOperations& waiting = *told.request.add_waiting();
    waiting.set_what(text::Shortened(text::ToUtf8(group.what)));
    *waiting.mutable_missing() = {group.missing.begin(), group.missing.end()};
  }
  stalls_->Post(std::move(told));
}

void ActiveWorld::OnUntoldStall(const session::StallReporter::Report& report) {
  if (report.request.give_up()) return engine()->Abort(absl::DeadlineExceededError(report.text));
  logger_->warn(report.text);
}

void ActiveWorld::OnChange(session::EpochEvent change, const std::string& reason) {
  Trace(absl::StrCat(NameOf(change), ": ", reason));
  absl::MutexLock lock(&mutex_);
  changing_.store(true, std::memory_order_relaxed);
  if (change != session::EpochEvent::kChanging) broken_->Cancel(absl::AbortedError(reason));
  if (!engine_is_up_) return;
  if (change == session::EpochEvent::kChanging) {
    engine()->SetWorldChanging();
  } else {
    engine()->Abort(broken_->status());
  }
}

ActiveWorld::~ActiveWorld() { Shutdown(); }

// Takes no lock: in a forked child mutex_ may be held by a thread that does not exist here.
void ActiveWorld::Leak() {
  (void)watch_.release();
  (void)stalls_.release();
  (void)new std::shared_ptr<session::WorldLease>(std::move(lease_));
  (void)sets_.release();
  (void)group_.release();
}

void ActiveWorld::NoteUnreached(std::optional<int> rank) {
  absl::MutexLock lock(&mutex_);
  if (!unreached_.has_value()) unreached_ = rank;
}

std::optional<int> ActiveWorld::unreached() const {
  absl::MutexLock lock(&mutex_);
  return unreached_;
}

void ActiveWorld::Shutdown() {
  // A forked child has inherited the object but not its threads, and must not leave the world in
  // its parent's name.
  if (getpid() != process_) return Leak();
  // The order matters. The world's engine ends first: if the epoch is broken, its on_end aborts the
  // sets' engines. Cancelling broken_ ends a registration of a set that is under way; Close waits
  // for it.
  if (group_ != nullptr) group_->Shutdown();
  FAILPOINT("worker.leave.engine_ended");
  if (broken_ != nullptr) broken_->Cancel(absl::AbortedError("Horovod has been shut down."));
  if (sets_ != nullptr) sets_->Close();
  stalls_.reset();
  watch_.reset();
  std::shared_ptr<session::WorldLease> lease;
  {
    absl::MutexLock lock(&mutex_);
    lease.swap(lease_);
  }
  lease.reset();
  if (std::exchange(broken_, nullptr) != nullptr) Trace("left");
  FAILPOINT("worker.leave.left");
}

void ActiveWorld::LeaveForNext() {
  // If the change was announced in advance, all ranks leave and the clean shutdown is quick.
  // Otherwise peers may be stuck in operations: the abort ends these without their help.
  const bool over = broken_ == nullptr || !broken_->status().ok();
  if (!changing() || over) {
    engine()->Abort(absl::AbortedError(
        absl::StrCat("rank ", world_.rank(), " has left this world for the next one")));
    FAILPOINT("worker.leave.aborted");
  }
  Shutdown();
}

}  // namespace hvd::worker_runtime::api
