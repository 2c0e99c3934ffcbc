#include "worker_runtime/negotiation/deadlock.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "worker_runtime/negotiation/operation_text.h"

namespace hvd::worker_runtime::negotiation {
namespace {

// Returns the tensor of this name if `rank` waits for it, else nullptr.
const Readiness::Tensor* WaitingFor(const Readiness& readiness, int rank, const std::string& name) {
  return readiness.IsWaiting(rank, name) ? &readiness.waiting().at(name) : nullptr;
}

}  // namespace

DeadlockDetector::DeadlockDetector(int size, absl::Duration patience)
    : patience_(patience), by_rank_(size) {}

void DeadlockDetector::SetBlocked(int rank, std::vector<std::string> names,
                                  uint64_t seen_sequence) {
  Blocked& blocked = by_rank_[rank];
  blocked_count_ += static_cast<int>(!names.empty()) - static_cast<int>(!blocked.names.empty());
  blocked = Blocked{std::move(names), seen_sequence};
  // Every announcement restarts the patience: the rank is still doing something.
  since_ = absl::InfiniteFuture();
}

void DeadlockDetector::Update(const Readiness& readiness, uint64_t last_sequence, absl::Time now) {
  // The count is checked first: it costs nothing, and is nearly always too small.
  if (blocked_count_ < static_cast<int>(by_rank_.size()) || !Holds(readiness, last_sequence)) {
    since_ = absl::InfiniteFuture();
  } else if (since_ == absl::InfiniteFuture()) {
    since_ = now;
  }
}

bool DeadlockDetector::Holds(const Readiness& readiness, uint64_t last_sequence) const {
  for (size_t rank = 0; rank < by_rank_.size(); ++rank) {
    const Blocked& blocked = by_rank_[rank];
    // A plan that the rank has not carried out yet may end its wait.
    if (blocked.seen_sequence != last_sequence) return false;
    const bool waits =
        std::any_of(blocked.names.begin(), blocked.names.end(), [&](const std::string& name) {
          return WaitingFor(readiness, static_cast<int>(rank), name) != nullptr;
        });
    if (!waits) return false;
  }
  return true;
}

std::string DeadlockDetector::Describe(const Readiness& readiness) const {
  constexpr size_t kMostRanks = 16;  // bounds the message in a large world
  std::vector<std::string> parts;
  for (size_t rank = 0; rank < by_rank_.size() && parts.size() < kMostRanks; ++rank) {
    for (const std::string& name : by_rank_[rank].names) {
      const auto* tensor = WaitingFor(readiness, static_cast<int>(rank), name);
      if (tensor == nullptr) continue;
      const TensorSignature& sent = *tensor->by_rank[rank];
      parts.push_back(absl::StrCat("rank ", rank, " waits for ", OperationText(sent.op, name), " ",
                                   collectives::NameOf(sent.type), " ", ShapeText(sent.shape),
                                   ", which ", RanksText(readiness.Missing(*tensor)),
                                   " did not submit"));
      break;
    }
  }
  if (parts.size() < by_rank_.size()) parts.push_back("and so on");
  return absl::StrCat(
      "Mismatched order of operations: no rank can go on: ", absl::StrJoin(parts, "; "),
      ". All ranks must submit the same names before they wait");
}

Failure DeadlockDetector::Break(Readiness& readiness) {
  Failure failure;
  failure.message = Describe(readiness);
  for (size_t rank = 0; rank < by_rank_.size(); ++rank) {
    for (const std::string& name : by_rank_[rank].names) {
      const auto* tensor = WaitingFor(readiness, static_cast<int>(rank), name);
      // A pending join is not removed: it is correct, and completes once the other ranks join.
      if (tensor == nullptr || tensor->by_rank[rank]->op == OpKind::kJoin) continue;
      // The tensors of a group are taken together, since none of them can run without the others.
      for (const Readiness::Tensor& taken : readiness.Take(name)) {
        for (const SignaturePtr& signature : taken.by_rank) {
          if (signature == nullptr) continue;
          failure.names.push_back(signature->name);
          break;
        }
      }
    }
  }
  // Ranks whose operations have failed go on, so the next deadlock is a new one.
  since_ = absl::InfiniteFuture();
  return failure;
}

}  // namespace hvd::worker_runtime::negotiation
