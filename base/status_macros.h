// Macros for an early return on a failed absl::Status or absl::StatusOr. Abseil releases of 2022
// have no such macros; these have the form of the later ones and can be replaced by them.
#ifndef BASE_STATUS_MACROS_H_
#define BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Evaluates an expression of type absl::Status and returns it if it is not OK.
#define RETURN_IF_ERROR(expr)                                  \
  do {                                                         \
    ::absl::Status status_macro_status = (expr);               \
    if (!status_macro_status.ok()) return status_macro_status; \
  } while (false)

// ASSIGN_OR_RETURN(lhs, expr): assigns the value of a StatusOr, or returns its status.
#define ASSIGN_OR_RETURN(lhs, expr) \
  STATUS_MACROS_ASSIGN_OR_RETURN_(STATUS_MACROS_CONCAT_(status_or_, __LINE__), lhs, expr)

// `tmp` and `lhs` may be declarations, which can't stand in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define STATUS_MACROS_CONCAT_INNER_(a, b) a##b
#define STATUS_MACROS_CONCAT_(a, b) STATUS_MACROS_CONCAT_INNER_(a, b)
#define STATUS_MACROS_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                                    \
  if (!tmp.ok()) return std::move(tmp).status();        \
  lhs = std::move(tmp).value()
// NOLINTEND(bugprone-macro-parentheses)

#endif  // BASE_STATUS_MACROS_H_
