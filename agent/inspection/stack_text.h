// A parser of faulthandler's stack dumps, and a stack's description in a clause. Pure.
#ifndef AGENT_INSPECTION_STACK_TEXT_H_
#define AGENT_INSPECTION_STACK_TEXT_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hvd::agent::inspection {

// The frames of a dump of Python's faulthandler, innermost first: "/home/me/train.py:42 in load".
// Lines that are not complete frames are left out.
std::vector<std::string> ParseStack(absl::string_view dump);

// "is at train.py:42 in load"; if that is in a library, with the place of the call: "is at
// threading.py:320 in wait, called at train.py:42 in load". REQUIRES: there are frames.
std::string DescribeStack(const std::vector<std::string>& frames);

}  // namespace hvd::agent::inspection

#endif  // AGENT_INSPECTION_STACK_TEXT_H_
