#include "worker_runtime/negotiation/operation_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace hvd::worker_runtime::negotiation {

std::string OperationText(OpKind op, absl::string_view name) {
  // Names made by the frameworks' packages begin with the operation. In a text that names it, too,
  // that would be said twice.
  const std::string prefix = absl::StrCat(NameOf(op), ".");
  if (!absl::ConsumePrefix(&name, prefix)) {
    absl::ConsumePrefix(&name, absl::StrCat("grouped_", prefix));
  }
  return absl::StrCat(NameOf(op), " '", name, "'");
}

}  // namespace hvd::worker_runtime::negotiation
