// The lines of JSON that an agent and the process that it has adopted exchange. Pure.
#ifndef AGENT_PROCESS_ADOPTION_LINES_H_
#define AGENT_PROCESS_ADOPTION_LINES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::agent::process {

// {"start": {"HOROVOD_RANK": "0", "HOROVOD_ELASTIC": null, ...}}: the changes that make of the
// environment `own` the environment `wanted`; null removes a variable.
std::string StartLine(const std::map<std::string, std::string>& own,
                      const std::map<std::string, std::string>& wanted);

// {"stop": 30}: the process has to leave within that many seconds.
std::string StopLine(absl::Duration grace);

// {"error": "..."}: why the agent can't do its part; it ends.
std::string ErrorLine(absl::string_view error);

// The code of {"exit": CODE}, the one line that the process may send; nullopt: it is none.
std::optional<int> ParseExitLine(absl::string_view line);

}  // namespace hvd::agent::process

#endif  // AGENT_PROCESS_ADOPTION_LINES_H_
