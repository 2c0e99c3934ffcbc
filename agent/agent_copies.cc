// An agent's part in the life of commits: it tells the daemon what its workers have left, gives
// commits to the agent of another host, and keeps copies of those of another one.
#include <cstddef>
#include <utility>

#include "agent/agent.h"
#include "base/failpoint/failpoint.h"
#include "base/net/tcp_socket.h"

namespace hvd::agent {
namespace {

constexpr size_t kBytesPerMegabit = 1000000 / 8;

}  // namespace

// Best effort: without a source this host's commits are not copied to other hosts. A rate of 0
// disables copies.
void Agent::OpenCommitSource() {
  commit_source_.reset();
  serves_copies_ = false;
  if (commit_copy_mbit_ == 0) return;
  const pb::Credentials& own = bootstrap_.credentials();
  absl::StatusOr<std::shared_ptr<const net::TlsContext>> tls =
      net::TlsContext::Create({own.ca_certificate(), own.certificate(), own.private_key()});
  if (!tls.ok()) return;
  trust_ = {*std::move(tls), own.token()};
  auto source =
      copies::CommitSource::Open(route_.own_address, trust_, commit_copy_mbit_ * kBytesPerMegabit);
  if (!source.ok()) return;
  commit_source_ = *std::move(source);
}

std::string Agent::CommitAddress() const {
  return commit_source_ == nullptr ? "" : commit_source_->address();
}

// Called at each welcome; starts the source and the keeper, each once. REQUIRES: the job is
// elastic.
void Agent::BeginCopies(const std::string& job) {
  if (commit_source_ == nullptr || serves_copies_) return;
  if (!commit_source_->Begin(job).ok()) return;
  serves_copies_ = true;
  if (commit_keeper_ == nullptr) {
    commit_keeper_ = std::make_unique<copies::CommitKeeper>(job, trust_);
    // A copy is given on if its host is lost and the next world begins elsewhere.
    held_->Add(commit_keeper_->memory());
  }
  for (const int arena : held_->arenas()) commit_source_->Offer(arena);
}

uint64_t Agent::NewestCommit() { return held_.has_value() ? held_->newest().commit : 0; }

// Tells the daemon which commit remains before it tells it that a worker ends, so that no world
// forms without that commit.
void Agent::OnWorkerReport(pb::AgentMessage message) {
  if (message.has_dying() || message.has_exited()) TellLeft();
  if (message.has_exited()) FAILPOINT("agent.exit.commit_told");
  attachment_->Send(std::move(message));
}

void Agent::TellLeft() {
  const uint64_t newest = NewestCommit();
  if (std::exchange(told_commit_, newest) == newest) return;
  pb::AgentMessage message;
  message.mutable_left()->set_commit(newest);
  attachment_->Send(std::move(message));
}

void Agent::OnKeep(const pb::KeepCommits& keep) {
  if (commit_keeper_ == nullptr) return;
  // The keeper reports from its thread. A report of an earlier command may still be in the loop's
  // queue when a new command arrives; its `turn` is outdated then, and it is ignored.
  const uint64_t turn = ++keep_turn_;
  FAILPOINT("agent.copy.ordered");
  if (keep.address().empty()) {
    commit_keeper_->Drop();
    return TellLeft();
  }
  commit_keeper_->Follow(keep.address(), [this, turn](const absl::StatusOr<uint64_t>& kept) {
    loop_.Post([this, turn, status = kept.status()] {
      if (turn == keep_turn_) OnKept(status);
    });
  });
}

void Agent::OnKept(const absl::Status& status) {
  if (attachment_ == nullptr) return;
  told_commit_ = NewestCommit();
  pb::AgentMessage message;
  message.mutable_kept()->set_commit(told_commit_);
  message.mutable_kept()->set_failure(std::string(status.message()));
  attachment_->Send(std::move(message));
}

}  // namespace hvd::agent
