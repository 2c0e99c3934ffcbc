#include "worker_runtime/engine/engine_timeline.h"

#include <algorithm>

#include "base/clock.h"
#include "base/status_macros.h"
#include "worker_runtime/timeline/clock_offset.h"

namespace hvd::worker_runtime::engine {

void EngineTimeline::Order(negotiation::TimelineOrder order,
                           std::shared_ptr<timeline::TraceFile> file) {
  absl::MutexLock lock(&mutex_);
  // No engine will take the order any more, and whoever stops the timeline waits for the file.
  if (ended_) {
    if (file != nullptr) file->Close();
    return;
  }
  if (file != nullptr) order.generation = ++last_generation_;
  orders_.emplace_back(std::move(order), std::move(file));
}

std::optional<negotiation::TimelineOrder> EngineTimeline::TakeOrder() {
  absl::MutexLock lock(&mutex_);
  if (orders_.empty()) return std::nullopt;
  auto [order, file] = std::move(orders_.front());
  orders_.pop_front();
  if (file != nullptr) {
    files_.emplace(order.generation, std::move(file));
    missing_.emplace(order.generation, communicator_.size());
  }
  return order;
}

absl::Status EngineTimeline::CarryOut(const negotiation::TimelineOrder& order) {
  Stop();
  // A new order also ends the recording of the previous one, whose last part Stop has queued.
  if (!order.records) return absl::OkStatus();
  ASSIGN_OR_RETURN(const timeline::ClockOffset offset,
                   timeline::MeasureClockOffset(communicator_, Clock::Real(), options_));
  recorder_.Start(offset, order.mark_cycles, Old());
  generation_ = order.generation;
  return absl::OkStatus();
}

absl::Time EngineTimeline::NextDue(absl::Time now) const {
  if (!outbox_.empty()) return absl::InfinitePast();
  if (generation_ == 0) return absl::InfiniteFuture();
  // The engines of process sets record into the same recorder without waking this one, so it must
  // look from time to time.
  return std::min(recorder_.NextDue(), now + Old());
}

absl::Duration EngineTimeline::Old() const {
  return communicator_.rank() == 0 ? timeline::Recorder::kOldAtTheWriter : timeline::Recorder::kOld;
}

std::optional<negotiation::TimelinePart> EngineTimeline::NextPart(absl::Time now) {
  if (!outbox_.empty()) {
    negotiation::TimelinePart part = std::move(outbox_.front());
    outbox_.pop_front();
    return part;
  }
  if (generation_ == 0 || recorder_.NextDue() > now) return std::nullopt;
  return negotiation::TimelinePart{generation_, false, recorder_.Take()};
}

void EngineTimeline::Receive(int rank, negotiation::TimelinePart part) {
  const auto file = files_.find(part.generation);
  if (file == files_.end()) return;  // closed by CloseFiles
  const bool last = part.last;
  file->second->Add(rank, std::move(part.chunk), last);
  if (!last || --missing_[part.generation] > 0) return;
  missing_.erase(part.generation);
  files_.erase(file);
}

void EngineTimeline::Stop() {
  if (generation_ == 0) return;
  recorder_.Stop();
  // A chunk has a bounded size, so the rest may take several parts. There is at least one part,
  // even without events: rank 0 waits for the last part of every rank.
  do {
    std::string chunk = recorder_.Take();
    outbox_.push_back({generation_, recorder_.IsEmpty(), std::move(chunk)});
  } while (!outbox_.back().last);
  generation_ = 0;
}

void EngineTimeline::CloseFiles() {
  for (const auto& [generation, file] : files_) file->Close();
  files_.clear();
  // Under the lock, so that an order is either closed below or refused by Order.
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  for (const auto& [order, file] : orders_) {
    if (file != nullptr) file->Close();
  }
  orders_.clear();
}

}  // namespace hvd::worker_runtime::engine
