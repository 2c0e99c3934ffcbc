#include "worker_runtime/api/world_timeline.h"

#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status_macros.h"

namespace hvd::worker_runtime::api {
namespace {

// Engines send their last events at once, unless they are in a long collective.
constexpr absl::Duration kStopTimeout = absl::Seconds(30);

}  // namespace

void WorldTimeline::Equip(engine::EngineOptions& options) {
  options.recorder = recorder_;
  options.on_timeline_order = [this](const negotiation::TimelineOrder& order) {
    absl::MutexLock lock(&mutex_);
    wanted_ = order;
  };
}

void WorldTimeline::NoteChoice(const std::string& choice) {
  const absl::Time now = recorder_->Begin();
  if (now != absl::InfinitePast()) recorder_->Activity(/*process_set=*/0, now, choice);
}

absl::Status WorldTimeline::Start(engine::Engine& engine, const std::string& path, bool mark_cycles,
                                  bool of_job) {
  if (path.empty()) return absl::InvalidArgumentError("The timeline needs the name of a file.");
  // Rank 0 writes the file for all ranks, and its order reaches them with the plans.
  if (world_.rank() != 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<session::Peer> peers, world_.members->Get());
  std::vector<std::string> hosts;
  for (const session::Peer& peer : peers) hosts.push_back(peer.host);
  // A world of the same job must not overwrite the file of an earlier one. A file that the script
  // names for this world is its own business.
  const std::string own = of_job ? timeline::TracePathOf(path, world_.epoch.value()) : path;
  ASSIGN_OR_RETURN(std::shared_ptr<timeline::TraceFile> file,
                   timeline::TraceFile::Open(own, std::move(hosts), Clock::Real().Now(),
                                             [logger = logger_](const absl::Status& why) {
                                               logger->warn(std::string(why.message()));
                                             }));
  absl::MutexLock lock(&order_mutex_);
  // Under the lock, so that Stop finds the file whose order the engine got last.
  file_ = file;
  engine.OrderTimeline({0, true, mark_cycles}, std::move(file));
  return absl::OkStatus();
}

absl::Status WorldTimeline::Stop(engine::Engine& engine) {
  std::shared_ptr<timeline::TraceFile> file;
  {
    absl::MutexLock lock(&order_mutex_);
    file = std::exchange(file_, nullptr);
    if (file == nullptr) return absl::OkStatus();
    engine.OrderTimeline({}, nullptr);
  }
  // Outside the lock: it waits for the last events of other ranks.
  return file->AwaitClosed(kStopTimeout);
}

std::optional<negotiation::TimelineOrder> WorldTimeline::wanted() const {
  absl::MutexLock lock(&mutex_);
  return wanted_;
}

}  // namespace hvd::worker_runtime::api
