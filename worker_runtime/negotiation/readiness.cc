#include "worker_runtime/negotiation/readiness.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

constexpr uint64_t kNoGroup = 0;

// Some rank's request; which one does not matter to the caller.
const TensorSignature& AnyOf(const Readiness::Tensor& tensor) {
  return **std::find_if(tensor.by_rank.begin(), tensor.by_rank.end(),
                        [](const SignaturePtr& signature) { return signature != nullptr; });
}

bool IsJoin(const Readiness::Tensor& tensor) { return AnyOf(tensor).op == OpKind::kJoin; }

}  // namespace

Readiness::Readiness(int size) : size_(size), joined_(size, false) {}

absl::Status Readiness::Add(int rank, absl::Span<const SignaturePtr> group, absl::Time now) {
  absl::flat_hash_set<absl::string_view> names;
  for (const SignaturePtr& signature : group) {
    auto found = waiting_.find(signature->name);
    const bool twice = found != waiting_.end() && found->second.by_rank[rank] != nullptr;
    if (twice || (group.size() > 1 && !names.insert(signature->name).second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " has submitted '", signature->name, "' twice"));
    }
  }
  uint64_t id = kNoGroup;
  if (group.size() > 1) {
    id = ++last_group_;
    for (const SignaturePtr& signature : group) groups_[id].push_back(signature->name);
  }
  for (const SignaturePtr& signature : group) AddTensor(rank, signature, id, now);
  // The whole group hangs together, so one look is enough.
  if (!group.empty()) ReleaseIfComplete(group.front()->name);
  return absl::OkStatus();
}

void Readiness::AddTensor(int rank, const SignaturePtr& signature, uint64_t group, absl::Time now) {
  Tensor& tensor = waiting_[signature->name];
  if (tensor.submitted == 0) {
    tensor.by_rank.resize(size_);
    tensor.since = now;
  }
  tensor.by_rank[rank] = signature;
  ++tensor.submitted;
  if (group != kNoGroup) tensor.groups.push_back(group);
  if (signature->op == OpKind::kJoin) OnJoin(rank);
}

bool Readiness::IsComplete(const Tensor& tensor) const {
  if (tensor.submitted == size_) return true;
  if (joined_count_ == 0 || IsJoin(tensor)) return false;
  for (int rank = 0; rank < size_; ++rank) {
    if (tensor.by_rank[rank] == nullptr && !joined_[rank]) return false;
  }
  return true;
}

void Readiness::ReleaseIfComplete(const std::string& name) {
  auto found = waiting_.find(name);
  if (found == waiting_.end() || !IsComplete(found->second)) return;
  const Names names = Connected(name);
  for (const std::string& connected : names) {
    if (!IsComplete(waiting_.at(connected))) return;
  }
  ready_.push_back(Remove(names));
  if (IsJoin(ready_.back().front())) {
    joined_.assign(size_, false);
    joined_count_ = 0;
  }
}

void Readiness::OnJoin(int rank) {
  if (!joined_[rank]) ++joined_count_;
  joined_[rank] = true;
  last_joined_rank_ = rank;
  Names complete;
  for (const auto& [name, tensor] : waiting_) {
    if (!IsJoin(tensor) && IsComplete(tensor)) complete.push_back(name);
  }
  // The table has no order of its own, and what is ready must have one.
  std::sort(complete.begin(), complete.end());
  for (const std::string& name : complete) ReleaseIfComplete(name);
}

Readiness::Names Readiness::Connected(const std::string& name) const {
  Names names{name};
  if (waiting_.at(name).groups.empty()) return names;
  absl::flat_hash_set<std::string> seen{name};
  for (size_t i = 0; i < names.size(); ++i) {
    for (uint64_t group : waiting_.at(names[i]).groups) {
      for (const std::string& member : groups_.at(group)) {
        if (seen.insert(member).second) names.push_back(member);
      }
    }
  }
  return names;
}

Readiness::Operation Readiness::Remove(const Names& names) {
  Operation operation;
  for (const std::string& name : names) {
    auto found = waiting_.find(name);
    for (uint64_t group : found->second.groups) groups_.erase(group);
    operation.push_back(std::move(found->second));
    waiting_.erase(found);
  }
  return operation;
}

std::vector<Readiness::Operation> Readiness::TakeReady() { return std::exchange(ready_, {}); }

Readiness::Operation Readiness::Take(const std::string& name) {
  if (!waiting_.contains(name)) return {};
  return Remove(Connected(name));
}

bool Readiness::IsWaiting(int rank, const std::string& name) const {
  auto found = waiting_.find(name);
  return found != waiting_.end() && found->second.by_rank[rank] != nullptr;
}

std::vector<int> Readiness::Missing(const Tensor& tensor) const {
  const bool join = IsJoin(tensor);
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (tensor.by_rank[rank] == nullptr && (join || !joined_[rank])) missing.push_back(rank);
  }
  return missing;
}

}  // namespace hvd
