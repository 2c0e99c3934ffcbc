// The description of a backend's rank in messages.
#ifndef COLLECTIVES_RANK_TEXT_H_
#define COLLECTIVES_RANK_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"
#include "collectives/types.h"

namespace hvd::collectives {

// "tcp, rank 1 of 4, epoch 3".
std::string RankText(absl::string_view backend, int rank, int size, Epoch epoch);

// Adds to the error `why` that it happened while this rank was being connected with its group.
absl::Status ConnectError(absl::string_view backend, const GroupInfo& group,
                          const absl::Status& why);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_RANK_TEXT_H_
