// How messages name a rank of a backend.
#ifndef COLLECTIVES_RANK_TEXT_H_
#define COLLECTIVES_RANK_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/ids.h"
#include "collectives/types.h"

namespace hvd::collectives {

// "gloo, rank 1 of 4, epoch 3".
std::string RankText(absl::string_view backend, int rank, int size, Epoch epoch);

// `why`, which is an error, as that of this rank's connecting with its group.
absl::Status ConnectError(absl::string_view backend, const GroupInfo& group,
                          const absl::Status& why);

}  // namespace hvd::collectives

#endif  // COLLECTIVES_RANK_TEXT_H_
