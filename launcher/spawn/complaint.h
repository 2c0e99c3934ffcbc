// Messages of the commands that reach hosts, and their meaning to somebody who wants to start a
// job. Pure.
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

// The explanation by the first of `complaints`, which are ordered by importance, that is in one of
// the lines; without "NAME:" in front of that line.
std::optional<Explanation> FindComplaint(absl::Span<const Complaint> complaints,
                                         const std::string& name,
                                         const std::vector<std::string>& lines);

}  // namespace hvd::launcher::spawn

#endif  // LAUNCHER_SPAWN_COMPLAINT_H_
