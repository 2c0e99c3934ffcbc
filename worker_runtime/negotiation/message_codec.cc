#include "worker_runtime/negotiation/message_codec.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "proto/negotiation.pb.h"

namespace hvd::worker_runtime::negotiation {
namespace {

namespace wire = ::hvd::pb::negotiation;

bool IsKind(int32_t number, int count) { return number >= 0 && number < count; }

template <typename T, typename Repeated>
std::vector<T> ToVector(const Repeated& field) {
  return std::vector<T>(field.begin(), field.end());
}

void EncodeSignature(const TensorSignature& signature, wire::Signature& out) {
  out.set_name(signature.name);
  out.set_op(static_cast<int32_t>(signature.op));
  out.set_type(static_cast<int32_t>(signature.type));
  out.set_reduction(static_cast<int32_t>(signature.reduction));
  out.mutable_shape()->Add(signature.shape.begin(), signature.shape.end());
  out.set_prescale(signature.prescale);
  out.set_postscale(signature.postscale);
  out.set_root_rank(signature.root_rank);
  out.mutable_splits()->Add(signature.splits.begin(), signature.splits.end());
  out.set_on_device(signature.on_device);
  out.set_meaning(signature.meaning);
}

// The decoders check all that the rest of the code relies on (enumerators, indices, lengths of
// lists, products of dimensions), so that an invalid message can't do harm later.
absl::StatusOr<SignaturePtr> DecodeSignature(const wire::Signature& in, int size) {
  auto signature = std::make_shared<TensorSignature>();
  if (in.name().empty() || !IsKind(in.op(), kOpKindCount) ||
      !IsKind(in.type(), collectives::kDataTypeCount) || !IsKind(in.reduction(), kReductionCount) ||
      !IsKind(in.root_rank(), size)) {
    return absl::InvalidArgumentError("a tensor's signature is out of bounds");
  }
  signature->name = in.name();
  signature->op = static_cast<OpKind>(in.op());
  signature->type = static_cast<collectives::DataType>(in.type());
  signature->reduction = static_cast<Reduction>(in.reduction());
  signature->shape = ToVector<int64_t>(in.shape());
  signature->prescale = in.prescale();
  signature->postscale = in.postscale();
  signature->root_rank = in.root_rank();
  signature->splits = ToVector<int32_t>(in.splits());
  signature->on_device = in.on_device();
  signature->meaning = in.meaning();
  if (!IsSaneShape(signature->shape, signature->type)) {
    return absl::InvalidArgumentError(absl::StrCat("'", in.name(), "' has an impossible shape"));
  }
  // RowsTo indexes the splits by rank.
  if (!signature->splits.empty() && in.splits_size() != size) {
    return absl::InvalidArgumentError(absl::StrCat("'", in.name(), "' has impossible splits"));
  }
  return signature;
}

void EncodeEnd(const EpochEnd& end, wire::End& out) {
  out.set_rank(end.rank);
  out.set_code(static_cast<int32_t>(end.status.code()));
  out.set_message(std::string(end.status.message()));
  out.set_kind(static_cast<int32_t>(end.kind));
}

absl::StatusOr<EpochEnd> DecodeEnd(const wire::End& in, int size) {
  // An end with code 0 would be an OK status, and operations that never ran would succeed.
  if (!IsKind(in.rank(), size) || in.code() == 0 || !IsKind(in.kind(), kEndKindCount)) {
    return absl::InvalidArgumentError("the end of the epoch is out of bounds");
  }
  return EpochEnd{in.rank(), absl::Status(static_cast<absl::StatusCode>(in.code()), in.message()),
                  static_cast<EndKind>(in.kind())};
}

void EncodeTensor(const PlannedTensor& tensor, int receiver, wire::PlannedTensor& out) {
  if (tensor.known_id != kNoSignatureId) {
    out.set_known_id(tensor.known_id);
  } else {
    EncodeSignature(*tensor.signature, *out.mutable_signature());
  }
  out.set_new_id(tensor.new_id);
  out.mutable_first_dims()->Add(tensor.first_dims.begin(), tensor.first_dims.end());
  // Only the rows that the receiver gets: with those of all ranks the size of a plan would be
  // quadratic in the world's size.
  for (size_t rank = 0; rank < tensor.senders.size(); ++rank) {
    out.add_received_splits(
        RowsTo(*tensor.senders[rank], receiver, static_cast<int>(tensor.senders.size())));
  }
  out.set_moves_nothing(tensor.moves_nothing);
  out.set_last_joined_rank(tensor.last_joined_rank);
  out.mutable_absent_ranks()->Add(tensor.absent_ranks.begin(), tensor.absent_ranks.end());
  out.set_world_is_changing(tensor.world_is_changing);
}

// Checks the lists with one entry per rank: each operation has exactly those of its kind.
absl::Status CheckPerRankParts(const PlannedTensor& tensor, size_t size) {
  const OpTraits& traits = TraitsOf(tensor.signature->op);
  const bool exchanges = traits.Has(OpTrait::kHasSplits);
  const bool gathers = traits.Has(OpTrait::kRowsDiffer) && !exchanges;
  bool fits = tensor.first_dims.size() == (gathers ? size : 0) &&
              tensor.received_splits.size() == (exchanges ? size : 0) &&
              !((gathers || exchanges) && tensor.signature->shape.empty());
  for (int64_t dim : tensor.first_dims) fits = fits && dim >= 0;
  for (int32_t rows : tensor.received_splits) fits = fits && rows >= 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the plan for '", tensor.signature->name, "' is out of bounds"));
}

absl::StatusOr<PlannedTensor> DecodeTensor(const wire::PlannedTensor& in, int size,
                                           const KnownSignatures& known) {
  PlannedTensor tensor;
  tensor.known_id = in.known_id();
  if (tensor.known_id == kNoSignatureId) {
    ASSIGN_OR_RETURN(tensor.signature, DecodeSignature(in.signature(), size));
  } else {
    tensor.signature = known.Get(tensor.known_id);
    // Can't happen among ranks of one version: rank 0 names an id only after the plan that added
    // it, and plans are read in order.
    if (tensor.signature == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("the plan names signature ", tensor.known_id, ", which is not known"));
    }
  }
  tensor.new_id = in.new_id();
  tensor.first_dims = ToVector<int64_t>(in.first_dims());
  tensor.received_splits = ToVector<int32_t>(in.received_splits());
  tensor.moves_nothing = in.moves_nothing();
  tensor.last_joined_rank = in.last_joined_rank();
  tensor.absent_ranks = ToVector<int>(in.absent_ranks());
  tensor.world_is_changing = in.world_is_changing();
  RETURN_IF_ERROR(CheckPerRankParts(tensor, size));
  return tensor;
}

}  // namespace

std::string Encode(const Announcement& announcement) {
  wire::Announcement out;
  out.set_seen_sequence(announcement.seen_sequence);
  for (const auto& group : announcement.groups) {
    wire::Group& out_group = *out.add_groups();
    for (const AnnouncedTensor& tensor : group) {
      wire::AnnouncedTensor& out_tensor = *out_group.add_tensors();
      if (tensor.known_id != kNoSignatureId) {
        out_tensor.set_known_id(tensor.known_id);
      } else {
        EncodeSignature(*tensor.signature, *out_tensor.mutable_signature());
      }
    }
  }
  for (const std::string& name : announcement.blocked_on) out.add_blocked_on(name);
  out.set_world_is_changing(announcement.world_is_changing);
  if (announcement.end.has_value()) EncodeEnd(*announcement.end, *out.mutable_end());
  if (announcement.timeline.has_value()) {
    wire::TimelinePart& part = *out.mutable_timeline();
    part.set_generation(announcement.timeline->generation);
    part.set_last(announcement.timeline->last);
    part.set_chunk(announcement.timeline->chunk);
  }
  return out.SerializeAsString();
}

// Only the splits of an all-to-all depend on the receiver; see EncodeTensor.
bool IsAlikeForAll(const Plan& plan) {
  for (const Batch& batch : plan.batches) {
    for (const PlannedTensor& tensor : batch) {
      if (!tensor.senders.empty()) return false;
    }
  }
  return true;
}

std::string Encode(const Plan& plan, int receiver) {
  wire::Plan out;
  out.set_sequence(plan.sequence);
  // In the order in which all ranks run them: nothing else keeps their collectives in step.
  for (const Batch& batch : plan.batches) {
    wire::Batch& out_batch = *out.add_batches();
    for (const PlannedTensor& tensor : batch) {
      EncodeTensor(tensor, receiver, *out_batch.add_tensors());
    }
  }
  for (const Failure& failure : plan.failures) {
    wire::Failure& out_failure = *out.add_failures();
    for (const std::string& name : failure.names) out_failure.add_names(name);
    out_failure.set_message(failure.message);
  }
  out.mutable_evicted_ids()->Add(plan.evicted_ids.begin(), plan.evicted_ids.end());
  if (plan.end.has_value()) EncodeEnd(*plan.end, *out.mutable_end());
  if (plan.timeline.has_value()) {
    wire::TimelineOrder& order = *out.mutable_timeline();
    order.set_generation(plan.timeline->generation);
    order.set_records(plan.timeline->records);
    order.set_mark_cycles(plan.timeline->mark_cycles);
  }
  return out.SerializeAsString();
}

absl::StatusOr<Announcement> DecodeAnnouncement(absl::string_view bytes, int size) {
  wire::Announcement in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("not an announcement");
  }
  Announcement announcement;
  announcement.seen_sequence = in.seen_sequence();
  for (const wire::Group& in_group : in.groups()) {
    std::vector<AnnouncedTensor>& group = announcement.groups.emplace_back();
    for (const wire::AnnouncedTensor& in_tensor : in_group.tensors()) {
      AnnouncedTensor& tensor = group.emplace_back();
      // Not resolved here: only the coordinator also knows the ids evicted lately.
      tensor.known_id = in_tensor.known_id();
      if (tensor.known_id != kNoSignatureId) continue;
      ASSIGN_OR_RETURN(tensor.signature, DecodeSignature(in_tensor.signature(), size));
    }
  }
  announcement.blocked_on = ToVector<std::string>(in.blocked_on());
  announcement.world_is_changing = in.world_is_changing();
  if (in.has_end()) {
    ASSIGN_OR_RETURN(announcement.end, DecodeEnd(in.end(), size));
  }
  if (in.has_timeline()) {
    announcement.timeline.emplace(
        TimelinePart{in.timeline().generation(), in.timeline().last(), in.timeline().chunk()});
  }
  return announcement;
}

absl::StatusOr<Plan> DecodePlan(absl::string_view bytes, int size, const KnownSignatures& known) {
  wire::Plan in;
  if (!in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("not a plan");
  }
  Plan plan;
  plan.sequence = in.sequence();
  for (const wire::Batch& in_batch : in.batches()) {
    Batch& batch = plan.batches.emplace_back();
    for (const wire::PlannedTensor& in_tensor : in_batch.tensors()) {
      ASSIGN_OR_RETURN(PlannedTensor tensor, DecodeTensor(in_tensor, size, known));
      batch.push_back(std::move(tensor));
    }
    // The executor looks at the first tensor of each batch.
    if (batch.empty()) return absl::InvalidArgumentError("a batch of the plan is empty");
  }
  for (const wire::Failure& in_failure : in.failures()) {
    plan.failures.push_back(
        Failure{ToVector<std::string>(in_failure.names()), in_failure.message()});
  }
  plan.evicted_ids = ToVector<SignatureId>(in.evicted_ids());
  if (in.has_end()) {
    ASSIGN_OR_RETURN(plan.end, DecodeEnd(in.end(), size));
  }
  if (in.has_timeline()) {
    plan.timeline.emplace(TimelineOrder{in.timeline().generation(), in.timeline().records(),
                                        in.timeline().mark_cycles()});
  }
  return plan;
}

}  // namespace hvd::worker_runtime::negotiation
