// Fuzz target: what ranks say of their NCCL and GPU, of strangers and of members of the group.
#include "collectives/nccl/capability_exchange.h"
#include "collectives/peer_proof.h"
#include "tests/support/fuzzing.h"

namespace hvd::collectives::nccl {
namespace {

GroupInfo Group(int rank) {
  GroupInfo group;
  group.rank = rank;
  group.size = 2;
  group.epoch = Epoch(7);
  group.secret = "the epoch's secret";
  return group;
}

// A message of a member, with any contents.
std::string Hello(int rank, absl::string_view body) {
  const GroupInfo group = Group(rank);
  const ProofSubject subject = {"nccl hello", group.epoch, group.size, rank, kEveryRank, body};
  return MakeProof(group.secret, subject) + std::string(body);
}

void Check(InputParts parts) {
  const std::string first(parts.Text());
  const std::string second(parts.Text());
  const auto of_members = CheckCapabilities(Group(0), {Hello(0, first), Hello(1, second)});
  if (!of_members.ok()) RequireOneLine(of_members.status());
  const auto of_strangers = CheckCapabilities(Group(0), {Hello(0, first), second});
  Require(absl::IsPermissionDenied(of_strangers.status()), "a stranger has no say");
}

}  // namespace
}  // namespace hvd::collectives::nccl

// Two bodies, each after its length.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  hvd::collectives::nccl::Check(hvd::InputParts(data, size));
  return 0;
}
