#include "collectives/messages/given_up.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace hvd::collectives::messages {
namespace {

constexpr char kPayload[] = "hvd.given_up";

}  // namespace

absl::Status GivenUpError(int rank) {
  absl::Status status = absl::UnavailableError(absl::StrCat("rank ", rank, " has given up"));
  status.SetPayload(kPayload, absl::Cord());
  return status;
}

bool IsGivenUp(const absl::Status& status) { return status.GetPayload(kPayload).has_value(); }

}  // namespace hvd::collectives::messages
