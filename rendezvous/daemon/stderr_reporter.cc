#include "rendezvous/daemon/stderr_reporter.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "rendezvous/reporting/checkpoint_text.h"

namespace hvd::rendezvous::daemon {

void StderrReporter::Watch(server::Server& server) {
  server_ = &server;
  Look();
}

void StderrReporter::Stop() {
  server_ = nullptr;
  if (timer_.has_value()) loop_.Cancel(*timer_);
  timer_.reset();
}

void StderrReporter::Look() {
  // Blocks for up to Job::kPatience if the job's thread hangs. Signals have a thread of their own,
  // so this delays only other lines.
  const std::string line = waiting_.Check(server_->Describe(), clock_.Now());
  if (!line.empty()) say_(line);
  Plan();
}

void StderrReporter::Plan() {
  if (timer_.has_value()) loop_.Cancel(*timer_);
  const absl::Duration pause = waiting_.NextDue() - clock_.Now();
  timer_ = loop_.After(std::max(pause, absl::ZeroDuration()), [this] {
    timer_.reset();
    Look();
  });
}

void StderrReporter::Report(const membership::Notice& notice, absl::Time when) {
  const reporting::JobSummary::Line line = progress_.Add(notice, when);
  // No other message reports that a host has joined.
  if (line.important || notice.kind == membership::Notice::Kind::kHostJoined) say_(line.text);
  // A notice that was queued before Stop may come after it.
  if (server_ == nullptr) return;
  waiting_.WakeUp(clock_.Now());
  Plan();
}

void StderrReporter::SumUp(const membership::Membership::View& view, bool success) {
  const std::string summary = progress_.Summary();
  if (summary.empty()) return;
  const std::string checkpoint = reporting::LastCheckpointText(view, success);
  say_(checkpoint.empty() ? summary : absl::StrCat(summary, "; ", checkpoint));
}

}  // namespace hvd::rendezvous::daemon
