// The coordinator's table of which rank has submitted which tensor.
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
// A tensor is complete when every rank has submitted one of this name or has joined. (For the join
// operation itself, joined ranks do not count.) Tensors that some rank has submitted as a group
// become ready together, when all of them are complete. Groups that share a tensor form one bundle.
//
// A submission costs a few look-ups per tensor, whatever the size of its group and the number of
// ranks.
class Readiness {
 public:
  struct Tensor {
    std::vector<SignaturePtr> by_rank;  // nullptr: not submitted
    int submitted = 0;
    absl::Time since;  // when the first rank submitted it
    bool complete = false;
    uint64_t bundle = 0;  // the id of its bundle; 0: none
  };

  // A hash that counts its calls, and so the look-ups.
  struct CountingHash {
    using is_transparent = void;
    size_t operator()(absl::string_view name) const {
      ++*count;
      return absl::Hash<absl::string_view>()(name);
    }
    uint64_t* count;
  };
  using Tensors = absl::flat_hash_map<std::string, Tensor, CountingHash, std::equal_to<>>;

  // Tensors that must run, or fail, together.
  using Operation = std::vector<Tensor>;

  explicit Readiness(int size);
  Readiness(const Readiness&) = delete;
  Readiness& operator=(const Readiness&) = delete;

  // Records that `rank` has submitted `group`.
  // Errors:
  //   - InvalidArgument: the rank has already submitted a tensor of this name that still waits.
  absl::Status Add(int rank, absl::Span<const SignaturePtr> group, absl::Time now);

  // Returns the operations that have become ready since the last call, in that order. When a join
  // becomes ready, all ranks stop being joined.
  std::vector<Operation> TakeReady();

  // Removes and returns the operation of this tensor, which can't become ready. Empty if there is
  // no such tensor.
  Operation Take(const std::string& name);

  // Whether `rank` has submitted `name` and the tensor still waits for other ranks.
  bool IsWaiting(int rank, const std::string& name) const;

  const Tensors& waiting() const { return waiting_; }
  bool joined(int rank) const { return joined_[rank]; }
  int last_joined_rank() const { return last_joined_rank_; }

  // Returns the ranks for which `tensor` still waits.
  std::vector<int> Missing(const Tensor& tensor) const;

  // The number of look-ups so far, for tests of complexity.
  uint64_t look_ups() const { return look_ups_; }

 private:
  using Names = std::vector<std::string>;

  // Tensors that are connected by groups, directly or through other tensors.
  struct Bundle {
    Names names;
    size_t incomplete = 0;
  };

  bool IsComplete(const Tensor& tensor) const;
  void AddTensor(int rank, const SignaturePtr& signature, absl::Time now);
  void SetComplete(Tensor& tensor, bool complete);
  // Puts the tensors of a group into one bundle. REQUIRES: all of them are in the table.
  void Bind(absl::Span<const SignaturePtr> group);
  // Merges two bundles; returns the result.
  uint64_t Merge(uint64_t a, uint64_t b);
  // Moves the operation of tensor `name` to ready_ if all its tensors are complete.
  void ReleaseIfComplete(const std::string& name);
  void OnJoin(int rank);
  // Removes and returns the operation of `tensor`, which has this name.
  Operation Remove(const std::string& name, const Tensor& tensor);

  const int size_;
  uint64_t look_ups_ = 0;
  Tensors waiting_;
  absl::flat_hash_map<uint64_t, Bundle> bundles_;  // by id
  uint64_t last_bundle_ = 0;
  std::vector<bool> joined_;  // by rank
  int joined_count_ = 0;
  int last_joined_rank_ = -1;
  std::vector<Operation> ready_;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_READINESS_H_
