#include "tests/complexity/played_job.h"

#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "proto/snapshot.pb.h"
#include "rendezvous/journal/event_codec.h"
#include "tests/complexity/operation_count.h"

namespace hvd {

namespace membership = rendezvous::membership;
using membership::CallId;

namespace {

constexpr uint64_t kFirstAgent = 1000000;  // the incarnation of the first host's agent

rendezvous::policy::JobSpec SpecFor(int64_t hosts) {
  rendezvous::policy::JobSpec spec;
  spec.min_workers = 1;
  spec.start_workers = static_cast<int>(hosts) * PlayedJob::kSlots;
  spec.max_workers = 2 * spec.start_workers;
  spec.elastic.emplace();
  return spec;
}

// As in a large job, whatever the size.
membership::Membership::ReconcileThrottle Throttle() { return {1, absl::Nanoseconds(200)}; }

std::string NameOf(int64_t host) { return absl::StrCat("host-", host); }

}  // namespace

PlayedJob::PlayedJob(int64_t hosts) : machine_(SpecFor(hosts), now_, Throttle()) {
  while (hosts_ < hosts) AttachHost();
  WaitForWorld(static_cast<size_t>(hosts) * kSlots);
  formed_ = spent_;
  commit_ = CommitId(machine_.world()->epoch.value(), 1);
  ReportProgress();
}

Cost PlayedJob::FailWorker() {
  const Cost before = spent_;
  const size_t size = members_.size();
  Exit(first().key.id.value(), 9);
  WaitForWorld(size);
  return Since(before);
}

Cost PlayedJob::DrainHost() {
  const Cost before = spent_;
  const size_t size = members_.size();
  Apply(membership::HostDraining{NameOf(hosts_ - 1), absl::Seconds(30), "spot", false});
  WaitForWorld(size - kSlots);
  return Since(before);
}

Cost PlayedJob::AddHost() {
  const Cost before = spent_;
  const size_t size = members_.size();
  AttachHost();
  WaitForWorld(size + kSlots);
  return Since(before);
}

Cost PlayedJob::Exchange() {
  const Cost before = spent_;
  for (const auto& [worker, member] : members_) {
    Apply(membership::ExchangeRequested{NewCall(worker), member.key, Epoch(member.epoch), "key",
                                        "value"});
  }
  return Since(before);
}

Cost PlayedJob::ReportProgress() {
  const Cost before = spent_;
  membership::ProgressReported report;
  report.call = NewCall(first().key.id.value());
  report.worker = first().key;
  report.epoch = Epoch(first().epoch);
  report.commit = commit_;
  report.began_with = 0;
  Apply(report);
  return Since(before);
}

Cost PlayedJob::WatchAgain() {
  const Cost before = spent_;
  const uint64_t worker = first().key.id.value();
  Apply(membership::WatchRequested{NewCall(worker), first().key, Epoch(first().epoch), false});
  return Since(before);
}

Cost PlayedJob::Finish() {
  const Cost before = spent_;
  for (const auto& [worker, member] : members_) {
    Apply(membership::Reported{NewCall(worker), member.key, Epoch(member.epoch), true});
  }
  while (!members_.empty()) Exit(members_.begin()->first, 0);
  WaitForEnd();
  return Since(before);
}

Cost PlayedJob::StopAtCommit() {
  const Cost before = spent_;
  Apply(membership::StopRequested{"stop", 0, absl::Seconds(30), true, true});
  WaitForEnd();
  return Since(before);
}

Cost PlayedJob::Save() {
  const int64_t before = OperationCount();
  const int64_t bytes = static_cast<int64_t>(machine_.Save().ByteSizeLong());
  return {OperationCount() - before, 0, bytes};
}

Cost PlayedJob::Describe() {
  Apply(membership::StopRequested{"stop", 0, absl::Seconds(30), true, true});
  const int64_t before = OperationCount();
  machine_.Describe();
  return {OperationCount() - before};
}

void PlayedJob::Apply(const membership::Event& event) {
  spent_.bytes += static_cast<int64_t>(rendezvous::journal::ToMessage(event, now_).ByteSizeLong());
  const int64_t before = OperationCount();
  const std::vector<membership::Effect> effects = machine_.Apply(event, now_);
  spent_.operations += OperationCount() - before;
  for (const membership::Effect& effect : effects) Answer(effect);
  ApplyAnswers();
}

void PlayedJob::ApplyAnswers() {
  while (!answers_.empty()) {
    const membership::Event next = std::move(answers_.front());
    answers_.pop_front();
    Apply(next);
  }
}

void PlayedJob::Answer(const membership::Effect& effect) {
  if (std::holds_alternative<membership::Notice>(effect)) return;
  if (std::holds_alternative<membership::JobFinished>(effect)) return;
  ++spent_.messages;
  if (const auto* start = std::get_if<membership::StartWorkerEffect>(&effect)) {
    const uint64_t worker = start->worker.value();
    members_[worker].key = {start->worker, Incarnation(worker)};
    members_[worker].host = start->host;
    answers_.push_back(membership::WorkerStarted{start->worker, 1});
    Join(worker);
  } else if (const auto* world = std::get_if<membership::ReplyWorld>(&effect)) {
    const uint64_t worker = calls_[world->call.value()];
    Member& member = members_[worker];
    member.epoch = world->world->epoch.value();
    answers_.push_back(
        membership::WatchRequested{NewCall(worker), member.key, world->world->epoch, false});
  } else if (const auto* watch = std::get_if<membership::ReplyWatch>(&effect)) {
    const uint64_t worker = calls_[watch->call.value()];
    if (watch->change != membership::EpochChange::kJobOver && members_.count(worker) > 0) {
      Join(worker);
    }
  } else if (const auto* released = std::get_if<membership::ReplyReleased>(&effect)) {
    Exit(calls_[released->call.value()], 0);
  } else if (const auto* end = std::get_if<membership::EndJobEffect>(&effect)) {
    answers_.push_back(membership::HostLost{end->host, end->agent, "left"});
  }
}

void PlayedJob::Join(uint64_t worker) {
  membership::JoinRequested join;
  join.call = NewCall(worker);
  join.worker = members_[worker].key;
  join.last_epoch = Epoch(members_[worker].epoch);
  join.commit = join.last_epoch > Epoch(0) ? commit_ : 0;
  join.address = "10.0.0.1";
  join.port = 4000;
  join.caused_by_peer = true;
  answers_.push_back(std::move(join));
}

void PlayedJob::Exit(uint64_t worker, int signal) {
  if (commit_ > 0) answers_.push_back(membership::CommitLeft{members_[worker].host, commit_});
  members_.erase(worker);
  membership::WorkerExited exited;
  exited.worker = WorkerId(worker);
  exited.signal = signal;
  answers_.push_back(std::move(exited));
  ApplyAnswers();
}

void PlayedJob::AttachHost() {
  membership::HostJoined joined;
  joined.host = {NameOf(hosts_), kSlots};
  joined.commit_address = absl::StrCat("10.0.0.", hosts_, ":4001");
  joined.agent = Incarnation(kFirstAgent + static_cast<uint64_t>(hosts_));
  ++hosts_;
  Apply(joined);
}

// Until all members are in the newest world, and it is of this size.
void PlayedJob::WaitForWorld(size_t members) {
  const auto is_there = [&] {
    const membership::WorldPtr world = machine_.world();
    if (world->members.size() != members || members_.size() != members) return false;
    for (const auto& [worker, member] : members_) {
      if (member.epoch != world->epoch.value()) return false;
    }
    return true;
  };
  while (!is_there()) {
    now_ = machine_.NextDeadline();
    Apply(membership::Tick{});
  }
}

void PlayedJob::WaitForEnd() {
  while (!machine_.Ended().has_value()) {
    now_ = machine_.NextDeadline();
    Apply(membership::Tick{});
  }
}

Cost PlayedJob::Since(const Cost& before) const {
  return {spent_.operations - before.operations, spent_.messages - before.messages,
          spent_.bytes - before.bytes};
}

CallId PlayedJob::NewCall(uint64_t worker) {
  calls_[++last_call_] = worker;
  return CallId(last_call_);
}

}  // namespace hvd
