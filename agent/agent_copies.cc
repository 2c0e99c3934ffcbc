// An agent's part in copies of commits: it gives those of its workers to the agent of another host,
// and keeps those of another one.
#include <cstddef>
#include <utility>

#include "agent/agent.h"
#include "base/net/tcp_socket.h"

namespace hvd::agent {
namespace {

constexpr size_t kBytesPerMegabit = 1000000 / 8;

}  // namespace

// Best effort: without a source this host's commits are not copied to other hosts. A rate of 0
// disables copies.
void Agent::OpenCommitSource(pb::AgentHello* hello) {
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
  hello->set_commit_address(commit_source_->address());
}

// Called at each welcome; only the first one starts the source and the keeper. REQUIRES: the job is
// elastic.
void Agent::BeginCopies(const std::string& job) {
  if (commit_source_ == nullptr || commit_keeper_ != nullptr) return;
  if (!commit_source_->Begin(job).ok()) return;
  commit_keeper_ = std::make_unique<copies::CommitKeeper>(job, trust_);
}

void Agent::OnKeep(const pb::KeepCommits& keep) {
  if (commit_keeper_ == nullptr) return;
  // The keeper reports from its thread. A report of an earlier command may still be in the loop's
  // queue when a new command arrives; its `turn` is outdated then, and it is ignored.
  const uint64_t turn = ++keep_turn_;
  if (keep.address().empty()) {
    kept_commit_ = 0;
    return commit_keeper_->Drop();
  }
  commit_keeper_->Follow(keep.address(), [this, turn](uint64_t number) {
    loop_.Post([this, turn, number] {
      if (turn == keep_turn_) OnKept(number);
    });
  });
}

void Agent::OnKept(uint64_t number) {
  kept_commit_ = number;
  if (attachment_ != nullptr) attachment_->Send(KeptMessage());
}

pb::AgentMessage Agent::KeptMessage() const {
  pb::AgentMessage message;
  message.mutable_kept()->set_commit(kept_commit_);
  return message;
}

}  // namespace hvd::agent
