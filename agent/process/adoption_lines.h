// The JSON lines of the protocol between an agent and its adopted process. Pure.
#ifndef AGENT_PROCESS_ADOPTION_LINES_H_
#define AGENT_PROCESS_ADOPTION_LINES_H_

#include <map>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace hvd::agent::process {

// {"start": {"HOROVOD_RANK": "0", "HOROVOD_ELASTIC": null, ...}}: the changes from the environment
// `own` to `wanted`; null removes a variable.
std::string StartLine(const std::map<std::string, std::string>& own,
                      const std::map<std::string, std::string>& wanted);

// {"stop": 30}: the process has to leave the job within that many seconds.
std::string StopLine(absl::Duration grace);

// {"error": "..."}: why the agent gives up; it then exits.
std::string ErrorLine(absl::string_view error);

// The code of {"exit": CODE}, the only line that the process may send; nullopt: `line` is something
// else.
std::optional<int> ParseExitLine(absl::string_view line);

}  // namespace hvd::agent::process

#endif  // AGENT_PROCESS_ADOPTION_LINES_H_
