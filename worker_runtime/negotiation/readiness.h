// Who has submitted what: the coordinator's table.
#ifndef WORKER_RUNTIME_NEGOTIATION_READINESS_H_
#define WORKER_RUNTIME_NEGOTIATION_READINESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd {

// Not thread-safe.
//
// A tensor is complete when every rank has submitted one of its name, or has joined (joined ranks
// count for everything but join). Tensors that any rank submitted as a group become ready together,
// when all of them are complete; groups that share a tensor count as one.
class Readiness {
 public:
  struct Tensor {
    std::vector<SignaturePtr> by_rank;  // nullptr: not submitted
    int submitted = 0;
    absl::Time since;              // of the first submission
    std::vector<uint64_t> groups;  // that it belongs to
  };
  using Tensors = absl::flat_hash_map<std::string, Tensor>;

  // What must be run, or fail, as one.
  using Operation = std::vector<Tensor>;

  explicit Readiness(int size);

  // `rank` has submitted `group`.   InvalidArgument: a name of it is waiting already for this rank.
  absl::Status Add(int rank, absl::Span<const SignaturePtr> group, absl::Time now);

  // What has become ready since the last call, in that order. From the moment that join is ready no
  // rank is joined any more.
  std::vector<Operation> TakeReady();

  // Removes what can't become ready: the operation that the tensor belongs to. Empty if there is
  // none of that name.
  Operation Take(const std::string& name);

  // Whether `rank` has submitted `name` and others have not.
  bool IsWaiting(int rank, const std::string& name) const;

  const Tensors& waiting() const { return waiting_; }
  bool joined(int rank) const { return joined_[rank]; }
  int last_joined_rank() const { return last_joined_rank_; }

  // The ranks that `tensor` still needs.
  std::vector<int> Missing(const Tensor& tensor) const;

 private:
  using Names = std::vector<std::string>;

  bool IsComplete(const Tensor& tensor) const;
  void AddTensor(int rank, const SignaturePtr& signature, uint64_t group, absl::Time now);
  // Makes the operation that `name` belongs to ready if all of it is complete.
  void ReleaseIfComplete(const std::string& name);
  void OnJoin(int rank);
  // All names that hang together with `name` by groups, `name` first.
  Names Connected(const std::string& name) const;
  Operation Remove(const Names& names);

  const int size_;
  Tensors waiting_;
  absl::flat_hash_map<uint64_t, Names> groups_;  // of tensors that wait
  uint64_t last_group_ = 0;
  std::vector<bool> joined_;  // by rank
  int joined_count_ = 0;
  int last_joined_rank_ = -1;
  std::vector<Operation> ready_;
};

}  // namespace hvd

#endif  // WORKER_RUNTIME_NEGOTIATION_READINESS_H_
