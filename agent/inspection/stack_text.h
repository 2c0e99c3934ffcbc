// A parser and a one-clause summary of faulthandler's stack dumps. Pure.
#ifndef AGENT_INSPECTION_STACK_TEXT_H_
#define AGENT_INSPECTION_STACK_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvd::agent::inspection {

// The frames of a dump of Python's faulthandler, innermost first: "/home/me/train.py:42 in load".
// Lines that are not complete frames are left out.
std::vector<std::string> ParseStack(absl::string_view dump);

// "is at train.py:42 in load". If the innermost frame is in a library, the caller in the user's
// code is added: "is at threading.py:320 in wait, called at train.py:42 in load". REQUIRES:
// `frames` is not empty.
std::string DescribeStack(const std::vector<std::string>& frames);

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_STACK_TEXT_H_
