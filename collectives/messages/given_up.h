// The error of a messenger that hears of a failure by another rank's messenger.
#ifndef COLLECTIVES_MESSAGES_GIVEN_UP_H_
#define COLLECTIVES_MESSAGES_GIVEN_UP_H_

#include "absl/status/status.h"

namespace hvd::collectives::messages {

// Rank `rank` says that it has failed, but not why.
absl::Status GivenUpError(int rank);
// Whether an error is such a one. Who knows the failure of the whole group knows its cause better.
bool IsGivenUp(const absl::Status& status);

}  // namespace hvd::collectives::messages

#endif  // COLLECTIVES_MESSAGES_GIVEN_UP_H_
