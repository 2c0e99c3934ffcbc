// The explanation of error messages of remote commands such as ssh and srun. Pure.
#ifndef LAUNCHER_SPAWN_COMPLAINT_H_
#define LAUNCHER_SPAWN_COMPLAINT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "launcher/spawn/host_launcher.h"

namespace hvd::launcher::spawn {

struct Complaint {
  absl::string_view sentence;
  absl::string_view meaning;  // HOST stands for the host
};

// Returns the explanation of the first of `complaints`, which are ordered by importance, whose
// sentence is in one of the lines. Explanation::line is that line without a leading "NAME:".
std::optional<Explanation> FindComplaint(absl::Span<const Complaint> complaints,
                                         const std::string& name,
                                         const std::vector<std::string>& lines);

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_COMPLAINT_H_
