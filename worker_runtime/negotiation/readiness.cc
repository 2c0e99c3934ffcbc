#include "worker_runtime/negotiation/readiness.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace hvd::worker_runtime::negotiation {
namespace {

constexpr uint64_t kAlone = 0;  // the bundle of a tensor that is in no bundle

// Returns any rank's request; the caller needs only what all have in common.
const TensorSignature& AnyOf(const Readiness::Tensor& tensor) {
  return **std::find_if(tensor.by_rank.begin(), tensor.by_rank.end(),
                        [](const SignaturePtr& signature) { return signature != nullptr; });
}

bool IsJoin(const Readiness::Tensor& tensor) { return AnyOf(tensor).op == OpKind::kJoin; }

}  // namespace

Readiness::Readiness(int size)
    : size_(size), waiting_(0, CountingHash{&look_ups_}), joined_(size, false) {}

absl::Status Readiness::Add(int rank, absl::Span<const SignaturePtr> group, absl::Time now) {
  // The whole group is checked before the table changes.
  absl::flat_hash_set<absl::string_view> names;
  for (const SignaturePtr& signature : group) {
    auto found = waiting_.find(signature->name);
    const bool twice = found != waiting_.end() && found->second.by_rank[rank] != nullptr;
    if (twice || (group.size() > 1 && !names.insert(signature->name).second)) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, " has submitted '", signature->name, "' twice"));
    }
  }
  bool joins = false;
  for (const SignaturePtr& signature : group) {
    AddTensor(rank, signature, now);
    joins = joins || signature->op == OpKind::kJoin;
  }
  if (group.size() > 1) Bind(group);
  // After the group is in the table: the join of the last rank completes itself, too.
  if (joins) OnJoin(rank);
  // The group is in one bundle now, so checking one of its tensors is enough.
  if (!group.empty()) ReleaseIfComplete(group.front()->name);
  return absl::OkStatus();
}

void Readiness::AddTensor(int rank, const SignaturePtr& signature, absl::Time now) {
  Tensor& tensor = waiting_[signature->name];
  if (tensor.submitted == 0) {
    tensor.by_rank.resize(size_);
    tensor.since = now;
  }
  tensor.by_rank[rank] = signature;
  ++tensor.submitted;
  SetComplete(tensor, IsComplete(tensor));
}

bool Readiness::IsComplete(const Tensor& tensor) const {
  if (tensor.submitted == size_) return true;
  // The usual case is decided by the count alone; only with joined ranks are all ranks looked at. A
  // join itself needs every rank.
  if (joined_count_ == 0 || IsJoin(tensor)) return false;
  for (int rank = 0; rank < size_; ++rank) {
    if (tensor.by_rank[rank] == nullptr && !joined_[rank]) return false;
  }
  return true;
}

void Readiness::SetComplete(Tensor& tensor, bool complete) {
  if (tensor.complete == complete) return;
  tensor.complete = complete;
  if (tensor.bundle == kAlone) return;
  // The bundle counts its incomplete tensors, so that its readiness is one comparison, however many
  // tensors it has.
  Bundle& bundle = bundles_.at(tensor.bundle);
  bundle.incomplete = complete ? bundle.incomplete - 1 : bundle.incomplete + 1;
}

void Readiness::Bind(absl::Span<const SignaturePtr> group) {
  uint64_t id = waiting_.at(group.front()->name).bundle;
  if (id == kAlone) id = ++last_bundle_;
  for (const SignaturePtr& signature : group) {
    Tensor& tensor = waiting_.at(signature->name);
    if (tensor.bundle == kAlone) {
      tensor.bundle = id;
      Bundle& bundle = bundles_[id];
      bundle.names.push_back(signature->name);
      bundle.incomplete += tensor.complete ? 0 : 1;
    } else if (tensor.bundle != id) {
      id = Merge(id, tensor.bundle);
    }
  }
}

uint64_t Readiness::Merge(uint64_t a, uint64_t b) {
  // Union by size: the smaller bundle moves, so a tensor moves at most log2(n) times.
  if (bundles_.at(a).names.size() < bundles_.at(b).names.size()) std::swap(a, b);
  const Bundle moved = std::move(bundles_.at(b));
  bundles_.erase(b);
  Bundle& bundle = bundles_.at(a);
  for (const std::string& name : moved.names) {
    waiting_.at(name).bundle = a;
    bundle.names.push_back(name);
  }
  bundle.incomplete += moved.incomplete;
  return a;
}

void Readiness::ReleaseIfComplete(const std::string& name) {
  auto found = waiting_.find(name);
  if (found == waiting_.end() || !found->second.complete) return;
  const Tensor& tensor = found->second;
  if (tensor.bundle != kAlone && bundles_.at(tensor.bundle).incomplete > 0) return;
  ready_.push_back(Remove(name, tensor));
  // A join is complete when all ranks have joined; from now on they take part again.
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
  for (auto& [name, tensor] : waiting_) {
    // A join can complete any waiting tensor, so all are checked; joins are rare.
    if (tensor.complete || !IsComplete(tensor)) continue;
    SetComplete(tensor, true);
    complete.push_back(name);
  }
  // The hash table has no order. Sorting makes the order of plans reproducible.
  std::sort(complete.begin(), complete.end());
  for (const std::string& name : complete) ReleaseIfComplete(name);
}

Readiness::Operation Readiness::Remove(const std::string& name, const Tensor& tensor) {
  // A copy of the name: `name` may refer to a key of waiting_, which is erased below.
  Names names{name};
  if (tensor.bundle != kAlone) {
    const auto bundle = bundles_.find(tensor.bundle);
    names = std::move(bundle->second.names);
    bundles_.erase(bundle);
  }
  Operation operation;
  for (const std::string& each : names) {
    const auto found = waiting_.find(each);
    operation.push_back(std::move(found->second));
    waiting_.erase(found);
  }
  return operation;
}

std::vector<Readiness::Operation> Readiness::TakeReady() { return std::exchange(ready_, {}); }

Readiness::Operation Readiness::Take(const std::string& name) {
  const auto found = waiting_.find(name);
  if (found == waiting_.end()) return {};
  return Remove(name, found->second);
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

}  // namespace hvd::worker_runtime::negotiation
