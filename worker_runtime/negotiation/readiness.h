// The readiness table of the coordinator: which rank has submitted which tensor.
#ifndef WORKER_RUNTIME_NEGOTIATION_READINESS_H_
#define WORKER_RUNTIME_NEGOTIATION_READINESS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::negotiation {

// Not thread-safe.
//
// A tensor is complete when every rank has submitted one of its name, or has joined (joined ranks
// count for everything but join). Tensors that any rank submitted as a group become ready together,
// when all of them are complete; groups that share a tensor count as one.
//
// A submission costs a few look-ups for each of its tensors, independent of the sizes of their
// groups and of the number of ranks.
class Readiness {
 public:
  struct Tensor {
    std::vector<SignaturePtr> by_rank;  // nullptr: not submitted
    int submitted = 0;
    absl::Time since;  // of the first submission
    bool complete = false;
    uint64_t bundle = 0;  // the bundle that it belongs to; 0: none
  };

  // Counts the look-ups.
  struct CountingHash {
    using is_transparent = void;
    size_t operator()(absl::string_view name) const {
      ++*count;
      return absl::Hash<absl::string_view>()(name);
    }
    uint64_t* count;
  };
  using Tensors = absl::flat_hash_map<std::string, Tensor, CountingHash, std::equal_to<>>;

  // Tensors that must be run, or fail, together, in the order of the first submissions.
  using Operation = std::vector<Tensor>;

  explicit Readiness(int size);
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // `rank` has submitted `group`.
  // Errors:
  //   - InvalidArgument: a name of it is waiting already for this rank.
  absl::Status Add(int rank, absl::Span<const SignaturePtr> group, absl::Time now);

  // The operations that have become ready since the last call, in that order. As soon as join is
  // ready no rank is joined any more.
  std::vector<Operation> TakeReady();

  // Removes an operation that can't become ready: the one of this tensor. Empty if there is none of
  // that name.
  Operation Take(const std::string& name);

  // Whether `rank` has submitted `name` and others have not.
  bool IsWaiting(int rank, const std::string& name) const;

  const Tensors& waiting() const { return waiting_; }
  bool joined(int rank) const { return joined_[rank]; }
  int last_joined_rank() const { return last_joined_rank_; }

  // The ranks that `tensor` still needs.
  std::vector<int> Missing(const Tensor& tensor) const;

  // The number of look-ups so far, for tests of complexity.
  uint64_t look_ups() const { return look_ups_; }

 private:
  using Names = std::vector<std::string>;

  // Tensors that are connected by groups.
  struct Bundle {
    Names names;
    size_t incomplete = 0;
  };

  bool IsComplete(const Tensor& tensor) const;
  void AddTensor(int rank, const SignaturePtr& signature, absl::Time now);
  void SetComplete(Tensor& tensor, bool complete);
  // Puts the tensors of a group, all of which wait, into one bundle.
  void Bind(absl::Span<const SignaturePtr> group);
  // Merges two bundles; returns the result.
  uint64_t Merge(uint64_t a, uint64_t b);
  // Makes the operation that `name` belongs to ready if all of it is complete.
  void ReleaseIfComplete(const std::string& name);
  void OnJoin(int rank);
  // The operation that `tensor`, of that name, belongs to.
  Operation Remove(const std::string& name, const Tensor& tensor);

  const int size_;
  uint64_t look_ups_ = 0;
  Tensors waiting_;
  absl::flat_hash_map<uint64_t, Bundle> bundles_;  // of tensors that wait
  uint64_t last_bundle_ = 0;
  std::vector<bool> joined_;  // by rank
  int joined_count_ = 0;
  int last_joined_rank_ = -1;
  std::vector<Operation> ready_;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_READINESS_H_
