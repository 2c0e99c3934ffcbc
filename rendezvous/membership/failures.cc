#include "rendezvous/membership/failures.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "rendezvous/phrases/phrases.h"

namespace hvd::rendezvous::membership {

std::string Failures::Complaint(const Worker& worker) const {
  if (!worker.exception.empty() || worker.last_world > Epoch(0)) return worker.exception;
  if (!worker.stderr_tail.empty()) return phrases::OneLine(worker.stderr_tail.back());
  const bool by_itself = absl::StartsWith(last.exit_meaning, "exit code");
  return by_itself ? last.exit_meaning : "";
}

bool Failures::IsUserBug(const Worker& worker, const std::string& machine, bool alone) {
  const std::string text = Complaint(worker);
  if (text.empty()) return false;
  for (const auto& [other_text, other_machine] : early) {
    if (other_text == text && (alone || other_machine != machine)) return true;
  }
  if (early.size() == kMostEarly) early.erase(early.begin());
  early.emplace_back(text, machine);
  return false;
}

Verdict Failures::GaveUp(const std::string& why) const {
  Verdict failure = last;
  failure.success = false;
  if (failure.exit_code == 0) failure.exit_code = 1;
  const std::string newest =
      failure.summary.empty() ? "" : absl::StrCat("; the last: ", failure.summary);
  failure.summary = absl::StrCat("gave up after ", why, newest);
  return failure;
}

}  // namespace hvd::rendezvous::membership
