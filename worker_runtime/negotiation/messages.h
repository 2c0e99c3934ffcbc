// The negotiation's messages. proto/negotiation.proto is the wire format and documents the fields;
// message_codec.h converts.
#ifndef WORKER_RUNTIME_NEGOTIATION_MESSAGES_H_
#define WORKER_RUNTIME_NEGOTIATION_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker_runtime/negotiation/tensor_signature.h"

namespace hvd::worker_runtime::negotiation {

// The id of a known signature. Ids increase during an epoch and are never reused.
using SignatureId = uint64_t;
inline constexpr SignatureId kNoSignatureId = 0;

// Why a rank ends the epoch.
enum class EndKind : int32_t {
  kLeft = 0,              // it leaves cleanly
  kBroken = 1,            // something failed; the status names it
  kCollectiveFailed = 2,  // a collective has failed, maybe as a consequence of a failure elsewhere
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
  SignaturePtr signature;  // set if known_id is kNoSignatureId
};

// A part of a rank's recorded timeline.
struct TimelinePart {
  uint64_t generation = 0;  // of the order for which it was recorded
  bool last = false;        // this rank's last part for that order
  std::string chunk;        // see timeline/chunk.h
};

// Rank 0's order to all ranks to start or stop their timelines.
struct TimelineOrder {
  uint64_t generation = 0;  // identifies an order to start
  bool records = false;     // start; false: stop
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
  // All-to-all: the number of rows that the receiver of the plan gets from each rank. The plan does
  // not contain those of the other ranks, because its size would be quadratic in the world's size.
  std::vector<int32_t> received_splits;
  bool moves_nothing = false;         // all-to-all: no rank sends anything
  std::vector<SignaturePtr> senders;  // all-to-all, on rank 0: the requests of all ranks
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
