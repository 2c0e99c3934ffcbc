// The negotiation's messages as values. proto/negotiation.proto is the wire format and defines the
// fields; message_codec.h converts.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGES_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::negotiation {

// The ids of known signatures increase during the whole epoch and are never reused.
using SignatureId = uint64_t;
inline constexpr SignatureId kNoSignatureId = 0;

// Why a rank ends the epoch.
enum class EndKind : int32_t {
  kLeft = 0,    // cleanly
  kBroken = 1,  // something broke; the status names it
  kCollectiveFailed =
      2,  // a collective reports an error, which may be a consequence of a failure elsewhere
};
inline constexpr int kEndKindCount = 3;

// How an epoch ended.
struct EpochEnd {
  int rank = 0;  // the rank that ended it
  absl::Status status;
  EndKind kind = EndKind::kBroken;
};

struct AnnouncedTensor {
  SignatureId known_id = kNoSignatureId;
  SignaturePtr signature;  // if known_id is kNoSignatureId
};

// A part of a rank's recorded timeline.
struct TimelinePart {
  uint64_t generation = 0;  // of the order that it was recorded for
  bool last = false;        // of this rank, for that order
  std::string chunk;        // see timeline/chunk.h
};

// Rank 0's order to all timelines.
struct TimelineOrder {
  uint64_t generation = 0;  // of orders to record; each has another one
  std::string path;         // the file; empty: stop
  bool mark_cycles = false;
};

struct Announcement {
  uint64_t seen_sequence = 0;
  std::vector<std::vector<AnnouncedTensor>> groups;
  std::vector<std::string> blocked_on;
  std::optional<EpochEnd> end;
  bool world_is_changing = false;
  std::optional<TimelinePart> timeline = std::nullopt;
};

struct PlannedTensor {
  SignaturePtr signature;
  SignatureId known_id = kNoSignatureId;
  SignatureId new_id = kNoSignatureId;
  std::vector<int64_t> first_dims;
  // All-to-all: the rows that the plan's receiver gets from each rank. Those of the other ranks are
  // left out: with them a plan would grow with the square of the world's size.
  std::vector<int32_t> received_splits;
  bool moves_nothing = false;         // all-to-all: no rank sends anything
  std::vector<SignaturePtr> senders;  // all-to-all, on rank 0: all ranks' requests
  int last_joined_rank = -1;
  std::vector<int> absent_ranks;
  bool world_is_changing = false;
};

using Batch = std::vector<PlannedTensor>;

struct Failure {
  std::vector<std::string> names;
  std::string message;
};

struct Plan {
  uint64_t sequence = 0;
  std::vector<Batch> batches;
  std::vector<Failure> failures;
  std::vector<SignatureId> evicted_ids;
  std::optional<EpochEnd> end;
  std::optional<TimelineOrder> timeline;
};

}  // namespace hvd::worker_runtime::negotiation

#endif  // WORKER_RUNTIME_NEGOTIATION_MESSAGES_H_
