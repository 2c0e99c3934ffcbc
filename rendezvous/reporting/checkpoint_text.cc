#include "rendezvous/reporting/checkpoint_text.h"

#include "absl/strings/str_cat.h"

namespace hvd::rendezvous::reporting {

std::string CheckpointText(const membership::Membership::View& view) {
  if (view.checkpoint_place.empty()) return "";
  const std::string& failure = view.checkpoint_failure;
  if (view.checkpoint == 0) {
    return absl::StrCat("no checkpoint was written",
                        failure.empty() ? absl::StrCat(" to ", view.checkpoint_place)
                                        : absl::StrCat(": ", failure));
  }
  return absl::StrCat("newest checkpoint: commit ", view.checkpoint, ", ", view.checkpoint_place,
                      failure.empty() ? "" : absl::StrCat(" (then: ", failure, ")"));
}

std::string LastCheckpointText(const membership::Membership::View& view, bool success) {
  std::string text = CheckpointText(view);
  if (success || text.empty()) return text;
  // If training did not begin, e.g. because the checkpoint does not fit the script, it may not
  // begin the next time either.
  if (view.checkpoint > 0 && view.has_begun)
    absl::StrAppend(&text, "; the same command goes on from there");
  if (view.unsaved_commit > 0)
    absl::StrAppend(&text, "; commit ", view.unsaved_commit, " is lost: no checkpoint has it");
  return text;
}

}  // namespace hvd::rendezvous::reporting
