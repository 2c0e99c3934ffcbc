#include "agent/stdio_agent.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agent/agent_input.h"
#include "agent/output/frame_writer.h"
#include "agent/protocol/agent_protocol.h"
#include "base/version.h"

namespace hvd::agent {

int RunStdioAgent(EventLoop& loop, int input, int output, Agent::OpenLink open_link,
                  AgentSettings settings) {
  output::FrameWriter writer(loop, output);
  Agent agent(loop, writer, std::move(open_link), settings);
  const AgentInput launcher(
      loop, input,
      {[&](const pb::AgentBootstrap& bootstrap) { agent.Begin(bootstrap); },
       [&] { agent.LauncherGone(); },
       [&](const absl::Status& status) {
         agent.Refuse(absl::StrCat(protocol::kAgentProgram, " ", kVersion,
                                   " can't read what horovodrun sent (", status.message(),
                                   "); are the versions the same?"));
       }});
  // The marker separates the frames from anything that a login shell has printed before.
  writer.SendRaw(protocol::kFrameMagic);
  return agent.Run();
}

}  // namespace hvd::agent
